"""The OpenAPI 3.1 document, made from the tables that the code itself uses.

`make docs` writes it into the package, from where it is served.
"""

from __future__ import annotations

from base64 import b64encode
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from function import __version__
from function.admission.caller import SUBJECT
from function.background.events.event import BATCH, STRUCTURED
from function.background.events.outcome import OutcomeKind
from function.faces.select import NAME
from function.http.admission import LANE, TIMEOUT
from function.http.events import OUTCOME
from function.http.fields import JSON, MULTIPART, Photos
from function.http.form_reader import CONSENT
from function.http.jobs import ID, LAST, PREFER, RESPOND_ASYNC, STREAM
from function.http.quota import GRANT, IDEMPOTENCY
from function.http.tables import FACES, JOB, SWAP, VERIFY
from function.images.formats import FORMATS
from function.images.kinds import FileKind
from function.problems import KINDS
from tests.openapi import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable

    from function.http.fields import Table, Value
    from tests.openapi.schemas import Schema

_ANY_FILE = "application/octet-stream"
_HERE = "http://localhost:8080"

_READ = {"bad_request", "url_too_long", "head_too_large"}
_JOB = {*_READ, "unauthenticated", "forbidden", "unknown_field", "not_found", "internal"}
_JOB |= {"auth_unavailable", "jobs_unavailable", "deadline_exceeded"}
_LIMITS = ("RateLimit", "RateLimit-Policy")
_CALL = KINDS.keys() - {"not_found", "method_not_allowed", "range_not_satisfiable"}
_NEW_JOB = (_CALL - {"not_acceptable"}) | {"not_found"}
_EVENTS = _CALL - {"not_acceptable", "quota_exhausted", "too_many", "too_often"} | {"not_found"}
_QUOTA = {*_READ, "unauthenticated", "forbidden", "unknown_field", "internal"}
_QUOTA |= {"auth_unavailable", "quota_unavailable", "deadline_exceeded"}
_GRANT = _QUOTA | {"not_found", "body_timeout", "body_too_large", "overloaded"}
_GRANT |= {"unsupported_media_type", "missing_field", "bad_value"}


def document() -> Schema:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Ember",
            "version": __version__,
            "summary": "Puts the face of one photo onto the faces of another.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "faces", "description": "Swapping and finding faces."},
            {"name": "jobs", "description": "Swaps that are done when there is time."},
            {"name": "events", "description": "Uploads that are swapped by themselves."},
            {"name": "tokens", "description": "What callers may spend."},
            {"name": "replica", "description": "The life of one replica."},
        ],
        "paths": {
            "/v1/swap": {"post": _swap()},
            "/v1/faces": {"post": _faces()},
            "/v1/verify": {"post": _verify()},
        }
        | _jobs()
        | _data()
        | _events()
        | _tokens()
        | _probes(),
        "security": [{}, {"bearer": []}],
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key or a token, where the server wants one (`EMBER_AUTH`).",
                }
            },
            "schemas": schemas.components(),
            "headers": _headers(),
            "responses": {
                f"Problem{status}": _problem(status)
                for status in sorted({kind.status for kind in KINDS.values()})
            },
        },
    }


def _swap() -> Schema:
    hopper, collins = _tiny("hopper"), _tiny("collins")
    choice = {"faces": "index:0", "format": "webp", "quality": 80}
    prefer = {
        "name": PREFER,
        "in": "header",
        "description": f"`{RESPOND_ASYNC}`, where nobody waits for the result; anything else is"
        " passed over (RFC 7240).",
        "schema": {"type": "string", "examples": [RESPOND_ASYNC]},
    }
    return {
        "operationId": "swap",
        "summary": "Swap faces",
        "description": "Answers the changed photo, or a report about it where `Accept` prefers "
        "`application/json`. An image format that `Accept` names counts where the field `format` "
        "is absent. With `Prefer: respond-async` the answer is a job; the fields are then those of"
        " a job, too. An animated GIF or WebP stays one, unless a format of photos is asked for;"
        " long ones, and videos, need a job.",
        "tags": ["faces"],
        "parameters": [*_wishes(), _consent(), prefer],
        "requestBody": _body(
            SWAP,
            whole_photo={"source": hopper, "target": collins},
            one_face={"source": [hopper], "target": collins, **choice},
            source_for_each_face={
                "sources": {"hopper": hopper},
                "target": collins,
                "faces": "0=hopper",
            },
        ),
        "responses": _responses(
            _bytes()
            | {each.media_type: {} for each in FORMATS.values()}
            | {str(FileKind.GIF): {}}
            | {JSON: {"schema": schemas.ref("Swap")}}
        )
        | {"202": _job_answer("It will be done")},
        "x-codeSamples": _shell(
            f"curl -F source=@hopper.jpg -F target=@collins.jpg {_HERE}/v1/swap -o swapped.jpg",
            f"curl -F source=@hopper.jpg -F target=@collins.jpg -F faces=largest -F image=none"
            f" -H 'Accept: application/json' {_HERE}/v1/swap",
            f"curl -F sources=@hopper.jpg -F target=@collins.jpg -F faces=0=hopper {_HERE}/v1/swap"
            " -o swapped.jpg",
        ),
    }


