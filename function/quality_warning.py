"""Warnings that a result carries: what was done, or what may look wrong.

They travel as `Ember-Warnings` and in the JSON answer.
"""

from __future__ import annotations

from function.documented_enum import DocumentedEnum


class QualityWarning(DocumentedEnum):
    """A warning code, and what it means."""

    EXTREME_POSE = "extreme_pose", "A face is turned so far that the swap shows it."
    LOW_RESOLUTION_SOURCE = (
        "low_resolution_source",
        "The source face has far less detail than the face it replaces: few pixels, or no focus.",
    )
    OCCLUDED = "occluded", "Something (glasses, hair, a hand) covers part of a face."
    EXTREME_LIGHT = (
        "extreme_light",
        "A face is so overexposed, or so dark, that the swap shows it.",
    )
    GRAY_SOURCE = (
        "gray_source",
        "The source photo has no colour; that of the skin was taken from the target.",
    )
    LOW_SIMILARITY = (
        "low_similarity",
        "The swapped face does not resemble the source as much as a good swap does.",
    )
    SEVERAL_SOURCE_FACES = (
        "several_source_faces",
        "A source photo shows several faces; the largest was used.",
    )
    SOURCES_DIFFER = (
        "sources_differ",
        "The source photos do not seem to show one and the same person.",
    )
    PERSON_MISSING = (
        "person_missing",
        "Nobody in the target looks like the person on one of the photos in `likes`.",
    )
    FIRST_FRAME = (
        "first_frame",
        "The image is animated or has several pages; only the first was used.",
    )
    NO_END = (
        "no_end",
        "The JPEG lacks the marker of its end, as if a few bytes were lost; all pixels are there.",
    )
    ALPHA_FLATTENED = (
        "alpha_flattened",
        "The output format has no transparency; transparent pixels were put on white.",
    )
    SOUND_LEFT_OUT = (
        "sound_left_out",
        "A further track of sound has a coding that is not known, and was left out.",
    )
    UNSIGNED = (
        "unsigned",
        "The result has no signature (C2PA): its format has no place for one, or signing failed.",
    )
