"""`GET /metrics`: what is counted, and that labels stay few."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from function.request_context import Lane, RequestContext
from function.telemetry.ending import Ending, ending
from tests.function.live import COLLINS, SOURCE, TARGET, Live
from tests.function.raw import connection, head, read_answer


@pytest.fixture
def fresh():
    with Live() as server:
        yield server


def samples(server):
    """Every sample: (name, labels) to value."""
    text = server.get("/metrics").body.decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(server, name, **labels):
    return samples(server).get((name, tuple(sorted(labels.items()))))


def test_requests_stages_problems_and_warnings_are_counted(fresh):
    fresh.form("/v1/swap", SOURCE, TARGET)
    fresh.form("/v1/swap", SOURCE)
    route = {"route": "/v1/swap"}
    assert value(fresh, "ember_requests_total", method="POST", status="200", **route) == 1
    assert value(fresh, "ember_requests_total", method="POST", status="422", **route) == 1
    assert value(fresh, "ember_request_seconds_count", ending="served", **route) == 1
    assert value(fresh, "ember_request_seconds_count", ending="wrong", **route) == 1
    assert value(fresh, "ember_stage_seconds_count", stage="swap") == 1
    assert value(fresh, "ember_stage_seconds_sum", stage="swap") > 0
    assert value(fresh, "ember_problems_total", code="missing_field") == 1
    assert value(fresh, "ember_in_work") == 0


def test_probes_and_scrapes_are_counted_apart(fresh):
    for path in ("/healthz", "/readyz", "/warmup", "/metrics"):
        fresh.get(path)
    told = samples(fresh)
    counted = {dict(labels)["route"] for (name, labels) in told if name == "ember_probes_total"}
    assert counted == {"/healthz", "/readyz", "/warmup", "/metrics"}
    names = {"ember_requests_total", "ember_request_seconds_count"}
    assert not {dict(labels)["route"] for name, labels in told if name in names} & counted
    assert value(fresh, "ember_probes_total", route="/readyz", status="200") == 1


def test_a_probe_that_fails_is_no_request_either(fresh):
    status = str(fresh.send("POST", "/warmup?force=perhaps").status)
    assert status.startswith("4")
    assert not [name for name, _ in samples(fresh) if name.startswith("ember_problems_total")]
    assert value(fresh, "ember_probes_total", route="/warmup", status=status) == 1


def test_problems_of_pings_are_nobodys(fresh):
    """They are the first to be refused, and would be taken for users who are."""
    fresh.form("/v1/swap", SOURCE, Ember_Ping="1")
    told = samples(fresh)
    assert not [labels for name, labels in told if name == "ember_problems_total"]
    (labels,) = [dict(labels) for name, labels in told if name == "ember_requests_total"]
    assert (labels["route"], labels["status"]) == ("ping", "422")


@pytest.mark.parametrize(
    ("status", "code", "how"),
    [
        (200, None, Ending.SERVED),
        (202, None, Ending.SERVED),
        (304, None, Ending.SERVED),
        (422, "no_face", Ending.WRONG),
        (429, "quota_exhausted", Ending.WRONG),
        (499, None, Ending.LEFT),
        (503, "overloaded", Ending.REFUSED),
        (503, "not_ready", Ending.FAILED),
        (504, "deadline_exceeded", Ending.FAILED),
        (500, "internal", Ending.FAILED),
    ],
)
def test_each_request_ends_in_one_way(status, code, how):
    assert ending(status, code) is how


def test_a_refusal_is_not_among_the_times_of_what_is_served():
    """However many are refused in no time, what is told of those that are served stays."""
    with Live(threads=1, queue_limit=1) as server:
        for _ in range(3):  # two have places, one waits
            server.server.admission.load.enter(RequestContext(Lane.BULK))
        for _ in range(20):
            answer = server.form("/v1/swap", SOURCE, TARGET, Ember_Lane="bulk")
            answer.problem("overloaded", 503)
        server.form("/v1/swap", SOURCE, TARGET)
        route = {"route": "/v1/swap"}
        assert value(server, "ember_request_seconds_count", ending="refused", **route) == 20
        assert value(server, "ember_request_seconds_count", ending="served", **route) == 1


def test_what_runs_together_and_what_waits_is_measured(fresh):
    fresh.form("/v1/swap", SOURCE, TARGET)
    for role in ("detect", "landmarks", "identity"):
        batches = value(fresh, "ember_batch_items_count", role=role)
        assert value(fresh, "ember_batch_items_sum", role=role) == batches > 0
        assert value(fresh, "ember_batch_cap", role=role) == 1
        assert value(fresh, "ember_batch_item_seconds", role=role) > 0
        assert value(fresh, "ember_batch_base_seconds", role=role) >= 0
    places = {"for": "place", "lane": "interactive"}
    assert value(fresh, "ember_waited_seconds_count", **places) >= 1


def test_warnings_are_counted(fresh):
    small = fresh.form("/v1/swap", SOURCE, TARGET, ("format", "png")).image.resize((60, 60))
    import io

    out = io.BytesIO()
    small.convert("P").save(out, "GIF", save_all=True, append_images=[small.convert("P").copy()])
    answer = fresh.form("/v1/faces", ("image", out.getvalue()))
    for code in filter(None, (answer.headers["Ember-Warnings"] or "").split(", ")):
        assert value(fresh, "ember_warnings_total", code=code) == 1


def test_exactly_one_phase_is_on():
    with Live(warm=False) as server:
        for phase in ("starting", "ready", "draining"):
            if phase == "ready":
                server.send("POST", "/warmup")
            elif phase == "draining":
                server.loop.call_soon_threadsafe(server.replica.drain)
            on = {
                dict(labels)["phase"]
                for (name, labels), value in samples(server).items()
                if name == "ember_phase" and value == 1
            }
            assert on == {phase}


def test_labels_do_not_grow_with_addresses_methods_or_names(fresh):
    def send(n):
        fresh.get(f"/nowhere/{n}")
        fresh.get(f"/samples/{n}")
        fresh.send(f"BREW{n}", f"/{n}")
        fresh.form("/v1/faces", (f"field{n}", COLLINS), X_Request_Id=str(n))
        with connection(fresh) as client:
            client.sendall(f"GARBAGE{n}\r\n\r\n".encode())
            read_answer(client)
        return len(samples(fresh))

    send(0)
    before = send(1)
    assert [send(n) for n in range(2, 10)] == [before] * 8


def test_each_application_has_a_registry_of_its_own(fresh, live):
    from prometheus_client import REGISTRY

    fresh.get("/nowhere")
    assert not [name for name in REGISTRY._names_to_collectors if name.startswith("ember")]
    assert value(fresh, "ember_problems_total", code="not_found") == 1


def test_the_text_says_its_version(live):
    assert live.get("/metrics").headers["Content-Type"].startswith("text/plain; version=0.0.4")


def test_a_head_of_metrics_is_small(live):
    with connection(live) as client:
        client.sendall(head("HEAD", "/metrics"))
        assert read_answer(client, "HEAD").body == b""
