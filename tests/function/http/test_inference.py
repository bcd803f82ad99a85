"""The Open Inference Protocol over a real server, by its specification."""

from __future__ import annotations

import json
import struct
from base64 import b64decode, b64encode

import pytest

from tests.function.live import COLLINS, HOPPER, NOBODY, Live, png

LENGTH = "Inference-Header-Content-Length"
SWAP, FACES = "/v2/models/swap/infer", "/v2/models/faces/infer"


def tensor(name, *photos, **more):
    data = [b64encode(photo).decode() for photo in photos]
    return {"name": name, "shape": [len(photos)], "datatype": "BYTES", "data": data} | more


def binary(*inputs, **head):
    """A body with binary tensors, and its headers."""
    tensors, raw = [], b""
    for name, *photos in inputs:
        data = b"".join(struct.pack("<I", len(photo)) + photo for photo in photos)
        size = {"binary_data_size": len(data)}
        tensors.append(
            {"name": name, "shape": [len(photos)], "datatype": "BYTES", "parameters": size}
        )
        raw += data
    text = json.dumps({"inputs": tensors} | head).encode()
    return text + raw, {LENGTH: str(len(text)), "Content-Type": "application/octet-stream"}


def outputs(answer):
    """The tensors of an answer by name, each with its datatype, shape and elements."""
    assert answer.status == 200, answer.body
    length = int(answer.headers.get(LENGTH, len(answer.body)))
    head, raw = json.loads(answer.body[:length]), answer.body[length:]
    found = {}
    for each in head["outputs"]:
        if size := each.get("parameters", {}).get("binary_data_size"):
            own, raw = raw[:size], raw[size:]
            elements = unpacked(each["datatype"], own)
        else:
            elements = each["data"]
        found[each["name"]] = each["datatype"], each["shape"], elements
    assert raw == b""
    return head, found


def unpacked(datatype, data):
    if datatype == "BYTES":
        (size,) = struct.unpack_from("<I", data)
        assert size == len(data) - 4
        return [data[4:]]
    return [value for (value,) in struct.iter_unpack({"INT32": "<i", "FP32": "<f"}[datatype], data)]


def test_a_server_says_what_it_is(live):
    told = live.get("/v2").json
    assert (told["name"], told["extensions"]) == ("ember", ["binary_tensor_data"])
    assert live.get("/v2/health/live").json == {"live": True}
    assert live.get("/v2/health/ready").json == {"ready": True}
    assert live.get("/v2/models/swap/ready").json == {"name": "swap", "ready": True}


def test_a_server_that_is_not_ready_says_so():
    with Live(warm=False) as cold:
        assert cold.get("/v2/health/live").status == 200
        for path in "/v2/health/ready", "/v2/models/swap/ready":
            answer = cold.get(path)
            assert (answer.status, answer.json["ready"]) == (503, False)
        members = cold.json(FACES, {"inputs": [tensor("image", HOPPER)]}).problem("not_ready", 503)
        assert members["error"].startswith(members["detail"])


def test_a_model_has_its_tensors(live):
    swap = live.get("/v2/models/swap").json
    named = {each["name"]: (each["datatype"], each["shape"]) for each in swap["inputs"]}
    assert named == {"source": ("BYTES", [-1]), "target": ("BYTES", [1]), "like": ("BYTES", [1])}
    assert [each["name"] for each in swap["outputs"]] == ["image", "report"]
    faces = live.get("/v2/models/faces").json
    assert [each["shape"] for each in faces["outputs"]] == [[-1, 4], [-1], [-1, 5, 2], [1]]
    for path in "/v2/models/none", "/v2/models/none/ready":
        assert "swap and faces" in live.get(path).problem("not_found", 404)["error"]


def test_a_swap_is_that_of_the_other_call(live):
    own = {"Ember-Request-Id": "the-same"}
    asked = {"id": "42", "inputs": [tensor("source", HOPPER), tensor("target", COLLINS)]}
    answer = live.json(SWAP, asked, **own)
    head, found = outputs(answer)
    assert (head["model_name"], head["id"], answer.media_type) == ("swap", "42", "application/json")
    datatype, shape, (image,) = found["image"]
    assert (datatype, shape) == ("BYTES", [1])
    other = live.form("/v1/swap", ("source", HOPPER), ("target", COLLINS), **own)
    assert b64decode(image) == other.body
    facts = json.loads(found["report"][2][0])
    assert facts["faces"][0]["identity"]["after"] < 0.6
    assert facts["marks"]["metadata"] is True
    assert answer.headers["Server-Timing"]


def test_tensors_may_be_binary_both_ways(live):
    body, headers = binary(
        ("source", HOPPER, HOPPER),
        ("target", COLLINS),
        parameters={"binary_data_output": True, "format": "webp", "quality": 80},
        outputs=[{"name": "report", "parameters": {"binary_data": False}}, {"name": "image"}],
    )
    answer = live.send("POST", SWAP, body, headers)
    head, found = outputs(answer)
    assert answer.media_type == "application/octet-stream"
    assert [each["name"] for each in head["outputs"]] == ["report", "image"]
    assert found["image"][2][0][8:12] == b"WEBP"
    assert json.loads(found["report"][2][0])["width"] == 512


