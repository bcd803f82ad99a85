"""Jobs over real HTTP: made once, done when there is time, told about, cancelled, deleted."""

from __future__ import annotations

import asyncio
import base64
import json
import re

import numpy as np
import pytest

from tests.function.live import COLLINS, HOPPER, NOBODY, SOURCE, TARGET
from tests.function.raw import connection, eventually, head

from .conftest import finished, new_id, pixels, put, state


class TestAJob:
    def test_a_job_is_done_and_gives_what_a_swap_gives(self, live):
        name = new_id()
        answer = put(live, name)
        assert answer.status == 201, answer.body
        assert answer.headers["Location"] == f"/v1/jobs/{name}"
        assert answer.json["state"] in {"queued", "running"}
        assert answer.json["progress"] == {"done": 0, "total": 1}
        told = finished(live, name)
        assert told["state"] == "succeeded"
        assert told["progress"] == {"done": 1, "total": 1}
        (item,) = told["items"]
        result = item["result"]
        assert (result["width"], result["height"], result["faces"]) == (512, 512, 1)
        photo = live.get(result["uri"])
        assert (photo.status, photo.media_type) == (200, "image/jpeg")
        assert len(photo.body) == result["bytes"] == int(photo.headers["Content-Length"])
        swapped = live.form("/v1/swap", SOURCE, TARGET)
        assert np.array_equal(pixels(photo.body), pixels(swapped.body))

    def test_a_job_that_is_put_twice_is_one(self, live):
        name = new_id()
        first = put(live, name).json
        for parts in ((SOURCE, TARGET), (TARGET, SOURCE)):
            again = put(live, name, *parts)
            assert again.status == 200
            assert again.json["created"] == first["created"]
        finished(live, name)
        assert put(live, name).json["state"] == "succeeded"

    def test_a_job_with_the_id_of_another_is_refused(self, live):
        name = new_id()
        put(live, name)
        put(live, name, SOURCE, TARGET, ("quality", "50")).problem("job_conflict", 409)
        put(live, name, SOURCE, ("target", HOPPER)).problem("job_conflict", 409)
        assert finished(live, name)["state"] == "succeeded"

    def test_a_job_has_the_options_of_a_swap(self, live):
        put(live, new_id(), SOURCE, TARGET, ("masks", "hair")).problem("bad_value", 422)
        name = new_id()
        assert put(live, name, SOURCE, TARGET, ("enhance", "0")).status == 201
        assert finished(live, name)["state"] == "succeeded"
        name = new_id()
        put(live, name, SOURCE, TARGET, ("boost", "256"))  # there is no model for it
        told = finished(live, name)
        assert told["items"][0]["problem"]["code"] == "bad_value"

    def test_a_job_that_cannot_be_done_says_why(self, live):
        name = new_id()
        put(live, name, SOURCE, ("target", NOBODY))
        told = finished(live, name)
        assert told["state"] == "failed"
        assert told["items"][0]["problem"]["code"] == "no_face"
        live.get(f"/v1/jobs/{name}/results/0").problem("not_found", 404)

    def test_an_unknown_job_is_not_found(self, live):
        for method in ("GET", "DELETE"):
            live.send(method, f"/v1/jobs/{new_id()}").problem("not_found", 404)

    def test_a_job_of_an_anonymous_caller_needs_an_id_that_nobody_guesses(self, live):
        assert put(live, "my-job").problem("bad_value", 422)["field"] == "id"
        live.get("/v1/jobs").problem("forbidden", 403)

    def test_a_job_with_fields_that_make_no_sense_is_refused_at_once(self, live):
        for parts, code in [
            ((SOURCE,), "missing_field"),
            ((SOURCE, TARGET, ("faces", "left")), "bad_value"),
            ((SOURCE, TARGET, ("faces", "like")), "missing_field"),
            ((SOURCE, TARGET, ("like", HOPPER)), "bad_value"),
            ((SOURCE, TARGET, ("masks", "nose")), "bad_value"),
            ((SOURCE, TARGET, ("output", "gs://b/a gs://b/b")), "bad_value"),
            ((SOURCE, TARGET, ("output", "ftp://b/a")), "unsupported_uri"),
            ((SOURCE, TARGET, ("output", "gs://b/a")), "object_forbidden"),
            ((SOURCE, TARGET, ("image", "none")), "unknown_field"),
        ]:
            put(live, new_id(), *parts).problem(code, 422)


class TestASwapThatNobodyWaitsFor:
    def test_a_swap_that_prefers_to_respond_async_is_a_job(self, live):
        answer = live.form("/v1/swap", SOURCE, TARGET, Prefer="respond-async")
        assert (answer.status, answer.headers["Preference-Applied"]) == (202, "respond-async")
        name = answer.json["id"]
        assert answer.headers["Location"] == f"/v1/jobs/{name}"
        assert re.fullmatch("[0-9a-f]{32}", name)
        assert finished(live, name)["state"] == "succeeded"

    def test_a_job_may_have_its_photos_elsewhere(self, live):
        photo = f"data:image/jpeg;base64,{base64.b64encode(COLLINS).decode()}"
        answer = live.json("/v1/swap", {"source": photo, "target": photo}, Prefer="respond-async")
        assert finished(live, answer.json["id"])["state"] == "succeeded"

    @pytest.mark.parametrize("uri", ["\ud800", "data:,\udce5", "file://[a/b", "gs://[a/b"])
    def test_a_job_may_name_nothing_that_is_no_uri(self, live, uri):
        answer = live.json("/v1/swap", {"source": uri, "target": uri}, Prefer="respond-async")
        assert answer.status == 422, answer.body

    def test_a_swap_is_a_job_only_where_the_client_prefers_that(self, live):
        for wish in ("wait=5", "handling=lenient", "respond-asynchronous"):
            assert live.form("/v1/swap", SOURCE, TARGET, Prefer=wish).status == 200


