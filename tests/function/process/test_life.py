"""The life of a replica over HTTP: cold, warm, degraded, failing, stuck; what probes say of it."""

from __future__ import annotations

import asyncio
import hashlib
import io
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace

from PIL import Image

from function.process.wiring.service import embedded
from function.service import opening
from tests.function.http.test_probes import broken_manifest
from tests.function.live import COLLINS, HOPPER, SOURCE, TARGET, Live
from tests.function.raw import eventually
from tests.function.telemetry.test_metrics import samples, value
from tests.running import running
from tests.warmup.objects.hostile import hostile
from warmup.retry import Retry

from .test_server import ask, phases

ROLES = ("detect", "gate", "identity", "landmarks")


def small(photo):
    out = io.BytesIO()
    Image.open(io.BytesIO(photo)).resize((160, 160)).save(out, "PNG")
    return out.getvalue()


class Opener:
    """Opens real engines; counts, fails, waits or changes outputs where it is told to."""

    def __init__(self):
        self.opened = Counter()
        self.broken = set()
        self.at_run = {}

    def __call__(self, model, **options):
        self.opened[model.role] += 1
        if model.role in self.broken:
            raise OSError(f"{model.role} is broken")
        return Engine(opening.open_engine(model, **options), model.role, self)


class Engine:
    def __init__(self, engine, role, opener):
        self.engine, self.role, self.opener = engine, role, opener
        self.provider = engine.provider

    @property
    def items(self):
        return self.engine.items

    def run(self, batch):
        self.opener.at_run.get(self.role, lambda: None)()
        return self.engine.run(batch)


@contextmanager
def started(opener=None, *, retry_s=0.0, **changes):
    """A server whose replica was started as the process would, and may not be ready."""
    with Live(warm=False, **changes) as server:
        engines = server.service.engines
        engines.loader.config = replace(engines.loader.config, open=opener or Opener())
        server.replica.retry = Retry(retry_s, first_s=0.05, most_s=0.05)
        server.loop.call_soon_threadsafe(server.replica.start)
        yield server


def is_ready(server):
    return lambda: server.get("/readyz").status == 200


def states(server):
    return {role: m["state"] for role, m in sorted(server.get("/readyz").json["models"].items())}


# --- cold -------------------------------------------------------------------------------------


def test_without_preload_a_replica_is_ready_and_says_that_it_is_cold():
    opener = Opener()
    with started(opener, preload=False) as server:
        eventually(is_ready(server))
        told = server.get("/readyz").json
        assert (told["ready"], told["cold"], told["phase"]) == (True, True, "ready")
        assert states(server) == dict.fromkeys(ROLES, "waiting")
        assert opener.opened == {}
        answer = server.form("/v1/faces", ("image", COLLINS))
        assert answer.status == 200
        assert "load;dur=" in answer.headers["Server-Timing"]
        assert server.get("/readyz").json["cold"]
        assert server.form("/v1/swap", SOURCE, TARGET).status == 200
        assert not server.get("/readyz").json["cold"]


def test_a_hundred_first_requests_load_each_model_once():
    opener = Opener()
    photo = small(HOPPER)
    with started(opener, preload=False) as server, ThreadPoolExecutor(100) as clients:
        eventually(is_ready(server))
        answers = list(
            clients.map(lambda _: server.form("/v1/faces", ("image", photo)), range(100))
        )
        assert [answer.status for answer in answers] == [200] * 100
        assert opener.opened == {"detect": 1, "landmarks": 1}


def test_a_cold_replica_is_loaded_and_warmed_when_asked():
    opener = Opener()
    with started(opener, preload=False) as server, ThreadPoolExecutor(10) as clients:
        eventually(is_ready(server))
        answers = list(clients.map(lambda _: server.send("POST", "/warmup"), range(10)))
        assert [answer.status for answer in answers] == [200] * 10
        assert states(server) == dict.fromkeys(ROLES, "warmed")
        assert not server.get("/readyz").json["cold"]
        assert opener.opened == dict.fromkeys(ROLES, 1)


