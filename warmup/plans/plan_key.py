"""What a plan depends on, and the sidecar file that says it.

A plan is a model as TensorRT compiled it: right for one model on one kind of GPU under one version
of everything, and not to be tried on anything else. Its key is a digest of all of that.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from warmup.failures import DamagedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warmup.plans.nvml import Gpu

FORMAT = 1
PRECISIONS = ("fp32", "fp16", "int8")
FLAGS = ("version-compatible", "hardware-compatible", "tf32")
ANY = "any"


@dataclass(frozen=True, slots=True)
class Extent:
    """The shapes that one input has in one profile: the smallest, the usual, the largest."""

    name: str
    least: tuple[int, ...]
    usual: tuple[int, ...]
    most: tuple[int, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """All three."""
        return (self.least, self.usual, self.most)


Profile = tuple[Extent, ...]
"""What a plan is compiled for at a time: an extent for each input that has free axes."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How plans are made; who runs one asks for exactly what it was made by.

    Attributes:
        precision: one of `PRECISIONS`.
        flags: some of `FLAGS`.
        level: how hard the builder tries, from 0 to 5.
        workspace: the most bytes of GPU memory for what an operation needs besides; None for any.
    """

    precision: str = "fp32"
    flags: tuple[str, ...] = ()
    level: int = 3
    workspace: int | None = None

    def words(self) -> tuple[str, ...]:
        """The flags of the builder, as a key has them."""
        limit = [] if self.workspace is None else [f"workspace={self.workspace}"]
        return tuple(sorted({*self.flags, f"level={self.level}", *limit}))


@dataclass(frozen=True, slots=True)
class PlanKey:
    """Everything that a plan depends on.

    Attributes:
        model: SHA-256 of the ONNX file.
        runtime: "tensorrt", whose lean runtime counts as the same, or "tensorrt_rtx".
        version: of the runtime; only its first number where plans are version-compatible.
        cuda: the newest CUDA that the driver serves.
        driver: the first number of the driver's version.
        sm: compute capability; "8.0+" where plans are hardware-compatible.
        gpu: the product, with the size of a slice.
        precision: one of `PRECISIONS`.
        profiles: the shapes that it is compiled for.
        flags: of the builder, as `Recipe.words` has them.
    """

    model: str
    runtime: str
    version: str
    cuda: str
    driver: str
    sm: str
    gpu: str
    precision: str
    profiles: tuple[Profile, ...]
    flags: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The name of the plan: 40 hexadecimal digits."""
        facts = json.dumps([FORMAT, asdict(self)], sort_keys=True)
        return hashlib.sha256(facts.encode()).hexdigest()[:40]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What is known about a plan without reading it.

    Attributes:
        key: what it depends on.
        size, sha256: of the plan.
        built_by: version of the builder.
        seconds: how long building took.
        speedup: how many times as fast as ONNX Runtime on the same GPU; None when not measured.
    """

    key: PlanKey
    size: int
    sha256: str
    built_by: str
    seconds: float = 0.0
    speedup: float | None = None

    def text(self) -> str:
        """As JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"


def read(text: str | bytes, what: str) -> Sidecar:
    """Read a sidecar.

    Args:
        text: JSON.
        what: where it is from, for messages.

    Raises:
        DamagedError: it is none, or one of another version of Ember.
    """
    try:
        facts = json.loads(text)
        form, key = facts.pop("format"), facts.pop("key")
        profiles = tuple(
            tuple(
                Extent(each["name"], *(tuple(each[part]) for part in ("least", "usual", "most")))
                for each in profile
            )
            for profile in key["profiles"]
        )
        key = PlanKey(**key | {"profiles": profiles, "flags": tuple(key["flags"])})
        found = Sidecar(key, **facts)
        sound = form == FORMAT and found.size > 0 and re.fullmatch("[0-9a-f]{64}", found.sha256)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{what}: does not describe a plan: {error!r}") from error
    if not sound:
        raise DamagedError(f"{what}: does not describe a plan, or not as this version does")
    return found


def is_newer(version: str, other: str) -> bool:
    """Whether one version of a library is newer than another, as "11.10.1" is than "11.4.0"."""
    numbers = [
        [int(part) for part in each.split(".") if part.isdecimal()] for each in (version, other)
    ]
    return numbers[0] > numbers[1]


def key_for(
    model: str,
    profiles: Sequence[Profile],
    recipe: Recipe,
    *,
    runtime: str,
    version: str,
    gpu: Gpu | None,
    sm: str = ANY,
) -> PlanKey:
    """The key of the plan that one model needs on one machine.

    Args:
        model: its SHA-256.
        profiles: what it is to run.
        recipe: how it is made.
        runtime: what runs it, as a key has it.
        version: of that.
        gpu: where it runs; None for a plan that is made for all GPUs of one compute capability,
            as TensorRT-RTX makes them without one.
        sm: that capability, without a GPU.
    """
    key = PlanKey(
        model=model,
        runtime=runtime,
        version=version,
        cuda=gpu.cuda if gpu else ANY,
        driver=gpu.driver.partition(".")[0] if gpu else ANY,
        sm=gpu.sm if gpu else sm,
        gpu=gpu.name if gpu else ANY,
        precision=recipe.precision,
        profiles=tuple(profiles),
        flags=recipe.words(),
    )
    if "version-compatible" in recipe.flags:
        key = replace(key, version=version.partition(".")[0])
    if "hardware-compatible" in recipe.flags:
        key = replace(key, sm="8.0+", gpu=ANY)
    return key


def profiles_for(
    inputs: Sequence[tuple[str, tuple[int, ...], tuple[int, ...]]], buckets: Sequence[int]
) -> tuple[Profile, ...]:
    """A profile for each batch size, of exactly that size: no other is ever run.

    Args:
        inputs: the name of each input, and the shapes of its smallest and its largest item.
        buckets: the sizes.
    """
    return tuple(
        tuple(
            Extent(name, (size, *least), (size, *most), (size, *most))
            for name, least, most in inputs
        )
        for size in buckets
    )
