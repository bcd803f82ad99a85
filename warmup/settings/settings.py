"""The settings of the warm-up package: which models, where they are kept, how they are fetched.

`function.settings` includes them. Each part of the package gets its own group of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warmup.plans.plan_key import FLAGS, PRECISIONS
from warmup.settings import variables
from warmup.settings.readers import (
    amount,
    choice,
    file,
    folder,
    place,
    seconds,
    switch,
    text,
    whole,
    words,
)
from warmup.settings.variables import group, variable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How a file is fetched."""

    fetch_connections: int = variable(
        8,
        whole(1, 64),
        "How many connections fetch models at the same time.",
    )
    fetch_floor: int = variable(
        10_000,
        amount(1),
        "The bytes a second that a connection must bring; a slower one is dropped and tried again.",
        shown_default="10k",
    )
    fetch_stall_s: float = variable(
        10.0,
        seconds(0.1, 3600),
        "How long a connection may stay below that.",
    )
    fetch_retries: int = variable(
        6,
        whole(0, 100),
        "How often in a row a transfer may fail, without progress, before it is given up.",
    )


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """Which models a replica serves with."""

    manifest: Path | None = variable(
        None,
        file(),
        "The `models.toml` that lists the models to load.",
        shown_default="the embedded set",
    )
    variant: str | None = variable(
        None,
        text(),
        "With which variant of its models a replica becomes ready; the full models replace it"
        " behind.",
        shown_default="none",
    )


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where models are kept, and how they come there."""

    store: Path | None = variable(
        None,
        folder(),
        "The folder that fetched models are kept in. Processes and pods of one node may share it.",
        shown_default="~/.cache/ember",
    )
    shared_store: Path | None = variable(
        None,
        folder(),
        "A store that something else fills and mends, such as a DaemonSet for its node. It is only"
        " read: what is missing or damaged there comes into `EMBER_STORE`.",
        shown_default="none",
    )
    store_quota: int | None = variable(
        None,
        amount(1),
        "The most bytes that the store may take. Models that nothing uses make room, those that"
        " were not used for longest first.",
        shown_default="none",
    )
    offline: bool = variable(
        False,
        switch(),
        "Whether the network must not be touched: models that are not in the store yet are then"
        " an error.",
        shown_default="false",
    )
    fetch: FetchSettings = group(FetchSettings)


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Where TensorRT plans are shared, and how they are made."""

    plans: str | None = variable(
        None,
        place(),
        "Where nodes share TensorRT plans: a bucket or a folder, in which they are under `plans/`."
        " They are fetched from there, and `ember engines build` publishes there.",
        shown_default="none",
    )
    plan_precision: str = variable(
        "fp32",
        choice(*PRECISIONS),
        "The precision of plans. Whatever it is, a plan that does not pass its check is not used.",
    )
    plan_flags: tuple[str, ...] = variable(
        (),
        words(*FLAGS),
        "What plans are made to allow: `version-compatible` ones run in every later version with"
        " the same first number, also in the lean runtime; `hardware-compatible` ones on every GPU"
        " from compute capability 8.0 on; `tf32` allows TensorFloat-32.",
        shown_default="none",
    )
    plan_level: int = variable(
        3,
        whole(0, 5),
        "How hard the builder of plans tries (TensorRT's optimisation level).",
    )
    plan_workspace: int | None = variable(
        None,
        amount(1),
        "The most bytes of GPU memory that one operation of a plan may use aside.",
        shown_default="any",
    )


@dataclass(frozen=True, slots=True)
class WarmupSettings:
    """The effective settings; the variable `EMBER_FETCH_RETRIES` is `fetch_retries` of a group."""

    models: ModelSettings = group(ModelSettings)
    stores: StoreSettings = group(StoreSettings)
    plans: PlanSettings = group(PlanSettings)


def load(environ: Mapping[str, str]) -> WarmupSettings:
    """Read these settings, and pass over those of other packages.

    Args:
        environ: the environment, usually `os.environ`.

    Raises:
        SettingsError: with everything that is wrong, not only the first.
    """
    return variables.load(WarmupSettings, environ, alone=False)
