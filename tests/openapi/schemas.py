"""JSON Schemas of everything that Ember answers, for the OpenAPI document.

They are strict (no further members, all required), so that the tests see any drift.
"""

from __future__ import annotations

from typing import Any

from function.background.jobs.job import CallbackState, JobState
from function.problems import KINDS
from function.quality_warning import QualityWarning
from function.request_context import Lane
from function.runtime import lazy_engine
from function.service.verification import Finding
from function.trust.statement import SourceType
from function.trust.watermark.watermark import MarkPlace
from warmup.phase import Phase

Schema = dict[str, Any]


def components() -> Schema:
    """All schemas by name."""
    face = {
        "index": _integer("Its place from the left, from 0."),
        "box": ref("Box"),
        "score": _number("How sure the detector is.", minimum=0, maximum=1),
        "found_by": _string("The search pass that found it: plain, padded, tiles, …"),
        "points": {
            "description": "Left eye, right eye, nose tip, left and right corner of the mouth, as "
            "seen in the image: x and y in pixels.",
            "type": "array",
            "minItems": 5,
            "maxItems": 5,
            "items": {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number"}},
        },
        "pose": ref("Pose"),
        "warnings": _list(ref("Warning")),
    }
    every = {
        "request_id": _string("As in the header Ember-Request-Id."),
        "width": _integer("Of the image after orientation, in pixels."),
        "height": _integer("Of the image after orientation, in pixels."),
    }
    also = {"warnings": _list(ref("Warning")), "timings": _list(ref("Timing"))}
    return {
        "Swap": _object(
            **every,
            image=_ref_or_null("Image"),
            source=_ref_or_null(
                "SourceFace", "The source face that was used; null of several people."
            ),
            faces=_list(ref("SwappedFace")),
            marks=ref("Marks"),
            **also,
            optional={
                "sources": {
                    "description": "Of several people, the source face of each, by name.",
                    "type": "object",
                    "additionalProperties": ref("SourceFace"),
                }
            },
        ),
        "SourceFace": _object(box=ref("Box"), pose=ref("Pose")),
        "Marks": _object(
            metadata={"type": "boolean", "description": "Whether it says what it is: always."},
            source_type={
                "description": "In the terms of IPTC's vocabulary.\n"
                + "\n".join(f"- `{each}`: {each.meaning}" for each in SourceType),
                "type": "string",
                "enum": [str(each) for each in SourceType],
            },
            watermark=_ref_or_null("WatermarkMark"),
            signature=_ref_or_null("SignatureMark"),
            label=_or_null(_string("What can be read in the picture.")),
        ),
        "WatermarkMark": _object(
            payload=_string("Twelve hexadecimal digits, by which the audit finds it."),
            faces=_list(_integer("A face that has it.")),
            picture={"type": "boolean", "description": "Whether all of the picture has."},
        ),
        "SignatureMark": _object(by=_string("The name in the certificate.")),
        "Verification": _object(
            **every,
            media_type=_string(),
            verdict={
                "type": "string",
                "enum": [str(each) for each in Finding],
                "description": "\n".join(f"- `{each}`: {each.meaning}" for each in Finding),
            },
            signature=_ref_or_null("Signature"),
            metadata=_ref_or_null("Metadata"),
            watermarks=_list(ref("Watermark")),
            lost=_list(
                {
                    "type": "string",
                    "enum": ["signature", "metadata", "watermark"],
                    "description": "Was there when it was made here.",
                }
            ),
            notes=_list(_string("What was not looked at, and why.")),
        ),
        "Signature": _object(
            valid={"type": "boolean", "description": "Whether nothing was changed since."},
            trusted={"type": "boolean", "description": "Whether the signer is known."},
            by=_string("The name in the certificate."),
            when=_or_null(_string("When it was signed, if a time stamp says so.")),
            swap={"type": "boolean", "description": "Whether it says that it is a swap."},
            problems=_list(_string()),
        ),
        "Metadata": _object(
            source_type=_or_null(_string("In the terms of IPTC's vocabulary.")),
            software=_or_null(_string("Name and version.")),
            request_id=_or_null(_string("Of the request that made it.")),
            aigc={
                "description": "The members of TC260:AIGC, as they stand there.",
                "type": ["object", "null"],
                "additionalProperties": True,
            },
        ),
        "Watermark": _object(
            payload=_string("Twelve hexadecimal digits."),
            key=_integer("The id of its key."),
            confidence=_number("Standard deviations above what chance gives."),
            where={"type": "string", "enum": [str(each) for each in MarkPlace]},
            face={"type": ["integer", "null"], "description": "Which; null of a picture."},
        ),
        "Faces": _object(
            **every, order={"const": "left_to_right"}, faces=_list(ref("Face")), **also
        ),
        "Face": _object(**face),
        "SwappedFace": _object(
            **face,
            identity=ref("Identity"),
            optional={"source": _string("Of several people, the name of the one who was put in.")},
        ),
        "Identity": _object(
            before=_number("Distance of the original face to the source face."),
            after=_number("Distance of the swapped face to the source face."),
            kept=_number("Distance of the swapped face to the original face."),
        ),
        "Box": {
            "description": "Whole pixels; right and bottom are exclusive.",
            **_object(**{side: _integer() for side in ("left", "top", "right", "bottom")}),
        },
        "Pose": {
            "description": "Degrees: the nose to the image's right, down; the head clockwise.",
            **_object(**{angle: _number() for angle in ("yaw", "pitch", "roll")}),
        },
        "Image": _object(
            media_type=_string(), base64={"type": "string", "contentEncoding": "base64"}
        ),
        "Timing": _object(
            stage=_string("As in the header Server-Timing."),
            start_ms=_number("From the beginning of the request."),
            ms=_number(),
        ),
        "Warning": {
            "description": "\n".join(f"- `{each}`: {each.meaning}" for each in QualityWarning),
            "type": "string",
            "enum": [str(each) for each in QualityWarning],
        },
        "Standing": {
            "type": "object",
            "additionalProperties": False,
            "required": ["subject", "tier", "lane", "unlimited"],
            "properties": {
                "subject": _or_null(_string("Who calls; null where nobody has to say it.")),
                "tier": _string(),
                "lane": _string("The lane of this request."),
                "unlimited": {"type": "boolean", "description": "Then nothing of what follows."},
                "tokens": _integer("How many can be spent now."),
                "allowance": _integer("How many there are in each period."),
                "granted": _integer("How many were granted and are not spent."),
                "period_s": _integer("The length of a period."),
                "refill_s": _integer("Seconds until the allowance is full; 0 when it is."),
                "cap": _or_null(_integer("The most tokens in an hour.")),
            },
        },
        "Grant": _object(
            subject=_string(),
            tokens=_integer("How many were granted."),
            granted=_integer("How many granted tokens the subject has."),
            repeated={"type": "boolean", "description": "Whether it had been made before."},
        ),
        "Job": _job(position=_position(), eta_s=_eta()),
        "ListedJob": _job(),
        "JobItem": _object(
            state=ref("JobState"),
            frames=_ref_or_null("Progress", "Of a video; null of what has no frames."),
            result=_ref_or_null("JobResult"),
            problem=_ref_or_null("JobProblem"),
        ),
        "JobResult": _object(
            uri=_string("Where it is."),
            media_type=_string(),
            bytes=_integer(),
            width=_integer(),
            height=_integer(),
            faces=_integer("How many were swapped; of a clip, at most in one frame."),
            warnings=_list(ref("Warning")),
            marks=_ref_or_null("Marks"),
        ),
        "JobProblem": _object(**{name: _string() for name in ("code", "title", "detail", "hint")}),
        "JobCallback": _object(
            state={"type": "string", "enum": [str(each) for each in CallbackState]},
            tries=_integer(),
            note=_or_null(_string("Why it has not worked so far.")),
        ),
        "Progress": _object(done=_integer("Well or badly."), total=_integer()),
        "JobEvent": {
            "type": "object",
            "properties": {name: _string() for name in ("id", "event", "data")},
        },
        "Jobs": _object(
            jobs=_list(ref("ListedJob")),
            next=_or_null(_integer("The `start` of those that follow, if there are any.")),
        ),
        "Erasure": _object(
            receipt=_string("Stands in the audit as well."),
            time=_string("When it was done (RFC 3339)."),
            deleted={
                "description": "How many of what: `jobs`; `ending`, those among them that had not"
                " ended, and are gone within two minutes; and what else is kept of callers.",
                "type": "object",
                "required": ["jobs", "ending"],
                "additionalProperties": _integer(),
            },
            digest=_string("Of the names of all that was deleted; empty without an audit."),
        ),
        "JobState": {
            "description": "\n".join(f"- `{each}`: {each.meaning}" for each in JobState),
            "type": "string",
            "enum": [str(each) for each in JobState],
        },
        "Lane": {"type": "string", "enum": list(Lane)},
        "CloudEvent": {"type": "object", "required": ["id", "source", "type"]},
        "Push": {"description": "Of Pub/Sub, or CloudEvents.", "type": "object"},
        "Phase": {"type": "string", "enum": [str(phase) for phase in Phase]},
        "Alive": _object(
            status={"enum": ["alive", "stuck"]},
            reason=_or_null(_string("Why it is not alive.")),
        ),
        "Readiness": _object(
            ready={"type": "boolean"},
            cold={
                "type": "boolean",
                "description": "Whether a request may have to wait for a model to be loaded.",
            },
            phase=ref("Phase"),
            waiting_for=_or_null(_string()),
            models={
                "description": "How far each model is.",
                "type": "object",
                "additionalProperties": _object(
                    state={
                        "type": "string",
                        "enum": [str(state) for state in lazy_engine.LoadState],
                    },
                    provider=_or_null(_string("What really executes it.")),
                    variant=_or_null(_string("The variant that stands in for the full model.")),
                    passed_over=_list(
                        _object(
                            backend=_string("A backend that does not run it."),
                            reason=_string("Why not."),
                        )
                    ),
                    fetch={
                        "description": "How far its file is.",
                        "type": ["object", "null"],
                        "additionalProperties": True,
                    },
                ),
            },
            trust={
                "description": "What every swap passes through besides being made.",
                "type": "object",
                "additionalProperties": True,
            },
            degraded=_list(_string("A model that runs on something else than was wanted.")),
            last_error=_or_null(_string("Why it is not ready, if something failed.")),
        ),
        "Timeline": _object(
            phase=ref("Phase"),
            steps=_list(_object(phase=ref("Phase"), at_s=_number("Since the process started."))),
            spans=_list(
                _object(
                    name=_string(),
                    start_s=_number("Since the process started."),
                    end_s=_number("Since the process started."),
                )
            ),
            last_error=_or_null(_string("Why it is not ready, if something failed.")),
        ),
        "Trace": _object(
            traceEvents=_list(ref("TraceEvent")),
            displayTimeUnit=_string(),
        ),
        "TraceEvent": {"type": "object", "additionalProperties": True},
        "Problem": {
            "description": "RFC 9457. Some codes have more members, e.g. `field` or `limit`.",
            **_object(
                type=_string("urn:ember:problem:<code>"),
                title=_string("The same for every problem of this code."),
                status=_integer(),
                detail=_string("What happened this time."),
                instance=_string("urn:ember:request:<request id>"),
                code={"type": "string", "enum": list(KINDS)},
                request_id=_string("As in the header Ember-Request-Id."),
                hint=_string("What can be done about it."),
            ),
            "additionalProperties": True,
        },
    }


def _job(**more: Schema) -> Schema:
    """A job; a list of them leaves out what each has to be asked for."""
    return _object(
        id=_string(),
        state=ref("JobState"),
        lane=_string(),
        created=_string("When it was made (RFC 3339)."),
        changed=_string("When it last changed."),
        expires=_string("When it will be forgotten."),
        version=_integer("Grows with every change."),
        progress=ref("Progress"),
        items=_list(ref("JobItem")),
        callback=_ref_or_null("JobCallback"),
        tokens=_integer("What it costs."),
        request_id=_string("Of the request that made it."),
        **more,
    )


def _position() -> Schema:
    return _or_null(_integer("How many jobs come before it; null when it does not wait."))


def _eta() -> Schema:
    return _or_null(_number("Seconds until it is done, as far as this replica can tell."))


def ref(name: str) -> Schema:
    """A reference to one of the schemas."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(optional: Schema | None = None, **properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties | (optional or {}),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _or_null(schema: Schema) -> Schema:
    return schema | {"type": [schema["type"], "null"]}


def _ref_or_null(name: str, description: str = "") -> Schema:
    return {"oneOf": [ref(name), {"type": "null"}]} | _described(description)


def _string(description: str = "") -> Schema:
    return {"type": "string"} | _described(description)


def _integer(description: str = "") -> Schema:
    return {"type": "integer"} | _described(description)


def _number(description: str = "", **limits: float) -> Schema:
    return {"type": "number", **limits} | _described(description)


def _described(description: str) -> Schema:
    return {"description": description} if description else {}
