"""The recorder of spans from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.extras import needing
from function.telemetry import spans
from warmup.settings.variables import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from function.runtime.imports import Imports
    from function.settings.process import TelemetrySettings


async def record_spans(telemetry: TelemetrySettings, imports: Imports) -> Callable[[], None]:
    """Send spans to the collector of the settings, if there is one.

    Returns:
        What sends the last of them and ends it, which takes time.

    Raises:
        SettingsError: the extra is not there, or the SDK's own variables are wrong.
    """
    if telemetry.traces is None:
        return lambda: None
    try:
        with needing("EMBER_TRACES", "otel"):
            await imports.have("otlp")
        from function.telemetry.otlp import Otlp

        recorder = Otlp(telemetry.traces)
    except ValueError as error:
        raise SettingsError([f"A variable of OpenTelemetry (OTEL_…) is wrong: {error}"]) from None
    spans.record_with(recorder)
    return recorder.close
