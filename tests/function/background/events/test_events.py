"""Events end to end: a real store, a real server, the pixels of the output."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cloudevents.core.formats.json import JSONFormat

from tests.function.live import COLLINS, NOBODY, Live

from . import forms
from .conftest import HERE, pixels, told

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture(scope="module")
def live(cloud, rules):
    with Live(events=rules, uri_networks=HERE, watermark="off") as server:
        yield server


@pytest.fixture(scope="module")
def sinking(cloud, rules, sink):
    with Live(
        events=rules,
        uri_networks=HERE,
        event_sink=sink.url,
        event_overrides=(("team", "photos"),),
    ) as server:
        yield server


def post(server, request, **more):
    headers, body = request
    return server.send("POST", "/", body, headers | more)


def outcome(answer):
    return answer.headers["Ember-Event"]


def in_background(work, *args):
    """Start `work`; the list that its result comes into, and its thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(work(*args)), daemon=True)
    thread.start()
    return results, thread


def until(attempt, patience_s=30):
    """The first result of `attempt` that is true."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        if found := attempt():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


class TestAnUpload:
    @pytest.mark.parametrize("form", forms.ALL)
    def test_an_upload_in_every_form_of_event_gives_one_output_with_the_right_pixels(
        self, live, cloud, expected, form
    ):
        name = f"in/{form}/ä b%20c+d.jpg"
        upload = cloud.upload(name)
        answer = post(live, forms.ALL[form](upload))
        assert answer.status == 200, answer.body
        assert outcome(answer) in {"done", "done;n=1"}
        blob = cloud.output(name.replace(".jpg", ".webp"))
        assert blob.content_type == "image/webp"
        assert blob.metadata == {
            "ember-of": f"uploads/{name}#{upload['generation']}",
            "ember-rule": "rest",
        }
        assert np.array_equal(pixels(blob.download_as_bytes()), expected["webp"])

    def test_the_result_is_a_valid_event(self, live, cloud):
        upload = cloud.upload("in/told.jpg")
        event = told(post(live, forms.binary(upload), traceparent=TRACEPARENT))
        uri = f"gs://uploads/in/told.jpg#{upload['generation']}"
        assert event.get_type() == "dev.ember.swap.succeeded.v1"
        assert event.get_subject() == uri
        assert event.get_time() is not None
        assert event.get_extension("traceparent").startswith(TRACEPARENT[:36])
        assert event.get_extension("traceparent") != TRACEPARENT
        data, blob = event.get_data(), cloud.output("in/told.webp")
        assert data["input"] == {"uri": uri}
        assert data["rule"] == "rest"
        assert (
            data["output"].items()
            >= {
                "uri": "gs://swapped/in/told.webp",
                "generation": str(blob.generation),
                "media_type": "image/webp",
                "bytes": blob.size,
                "faces": 1,
            }.items()
        )

    def test_an_event_that_comes_twice_is_done_once_and_answered_alike(self, live, cloud):
        upload = cloud.upload("in/twice.jpg")
        first = told(post(live, forms.binary(upload)))
        before = cloud.output("in/twice.webp").generation
        for request in (
            forms.binary(upload),
            forms.pushed(upload, id="another"),
            forms.structured(upload, id="e-2", source="elsewhere"),
        ):
            answer = post(live, request)
            assert outcome(answer) == "duplicate"
            again = told(answer)
            assert (again.get_id(), again.get_source()) == (first.get_id(), first.get_source())
            assert again.get_data() == first.get_data()
        assert cloud.output("in/twice.webp").generation == before

    def test_an_event_that_comes_ten_times_at_once_is_done_once(self, live, cloud):
        upload = cloud.upload("in/ten.jpg")
        posts = [in_background(post, live, forms.binary(upload)) for _ in range(10)]
        for _, thread in posts:
            thread.join(60)
        outcomes = sorted(outcome(results[0]) for results, _ in posts)
        assert outcomes == ["done"] + ["duplicate"] * 9
        assert cloud.output("in/ten.webp").metageneration == 1

    def test_a_newer_upload_of_the_same_name_replaces_the_output_and_an_older_one_never_does(
        self, live, cloud
    ):
        old = cloud.upload("in/again.jpg")
        post(live, forms.binary(old))
        first = cloud.output("in/again.webp").generation
        new = cloud.upload("in/again.jpg", COLLINS + b"\0")
        assert outcome(post(live, forms.binary(new, id="e-2"))) == "done"
        second = cloud.output("in/again.webp")
        assert second.generation > first
        assert second.metadata["ember-of"].endswith(new["generation"])

    def test_an_event_that_is_late_does_not_undo_a_newer_upload(self, live, cloud):
        old = cloud.upload("in/late.jpg")
        new = cloud.upload("in/late.jpg", COLLINS + b"\0")
        assert outcome(post(live, forms.binary(new, id="new"))) == "done"
        before = cloud.output("in/late.webp").generation
        answer = post(live, forms.binary(old, id="old"))
        assert (answer.status, answer.body, outcome(answer)) == (204, b"", "superseded")
        assert cloud.output("in/late.webp").generation == before

    def test_an_upload_that_was_replaced_before_its_event_came_is_superseded(self, live, cloud):
        old = cloud.upload("in/replaced.jpg")
        cloud.upload("in/replaced.jpg", COLLINS + b"\0")
        assert outcome(post(live, forms.binary(old))) == "superseded"
        assert cloud.output("in/replaced.webp") is None

    def test_an_output_that_was_written_before_a_crash_is_not_written_again(
        self, cloud, rules, live
    ):
        upload = cloud.upload("in/crash.jpg")
        post(live, forms.binary(upload))
        before = cloud.output("in/crash.webp").generation
        with Live(events=rules, uri_networks=HERE) as another:  # it knows nothing of the first
            event = told(post(another, forms.binary(upload)))
        assert event.get_data()["output"]["generation"] == str(before)
        assert cloud.output("in/crash.webp").generation == before

    def test_an_upload_never_replaces_what_is_not_its_output(self, live, cloud):
        cloud.swapped.blob("in/taken.webp").upload_from_string(b"precious")
        upload = cloud.upload("in/taken.jpg")
        answer = post(live, forms.binary(upload))
        answer.problem("output_taken", 422)
        assert cloud.output("in/taken.webp").download_as_bytes() == b"precious"

    def test_an_upload_that_no_rule_fits_is_ignored(self, live, cloud):
        answer = post(live, forms.binary(cloud.upload("elsewhere/a.jpg")))
        assert (answer.status, answer.body, outcome(answer)) == (204, b"", "ignored")
        other = forms.resource("another-bucket", "a.jpg")
        assert outcome(post(live, forms.binary(other))) == "ignored"


class TestSources:
    def test_the_metadata_may_name_a_source_or_an_allowed_uri(self, live, cloud, expected):
        for number, source in enumerate(["hopper", "gs://photos/sources/hopper.jpg"]):
            upload = cloud.upload(f"named/{number}.jpg", source=source)
            assert outcome(post(live, forms.binary(upload, id=str(number)))) == "done"
            blob = cloud.output(f"swapped/named/{number}.jpg", cloud.uploads)
            assert blob.content_type == "image/jpeg"
            got = pixels(blob.download_as_bytes())
            assert np.abs(got.astype(int) - expected["jpeg"]).max() <= 1

    def test_without_metadata_in_the_event_the_store_is_asked(self, live, cloud):
        upload = cloud.upload("named/asked.jpg", source="hopper")
        assert outcome(post(live, forms.pushed(upload, payload=False))) == "done"

    def test_the_metadata_may_name_nothing_else(self, live, cloud):
        for number, source in enumerate(["gs://secret/x.jpg", "https://h/x", "nobody"]):
            upload = cloud.upload(f"named/not-{number}.jpg", source=source)
            post(live, forms.binary(upload, id=f"n{number}")).problem("no_source", 422)

    def test_a_file_beside_the_upload_may_say_what_to_do(self, live, cloud):
        wish = {"source": "hopper", "faces": "largest", "format": "png"}
        cloud.uploads.blob("beside/a.json").upload_from_string(json.dumps(wish))
        assert outcome(post(live, forms.binary(cloud.upload("beside/a.jpg")))) == "done"
        assert cloud.output("beside/a.jpg").content_type == "image/png"

    @pytest.mark.parametrize(
        ("text", "code"),
        [
            (None, "no_source"),
            ("{", "bad_value"),
            ("[]", "bad_value"),
            ("{}", "no_source"),
            ('{"source": "gs://secret/x"}', "no_source"),
            ('{"source": "hopper", "face": 1}', "unknown_field"),
            ('{"source": "hopper", "quality": 0}', "bad_value"),
        ],
    )
    def test_a_bad_file_beside_the_upload_is_reported(self, live, cloud, text, code):
        name = f"beside/{abs(hash(text))}"
        if text is not None:
            cloud.uploads.blob(f"{name}.json").upload_from_string(text)
        post(live, forms.binary(cloud.upload(f"{name}.jpg"), id=name)).problem(code, 422)


class TestCircles:
    def test_an_output_is_no_upload_by_its_place(self, live, cloud):
        post(live, forms.binary(cloud.upload("named/round.jpg", source="hopper")))
        output = forms.resource("uploads", "swapped/named/round.jpg", 99)
        assert outcome(post(live, forms.binary(output, id="o"))) == "ignored"
        assert outcome(post(live, forms.pushed(output, payload=False))) == "ignored"

    def test_an_output_is_no_upload_by_its_mark_even_when_it_is_copied(self, live, cloud):
        copied = cloud.upload("in/copied.jpg", **{"ember-of": "uploads/in/x.jpg#1"})
        assert outcome(post(live, forms.binary(copied))) == "ignored"
        assert outcome(post(live, forms.pushed(copied, payload=False))) == "ignored"
        assert cloud.output("in/copied.webp") is None

    def test_a_result_that_comes_back_as_an_event_is_ignored(self, live, cloud):
        answer = post(live, forms.binary(cloud.upload("in/back.jpg")))
        headers = {k: v for k, v in answer.headers.items() if k.lower().startswith("ce-")}
        assert outcome(post(live, (headers, answer.body))) == "ignored"


class TestWhatCannotWork:
    def test_what_cannot_work_is_answered_with_the_reason_each_time(self, live, cloud):
        upload = cloud.upload("in/nobody.jpg", NOBODY)
        for expected in ("failed", "duplicate"):
            answer = post(live, forms.binary(upload))
            answer.problem("no_face", 422)
            assert outcome(answer) == expected

    def test_what_cannot_work_has_no_status_that_makes_brokers_try_again(self, live, cloud):
        odd = {
            "in/text.jpg": b"no photo at all",
            "in/cut.jpg": COLLINS[:3000],
            "in/empty.jpg": b"",
        }
        for name, data in odd.items():
            answer = post(live, forms.binary(cloud.upload(name, data), id=name))
            assert 400 <= answer.status < 500
            assert answer.status not in {404, 408, 409, 425, 429}
        gone = forms.resource("uploads", "in/gone.jpg", 5)
        post(live, forms.binary(gone, id="gone")).problem("object_not_found", 422)

    def test_names_of_uploads_that_lead_out_of_their_folder_are_refused(self, live, cloud):
        upload = cloud.upload("in/../../etc/a.jpg")
        post(live, forms.binary(upload)).problem("bad_value", 422)

    def test_a_body_that_is_no_event_is_refused(self, live):
        answer = live.json("/", {"id": "1", "source": "s"})
        assert answer.problem("bad_event", 400)["attribute"] == "type"

    def test_a_body_that_is_too_long_is_refused_unread(self, live):
        headers = {"Content-Type": "application/json", "Content-Length": str(10**9)}
        answer = live.send("POST", "/", b"", headers)
        assert answer.problem("body_too_large", 413)["limit"] == 1024**2

    def test_without_rules_no_events_are_taken_in(self):
        with Live() as server:
            answer = post(server, forms.binary(forms.resource("uploads", "in/a.jpg")))
            assert "EMBER_EVENTS" in answer.problem("not_found", 404)["hint"]


class TestABatch:
    def test_a_batch_is_answered_with_a_batch(self, live, cloud):
        good = [cloud.upload(f"in/batch-{n}.jpg") for n in range(2)]
        bad = cloud.upload("in/batch-bad.jpg", NOBODY)
        bodies = [forms.structured(each, id=f"b{n}")[1] for n, each in enumerate([*good, bad])]
        answer = post(live, forms.batch(*bodies))
        assert answer.status == 200
        assert answer.media_type == "application/cloudevents-batch+json"
        events = [JSONFormat().read(None, json.dumps(each).encode()) for each in answer.json]
        assert sorted(event.get_type() for event in events) == [
            "dev.ember.swap.failed.v1",
            "dev.ember.swap.succeeded.v1",
            "dev.ember.swap.succeeded.v1",
        ]
        assert outcome(answer) == "done;n=2, failed;n=1"

    def test_a_batch_in_which_nothing_works_is_refused(self, live, cloud):
        bad = cloud.upload("in/batch-none.jpg", NOBODY)
        post(live, forms.batch(forms.structured(bad)[1])).problem("no_face", 422)

    def test_a_batch_in_which_one_event_has_to_come_again_comes_again(self, cloud, rules, closed):
        good, slow = cloud.upload("in/batch-good.jpg"), cloud.upload("slow/batch.jpg")
        request = forms.batch(forms.structured(good)[1], forms.structured(slow)[1])
        with Live(events=rules, uri_networks=HERE, event_ack_s=3.0) as server:
            answer = post(server, request)
            answer.problem("event_in_work", 503)
            assert outcome(answer) == "done;n=1, later;n=1"
            closed.open.set()
            until(lambda: cloud.output("slow/batch.jpg"))
            assert outcome(post(server, request)) == "duplicate;n=2"

    def test_a_batch_in_which_nothing_is_to_be_done_has_an_empty_answer(self, live):
        assert post(live, forms.batch()).status == 204


class TestASink:
    def test_a_sink_gets_each_result_once_and_the_answer_is_empty(self, sinking, cloud, sink):
        upload = cloud.upload("in/sink.jpg")
        answer = post(sinking, forms.binary(upload), traceparent=TRACEPARENT)
        assert (answer.status, answer.body, outcome(answer)) == (204, b"", "done")
        assert post(sinking, forms.binary(upload)).status == 204
        (event,) = sink.of(f"gs://uploads/in/sink.jpg#{upload['generation']}")
        assert event.get_type() == "dev.ember.swap.succeeded.v1"
        assert event.get_extension("team") == "photos"
        assert event.get_extension("traceparent")[3:35] == TRACEPARENT[3:35]

    def test_a_sink_gets_failures_too(self, sinking, cloud, sink):
        upload = cloud.upload("in/sink-nobody.jpg", NOBODY)
        post(sinking, forms.binary(upload)).problem("no_face", 422)
        (event,) = sink.of(f"gs://uploads/in/sink-nobody.jpg#{upload['generation']}")
        assert event.get_type() == "dev.ember.swap.failed.v1"
        assert event.get_data()["problem"]["code"] == "no_face"

    def test_a_sink_that_is_down_makes_the_event_come_again_and_the_swap_is_not_repeated(
        self, sinking, cloud, sink
    ):
        upload = cloud.upload("in/sink-down.jpg")
        sink.status = 400
        try:
            answer = post(sinking, forms.binary(upload))
            answer.problem("sink_unavailable", 503)
            assert "Retry-After" in answer.headers
        finally:
            sink.status = 202
        before = cloud.output("in/sink-down.webp").generation
        assert outcome(post(sinking, forms.binary(upload))) == "done"
        assert cloud.output("in/sink-down.webp").generation == before
        assert len(sink.of(f"gs://uploads/in/sink-down.jpg#{upload['generation']}")) == 1


class TestLongWork:
    def test_long_work_is_not_acknowledged_where_nothing_outlives_the_process(
        self, cloud, rules, closed
    ):
        with Live(events=rules, uri_networks=HERE, event_ack_s=2.0) as server:
            upload = cloud.upload("slow/memory.jpg")
            for _ in range(2):
                answer = post(server, forms.binary(upload))
                answer.problem("event_in_work", 503)
                assert int(answer.headers["Retry-After"]) >= 1
            closed.open.set()
            until(lambda: cloud.output("slow/memory.jpg"))
            answer = until(lambda: (a := post(server, forms.binary(upload))).status == 200 and a)
            assert told(answer).get_data()["output"]["uri"] == "gs://swapped/slow/memory.jpg"
            assert cloud.output("slow/memory.jpg").metageneration == 1

    def test_events_beyond_the_limit_have_to_come_later(self, cloud, rules, closed):
        limits = {"queue_limit": 1, "threads": 1, "event_ack_s": 2.0}
        with Live(events=rules, uri_networks=HERE, **limits) as server:
            first, second = (cloud.upload(f"slow/room-{n}.jpg") for n in range(2))
            post(server, forms.binary(first, id="1")).problem("event_in_work", 503)
            answer = post(server, forms.binary(second, id="2"))
            assert answer.problem("overloaded", 503)["limit"] == 1
            assert int(answer.headers["Retry-After"]) >= 1
            closed.open.set()
            until(lambda: cloud.output("slow/room-0.jpg"))
            until(lambda: post(server, forms.binary(second, id="2")).status == 200)

    def test_a_client_that_goes_away_stops_no_event(self, cloud, rules, closed, live):
        import socket

        upload = cloud.upload("slow/left.jpg")
        headers, body = forms.binary(upload)
        lines = [f"{k}: {v}" for k, v in headers.items()]
        head = "\r\n".join(
            ["POST / HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *lines]
        )
        with socket.create_connection(("127.0.0.1", live.port)) as client:
            client.sendall(head.encode() + b"\r\n\r\n" + body)
            assert closed.asked.acquire(timeout=30)
        closed.open.set()
        until(lambda: cloud.output("slow/left.jpg"))
        assert outcome(post(live, forms.binary(upload))) == "duplicate"


@pytest.mark.slow
def test_far_more_events_than_there_is_room_for_are_all_done_in_the_end(cloud, rules):
    uploads = [cloud.upload(f"in/crowd-{n}.jpg", NOBODY) for n in range(80)]
    refused = []

    def deliver(upload):
        """As a broker does, which comes again when it is told to."""
        while True:
            answer = post(server, forms.binary(upload))
            if answer.status != 503:
                return outcome(answer)
            refused.append(answer.problem("overloaded", 503))
            assert int(answer.headers["Retry-After"]) >= 1
            time.sleep(0.2)

    with (
        Live(events=rules, queue_limit=2, threads=2) as server,
        ThreadPoolExecutor(24) as brokers,
    ):
        assert set(brokers.map(deliver, uploads)) == {"failed"}
        metrics = server.get("/metrics").body.decode()
    assert refused
    assert 'ember_events_total{outcome="failed"} 80.0' in metrics
    assert f'ember_events_total{{outcome="later"}} {len(refused)}.0' in metrics


def test_a_store_that_is_down_makes_events_come_again(rules, free_port, monkeypatch, cloud):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{free_port}")
    with Live(events=rules, uri_timeout_s=1.0) as server:
        answer = post(server, forms.binary(forms.resource("uploads", "in/down.jpg")))
        answer.problem("storage_unavailable", 503)
        assert int(answer.headers["Retry-After"]) >= 1


def test_what_becomes_of_events_is_counted(live, cloud):
    post(live, forms.binary(forms.resource("another-bucket", "a.jpg")))
    metrics = live.get("/metrics").body.decode().splitlines()
    assert any(line.startswith('ember_events_total{outcome="ignored"}') for line in metrics)
