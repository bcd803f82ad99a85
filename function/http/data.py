"""The call about what is stored of its caller: `DELETE /v1/data`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.http import answers
from function.http.edge import exchange_of
from function.http.form_reader import no_query
from function.http.job_requests import answered
from function.problems import Problem
from function.request_context import Entry, Sender

if TYPE_CHECKING:
    from aiohttp.web import Request, Response

    from function.background.jobs.erasure import Erasure
    from function.http.admission import HttpAdmission


@dataclass(frozen=True, slots=True)
class DataHandlers:
    """The handler of the call about stored data.

    Attributes:
        admission: lets requests in.
        erasure: deletes.
    """

    admission: HttpAdmission
    erasure: Erasure

    async def delete(self, request: Request) -> Response:
        """Delete all that is stored of the caller; the receipt."""
        no_query(request)
        async with self.admission.admit(request, waits=False) as admitted:
            caller = admitted.caller
            if caller.subject is None:
                raise Problem(
                    "forbidden",
                    "Data are deleted for callers who say who they are, and nobody does here.",
                    hint="Delete each job by its id.",
                )
            id_ = exchange_of(request).request_id
            sender = Sender(Entry.HTTP, id_, caller.subject, caller.tier.name)
            receipt = await answered(self.erasure.erase(caller.subject, sender))
        return answers.plain(receipt.facts())