# --- becoming ready ---------------------------------------------------------------------------


def test_a_replica_is_not_ready_before_the_last_inference_has_ended():
    opener = Opener()
    go = threading.Event()
    opener.at_run["identity"] = lambda: go.wait(60)
    with started(opener) as server:
        eventually(lambda: states(server) | {"identity": "loaded"} == states(server))
        for _ in range(20):
            answer = server.get("/readyz")
            assert (answer.status, answer.json["ready"]) == (503, False)
            assert answer.json["phase"] in {"loading", "warming"}
        assert server.form("/v1/faces", ("image", COLLINS)).problem("not_ready", 503)
        go.set()
        eventually(is_ready(server))
        assert states(server) == dict.fromkeys(ROLES, "warmed")


def test_readiness_shows_the_progress_of_fetching():
    class Progress:
        name = "detect"

        def facts(self):
            return {"state": "fetching", "done": 3, "size": 10, "rate": 1, "eta_s": 7.0}

    with started() as server:
        eventually(is_ready(server))  # from then on, nothing is fetched that could tell of itself
        server.service.engines._on_fetching(Progress())
        assert server.get("/readyz").json["models"]["detect"]["fetch"]["eta_s"] == 7.0


def test_a_start_that_fails_is_tried_again_until_it_works():
    opener = Opener()
    opener.broken.add("detect")
    with started(opener, retry_s=60) as server:
        eventually(lambda: opener.opened["detect"] >= 3)
        answer = server.get("/readyz")
        assert (answer.status, answer.json["phase"]) == (503, "loading")
        assert answer.json["last_error"] == "OSError; see the log"
        assert int(answer.headers["Retry-After"]) >= 1
        assert server.get("/healthz").status == 200
        assert states(server)["detect"] in {"failed", "loading"}
        opener.broken.clear()
        eventually(is_ready(server))
        assert server.get("/readyz").json["last_error"] is None
        assert opener.opened["identity"] == 1


def test_asking_for_a_warm_up_does_not_wait_for_the_next_try():
    opener = Opener()
    opener.broken.add("detect")
    with started(opener, retry_s=0) as server:
        server.replica.retry = Retry(1000, first_s=100, most_s=100)
        eventually(lambda: server.get("/readyz").json["last_error"])
        refused = server.send("POST", "/warmup")
        assert (refused.status, refused.json["last_error"]) == (503, "OSError; see the log")
        assert int(refused.headers["Retry-After"]) > 50
        opener.broken.clear()
        assert server.send("POST", "/warmup").status == 200
        assert server.get("/readyz").status == 200


def test_a_process_heals_when_its_file_does(tmp_path):
    manifest = broken_manifest(tmp_path)
    with running(ready=False, EMBER_MANIFEST=str(manifest), EMBER_WARMUP_RETRY_S="100") as server:
        eventually(lambda: ask(server).json["last_error"])
        assert "sha256" in ask(server).json["last_error"]
        for file in embedded().parent.glob("*.onnx"):
            (tmp_path / file.name).write_bytes(file.read_bytes())
        eventually(lambda: ask(server).status == 200, 60)
        assert phases(server) == ["starting", "fetching", "loading", "warming", "ready"]


def test_a_replica_whose_golden_result_is_another_never_becomes_ready(tmp_path):
    Image.new("RGB", (96, 96)).save(tmp_path / "golden.png")
    (tmp_path / "models.toml").write_text(
        embedded()
        .read_text()
        .replace('uri = "', f'uri = "{embedded().parent}/')
        .replace('"open_nsfw_', f'"{embedded().parent}/open_nsfw_')
        .replace("../samples", str(embedded().parent.parent / "samples"))
    )
    with started(manifest=tmp_path / "models.toml") as server:
        eventually(lambda: server.get("/readyz").json["phase"] == "failed", 60)
        assert "golden check" in server.get("/readyz").json["last_error"]
        server.form("/v1/faces", ("image", COLLINS)).problem("not_ready", 503)