def _faces() -> Schema:
    return {
        "operationId": "findFaces",
        "summary": "Find faces",
        "description": "Lists the faces from left to right; a photo without any has an empty list.",
        "tags": ["faces"],
        "parameters": _wishes(),
        "requestBody": _body(FACES, one_photo={"image": _tiny("hopper")}),
        "responses": _responses({JSON: {"schema": schemas.ref("Faces")}}),
        "x-codeSamples": _shell(f"curl -F image=@hopper.jpg {_HERE}/v1/faces"),
    }


def _verify() -> Schema:
    return {
        "operationId": "verify",
        "summary": "Say what a file carries",
        "description": "Says of a photo, an animation or a video whether it is a swap, by what it"
        " carries: signature, metadata, watermark. That nothing is found proves nothing.",
        "tags": ["faces"],
        "parameters": _wishes(),
        "requestBody": _body(VERIFY, one_file={"file": _tiny("hopper")}),
        "responses": _responses({JSON: {"schema": schemas.ref("Verification")}}),
        "x-codeSamples": _shell(f"curl -F file=@hopper.jpg {_HERE}/v1/verify"),
    }


def _jobs() -> Schema:
    """The calls about jobs."""
    hopper, collins = _tiny("hopper"), _tiny("collins")
    name = _in("path", "id", "As the caller calls it.", {"type": "string", "pattern": f"^{ID}$"})
    place = _in("path", "place", "Of the target, from 0.", {"type": "integer", "minimum": 0})
    place["schema"]["maximum"] = 9999
    last = _in("header", LAST, "Of the event that was seen last.", {"type": "string"})
    start, count = (
        _in("query", each, about, {"type": "integer", "minimum": least, "maximum": most})
        for each, about, least, most in (
            ("start", "How many to pass over.", 0, 10**6),
            ("count", "How many to tell of.", 1, 200),
        )
    )

    def call(operation: str, summary: str, responses: Schema, *more: Schema) -> Schema:
        return {
            "operationId": operation,
            "summary": summary,
            "tags": ["jobs"],
            "parameters": [*more, *_wishes()],
            "responses": responses,
        }

    job = {"200": _job_answer("How far it is")}
    created = {"201": _job_answer("It is made"), "200": _job_answer("It was made before")}
    photos = _bytes() | {each.media_type: {} for each in FORMATS.values()}
    photos |= {str(kind): {} for kind in FileKind}
    # Each event, or all of it for clients that are generated and know no streams.
    text: Schema = {STREAM: {"schema": {"anyOf": [schemas.ref("JobEvent"), {"type": "string"}]}}}
    listed: Schema = {JSON: {"schema": schemas.ref("Jobs")}}
    wrong = _JOB | {"not_acceptable"}
    return {
        "/v1/jobs": {
            "get": call(
                "listJobs",
                "The caller's jobs, the newest first",
                _responses(listed, (_JOB - {"not_found"}) | {"bad_value"}),
                start,
                count,
            )
        },
        "/v1/jobs/{id}": {
            "put": call("putJob", "Make a job", created | _problems(_NEW_JOB), name)
            | {
                "description": "The same request makes one job, however often it is sent; another"
                " one with the same id is refused. docs/jobs.md says more.",
                "requestBody": _body(
                    JOB,
                    one={"source": hopper, "target": collins},
                    several={"source": hopper, "target": [collins, hopper], "format": "webp"},
                ),
            },
            "get": call("job", "How far a job is", job | _problems(_JOB), name),
            "delete": call(
                "endJob",
                "Cancel a job, or delete the results of one that has ended",
                job | _problems(_JOB),
                name,
            ),
        },
        "/v1/jobs/{id}/events": {
            "get": call(
                "jobEvents",
                "How far a job is, with every change (server-sent events)",
                _responses(text, {*wrong, "too_many", "overloaded"}),
                name,
                last,
            )
        },
        "/v1/jobs/{id}/results/{place}": {
            "get": call(
                "jobResult",
                "A result, or the part of it that `Range` asks for",
                _responses(photos, wrong | {"range_not_satisfiable"})
                | {"206": {"description": "A part", "headers": _every(), "content": photos}},
                name,
                place,
            )
        },
    }


