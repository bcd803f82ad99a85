"""Trust from settings, for the server and for the command line."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from function.process.wiring import marking
from function.process.wiring.audit import build_audit
from function.trust.gate.gate import build_gate
from function.trust.gate.identity_list import IdentityModel
from function.trust.marker import Marker
from function.trust.statement import Producer
from function.trust.trust import TierDuties, Trust
from function.trust.watermark.keys import WatermarkKeys, read_keys
from function.trust.watermark.policy import WhichMarks
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.admission.policy import Policy
    from function.settings import Settings
    from function.settings.marking import MarkingSettings
    from warmup.models.manifest import Model


def build_trust(settings: Settings, manifest: Sequence[Model]) -> Trust:
    """Everything that swaps pass through besides being made; `Trust.running` opens it.

    Args:
        settings: all of them.
        manifest: of the models that serve.

    Raises:
        SettingsError: what the settings name cannot be used.
    """
    identity = next(IdentityModel.of(model) for model in manifest if model.role == "identity")
    rules = hashlib.sha256(repr((settings.gate, settings.marking)).encode()).hexdigest()[:12]
    return Trust(
        build_gate(settings.gate, identity),
        _marker(settings.marking),
        build_audit(settings.audit, settings.access),
        policy=rules,
    )


def duties(policy: Policy) -> dict[str, TierDuties]:
    """What each tier asks of swaps, by its name."""
    return {tier.name: TierDuties(tier.consent, tier.label) for tier in policy.tiers.values()}


def _marker(settings: MarkingSettings) -> Marker:
    name = settings.producer
    return Marker(
        which=WhichMarks(settings.watermark),
        keys=_keys(settings),
        labels=marking.labels(settings),
        producer=Producer(name, settings.propagator or "") if name else None,
        signer=marking.signer(settings),
        manifests=marking.reader(settings),
    )


def _keys(settings: MarkingSettings) -> WatermarkKeys:
    if settings.watermark_keys is None:
        return WatermarkKeys()
    try:
        return read_keys(settings.watermark_keys)
    except ValueError as error:
        raise SettingsError([f"EMBER_WATERMARK_KEYS: {error}"]) from None