class TestABatch:
    def test_a_batch_has_a_result_for_each_target(self, live):
        name = new_id()
        put(live, name, SOURCE, TARGET, ("target", HOPPER), ("target", NOBODY))
        told = finished(live, name)
        assert told["state"] == "partly"
        assert [item["state"] for item in told["items"]] == ["succeeded", "succeeded", "failed"]
        assert told["progress"] == {"done": 3, "total": 3}
        sizes = [live.get(item["result"]["uri"]).image.size for item in told["items"][:2]]
        assert sizes == [(512, 512), (512, 600)]

    def test_a_batch_has_the_pixels_of_swaps(self, live):
        name = new_id()
        put(live, name, SOURCE, TARGET, ("target", HOPPER), ("format", "png"))
        told = finished(live, name)
        for item, target in zip(told["items"], (COLLINS, HOPPER), strict=True):
            swapped = live.form("/v1/swap", SOURCE, ("target", target), ("format", "png"))
            assert np.array_equal(
                pixels(live.get(item["result"]["uri"]).body), pixels(swapped.body)
            )


class TestCancelling:
    def test_cancelling_ends_jobs_that_run_and_jobs_that_wait(self, held):
        server, go = held
        names = [new_id() for _ in range(5)]
        for name in names:
            put(server, name)
        eventually(lambda: [state(server, name) for name in names].count("running") >= 2)
        told = server.get(f"/v1/jobs/{names[-1]}").json
        assert told["state"] == "queued"
        assert told["position"] > 0
        for name in names:
            answer = server.send("DELETE", f"/v1/jobs/{name}")
            assert (answer.status, answer.json["state"]) == (200, "cancelled")
            assert answer.json["items"][0]["state"] == "cancelled"
        go.set()
        eventually(lambda: server.service.in_work == 0)
        assert {state(server, name) for name in names} == {"cancelled"}
        assert put(server, names[0]).json["state"] == "cancelled"  # a late try makes no new job
        name = new_id()
        put(server, name)
        assert finished(server, name)["state"] == "succeeded"

    def test_cancelling_a_job_that_is_done_deletes_its_results(self, live):
        name = new_id()
        put(live, name)
        uri = finished(live, name)["items"][0]["result"]["uri"]
        assert live.send("DELETE", f"/v1/jobs/{name}").json["state"] == "deleted"
        live.get(uri).problem("not_found", 404)
        assert live.send("DELETE", f"/v1/jobs/{name}").json["state"] == "deleted"

    def test_cancelling_leaves_no_photos(self, held):
        server, go = held
        done = new_id()
        go.set()
        put(server, done)
        finished(server, done)
        files = server.server.jobs.files
        eventually(
            lambda: files.held == server.get(f"/v1/jobs/{done}").json["items"][0]["result"]["bytes"]
        )
        server.send("DELETE", f"/v1/jobs/{done}")
        assert files.held == 0


class TestEvents:
    def test_a_stream_has_every_change_until_the_end(self, live):
        name = new_id()
        put(live, name, SOURCE, TARGET, ("target", HOPPER))
        answer = live.get(f"/v1/jobs/{name}/events")
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        events = parsed(answer.body)
        assert [each["event"] for each in events][-1] == "succeeded"
        versions = [int(each["id"]) for each in events]
        assert versions == sorted(set(versions))
        done = [json.loads(each["data"])["progress"]["done"] for each in events]
        assert done == sorted(done)
        assert done[-1] == 2

    def test_a_stream_begins_after_the_event_that_was_seen_last(self, live):
        name = new_id()
        put(live, name)
        version = finished(live, name)["version"]
        again = live.send("GET", f"/v1/jobs/{name}/events", headers={"Last-Event-ID": str(version)})
        assert parsed(again.body) == []
        earlier = {"Last-Event-ID": str(version - 1)}
        (event,) = parsed(live.send("GET", f"/v1/jobs/{name}/events", headers=earlier).body)
        assert int(event["id"]) == version

    def test_a_stream_ends_when_the_client_goes(self, held):
        server, _ = held
        name = new_id()
        put(server, name)
        eventually(lambda: state(server, name) == "running")

        async def connections():
            """Their tasks; the runner's own come and go."""
            named = (task.get_coro().__qualname__ for task in asyncio.all_tasks())
            return sum(name == "RequestHandler.start" for name in named)

        eventually(lambda: server.run(connections()) == 0)
        with connection(server) as client:
            client.sendall(head("GET", f"/v1/jobs/{name}/events"))
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            eventually(lambda: server.run(connections()) == 1)
        eventually(lambda: server.run(connections()) == 0)


def parsed(body):
    """The events of a stream."""
    blocks = [block for block in body.decode().split("\n\n") if "data:" in block]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]