def _data() -> Schema:
    """The call about what is stored of its caller."""
    erased: Schema = {JSON: {"schema": schemas.ref("Erasure")}}
    return {
        "/v1/data": {
            "delete": {
                "operationId": "deleteData",
                "summary": "Delete all that is stored of the caller",
                "description": "All jobs with their photos and results, and what else is kept;"
                " docs/audit.md has a table of it. The receipt stands in the audit as well.",
                "tags": ["jobs"],
                "parameters": _wishes(),
                "responses": _responses(erased, (_JOB - {"not_found"}) | {"audit_unavailable"}),
            }
        }
    }


def _job_answer(description: str) -> Schema:
    headers = _every() | {name: _header(name) for name in _LIMITS}
    content = {JSON: {"schema": schemas.ref("Job")}}
    return {"description": description, "headers": headers, "content": content}


def _bytes() -> Schema:
    """Any photo or clip, for clients that are generated and know no media types of these."""
    return {_ANY_FILE: {"schema": {"type": "string", "format": "binary"}}}


def _in(where: str, name: str, about: str, schema: Schema) -> Schema:
    """A parameter."""
    required = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, "description": about, "schema": schema, **required}


def _events() -> Schema:
    """The page, and the call at the same address that takes events in."""
    kinds = "; ".join(f"`{kind}`, {kind.meaning}" for kind in OutcomeKind)
    about = f"What became of the event: {kinds}"
    headers = _every() | {OUTCOME: {"description": about, "schema": {"type": "string"}}}
    one = schemas.ref("CloudEvent")
    return {
        "/": {
            "get": {
                "operationId": "page",
                "summary": "The page to try it",
                "tags": ["replica"],
                "responses": {
                    "200": {
                        "description": "OK",
                        "headers": _every(),
                        "content": {"text/html": {"schema": {"type": "string"}}},
                    }
                }
                | _problems({*_READ, "forbidden", "internal"}),
            },
            "post": {
                "operationId": "takeEvents",
                "summary": "Take events in",
                "description": "CloudEvents 1.0 in binary, structured or batched mode, and pushes"
                " of Pub/Sub; docs/events.md says what is done with them.",
                "tags": ["events"],
                "parameters": _wishes(),
                "requestBody": {
                    "required": True,
                    "content": {
                        STRUCTURED: {"schema": one},
                        BATCH: {"schema": {"type": "array", "items": one}},
                        JSON: {"schema": schemas.ref("Push")},
                    },
                },
                "responses": {
                    "200": {
                        "description": "Done; the answer is the event that tells of it",
                        "headers": headers,
                        "content": {
                            JSON: {"schema": {"type": "object"}},
                            BATCH: {"schema": {"type": "array", "items": one}},
                        },
                    },
                    "202": {"description": "It will be done", "headers": headers},
                    "204": {"description": "Done, or nothing to do", "headers": headers},
                }
                | _problems(_EVENTS),
            },
        }
    }


def _tokens() -> Schema:
    """The calls about tokens."""
    subject = {
        "name": "subject",
        "in": "path",
        "required": True,
        "description": "Whose tokens, as in a key's line or a token's `sub`.",
        "schema": {"type": "string", "pattern": f"^{SUBJECT.pattern}$"},
    }
    key = {
        "name": IDEMPOTENCY,
        "in": "header",
        "required": True,
        "description": "The same for every try of one grant.",
        "schema": {"type": "string", "pattern": "^[!-~]{1,128}$"},
    }
    about: Schema = {"tags": ["tokens"], "parameters": _wishes()}
    standing = {JSON: {"schema": schemas.ref("Standing")}}
    granted = {JSON: {"schema": schemas.ref("Grant")}}
    return {
        "/v1/quota": {
            "get": about
            | {
                "operationId": "quota",
                "summary": "How the caller stands",
                "responses": _responses(standing, _QUOTA),
            }
        },
        "/v1/quota/{subject}/grants": {
            "post": about
            | {
                "operationId": "grantTokens",
                "summary": "Grant tokens",
                "description": "For operators. However often one grant is sent, it is made once.",
                "parameters": [subject, key, *_wishes()],
                "requestBody": _body(GRANT),
                "responses": _responses(granted, _GRANT),
            }
        },
    }