def test_people_have_names(live):
    asked = {
        "inputs": [tensor("sources.grace", HOPPER), tensor("target", COLLINS)],
        "parameters": {"faces": "0=grace"},
        "outputs": [{"name": "report"}],
    }
    _, found = outputs(live.json(SWAP, asked))
    assert list(found) == ["report"]
    assert list(json.loads(found["report"][2][0])["sources"]) == ["grace"]


def test_faces_are_numbers(live):
    body, headers = binary(("image", HOPPER), parameters={"binary_data_output": True})
    _, found = outputs(live.send("POST", FACES, body, headers))
    (face,) = live.form("/v1/faces", ("image", HOPPER)).json["faces"]
    assert found["boxes"] == ("INT32", [1, 4], list(face["box"].values()))
    assert found["points"][:2] == ("FP32", [1, 5, 2])
    assert found["scores"][2] == pytest.approx([face["score"]])
    _, none = outputs(live.json(FACES, {"inputs": [tensor("image", NOBODY)]}))
    assert none["boxes"] == ("INT32", [0, 4], [])


def test_a_small_photo_and_a_uri_are_photos_too(live):
    small = png(2, 2)
    uri = "data:image/png;base64," + b64encode(small).decode()
    for data in [[b64encode(small).decode()]], uri:
        asked = {"inputs": [tensor("image", small, data=data)]}
        assert outputs(live.json(FACES, asked))[1]["scores"][1] == [0]


TARGET = tensor("target", COLLINS)


@pytest.mark.parametrize(
    ("asked", "code", "says"),
    [
        ({}, "bad_value", "`inputs`"),
        ({"inputs": [TARGET]}, "missing_field", "`source` is missing"),
        ({"inputs": [TARGET, TARGET]}, "bad_value", "there twice"),
        ({"inputs": [TARGET | {"datatype": "UINT8"}]}, "bad_value", "has to be BYTES"),
        ({"inputs": [TARGET | {"shape": [2]}]}, "bad_value", "which is not its shape"),
        ({"inputs": [TARGET | {"shape": "x"}]}, "bad_value", "list of whole numbers"),
        ({"inputs": [TARGET | {"data": [[]], "shape": [0]}]}, "bad_value", "0 elements"),
        ({"inputs": [TARGET | {"data": [5]}]}, "bad_value", "`target`"),
        (
            {"inputs": [tensor("source", HOPPER), TARGET | {"data": ["@@@@"]}]},
            "bad_value",
            "`target`",
        ),
        ({"inputs": [tensor("tarket", COLLINS)]}, "unknown_field", "Did you mean `target`?"),
        ({"inputs": [TARGET], "parameters": {"priority": 1}}, "unknown_field", "`priority`"),
        ({"inputs": [TARGET], "parameters": {"quality": 101}}, "bad_value", "1 to 100"),
        ({"inputs": [TARGET], "parameters": {"source": "gs://a/b"}}, "bad_value", "an input"),
        ({"inputs": [TARGET], "outputs": [{"name": "boxes"}]}, "bad_value", "image, report"),
        ({"inputs": [TARGET], "parameters": []}, "bad_value", "object"),
        ({"inputs": [tensor("source", NOBODY), TARGET]}, "no_face", "No face"),
    ],
)
def test_what_is_wrong_is_said_where_clients_look(live, asked, code, says):
    members = live.json(SWAP, asked).problem(code)
    assert says in members["error"]
    assert members["request_id"]


@pytest.mark.parametrize(
    ("change", "length", "code"),
    [
        (lambda body: body[:-1], None, "bad_value"),
        (lambda body: body + b"x", None, "bad_value"),
        (lambda body: body, "99999999", "bad_request"),
        (lambda body: body, "-1", "bad_request"),
        (lambda body: body[:-40] + b"\xff" * 40, None, "bad_value"),
    ],
)
def test_binary_data_has_to_fit(live, change, length, code):
    body, headers = binary(("image", b"12345", b"6" * 36))
    changed = headers | ({LENGTH: length} if length else {})
    assert live.send("POST", FACES, change(body), changed).problem(code)["error"]


def test_many_elements_are_refused_before_they_are_made(live):
    body, headers = binary(("image", *[b""] * 65))
    assert "at most 64" in live.send("POST", FACES, body, headers).problem("bad_value")["detail"]


def test_admission_is_that_of_the_other_calls(tmp_path):
    from function.admission import keys

    key, line = keys.new("ann", "free")
    (tmp_path / "keys").write_text(line)
    with Live(auth="keys", keys=tmp_path / "keys") as guarded:
        asked = {"inputs": [tensor("image", HOPPER)]}
        assert guarded.json(FACES, asked).problem("unauthenticated", 401)["error"]
        bearer = {"Authorization": f"Bearer {key}"}
        paid = guarded.json(FACES, asked, **bearer)
        same = guarded.form("/v1/faces", ("image", HOPPER), **bearer)
        left = [int(each.headers["RateLimit"].split(";")[1][2:]) for each in (paid, same)]
        policy = int(paid.headers["RateLimit-Policy"].split(";")[1][2:])
        assert policy - left[0] == left[0] - left[1] > 0
