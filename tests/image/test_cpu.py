"""The image `cpu`, run as a platform runs it: nothing to write to, no rights, little memory."""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from tests.function.live import SOURCE, TARGET, Live
from tests.function.process.test_drain import Client, balance
from tests.function.raw import eventually
from tests.function.telemetry.collector import collecting
from tests.image.podman import HARDENED, SLOW

pytestmark = SLOW


@pytest.fixture(scope="module")
def replica(podman, cpu):
    with podman.serving(cpu) as replica:
        yield replica


def test_it_swaps_to_the_same_pixels_as_the_code_outside(replica):
    wanted = {"Accept": "image/png", "Ember_Request_Id": "the-same"}
    inside = replica.form("/v1/swap", SOURCE, TARGET, **wanted)
    with Live() as live:
        outside = live.form("/v1/swap", SOURCE, TARGET, **wanted)
    assert (inside.status, outside.status) == (200, 200)
    assert np.array_equal(np.asarray(inside.image), np.asarray(outside.image))


def test_without_a_place_to_write_it_says_what_it_cannot_do(replica):
    told = [event for event in replica.events() if event["logger"] == "ember.optimised"]
    assert {event["message"] for event in told} == {"no optimised graph can be kept"}
    assert all("/var/cache/ember" in event["reason"] for event in told)


def test_told_to_stop_under_load_it_loses_no_request_and_exits_0(podman, cpu):
    with podman.serving(cpu, EMBER_DRAIN_GRACE_S="3") as replica:
        stop = threading.Event()
        clients = [Client(replica.port, stop) for _ in range(8)]
        balancer = threading.Thread(target=balance, args=(replica.port, stop))
        for thread in (*clients, balancer):
            thread.start()
        eventually(lambda: all(len(client.statuses) > 2 for client in clients), 60)
        before = sum(len(client.statuses) for client in clients)
        assert replica.stop() == 0
        for thread in (*clients, balancer):
            thread.join(60)
        assert [client.errors for client in clients] == [[]] * 8
        statuses = [status for client in clients for status in client.statuses]
        assert set(statuses) == {200}
        assert len(statuses) > before


def test_it_sends_spans_where_that_is_wanted(podman, cpu):
    trace = "0af7651916cd43dd8448eb211c80319c"
    with (
        collecting() as collector,
        podman.serving(cpu, EMBER_TRACES=collector.url, OTEL_BSP_SCHEDULE_DELAY="100") as replica,
    ):
        parent = f"00-{trace}-b7ad6b7169203331-01"
        assert replica.form("/v1/swap", SOURCE, TARGET, traceparent=parent).status == 200
        assert collector.of(trace, "POST /v1/swap").parent == "b7ad6b7169203331"


def test_any_user_will_do(podman, cpu):
    user = f"{random.randrange(100_000, 2**31)}:0"
    with podman.serving(cpu, user=user) as replica:
        assert replica.form("/v1/swap", SOURCE, TARGET).status == 200


def test_a_store_on_a_volume_keeps_the_optimised_graphs(podman, cpu, tmp_path):
    tmp_path.chmod(0o777)
    with podman.serving(cpu, f"--volume={tmp_path}:/var/cache/ember") as replica:
        eventually(lambda: len(list((tmp_path / "optimised").glob("[!.]*"))) == 4)
        assert replica.form("/v1/swap", SOURCE, TARGET).status == 200


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--version"], "ember 0"),
        (["config"], "EMBER_HOST"),
        (["models", "check"], "4 models"),
        (["faces", "/opt/ember/function/samples/hopper.jpg"], "0"),
        (["swap", "/s/hopper.jpg", "/s/collins.jpg", "-o", "-"], "JFIF"),
        (["coldstart", "-n", "1"], "warm swap"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_each_command_runs_without_anything_to_write_to(podman, cpu, words, told):
    words = [word.replace("/s/", "/opt/ember/function/samples/") for word in words]
    done = podman("run", "--rm", "--network=none", "--user=65532", *HARDENED, cpu, *words)
    assert told in done.stdout


def test_the_command_has_its_name_in_the_path(podman, cpu):
    assert "prefetch" in podman("run", "--rm", "--entrypoint=ember", cpu, "--help").stdout