def _wishes() -> list[Schema]:
    """The headers of calls."""
    wishes: Schema = {
        TIMEOUT: (
            "After how many seconds the answer is of no use any more.",
            {"type": "string", "pattern": r"^(?=.*[1-9])[0-9]{1,6}(\.[0-9]{1,6})?$"},
        ),
        LANE: ("How urgent it is; by default as the caller's tier says.", schemas.ref("Lane")),
    }
    return [
        {"name": name, "in": "header", "description": about, "schema": schema}
        for name, (about, schema) in wishes.items()
    ]


def _consent() -> Schema:
    about = "The field `consent`, where the body has none."
    return {"name": CONSENT, "in": "header", "description": about, "schema": {"type": "string"}}


def _probes() -> Schema:
    force = {
        "name": "force",
        "in": "query",
        "description": "Repeat the warm-up of a replica that is ready.",
        "schema": {"type": "boolean", "default": False},
    }
    form = {
        "name": "format",
        "in": "query",
        "description": "`trace` gives Chrome's Trace Event Format, for a viewer like Perfetto.",
        "schema": {"type": "string", "enum": ["json", "trace"], "default": "json"},
    }
    return {
        "/healthz": {"get": _probe("isAlive", "Whether the process works", "Alive", 503)},
        "/readyz": {"get": _probe("isReady", "Whether it takes traffic", "Readiness", 503)},
        "/warmup": {
            "get": _timeline(form),
            "post": _warm_up(force),
        },
        "/metrics": {"get": _probe("metrics", "Metrics for Prometheus")},
        "/openapi.json": {"get": _probe("description", "This document", "")},
    }


def _timeline(form: Schema) -> Schema:
    call = _probe("warmUpTimeline", "How the warm-up went so far", "Timeline")
    content = call["responses"]["200"]["content"][JSON]
    content["schema"] = {"anyOf": [content["schema"], schemas.ref("Trace")]}
    return call | {"parameters": [form]}


def _warm_up(force: Schema) -> Schema:
    call = _probe("warmUp", "Warm up, and wait for it", "Timeline", 503) | {"parameters": [force]}
    call["responses"] |= _problems({"unauthenticated", "forbidden", "too_often"})
    return call


def _probe(operation: str, summary: str, schema: str | None = None, bad: int = 0) -> Schema:
    """An operation without a body; `bad` is a status that has the same schema as 200."""
    content: Schema = {"text/plain": {"schema": {"type": "string"}}}
    if schema is not None:
        content = {JSON: {"schema": schemas.ref(schema) if schema else {"type": "object"}}}
    answers = {"200": {"description": "OK", "headers": _every(), "content": content}}
    if bad:
        later = _every() | {"Retry-After": _header("Retry-After")}
        answers[str(bad)] = {"description": "Not now", "headers": later, "content": content}
    return {
        "operationId": operation,
        "summary": summary,
        "tags": ["replica"],
        "responses": answers | _problems({*_READ, "forbidden", "unknown_field", "internal"}),
    }


def _responses(content: Schema, codes: Iterable[str] = _CALL) -> Schema:
    """The answer, and the problems that there may be instead."""
    headers = _every() | {name: _header(name) for name in ("Ember-Warnings", *_LIMITS)}
    done = {"200": {"description": "Done", "headers": headers, "content": content}}
    return done | _problems(codes)


def _problems(codes: Iterable[str]) -> Schema:
    statuses = sorted({KINDS[code].status for code in codes})
    return {str(each): {"$ref": f"#/components/responses/Problem{each}"} for each in statuses}


def _problem(status: int) -> Schema:
    codes = [code for code, kind in KINDS.items() if kind.status == status]
    more: Schema = {}
    if status == KINDS["quota_exhausted"].status:
        never = "Seconds; absent where there will never be enough."
        more["Retry-After"] = {"description": never, "schema": {"type": "integer"}}
        more |= {name: _header(name) for name in _LIMITS}
    special = {401: "WWW-Authenticate", 405: "Allow", 503: "Retry-After"}.get(status)
    return {
        "description": HTTPStatus(status).phrase,
        "headers": _every() | ({special: _header(special)} if special else {}) | more,
        "content": {
            "application/problem+json": {
                "schema": {
                    **schemas.ref("Problem"),
                    "properties": {"status": {"const": status}, "code": {"enum": codes}},
                }
            }
        },
    }


