"""What a request costs: what its decoders will do is read from its files, before any work."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from function.admission.policy import PricedJob
from function.http.offload import AT_ONCE, offload
from function.images import size
from function.problems import Problem
from function.video import measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from function.admission.policy import Prices
    from function.requests import SwapRequest, Upload


async def price(prices: Prices, wanted: SwapRequest) -> int:
    """Tokens for a swap.

    Raises:
        Problem: a file cannot be read, so that no work will be done on it.
    """
    (tokens,) = await batch_price(prices, wanted, [wanted.target])
    return tokens


async def batch_price(
    prices: Prices, wanted: SwapRequest, targets: Sequence[Upload]
) -> tuple[int, ...]:
    """Tokens for each target of a job; several cost what a batch does.

    Args:
        prices: the price list.
        wanted: what is to be done with each target.
        targets: the targets.

    Raises:
        Problem: a file cannot be read, so that no work will be done on it.
    """
    others = [*wanted.sources, *wanted.likes]
    shared = sum(len(each.data) for each in others)
    job = PricedJob(
        0,
        len(wanted.sources),
        wanted.faces.named,
        like=len(wanted.likes),
        others=tuple([await _photo(each) for each in others]),
    )
    jobs = [
        replace(job, pixels=await _target(each), size=len(each.data) + shared // len(targets))
        for each in targets
    ]
    return tuple(prices.of(each, len(targets)) for each in jobs)


async def look_price(prices: Prices, photo: Upload) -> int:
    """Tokens for finding the faces of a photo.

    Raises:
        Problem: it cannot be read.
    """
    return prices.of_look(await _photo(photo), len(photo.data))


async def verify_price(prices: Prices, file: Upload) -> int:
    """Tokens for looking at what a photo or a clip carries.

    Raises:
        Problem: it cannot be read.
    """
    return prices.of_look(await _target(file), len(file.data))


async def _photo(photo: Upload) -> int:
    """Pixels of a photo."""
    return _known(photo, await offload(len(photo.data), size.pixels, photo.data))


async def _target(target: Upload) -> int:
    """Pixels of a photo that would be as much work."""
    length = len(target.data)
    kind = await offload(length, lambda: target.clip)
    if kind and not kind.still:  # reading even a small video takes time
        length = AT_ONCE + 1
    return _known(target, await offload(length, measure.worth, target.data, kind))


def _known(photo: Upload, pixels: int | None) -> int:
    """The pixels, which must be known for the price.

    Raises:
        Problem: they are not; the decoder says why.
    """
    if pixels is not None:
        return pixels
    from function.images.decode import decode

    decode(photo.data, max_pixels=0, name=photo.field, media_type=photo.media_type)
    raise Problem("bad_image", f"The {photo.field} has no pixels.", image=photo.field)
