"""The OpenAPI document: valid, complete, and its examples really run."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import uuid
from functools import cache
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from function import __version__
from function.problems import KINDS
from tests.function.live import COLLINS, HOPPER, JSON, NOBODY, SOURCE, TARGET
from tests.function.raw import eventually
from tests.openapi.document import document

DOCUMENT = document()
OPERATIONS = {
    (path, method): operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
EXAMPLES = [
    (path, method, name, example["value"])
    for (path, method), operation in OPERATIONS.items()
    for media in operation.get("requestBody", {}).get("content", {}).values()
    for name, example in media.get("examples", {}).items()
]
SAMPLES = [
    sample["source"]
    for operation in OPERATIONS.values()
    for sample in operation.get("x-codeSamples", ())
]


@cache
def validator(name):
    return Draft202012Validator({**DOCUMENT, "$ref": f"#/components/schemas/{name}"})


def test_the_document_is_valid_and_is_what_is_served(live):
    validate(DOCUMENT)
    assert live.get("/openapi.json").json == DOCUMENT
    assert DOCUMENT["info"]["version"] == __version__


def test_the_document_has_every_address_of_the_application(live):
    routes = {
        (route.resource.canonical, route.method.lower())
        for route in live.server.app.router.routes()
        if route.method != "HEAD"
    }
    pages = {("/page/{file}", "get"), ("/samples/{file}", "get")}
    # The Open Inference Protocol has a document of its own.
    other = {(path, method) for path, method in routes if path.startswith("/v2")}
    assert set(OPERATIONS) == routes - pages - other


def test_every_code_is_in_the_answers_of_some_operation():
    responses = DOCUMENT["components"]["responses"]
    for code, kind in KINDS.items():
        schema = responses[f"Problem{kind.status}"]["content"]["application/problem+json"]["schema"]
        assert code in schema["properties"]["code"]["enum"]
        if code not in {"not_found", "method_not_allowed", "range_not_satisfiable"}:
            assert str(kind.status) in OPERATIONS["/v1/swap", "post"]["responses"]


@pytest.mark.parametrize(("path", "method", "name", "value"), EXAMPLES)
@pytest.mark.parametrize("accept", ["*/*", "application/json"])
def test_every_example_runs_and_answers_what_is_declared(live, path, method, name, value, accept):
    address = path.replace("{id}", str(uuid.uuid4()))
    body = json.dumps(value).encode()
    answer = live.send(method.upper(), address, body, JSON | {"Accept": accept})
    good = 201 if method == "put" else 200
    declared = OPERATIONS[path, method]["responses"][str(good)]["content"]
    assert (answer.status, answer.media_type in declared) == (good, True), answer.body[:300]
    if ref := declared[answer.media_type].get("schema", {}).get("$ref"):
        validator(ref.rpartition("/")[2]).validate(answer.json)
    if path.startswith("/v1/jobs"):
        answer = finished(live, address)
        validator("Job").validate(answer.json)
        assert answer.json["state"] == "succeeded", "the example has no face"
    elif answer.media_type == "application/json":
        found = answer.json
        assert found.get("faces") or "verdict" in found, "the example has no face"


def finished(live, address):
    """The answer about a job that has ended."""
    eventually(lambda: live.get(address).json["state"] not in {"queued", "running"}, 60)
    return live.get(address)


@pytest.mark.parametrize("command", SAMPLES)
def test_every_command_runs(live, needs, command, tmp_path):
    needs("curl")
    for name, data in (("hopper", HOPPER), ("collins", COLLINS)):
        (tmp_path / f"{name}.jpg").write_bytes(data)
    words = shlex.split(command.replace("http://localhost:8080", live.url))
    done = subprocess.run(
        [*words, "--fail", "--silent"], cwd=tmp_path, capture_output=True, check=True
    )
    assert done.stdout or (tmp_path / "swapped.jpg").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "send"),
    [
        ("Swap", lambda live: live.form("/v1/swap", SOURCE, TARGET, Accept="application/json")),
        (
            "Swap",
            lambda live: live.form(
                "/v1/swap", SOURCE, TARGET, ("image", "none"), Accept="application/json"
            ),
        ),
        ("Faces", lambda live: live.form("/v1/faces", ("image", HOPPER))),
        ("Faces", lambda live: live.form("/v1/faces", ("image", NOBODY))),
        ("Alive", lambda live: live.get("/healthz")),
        ("Readiness", lambda live: live.get("/readyz")),
        ("Timeline", lambda live: live.get("/warmup")),
        ("Problem", lambda live: live.get("/nowhere")),
        ("Problem", lambda live: live.form("/v1/swap", SOURCE, TARGET, ("faces", "index:9"))),
    ],
)
def test_answers_are_as_the_schemas_say(live, name, send):
    validator(name).validate(send(live).json)


def test_descriptions_name_no_field_that_does_not_exist():
    swap = OPERATIONS["/v1/swap", "post"]
    fields = swap["requestBody"]["content"]["application/json"]["schema"]["properties"]
    for word in re.findall(r"field `(\w+)`", swap["description"]):
        assert word in fields


def test_the_examples_are_faces_of_the_sample_photos():
    assert len(EXAMPLES) >= 3
    assert (files("function") / "samples" / "hopper.jpg").is_file()