def _headers() -> Schema:
    words: Schema = {"type": "string"}
    required = {"required": True, "schema": words}
    return {
        "Server-Timing": {"description": "Milliseconds per stage, and `total`.", **required},
        "Ember-Request-Id": {
            "description": "The request's own Ember-Request-Id or X-Request-Id, or a new one.",
            **required,
        },
        "Ember-Warnings": {"description": "Codes of warnings, if any.", "schema": words},
        "Ember-Degraded": {
            "description": "What was done less well than wanted, if anything: a model or a rung.",
            "schema": words,
        },
        "RateLimit": {
            "description": 'Tokens that are left, seconds until they are full: "free";r=7;t=60.',
            "schema": words,
        },
        "RateLimit-Policy": {
            "description": 'Tokens that there are in so many seconds: "free";q=10;w=3600.',
            "schema": words,
        },
        "Retry-After": {"description": "Seconds.", "required": True, "schema": {"type": "integer"}},
        "WWW-Authenticate": {"description": "How to say who calls (RFC 6750).", **required},
        "Allow": {"description": "The methods that are possible.", **required},
    }


def _header(name: str) -> Schema:
    return {"$ref": f"#/components/headers/{name}"}


def _every() -> Schema:
    return {name: _header(name) for name in ("Server-Timing", "Ember-Request-Id", "Ember-Degraded")}


def _body(table: Table, **examples: Schema) -> Schema:
    """A request body in both encodings; the examples are JSON."""
    file = {"type": "string", "format": "binary"}
    uri = {
        "type": "string",
        "pattern": "^(data:[^,]*,|(https?|gs|file)://)",
        "description": "A URI: data: (RFC 2397, base64 or percent-encoded), https:, gs:, or"
        " what else the server allows.",
    }
    return {
        "required": True,
        "content": {
            MULTIPART: {
                "schema": _fields(table, file, many_only=True),
                "encoding": {
                    name: {"contentType": "image/*"}
                    for name, spec in table.items()
                    if isinstance(spec, Photos)
                },
            },
            JSON: {
                "schema": _fields(table, uri, many_only=False),
                "examples": {name: {"value": value} for name, value in examples.items()},
            },
        },
    }


def _fields(table: Table, photo: Schema, *, many_only: bool) -> Schema:
    return {
        "type": "object",
        "properties": {name: _field(spec, photo, many_only) for name, spec in table.items()},
        "required": [
            name
            for name, spec in table.items()
            if spec.required and not (isinstance(spec, Photos) and spec.instead)
        ],
        "additionalProperties": False,
    }


def _field(spec: Photos | Value, photo: Schema, many_only: bool) -> Schema:
    about = {"description": spec.about}
    if not isinstance(spec, Photos):
        schema = dict(spec.schema)
        # Generated clients would send it by themselves, also to replicas without such a model.
        if default := schema.pop("default", None):
            about["description"] += f" By default `{default}`."
        return about | schema
    if spec.each and not many_only:
        one = photo if spec.each == 1 else {"oneOf": [photo, _several(photo, spec.each)]}
        return about | {
            "type": "object",
            "propertyNames": {"pattern": f"^{NAME}$"},
            "additionalProperties": one,
            "minProperties": 1,
            "maxProperties": spec.most,
        }
    if spec.each:
        about["description"] += " Each is called as its file, up to the first dot."
    if spec.most == 1:
        return photo | about
    several = _several(photo, spec.most)
    return about | (several if many_only else {"oneOf": [photo, several]})


def _several(photo: Schema, most: int) -> Schema:
    return {"type": "array", "items": photo, "minItems": 1, "maxItems": most}


def _shell(*lines: str) -> list[Schema]:
    """Commands that work in a folder with the sample photos."""
    return [{"lang": "Shell", "source": line} for line in lines]


def _tiny(name: str) -> str:
    """A data: URI of the face on a sample photo, small enough for a document.

    Its file lies beside this one, as encoders of other versions would write other bytes.
    """
    face = Path(__file__).with_name(f"{name}.jpg").read_bytes()
    return f"data:image/jpeg;base64,{b64encode(face).decode()}"