# --- readiness that is lost -------------------------------------------------------------------


def test_a_cold_model_that_cannot_be_loaded_ends_readiness_until_it_can():
    opener = Opener()
    opener.broken.add("detect")
    with started(opener, retry_s=60, preload=False) as server:
        eventually(is_ready(server))
        server.form("/v1/faces", ("image", COLLINS)).problem("not_ready", 503)
        answer = server.get("/readyz")
        assert (answer.status, answer.json["last_error"]) == (503, "OSError; see the log")
        server.form("/v1/faces", ("image", COLLINS)).problem("not_ready", 503)
        opener.broken.clear()
        eventually(is_ready(server))
        assert server.form("/v1/faces", ("image", COLLINS)).status == 200


def test_a_warm_up_that_fails_later_ends_readiness_and_service():
    opener = Opener()

    def fail():
        raise RuntimeError("the device is gone")

    with started(opener, retry_s=60) as server:
        eventually(is_ready(server))
        opener.at_run["identity"] = fail
        assert server.send("POST", "/warmup?force=true").status == 503
        assert server.get("/readyz").json["last_error"] == "RuntimeError; see the log"
        server.form("/v1/faces", ("image", COLLINS)).problem("not_ready", 503)
        opener.at_run.clear()
        eventually(is_ready(server))
        assert server.form("/v1/faces", ("image", COLLINS)).status == 200


def test_a_thread_that_is_stuck_ends_life_and_readiness():
    opener = Opener()
    with started(opener, stuck_s=0.2) as server, ThreadPoolExecutor(1) as client:
        eventually(is_ready(server))
        go, begun = threading.Event(), threading.Event()
        opener.at_run["detect"] = lambda: (begun.set(), go.wait(60))
        hanging = client.submit(server.form, "/v1/faces", ("image", COLLINS))
        assert begun.wait(20)
        eventually(lambda: server.get("/healthz").status == 503)
        told = server.get("/healthz").json
        assert told["status"] == "stuck"
        assert "EMBER_STUCK_S is 0.2" in told["reason"]
        ready = server.get("/readyz")
        assert (ready.status, ready.json["ready"], ready.json["phase"]) == (503, False, "ready")
        assert "EMBER_STUCK_S" in ready.json["waiting_for"]
        assert value(server, "ember_stuck") == 1
        go.set()
        assert hanging.result().status == 200
        assert server.get("/healthz").json == {"status": "alive", "reason": None}
        assert server.get("/readyz").status == 200


def test_long_loading_is_not_stuck():
    go = threading.Event()

    class Slow(Opener):
        def __call__(self, model, **options):
            go.wait(60)
            return super().__call__(model, **options)

    with started(Slow(), stuck_s=0.05) as server:
        eventually(lambda: states(server) == dict.fromkeys(ROLES, "loading"))
        for _ in range(20):
            assert server.get("/healthz").status == 200
        assert server.service.longest_job_s == 0
        go.set()
        eventually(lambda: server.replica.ready)


# --- devices ----------------------------------------------------------------------------------


def test_a_replica_on_another_device_than_wanted_is_not_ready():
    with started(retry_s=60, backends=("cuda", "cpu")) as server:
        eventually(lambda: server.get("/readyz").json["last_error"])
        answer = server.get("/readyz")
        assert answer.status == 503
        assert "does not run on CUDAExecutionProvider" in answer.json["last_error"]
        assert "EMBER_ALLOW_DEGRADED" in answer.json["last_error"]


