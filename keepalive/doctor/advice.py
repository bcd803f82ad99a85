"""What Knative takes and does, although it is seldom meant: warnings.

Each rule takes one Knative Service whose shape is right, and yields what it will come to and what
to write instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepalive.cluster.autoscaling import PREFIX, alias, setting
from keepalive.cluster.pin import complaint
from keepalive.doctor import images
from keepalive.doctor.view import REVISION, Role, Thing, annotations_of, containers, get, many
from keepalive.doctor.view import revision as revision_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from keepalive.doctor.config import KnativeConfig

_OURS = ("EMBER_REQUEST_TIMEOUT_S", "EMBER_BODY_TIMEOUT_S")


def pin(service: Thing) -> str | None:
    """What traffic that names a revision comes to; None where all follows the latest."""
    name = str(get(service, "metadata").get("name") or "?")
    metadata = {"name": name, "annotations": get(service, "metadata", "annotations")}
    spec = {"traffic": many(get(service, "spec"), "traffic")}
    if not (warning := complaint({"metadata": metadata, "spec": spec})):
        return None
    return f"{warning} Without Ember: kn service update {name} --traffic @latest=100"


def pinned(service: Thing, _: KnativeConfig, __: Mapping[str, str]) -> Iterator[str]:
    """Traffic that names a revision."""
    if warning := pin(service):
        yield warning


def held(service: Thing, config: KnativeConfig, _: Mapping[str, str]) -> Iterator[str]:
    """A time limit that ends what waits for a cold start.

    The activator applies idleTimeoutSeconds to the requests that it holds.
    """
    spec, given = revision_of(service), annotations_of(service)
    none = "0" in {setting(given, "min-scale") or "0", setting(given, "initial-scale")}
    whole = spec.get("timeoutSeconds") or config.seconds
    start, idle = spec.get("responseStartTimeoutSeconds") or whole, spec.get("idleTimeoutSeconds")
    if none and config.scales_to_zero and idle and idle < start:
        yield (
            f"{REVISION}.idleTimeoutSeconds: a request that waits for a cold start ends in a bare"
            f" 504 after {idle} s, not after the {start} s until a response has to begin; write as"
            " much as the worst cold start takes"
        )


def deadlines(service: Thing, config: KnativeConfig, settings: Mapping[str, str]) -> Iterator[str]:
    """Limits of Ember and of Knative in the wrong order: who answers last answers with a bare 504.

    Right is: Ember's own, then responseStartTimeoutSeconds, then timeoutSeconds.
    """
    spec = revision_of(service)
    whole = spec.get("timeoutSeconds") or config.seconds
    start = spec.get("responseStartTimeoutSeconds") or whole
    ours = {name: settings[name] for name in _OURS if name in settings}
    for name, text in ours.items():
        if text.replace(".", "", 1).isdecimal() and float(text) >= start:
            yield f"{name}: {text} must be below the {start} s in which Knative wants a response"
    if ours and spec.get("responseStartTimeoutSeconds") and start >= whole:
        at = f"{REVISION}.responseStartTimeoutSeconds"
        yield f"{at}: {start} must be below timeoutSeconds, {whole}"


def idle(service: Thing, _: KnativeConfig, __: Mapping[str, str]) -> Iterator[str]:
    """Values that have no effect because of others."""
    given = annotations_of(service)
    for name in sorted(given):
        short = name.removeprefix(PREFIX)
        if short != name and alias(short) != short and PREFIX + alias(short) in given:
            yield f"{PREFIX}{alias(short)} has no effect beside {name}; leave one"
    least = setting(given, "min-scale") or "0"
    if least != "0" and setting(given, "scale-to-zero-pod-retention-period") not in {None, "0s"}:
        yield (
            f"scale-to-zero-pod-retention-period has no effect with min-scale {least}: the last"
            " replica never goes"
        )
    if least != "0" and setting(given, "initial-scale") == "0":
        yield (
            f"initial-scale 0 has no effect with min-scale {least}: a new revision waits for"
            f" {least}, and where there is room for the old one's replicas only, for ever; write"
            " min-scale 0 and a scale-to-zero-pod-retention-period"
        )
    if any("/resource-percentage" in name or "/resourcePercentage" in name for name in given):
        yield "queue.sidecar…/resource-percentage is deprecated; write …/cpu-resource-request etc."


def dropped(service: Thing, _: KnativeConfig, __: Mapping[str, str]) -> Iterator[str]:
    """Capabilities that are dropped in small letters (warnDefaultContainerSecurityContext)."""
    for one in containers(revision_of(service)):
        if "all" in (get(one.given, "securityContext", "capabilities").get("drop") or []):
            yield f"{one.at}.securityContext.capabilities.drop: 'all' drops nothing; write ALL"


def unseen(service: Thing, _: KnativeConfig, settings: Mapping[str, str]) -> Iterator[str]:
    """An image for a GPU of which nothing says what it can run."""
    yield from images.unseen(service, settings)


RULES = (pinned, held, deadlines, idle, dropped, unseen)


def settings_of(service: Thing, documents: list[Thing]) -> dict[str, str]:
    """The variables of the serving container, those of ConfigMaps among some objects included."""
    maps = {
        get(one, "metadata").get("name"): get(one, "data")
        for one in documents
        if one.get("kind") == "ConfigMap"
    }
    found: dict[str, str] = {}
    for one in containers(revision_of(service)):
        if one.role is not Role.SERVING:
            continue
        for source in many(one.given, "envFrom"):
            data = maps.get(get(source, "configMapRef").get("name"), {})
            found |= {name: text for name, text in data.items() if isinstance(text, str)}
        found |= {
            str(each.get("name")): each["value"]
            for each in many(one.given, "env")
            if each.get("value") is not None
        }
    return found
