"""The calls about tokens: `GET /v1/quota` and `POST /v1/quota/{subject}/grants`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from function.admission.caller import SUBJECT
from function.admission.quota import audit
from function.http import answers
from function.http.fields import Value
from function.http.form_reader import no_query
from function.problems import Problem

if TYPE_CHECKING:
    from aiohttp.web import Request, Response

    from function.admission.quota import Quota
    from function.http.admission import HttpAdmission
    from function.http.fields import Table
    from function.http.form_reader import FormReader

GRANT: Table = {
    "tokens": Value(
        "How many tokens.", {"type": "integer", "minimum": 1, "maximum": 1_000_000}, required=True
    ),
    "reason": Value("For the log.", {"type": "string", "maxLength": 200}),
}
IDEMPOTENCY = "Idempotency-Key"

_KEY = re.compile(r"[!-~]{1,128}")


@dataclass(frozen=True, slots=True)
class QuotaHandlers:
    """Handlers of the calls about tokens."""

    admission: HttpAdmission
    forms: FormReader
    quota: Quota

    async def standing(self, request: Request) -> Response:
        """How the caller stands."""
        no_query(request)
        async with self.admission.admit(request, waits=False) as admitted:
            caller, tier = admitted.caller, admitted.caller.tier
            facts: dict[str, Any] = {
                "subject": caller.subject,
                "tier": tier.name,
                "lane": str(admitted.context.lane),
                "unlimited": caller.account is None,
            }
            if standing := await admitted.look_up_standing():
                facts |= {
                    "tokens": standing.tokens,
                    "allowance": standing.allowance.tokens,
                    "granted": standing.account.granted,
                    "period_s": tier.refill_s,
                    "refill_s": standing.refill_s,
                    "cap": tier.cap,
                }
            return answers.plain(facts)

    async def grant(self, request: Request) -> Response:
        """Grant tokens to a subject, once for each key."""
        async with self.admission.admit(request, waits=False) as admitted:
            operator = admitted.caller
            if not operator.tier.operator or operator.subject is None:
                raise Problem("forbidden", "Only an operator may grant tokens.")
            subject, key = request.match_info["subject"], request.headers.get(IDEMPOTENCY, "")
            if not SUBJECT.fullmatch(subject):
                raise Problem("not_found", "A subject is 1 to 255 visible ASCII characters.")
            if not _KEY.fullmatch(key):
                raise Problem(
                    "bad_request", f"{IDEMPOTENCY} has to be 1 to 128 visible ASCII characters."
                )
            form = await self.forms.read(request, GRANT)
            tokens, reason = form.values["tokens"], form.values.get("reason", "")
            granted = await self.quota.grant(subject, tokens, key)
            before = granted.before
            named = {
                "operator": operator.subject,
                "subject": subject,
                "key": key,
                "reason": reason,
            }
            audit.info("grant", extra=named | {"tokens": tokens, "before": before})
            if before not in {None, tokens}:
                raise Problem(
                    "bad_value",
                    f"{IDEMPOTENCY} was used for another grant, of {before} tokens.",
                    field="tokens",
                    hint=f"Use another {IDEMPOTENCY} for another grant.",
                )
            return answers.plain(
                {
                    "subject": subject,
                    "tokens": tokens,
                    "repeated": before is not None,
                    "granted": granted.balance.account.granted,
                }
            )
