"""The Open Inference Protocol, version 2, as KServe's and Triton's clients speak it over HTTP.

It is a translation only: tensors become the fields of `/v1/swap` and `/v1/faces`, which do the
work, and their results become tensors. Source: specification/protocol/inference_rest.md of
kserve/open-inference-protocol; the extension `binary_tensor_data` is Triton's.
"""

from __future__ import annotations

import json
import math
import struct
from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from function import __version__
from function.http import answers, jsonbody
from function.http.edge import exchange_of
from function.http.fields import Photos, from_members
from function.http.jsonbody import LongString
from function.http.offload import offload
from function.http.tables import FACES, SWAP
from function.problems import Problem
from function.service import report
from function.service.health import check_open

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from aiohttp.web import Request, Response

    from function.http.fields import SentForm, Table
    from function.http.swaps import SwapHandlers
    from function.requests import FoundFaces
    from function.service.health import Health

LENGTH = "Inference-Header-Content-Length"
_SIZE, _WANTED, _ALL_WANTED = "binary_data_size", "binary_data", "binary_data_output"
_MOST = 64  # elements of a binary tensor; no field takes as many files
_INLINE = b"data:application/octet-stream;base64,"
_FORMATS = {"INT32": "i", "FP32": "f"}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor of a model: its name, its datatype, and its shape, -1 for any number."""

    name: str
    datatype: str
    shape: tuple[int, ...]

    def facts(self) -> dict[str, Any]:
        """The same for JSON."""
        return {"name": self.name, "datatype": self.datatype, "shape": list(self.shape)}


_REPORT = TensorSpec("report", "BYTES", (1,))
_OUTPUTS: dict[str, tuple[TensorSpec, ...]] = {
    "swap": (TensorSpec("image", "BYTES", (1,)), _REPORT),
    "faces": (
        TensorSpec("boxes", "INT32", (-1, 4)),
        TensorSpec("scores", "FP32", (-1,)),
        TensorSpec("points", "FP32", (-1, 5, 2)),
        _REPORT,
    ),
}
_TABLES: dict[str, Table] = {
    # What an answer has is said by `outputs`.
    "swap": {name: spec for name, spec in SWAP.items() if name != "image"},
    "faces": FACES,
}


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """What a request wants.

    Attributes:
        form: the fields of the call.
        outputs: the names of the tensors that are wanted, each with whether it is to be binary.
        id: the caller's own, which the answer repeats.
    """

    form: SentForm
    outputs: Mapping[str, bool]
    id: str | None


@dataclass(frozen=True, slots=True)
class InferenceHandlers:
    """Handlers of the protocol.

    Attributes:
        swaps: does the work.
        health: says whether it can be done.
    """

    swaps: SwapHandlers
    health: Health

    async def server(self, _: Request) -> Response:
        """What this server is."""
        extensions = ["binary_tensor_data"]
        return answers.plain({"name": "ember", "version": __version__, "extensions": extensions})

    async def live(self, _: Request) -> Response:
        """Whether it is alive, as `/healthz`."""
        live = not self.health.stuck
        return answers.plain({"live": live}, status=200 if live else 503)

    async def ready(self, _: Request) -> Response:
        """Whether it is ready, as `/readyz`."""
        return self._readiness({})

    async def model_ready(self, request: Request) -> Response:
        """The same of a model: they are ready together."""
        return self._readiness({"name": _model(request)})

    async def model(self, request: Request) -> Response:
        """The tensors of a model."""
        name = _model(request)
        inputs = [
            TensorSpec(field, "BYTES", (1 if spec.most == 1 else -1,)).facts()
            for field, spec in _TABLES[name].items()
            if isinstance(spec, Photos) and spec.each is None
        ]
        outputs = [spec.facts() for spec in _OUTPUTS[name]]
        facts = {"name": name, "platform": "ember", "inputs": inputs, "outputs": outputs}
        return answers.plain(facts)

    async def infer(self, request: Request) -> Response:
        """Swap faces, or find them."""
        check_open(self.swaps.replica)
        name, exchange = _model(request), exchange_of(request)
        async with self.swaps.admission.admit(request) as admitted:
            asked: list[InferenceRequest] = []

            def parse(data: bytearray) -> SentForm:
                asked.append(_inference_request(data, request.headers.get(LENGTH), name))
                return asked[0].form

            sent = await self.swaps.forms.parsed(request, _TABLES[name], parse)
            if name == "swap":
                wanted, _ = await self.swaps.wanted(request, admitted, sent)
                result = await self.swaps.swapped(exchange, admitted, wanted)
                facts = report.of_swap(result, exchange.trace, image=False)
                tensors = {"image": [result.image]}
            else:
                form = await self.swaps.forms.fetched(sent, request)
                found = await self.swaps.found(exchange, admitted, form)
                facts = report.of_faces(found, exchange.trace)
                tensors = _of_faces(found)
        facts = {"request_id": exchange.request_id} | facts
        tensors |= {"report": [json.dumps(facts).encode()]}
        length = len(tensors["image"][0]) if "image" in tensors else 0
        return await offload(length, _answer, name, asked[0], tensors)

    def _readiness(self, facts: dict[str, Any]) -> Response:
        ready = self.health.readiness()["ready"]
        return answers.plain(facts | {"ready": ready}, status=200 if ready else 503)


def _model(request: Request) -> str:
    """The model that an address names.

    Raises:
        Problem: `not_found`.
    """
    if (name := request.match_info["model"]) in _TABLES:
        return name
    raise Problem(
        "not_found",
        f"There is no model {name[:80]}.",
        hint=f"The models are {' and '.join(_TABLES)}.",
    )


def _inference_request(data: bytearray, length: str | None, model: str) -> InferenceRequest:
    """Read a body: JSON, and behind it the binary data of those tensors that have such.

    Raises:
        Problem: it is no request, or its tensors are not those of the model.
    """
    at = len(data)
    if length is not None:
        at = int(length) if length.isdecimal() and len(length) < 12 else -1
        if not 0 <= at <= len(data):
            raise Problem("bad_request", f"{LENGTH} is how many bytes of the body are JSON.")
    head = jsonbody.parse(data[:at] if at < len(data) else data)
    inputs = _objects(head.get("inputs"), "inputs")
    parameters = dict(_object(head.get("parameters", {}), "parameters"))
    all_binary = parameters.pop(_ALL_WANTED, False) is True
    members: dict[str, Any] = {}
    for tensor in inputs:
        size = _object(tensor.get("parameters", {}), "parameters of an input").get(_SIZE)
        if size is None:
            elements = [_element(each) for each in _flat(tensor.get("data"))]
        elif type(size) is int and 0 <= size <= len(data) - at:
            elements, at = list(_elements(memoryview(data)[at : at + size])), at + size
        else:
            raise _wrong(f"`{_SIZE}` of a tensor is more than the body has.")
        _put(members, _checked_name(tensor, len(elements)), elements)
    if at != len(data):
        raise _wrong("The body has more binary data than its tensors.")
    for name, value in parameters.items():
        if isinstance(_TABLES[model].get(name), Photos):
            raise _wrong(f"`{name}` is an input, not a parameter.")
        members[name] = value
    id_ = head.get("id")
    return InferenceRequest(
        from_members(members, _TABLES[model]),
        _outputs(head.get("outputs"), model, all_binary=all_binary),
        id_ if isinstance(id_, str) else None,
    )


def _checked_name(tensor: Mapping[str, Any], count: int) -> str:
    """The name of an input, whose datatype and shape fit to the number of its elements."""
    name, shape = tensor.get("name"), tensor.get("shape")
    if not isinstance(name, str):
        raise _wrong("Each of `inputs` has a `name`.")
    if tensor.get("datatype") != "BYTES":
        raise _wrong(f"`{name[:80]}` has to be BYTES: the bytes of a file for each element.")
    if not isinstance(shape, list) or not all(type(side) is int and side >= 0 for side in shape):
        raise _wrong(f"`shape` of `{name[:80]}` is a list of whole numbers.")
    if math.prod(shape[:8]) != count or not count:
        raise _wrong(f"`{name[:80]}` has {count} elements, which is not its shape.")
    return name


def _put(members: dict[str, Any], name: str, elements: list[Any]) -> None:
    """Put an input among the members of a request; `sources.anna` is Anna's among `sources`."""
    value = elements if len(elements) > 1 else elements[0]
    field, dot, person = name.partition(".")
    members_of = members.setdefault(field, {}) if dot else members
    key = person if dot else name
    if not isinstance(members_of, dict) or key in members_of:
        raise _wrong(f"The input `{name[:80]}` is there twice.")
    members_of[key] = value


