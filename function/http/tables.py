"""The fields of each call: read by the parser and by the OpenAPI document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from function.faces.options import BLEND, SwapOptions
from function.faces.select import NAME, Selection, Way
from function.http.fields import Photos, Value, names_of
from function.images.formats import FORMATS
from function.problems import Problem
from function.requests import SwapRequest
from function.trust.marking.label_choice import NONE
from function.trust.marking.label_texts import TEXTS

if TYPE_CHECKING:
    from function.http.fields import Form, SentForm, Table

MOST_TARGETS = 50
"""Of one job."""

SWAP: Table = {
    "source": Photos(
        "Photos of the person to put in; this or `sources` has to be there.",
        most=8,
        required=True,
        instead="sources",
    ),
    "sources": Photos(
        "Photos of several people to put in, each with a name; `faces` says who goes where.",
        most=16,
        each=8,
    ),
    "target": Photos("The photo or the animation to change.", required=True),
    "like": Photos("A photo of the person to replace; goes with `faces=like`."),
    "likes": Photos(
        "Photos of people to replace, each with a name; `faces` says by whom.", most=16, each=1
    ),
    "faces": Value(
        "Which faces of the target; indices are those of `/v1/faces`, from 0, from the left. With"
        " `sources`, who is put onto each: `0=a,b=c` is the source a onto the face 0, and c onto"
        " whoever looks like b of `likes`.",
        {
            "type": "string",
            "pattern": "^(all|largest|like|index:[0-9]{1,6}(,[0-9]{1,6})*|"
            f"{NAME}={NAME}(,{NAME}={NAME})*)$",
            "maxLength": 4096,
            "default": "all",
        },
    ),
    "format": Value(
        "The format of the result; by default the target's own where possible, else PNG.",
        {"type": "string", "enum": list(FORMATS)},
    ),
    "quality": Value(
        "Of the result, where the format loses quality.",
        {"type": "integer", "minimum": 1, "maximum": 100},
    ),
    "boost": Value(
        "Side in pixels up to which faces are made, in multiples of what the model makes; by"
        " default what they need, up to 256. Needs a model for swapping.",
        {"type": "integer", "minimum": 128, "maximum": 1024},
    ),
    "weight": Value(
        "How much of the source's identity, in percent: at 100 that of the target is even taken"
        " away. Needs a model for swapping.",
        {"type": "integer", "minimum": 0, "maximum": 100, "default": 50},
    ),
    "enhance": Value(
        "How much of the enhanced face is used, in percent; 0 for none. Needs an enhancer.",
        {"type": "integer", "minimum": 0, "maximum": 100, "default": BLEND},
    ),
    "masks": Value(
        "What decides which part of a face is replaced, with commas between; by default what the"
        " replica has of box and occlusion. Needs a model for swapping.",
        {
            "type": "string",
            "pattern": "^(box|occlusion|area|region)(,(box|occlusion|area|region))*$",
            "maxLength": 64,
        },
    ),
    "consent": Value(
        "That the people on the sources agree: who says so and for what, in words, or as a signed"
        " token; of several people each has one: `a=TOKEN b=TOKEN`. Whether it has to be there is"
        " said by `trust` of `/readyz`.",
        {"type": "string", "minLength": 1, "maxLength": 32 * 1024},
    ),
    "label": Value(
        "The language of a visible label in the result that says what it is, or `off`; without it,"
        " as the server is set up.",
        {"type": "string", "pattern": f"^({'|'.join((*TEXTS, NONE))})$", "maxLength": 8},
    ),
    "image": Value(
        "Whether a JSON answer has the image.",
        {"type": "string", "enum": ["base64", "none"], "default": "base64"},
    ),
}
OPTIONS = ("faces", "format", "quality", "boost", "weight", "enhance", "masks", "consent", "label")
"""The fields of a swap that are no photos and say how it is made."""

FACES: Table = {"image": Photos("The photo to look at.", required=True)}
VERIFY: Table = {"file": Photos("The photo, animation or video to look at.", required=True)}
JOB: Table = {
    "source": SWAP["source"],
    "sources": SWAP["sources"],
    "target": Photos(
        "The photos, animations or videos to change.", most=MOST_TARGETS, required=True
    ),
    "like": SWAP["like"],
    "likes": SWAP["likes"],
    **{name: SWAP[name] for name in OPTIONS},
    "output": Value(
        "URIs that the results are written to, one for each target, with spaces between them: gs:,"
        " or signed ones (https:) that take a PUT. Without them, results are kept here.",
        {"type": "string", "maxLength": 2048 * MOST_TARGETS},
    ),
    "callback": Value(
        "An https: URI that is told when the job has ended.",
        {"type": "string", "maxLength": 2048},
    ),
    "callback_secret": Value(
        "Signs what is told, as Standard Webhooks has it: whsec_ and 24 to 64 bytes in base64.",
        {"type": "string", "maxLength": 100},
    ),
    "callback_image": Value(
        "Whether the result is told as well; for a job of one target.",
        {"type": "string", "enum": ["none", "base64"], "default": "none"},
    ),
}
ASYNC: Table = {**JOB, "image": SWAP["image"]}
"""Of a swap whose answer nobody waits for."""


def selected(sent: SentForm | Form) -> Selection:
    """The faces that the fields of a swap name, and who goes where.

    Raises:
        Problem: they make no sense, alone or together.
    """
    there = sent.photos.keys()
    sources, likes = names_of(there, "sources"), names_of(there, "likes")
    selection = Selection.parse(sent.values.get("faces", Way.ALL))
    mapped = selection.way is Way.MAP
    if sources and "source" in there:
        raise _apart("source", "Put its photos into `sources` as well, with a name.")
    if sources and not mapped:
        raise _apart("sources", "Say in `faces` who is put onto which face: faces=0=a,2=b.")
    if mapped and not sources:
        raise _apart("faces", "Send the photos in `sources`, each with a name, not in `source`.")
    if likes and not mapped:
        raise _apart("likes", "Name them in `faces`, or send one photo as `like`.")
    if "like" in there and selection.way is not Way.LIKE:
        raise Problem(
            "bad_value",
            "`like` is only for faces=like.",
            field="like",
            hint="Add faces=like, or leave out `like`.",
        )
    if selection.way is Way.LIKE and "like" not in there:
        raise Problem("missing_field", "`faces=like` needs a photo of the person.", field="like")
    selection.check(sources, likes)
    return selection


def swap_request(form: Form, selection: Selection) -> SwapRequest:
    """The swap that its fields, and the faces that they name, ask for."""
    return SwapRequest(
        sources=form.people("source", "sources"),
        target=form.photos["target"][0],
        faces=selection,
        likes=form.people("like", "likes"),
        format=form.values.get("format"),
        quality=form.values.get("quality"),
        options=SwapOptions.of(form.values),
        consent=form.values.get("consent"),
        label=form.values.get("label"),
    )


def _apart(field: str, hint: str) -> Problem:
    """The problem of a field that goes with a source for each face, or just not with it."""
    return Problem(
        "bad_value",
        "`source` is one person for all faces; `sources` are several, and `faces` maps them.",
        field=field,
        hint=hint,
    )
