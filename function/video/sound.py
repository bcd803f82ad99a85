"""The sound and subtitles that a swapped clip keeps: which streams, and which of their packets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from function.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from av.container import InputContainer
    from av.packet import Packet


def kept(file: InputContainer) -> list[Any]:
    """The streams of sound and subtitles that are taken over: those that FFmpeg knows.

    Raises:
        Problem: `bad_clip`, there is sound and none of it is known.
    """
    sound = [each for each in file.streams.audio if each.codec_context is not None]
    if file.streams.audio and not sound:
        raise Problem(
            "bad_clip",
            "The sound of the target has a coding that FFmpeg does not know, as the spatial sound"
            " of phones has, and so cannot be kept.",
            image="target",
            hint="Send the clip with AAC sound, or without sound.",
        )
    return sound + [each for each in file.streams.subtitles if each.codec_context is not None]


def left_out(file: InputContainer) -> bool:
    """Whether sound is not taken over, as FFmpeg does not know its coding.

    Phones record sound twice: for everybody, and in a spatial coding as well. Players that do not
    know the second play the first.
    """
    return any(each.codec_context is None for each in file.streams.audio)


def shown(packets: Iterable[Packet[Any]]) -> Iterator[Packet[Any]]:
    """The packets, in order, without those that the file's edit list takes away.

    Cutters that encode nothing, those of phones for example, leave in the file what they cut off.
    Of that, one packet before the first of each stream is kept: a decoder starts up with it.
    """
    run_up: dict[int, Packet[Any]] = {}
    begun = set()
    for packet in packets:
        stream = packet.stream_index
        if not packet.is_discard:
            if stream in run_up:
                yield run_up.pop(stream)
            begun.add(stream)
            yield packet
        elif stream not in begun:
            run_up[stream] = packet
