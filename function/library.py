"""Ember inside a program, without a server: what `ember swap` does, as calls.

from function import Ember

with Ember() as ember:
    Path("out.jpg").write_bytes(ember.swap("me.jpg", "portrait.jpg").image)
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar

from function.cli.session import commanded, opened
from function.http.fields import Form, Photos, Value, checked_upload, checked_value
from function.http.tables import SWAP, selected, swap_request
from function.problems import Problem
from function.request_context import current
from function.requests import Upload
from function.settings import load
from function.telemetry.timings import Timings

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

    from function.requests import FoundFaces, SwapResult
    from function.service.service import Service
    from function.service.verification import Verification
    from function.settings import Settings

Photo: TypeAlias = str | os.PathLike[str] | bytes
"""A path, or the bytes of a file."""
Source: TypeAlias = "Photo | Sequence[Photo] | Mapping[str, Photo | Sequence[Photo]]"
"""Photos of one person; or of several, each with a name."""

T = TypeVar("T")


class Ember:
    """Finds and swaps faces in this process, with threads of its own. Threads may share it.

    It has the models and the settings of the command, and the same is owed: every result carries
    the marks, the gate looks at what is swapped, and the audit has a line of it, as the settings
    say. Nothing is warm: the first call is the slowest.

    Args:
        settings: variables as in docs/settings.md, such as `{"EMBER_THREADS": "2"}`; by default
            those of the environment.

    Raises:
        SettingsError: they cannot be used.
        WarmupError: the models cannot be loaded, or there is nothing that runs them.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        found = load(os.environ if settings is None else settings)
        there: Future[tuple[Service, asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        # A thread that is left open does not keep the program from ending.
        self._thread = Thread(
            target=asyncio.run, args=[_live(found, there)], name="ember", daemon=True
        )
        self._thread.start()
        self._service, self._loop, self._end = there.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the threads; what is in work is dropped."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def swap(
        self,
        source: Source,
        target: Photo,
        *,
        faces: str = "all",
        like: Photo | None = None,
        likes: Mapping[str, Photo] | None = None,
        format: Literal["jpeg", "png", "webp", "avif"] | None = None,  # noqa: A002
        quality: int | None = None,
        boost: int | None = None,
        weight: int | None = None,
        enhance: int | None = None,
        masks: str | None = None,
        consent: str | None = None,
        label: str | None = None,
    ) -> SwapResult:
        """Put the person of `source` into `target`; options are as in docs/http.md.

        Args:
            source: 1 to 8 photos of the person; or of several people by name, with
                `faces="0=ann,2=bob"`.
            target: the photo to change, or an animated GIF or WebP.
            faces: `all`, `largest`, `index:0,2`, `like`, or who is put onto each.
            like: a photo of the person to replace, with `faces="like"`.
            likes: photos of people to replace, by the names that `faces` has.
            format: by default the target's own, else PNG.
            quality: 1 to 100, where the format loses quality.
            boost: side in pixels up to which faces are made.
            weight: how much of the source's identity, 0 to 100 %.
            enhance: how much of the enhanced face, 0 to 100 %.
            masks: what decides which part of a face is replaced, with commas between.
            consent: who says that the person on the sources agrees, and to what.
            label: the language of a label in the picture, or `off`.

        Returns:
            The file (`image`), and the facts about it.

        Raises:
            Problem: a photo or an option cannot be used, or the swap is refused.
            OSError: a file cannot be read.
        """
        several = "sources" if isinstance(source, Mapping) else "source"
        photos = {
            **_uploads(several, source),
            **_uploads("target", target),
            **(_uploads("like", like) if like is not None else {}),
            **(_uploads("likes", likes) if likes else {}),
        }
        options = {
            "faces": faces,
            "format": format,
            "quality": quality,
            "boost": boost,
            "weight": weight,
            "enhance": enhance,
            "masks": masks,
            "consent": consent,
            "label": label,
        }
        form = Form(photos, {k: _checked(k, v) for k, v in options.items() if v is not None})
        wanted = swap_request(form, selected(form))
        return self._run(self._service.swap(wanted, Timings()))

    def faces(self, image: Photo) -> FoundFaces:
        """The faces of a photo, from left to right.

        Raises:
            Problem: the photo cannot be used. No face is no problem.
            OSError: the file cannot be read.
        """
        return self._run(self._service.faces(_upload("image", image), Timings()))

    def verify(self, file: Photo) -> Verification:
        """What a photo, an animation or a video carries that tells whether it is a swap.

        Raises:
            Problem: the file cannot be used. Nothing found is none.
            OSError: it cannot be read.
        """
        return self._run(self._service.verify(_upload("file", file), Timings()))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            work.close()
            raise RuntimeError("This Ember is closed.")

        async def mine() -> T:
            current.set(commanded())
            return await work

        future = asyncio.run_coroutine_threadsafe(mine(), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # Ctrl-C drops what has not begun
            raise


async def _live(
    settings: Settings, there: Future[tuple[Service, asyncio.AbstractEventLoop, asyncio.Event]]
) -> None:
    """Be open until the event is set, which `there` gets when all is loaded."""
    end = asyncio.Event()
    try:
        async with opened(settings, swaps=True) as service:
            there.set_result((service, asyncio.get_running_loop(), end))
            await end.wait()
    except Exception as error:
        if there.done():
            raise
        there.set_exception(error)


def _checked(name: str, value: object) -> object:
    spec = SWAP[name]
    return checked_value(value, spec, name) if isinstance(spec, Value) else value


def _uploads(field: str, given: Source) -> dict[str, tuple[Upload, ...]]:
    """The photos of a field of a form, by its key."""
    people = given if isinstance(given, Mapping) else {"": given}
    found = {}
    for name, photos in people.items():
        key = f"{field}.{name}" if name else field
        spec, several = SWAP[field], _several(photos)
        most = (spec.each or spec.most) if isinstance(spec, Photos) else 1
        if not 1 <= len(several) <= most:
            raise Problem("bad_value", f"`{key}` takes 1 to {most} photos.", field=key, limit=most)
        found[key] = tuple(_upload(key, photo) for photo in several)
    return found


def _several(photos: Photo | Sequence[Photo]) -> Sequence[Photo]:
    return [photos] if isinstance(photos, str | bytes | os.PathLike) else photos


def _upload(field: str, photo: Photo) -> Upload:
    """A file; what is wrong with it is said with its name."""
    if isinstance(photo, bytes):
        return checked_upload(Upload(photo, field))
    path = Path(photo)
    return checked_upload(Upload(path.read_bytes(), f"{field} {path}"))