def test_a_replica_on_another_device_that_is_allowed_is_ready_and_says_so_everywhere():
    with started(backends=("cuda", "cpu"), allow_degraded=True) as server:
        eventually(is_ready(server))
        told = server.get("/readyz").json
        on_gpus = [role for role in ROLES if role != "gate"]  # which belongs on the CPU
        assert sorted(told["degraded"]) == on_gpus
        assert {m["provider"] for m in told["models"].values()} == {"CPUExecutionProvider"}
        (passed,) = told["models"]["detect"]["passed_over"]
        assert passed["backend"] == "cuda"
        assert "does not run on CUDAExecutionProvider" in passed["reason"]
        assert value(server, "ember_backend_failures_total", role="detect", backend="cuda") == 1
        answer = server.form("/v1/faces", ("image", COLLINS))
        assert sorted(answer.headers["Ember-Degraded"].split(", ")) == on_gpus
        assert value(server, "ember_degraded", role="detect") == 1


class OnGpu(Opener):
    """Says of its engines that they run on a GPU."""

    def __call__(self, model, **options):
        engine = super().__call__(model)
        engine.provider = "CUDAExecutionProvider"
        return engine


def lose():
    raise RuntimeError("CUDA failure 700: an illegal memory access was encountered ; GPU=0")


def test_a_replica_that_loses_its_gpu_fails_for_good_and_uses_it_no_more():
    opener = OnGpu()
    with started(opener, backends=("cuda",), retry_s=60) as server:
        eventually(is_ready(server))
        ran = []
        opener.at_run = {"detect": lose, "identity": lambda: ran.append(1)}
        answer = server.form("/v1/swap", SOURCE, TARGET)
        assert (answer.status, answer.json["code"]) == (503, "not_ready")
        eventually(lambda: server.get("/readyz").json["phase"] == "failed")
        assert "illegal memory access" in server.get("/readyz").json["last_error"]
        opener.at_run.pop("detect")
        ran.clear()
        assert server.form("/v1/swap", SOURCE, TARGET).status == 503
        assert ran == []


def test_a_gpu_that_is_lost_while_it_warms_is_not_tried_again():
    opener = OnGpu()
    opener.at_run = {"identity": lose}
    with started(opener, backends=("cuda",), retry_s=60) as server:
        eventually(lambda: server.get("/readyz").json["phase"] == "failed")
        assert opener.opened["identity"] == 1


def test_a_replica_on_the_wanted_device_sends_no_degraded_header(live):
    assert "Ember-Degraded" not in live.get("/readyz").headers
    assert value(live, "ember_degraded", role="detect") == 0


# --- what is measured -------------------------------------------------------------------------


def test_the_timeline_has_the_imports_and_each_model():
    with running() as server:
        told = ask(server, "/warmup").json
    spans = {span["name"]: span for span in told["spans"]}
    parts = {"interpreter", "bind", "import http", "import runtime", "import work", "golden"}
    assert parts | {"loading", "warming", "warm swap"} < set(spans)
    assert {f"load {role}" for role in ROLES} < set(spans)
    assert all(0 <= span["start_s"] <= span["end_s"] for span in spans.values())
    order = ["interpreter", "bind", "import runtime", "import http", "import work", "warm swap"]
    assert sorted(order, key=lambda name: spans[name]["start_s"]) == order
    assert spans["loading"]["start_s"] <= spans["load detect"]["start_s"]
    ready = next(step["at_s"] for step in told["steps"] if step["phase"] == "ready")
    assert ready >= spans["warm swap"]["end_s"]


def test_metrics_count_the_life_of_a_replica():
    with started() as server:
        eventually(is_ready(server))
        server.send("POST", "/warmup?force=true")
        assert value(server, "ember_phase_changes_total", phase="ready") == 2
        assert value(server, "ember_phase_changes_total", phase="loading") == 1
        assert all(value(server, "ember_model_load_seconds", role=role) > 0 for role in ROLES)
        assert value(server, "ember_resident_bytes") > 50e6
        assert value(server, "ember_stuck") == 0
        name = ("ember_first_request_ratio", ())
        for _ in range(2):
            assert samples(server)[name] != samples(server)[name]  # not a number
            assert server.form("/v1/swap", SOURCE, TARGET).status == 200
        assert samples(server)[name] > 0