def _flat(data: Any) -> Iterator[Any]:
    """The elements of a tensor in JSON, nested or flat, row by row."""
    waiting = [data]
    while waiting:
        if isinstance(each := waiting.pop(), list):
            waiting += reversed(each)
        else:
            yield each


def _element(value: Any) -> Any:
    """A file in JSON: a URI as in other requests, or base64, in which there is no colon."""
    if isinstance(value, LongString):
        inline = b":" not in bytes(value.raw[:64])
        return LongString(memoryview(_INLINE + value.raw)) if inline else value
    if isinstance(value, str) and ":" not in value:
        return _INLINE.decode() + value
    return value


def _elements(data: memoryview) -> Iterator[bytes]:
    """The elements of binary BYTES: each a length in four bytes, the lowest first, and so many."""
    at = count = 0
    while at < len(data):
        if (count := count + 1) > _MOST:
            raise _wrong(f"A tensor has at most {_MOST} elements.")
        size = int.from_bytes(data[at : at + 4], "little")
        if at + 4 + size > len(data):
            raise _wrong("An element of a binary tensor is longer than its tensor.")
        yield bytes(data[at + 4 : at + 4 + size])
        at += 4 + size


def _outputs(value: Any, model: str, *, all_binary: bool) -> dict[str, bool]:
    """Which tensors are wanted, and which of them binary."""
    known = [spec.name for spec in _OUTPUTS[model]]
    if value is None:
        return dict.fromkeys(known, all_binary)
    wanted = {}
    for each in _objects(value, "outputs"):
        if (name := each.get("name")) not in known:
            raise _wrong(f"The outputs of {model} are {', '.join(known)}.")
        parameters = _object(each.get("parameters", {}), "parameters of an output")
        wanted[str(name)] = parameters.get(_WANTED, all_binary) is True
    return wanted


