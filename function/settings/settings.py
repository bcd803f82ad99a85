"""All settings: the groups that the parts of Ember get, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from function.settings.access import AccessSettings, AddressSettings, RedisSettings
from function.settings.audit import AuditSettings
from function.settings.background import EventSettings, JobSettings
from function.settings.engines import EngineSettings, ReplicaSettings
from function.settings.gate import GateSettings, contradictions
from function.settings.marking import MarkingSettings
from function.settings.process import ProcessSettings, TelemetrySettings
from function.settings.requests import ImageSettings, RequestSettings, UriSettings
from warmup.settings import variables
from warmup.settings.settings import WarmupSettings
from warmup.settings.variables import group

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Settings(WarmupSettings):
    """The effective settings in groups; each part of Ember gets those groups that it needs.

    Those of the warm-up package are among them. A value is named as its variable:
    `images.max_pixels` is `EMBER_MAX_PIXELS`.
    """

    address: AddressSettings = group(AddressSettings)
    access: AccessSettings = group(AccessSettings)
    redis: RedisSettings = group(RedisSettings)
    engines: EngineSettings = group(EngineSettings)
    replica: ReplicaSettings = group(ReplicaSettings)
    images: ImageSettings = group(ImageSettings)
    requests: RequestSettings = group(RequestSettings)
    uris: UriSettings = group(UriSettings)
    events: EventSettings = group(EventSettings)
    jobs: JobSettings = group(JobSettings)
    gate: GateSettings = group(GateSettings)
    marking: MarkingSettings = group(MarkingSettings)
    audit: AuditSettings = group(AuditSettings)
    process: ProcessSettings = group(ProcessSettings)
    telemetry: TelemetrySettings = group(TelemetrySettings)


def load(environ: Mapping[str, str], *, alone: bool = True) -> Settings:
    """Read the settings.

    Args:
        environ: the environment, usually `os.environ`.
        alone: whether a variable that begins like ours and is none is a mistake.

    Raises:
        SettingsError: with everything that is wrong, not only the first.
    """
    settings = variables.load(Settings, environ, alone=alone)
    problems = contradictions(settings.gate)
    if problem := _without_gpu(settings.engines):
        problems.append(problem)
    if problems:
        raise variables.SettingsError(problems)
    return settings


def _without_gpu(engines: EngineSettings) -> str | None:
    """What contradicts EMBER_REQUIRE_GPU, and what to do; None for nothing."""
    if not engines.require_gpu:
        return None
    if engines.allow_degraded:
        return "EMBER_REQUIRE_GPU and EMBER_ALLOW_DEGRADED contradict each other; unset one."
    if engines.backends == ("cpu",):
        return "EMBER_REQUIRE_GPU is set, and EMBER_BACKENDS is cpu; add tensorrt or cuda."
    return None