def test_an_idle_process_makes_heartbeats_which_count_as_no_requests():
    with running(EMBER_HEARTBEAT_S="0.2") as server:

        class Scraped:
            def get(self, path):
                return ask(server, path)

        eventually(lambda: value(Scraped(), "ember_heartbeat_seconds_count") >= 2)
        assert value(Scraped(), "ember_heartbeat_failures_total") == 0
        timed = {
            labels for name, labels in samples(Scraped()) if name == "ember_request_seconds_count"
        }
        assert not any(("route", "/v1/swap") in labels for labels in timed)
        assert ask(server).status == 200


def test_a_process_that_holds_too_much_memory_drains_and_ends_with_75():
    with running(ready=False, EMBER_MEMORY_SOFT_LIMIT="20MB") as server:
        assert server.process.wait(60) == 75
        assert phases(server)[-1] == "draining"
        (event,) = [e for e in server.events() if e["message"] == "too much memory"]
        assert event["held"] > event["limit"] == 20_000_000


def test_a_process_within_its_limit_lives_on():
    with running(EMBER_MEMORY_SOFT_LIMIT="20GB") as server:
        threading.Event().wait(4)
        assert ask(server).status == 200


async def test_cancelled_waits_for_a_model_leave_no_trace(caplog):
    opener = Opener()
    go = threading.Event()
    original = opener.__call__

    def slow(model, **options):
        go.wait(20)
        return original(model, **options)

    from function.process.wiring.service import build_service
    from function.requests import Upload
    from function.telemetry.timings import Timings
    from tests.function.live import DEFAULTS
    from warmup.settings.variables import replace as changed

    service = build_service(changed(DEFAULTS, preload=False))
    service.engines.loader.config = replace(service.engines.loader.config, open=slow)
    calls = [
        asyncio.create_task(service.faces(Upload(COLLINS, "image"), Timings())) for _ in range(10)
    ]
    await asyncio.sleep(0.05)
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    assert service.in_work == 0
    go.set()
    await service.faces(Upload(COLLINS, "image"), Timings())
    assert opener.opened == {"detect": 1, "landmarks": 1}
    service.close()


def test_a_process_is_ready_on_a_variant_while_the_full_model_is_still_on_its_way(tmp_path):
    """The embedded identity is the variant; the full model comes over HTTP when we let it."""
    text = embedded().read_text().partition("[golden]")
    entries = "[[model]]" + text[2].partition("[[model]]")[2]
    entries = entries.replace('uri = "', f'uri = "{embedded().parent.as_uri()}/')
    graph = (embedded().parent / "face_identity_128.onnx").read_bytes()
    of_graph = f'size = {len(graph)}\nsha256 = "{hashlib.sha256(graph).hexdigest()}"\n'
    full = graph + b"\x9a\x06\x00"  # one more field of the protobuf, which is passed over
    go = threading.Event()

    def behave(request):
        assert go.wait(60)
        request.answer(full)

    with hostile() as site:
        before, _, _ = entries.partition('[[model]]\nrole = "identity"')
        manifest = tmp_path / "models.toml"
        manifest.write_text(
            f'{before}[[model]]\nrole = "identity"\nfamily = "face_identity_128"\n'
            f'licence = "MIT"\nuri = "{site.put(full, behave)}"\nsize = {len(full)}\n'
            f'sha256 = "{hashlib.sha256(full).hexdigest()}"\n'
            f'[[model.variants]]\nname = "small"\n{of_graph}'
            f'uri = "{embedded().parent.as_uri()}/face_identity_128.onnx"\n'
        )
        environ = {"EMBER_MANIFEST": str(manifest), "EMBER_STORE": str(tmp_path / "store")}
        with running(EMBER_VARIANT="small", **environ) as server:
            ready = ask(server).json
            assert ready["models"]["identity"]["variant"] == "small"
            assert ready["models"]["detect"]["variant"] is None
            go.set()
            eventually(lambda: ask(server).json["models"]["identity"]["variant"] is None)
            eventually(lambda: "the upgrade serves" in server.log.read_text())
            assert ask(server).status == 200
            assert phases(server).count("ready") == 1