def _objects(value: Any, what: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not value:
        raise _wrong(f"`{what}` has to be a list of tensors.")
    return [_object(each, f"each of {what}") for each in value]


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise _wrong(f"`{what}` has to be an object.")
    return value


def _wrong(detail: str) -> Problem:
    return Problem("bad_value", detail, hint="See docs/clients.md, or GET /v2/models/swap.")


def _of_faces(found: FoundFaces) -> dict[str, list[Any]]:
    """The elements of each tensor, row by row."""
    facts = [report.of_face(face) for face in found.faces]
    return {
        "boxes": [side for face in facts for side in face["box"].values()],
        "scores": [face["score"] for face in facts],
        "points": [part for face in facts for point in face["points"] for part in point],
    }


def _answer(model: str, asked: InferenceRequest, tensors: Mapping[str, list[Any]]) -> Response:
    """The tensors that are wanted: JSON, and behind it those that are to be binary."""
    specs = {spec.name: spec for spec in _OUTPUTS[model]}
    outputs, binary = [], []
    for name, wanted in asked.outputs.items():
        spec, elements = specs[name], tensors[name]
        row = math.prod(spec.shape[1:])
        shape = [len(elements) // row, *spec.shape[1:]]
        output: dict[str, Any] = {"name": name, "datatype": spec.datatype, "shape": shape}
        if wanted:
            binary.append(_binary(spec.datatype, elements))
            output["parameters"] = {_SIZE: len(binary[-1])}
        else:
            output["data"] = [_in_json(name, each) for each in elements]
        outputs.append(output)
    named = {} if asked.id is None else {"id": asked.id}
    head = json.dumps({"model_name": model, **named, "outputs": outputs}).encode()
    if not binary:
        return web.Response(body=head, content_type="application/json")
    return web.Response(
        body=b"".join([head, *binary]),
        content_type="application/octet-stream",
        headers={LENGTH: str(len(head))},
    )


def _binary(datatype: str, elements: Iterable[Any]) -> bytes:
    if datatype == "BYTES":
        return b"".join(len(each).to_bytes(4, "little") + each for each in elements)
    return b"".join(struct.pack(f"<{_FORMATS[datatype]}", each) for each in elements)


def _in_json(name: str, element: Any) -> Any:
    """An element in JSON: files in base64."""
    if not isinstance(element, bytes):
        return element
    return element.decode() if name == _REPORT.name else b64encode(element).decode()
