"""Which pages of browsers may call: those of the server itself, and those that the operator names.

A browser sends requests for whatever page it shows. Where callers say who they are, a foreign page
lacks the credentials; where nobody does, the browser on the same machine is all that it needs. So
there the names `Host` and `Origin` decide (DNS rebinding, cross-site requests).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import hdrs

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from function.settings.access import AccessSettings, AddressSettings

ANY = "*"
_SENT = (
    "Authorization, Content-Type, Ember-Consent, Ember-Lane, Ember-Ping, Ember-Request-Id,"
    " Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Prefer, Range, Request-Timeout,"
    " traceparent, tracestate, X-Request-Id"
)
_TOLD = (
    "Accept-Ranges, Allow, Content-Range, Ember-Degraded, Ember-Event, Ember-Request-Id,"
    " Ember-Warnings, ETag, Location, Preference-Applied, RateLimit, RateLimit-Policy, Retry-After,"
    " Server-Timing, WWW-Authenticate"
)
_KEPT_S = "600"


@dataclass(frozen=True, slots=True)
class Origins:
    """Decides about a request by its headers.

    Attributes:
        allowed: origins of other pages that may call; `ANY` among them is all.
        anonymous: whether nobody says who he is.
        own: the name that the server listens on, where only its own machine can reach it and
            nothing in front decides who may call; None elsewhere.
    """

    allowed: frozenset[str] = frozenset()
    anonymous: bool = False
    own: str | None = None

    @classmethod
    def of(cls, address: AddressSettings, access: AccessSettings) -> Origins:
        """As the settings say.

        Without authentication, a server listens to its own machine only, unless they allow
        everybody.
        """
        anonymous = access.auth == "none"
        own = address.host.lower() if anonymous and not address.allow_anonymous else None
        return cls(frozenset(address.cors_origins), anonymous, own)

    def check(self, headers: Mapping[str, str]) -> None:
        """See that the page that sends a request may do so.

        Raises:
            Problem: `forbidden`.
        """
        if not self.anonymous:
            return
        host, origin = headers.get(hdrs.HOST), headers.get(hdrs.ORIGIN)
        here = host is not None and _is_loopback(host)
        if self.own and host is not None and not here and _name(host) != self.own:
            raise Problem(
                "forbidden",
                "The name in `Host` is none of this machine, and nobody here says who he is.",
                hint="Call localhost; or, where something in front of the server decides who may"
                " call, set EMBER_ALLOW_ANONYMOUS=true on the server.",
                setting="EMBER_ALLOW_ANONYMOUS",
            )
        if not (self.own or here) or origin is None or self._allows(origin):
            return
        if host is None or not _same(origin, host):
            raise Problem(
                "forbidden",
                "The page that sends this is of another origin, and nobody here says who he is.",
                hint="On the server, EMBER_CORS_ORIGINS names the origins that may call.",
                setting="EMBER_CORS_ORIGINS",
            )

    def answer(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers that let a page of another origin see the answer to its request."""
        origin = headers.get(hdrs.ORIGIN)
        if origin is None or not self._allows(origin):
            return {}
        told = {"Access-Control-Expose-Headers": _TOLD}
        return told | {"Access-Control-Allow-Origin": ANY if ANY in self.allowed else origin}

    def preflight(self, headers: Mapping[str, str], methods: str) -> dict[str, str]:
        """The headers of the answer to a browser that asks whether a page may send a request."""
        if "Access-Control-Request-Method" not in headers or not self.answer(headers):
            return {}
        return {
            "Access-Control-Allow-Methods": methods,
            "Access-Control-Allow-Headers": _SENT,
            "Access-Control-Max-Age": _KEPT_S,
        }

    @property
    def vary(self) -> bool:
        """Whether answers depend on who asks."""
        return bool(self.allowed) and ANY not in self.allowed

    def _allows(self, origin: str) -> bool:
        return ANY in self.allowed or origin.lower() in self.allowed


def _name(host: str) -> str:
    """The name or address in a `Host` header, without brackets and port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    """Whether a `Host` header names the machine itself, whatever a name server says."""
    name = _name(host)
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def _same(origin: str, host: str) -> bool:
    scheme, separator, rest = origin.lower().partition("://")
    return scheme in {"http", "https"} and bool(separator) and rest == host.lower()
