"""What Knative's webhook refuses: the rules of `ember doctor`, for all Services of manifests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.doctor import webhook
from keepalive.doctor.doctor import examine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.knative.manifests import Manifests


def _each(rule):
    """A rule for one Service as a check of manifests."""

    def check(manifests: Manifests) -> Iterator[str]:
        for service in manifests.services:
            yield from rule(service, manifests.config)

    check.__name__ = rule.__name__
    return check


form, names, annotated, scale, limits, refused, flags = map(_each, (*webhook.RULES, webhook.flags))


def idle_flags(manifests: Manifests) -> Iterator[str]:
    """Flags that `knative/platform` turns on, for good, though nothing needs them."""
    for flag in examine(manifests.documents, manifests.config).idle:
        yield f"nothing needs {flag}"


CHECKS = (form, names, annotated, scale, limits, refused, flags)
