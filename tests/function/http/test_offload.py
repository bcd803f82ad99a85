"""Large bodies and answers do not keep the event loop from others."""

from __future__ import annotations

import base64
import io
import threading

import pytest
from PIL import Image

from function.http import form_reader, jsonbody
from function.http.offload import AT_ONCE, offload
from function.service import report
from tests.function.live import COLLINS, HOPPER
from warmup.objects import data_uri as inline


def enlarged(data):
    """The photo as a PNG that is large enough to be offloaded, and so is what it gives."""
    out = io.BytesIO()
    Image.open(io.BytesIO(data)).resize((640, 640)).save(out, "PNG")
    assert len(out.getvalue()) > AT_ONCE
    return out.getvalue()


def data_uri(data):
    return "data:;base64," + base64.b64encode(data).decode()


def by_form(live, photo):
    return live.form("/v1/swap", ("source", HOPPER), ("target", photo), Accept="application/json")


def by_json(live, photo):
    uri = data_uri(photo)
    return live.json("/v1/swap", {"source": uri, "target": uri}, Accept="application/json")


@pytest.mark.parametrize(
    ("module", "name", "ask"),
    [
        (form_reader, "from_multipart", by_form),
        (jsonbody, "parse", by_json),
        (inline, "decoded", by_json),
        (report, "of_swap", by_form),
    ],
)
def test_others_are_answered_while_something_large_is_read_or_written(
    live, monkeypatch, module, name, ask
):
    photo, real = enlarged(COLLINS), getattr(module, name)
    begun, answered = threading.Event(), threading.Event()

    def held(*args, **kwargs):
        begun.set()
        assert answered.wait(20)
        return real(*args, **kwargs)

    def other():
        begun.wait(20)
        if live.get("/healthz").status == 200:
            answered.set()

    monkeypatch.setattr(module, name, held)
    asking = threading.Thread(target=other)
    asking.start()
    told = ask(live, photo)
    asking.join()
    assert told.status == 200
    assert base64.b64decode(told.json["image"]["base64"]).startswith(b"\x89PNG")


@pytest.mark.parametrize(("size", "same"), [(AT_ONCE, True), (AT_ONCE + 1, False)])
async def test_only_large_work_goes_to_a_thread(size, same):
    assert (await offload(size, threading.get_ident) == threading.get_ident()) is same
