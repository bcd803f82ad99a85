"""The call `POST /`: events in, and what became of them in words that brokers understand.

A broker takes every 2xx for the end of it, tries again after 429 and 5xx, and gives up what
got another 4xx. An answer is empty or a CloudEvent, as anything else would count as a failure.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from aiohttp import hdrs, web

from function.background.events import wire
from function.background.events.event import BATCH
from function.background.events.outcome import OutcomeKind
from function.http.edge import exchange_of
from function.http.offload import offload
from function.problems import Problem
from function.service.health import check_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp.web import Request, Response

    from function.admission.caller import RequestCaller
    from function.background.events.outcome import Outcome
    from function.background.events.processor import EventProcessor
    from function.http.admission import HttpAdmission
    from function.http.body import BodyReader
    from warmup.replica import Replica

OUTCOME = "Ember-Event"
_MAX_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class EventHandlers:
    """Handler of events.

    Attributes:
        processor: takes them in; None where none are.
        replica: says whether they can be done.
        admission: lets requests in.
        bodies: reads them.
        senders: who may send events, where callers say who they are.
    """

    processor: EventProcessor | None
    replica: Replica
    admission: HttpAdmission
    bodies: BodyReader
    senders: frozenset[str]

    async def take(self, request: Request) -> Response:
        """Take in what a request brings."""
        if self.processor is None:
            raise Problem(
                "not_found",
                "This server takes no events in.",
                hint="On the server, EMBER_EVENTS has to name an events.toml; see docs/events.md.",
            )
        check_open(self.replica)
        began = asyncio.get_running_loop().time()
        async with self.admission.admit(request, waits=False) as admitted:
            self._check_sender(admitted.caller)
            bodies = replace(self.bodies, max_bytes=_MAX_BYTES, setting="")
            data = bytes(await bodies.read(request))
            delivery = await offload(len(data), wire.parse, request.headers.items(), data)
            outcomes = await asyncio.gather(
                *(self.processor.take(event, began) for event in delivery.events)
            )
        kinds = Counter(str(outcome.kind) for outcome in outcomes)
        exchange_of(request).headers[OUTCOME] = ", ".join(
            kind if len(outcomes) == 1 else f"{kind};n={count}" for kind, count in kinds.items()
        )
        if worst := _worst(outcomes):
            raise worst
        if any(outcome.kind is OutcomeKind.ACCEPTED for outcome in outcomes):
            return web.Response(status=202)
        results = [
            each.result for each in outcomes if each.result and self.processor.answers_results
        ]
        if not results:
            return web.Response(status=204)
        if len(outcomes) == 1 and not delivery.batch:
            headers, data = results[0].binary()
            return web.Response(body=data, headers=headers)
        data = json.dumps([each.structured() for each in results]).encode()
        return web.Response(body=data, headers={hdrs.CONTENT_TYPE: BATCH})

    def _check_sender(self, caller: RequestCaller) -> None:
        """See that whoever sends this may tell of uploads, which costs nothing.

        Raises:
            Problem: `forbidden`.
        """
        if caller.subject is None or not self.senders.isdisjoint(caller.names):
            return
        raise Problem(
            "forbidden",
            "This caller may not send events.",
            hint="On the server, EMBER_EVENT_SENDERS has to name it; see docs/events.md.",
            setting="EMBER_EVENT_SENDERS",
        )


def _worst(outcomes: Sequence[Outcome]) -> Problem | None:
    """The problem that is the answer, if any.

    That is one that makes the broker deliver all again, else one that no result event tells of,
    else one when nothing has worked. Of a batch that has worked in part, the results tell.
    """
    found = [(each.problem, each.result) for each in outcomes if each.problem]
    for problem, result in sorted(found, key=lambda each: -each[0].kind.status):
        if problem.kind.status >= 500 or result is None or len(found) == len(outcomes):
            return problem
    return None
