"""Secrets of Redis and of the ping, pinned images, and who may reach which pod."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
import yaml

from tests.function.raw import eventually
from tests.knative import overlay
from tests.knative.manifests import KNATIVE, ROOT, quantity, rendered
from tests.knative.pairs import with_needs
from tests.knative.test_components import COMPONENTS

PASSWORD = "6b1f" * 12
ALONE = {"qps-hpa", "network-policy"}
SILENT = {"ember-prepull", "ember-headroom"}
"""Pods that need nobody, and that nobody needs."""


@pytest.fixture(scope="module")
def component(tmp_path_factory):
    return overlay.built(tmp_path_factory.mktemp("redis"), ["redis"])


def stores(made):
    return [one["metadata"]["name"] for one in made.of("StatefulSet")]


def container_of(made, name):
    (one,) = [one for one in made.of("StatefulSet") if one["metadata"]["name"] == name]
    (container,) = one["spec"]["template"]["spec"]["containers"]
    return container


@pytest.fixture
def server(component, tmp_path, needs):
    """Starts the Redis of a StatefulSet as its pod does, with another folder and port."""
    needs("redis-server")
    processes = []

    def start(name):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        container = container_of(component, name)
        here = f"dir {tmp_path}\nport {port}\nbind 127.0.0.1\n"
        (script,) = container["args"]
        words = [*container["command"], script.replace("dir /data\n", here)]
        environ = {"PATH": os.environ["PATH"], "REDIS_PASSWORD": PASSWORD}
        process = subprocess.Popen(words, env=environ, stdout=subprocess.DEVNULL, cwd=tmp_path)
        processes.append(process)
        client = redis.Redis(port=port, password=PASSWORD, socket_timeout=None)
        eventually(lambda: _answers(client), 60)
        return process, client, port

    yield start
    for process in processes:
        process.terminate()
        process.wait(60)


def _answers(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def test_redis_has_its_password_and_nobody_sees_it_among_arguments(component, server):
    for name in stores(component):
        process, client, port = server(name)
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert b"redis-server" in words
        assert PASSWORD.encode() not in words
        with pytest.raises(redis.AuthenticationError), redis.Redis(port=port) as stranger:
            stranger.ping()
        kept = client.config_get("*")
        assert (kept["appendonly"], kept["maxmemory-policy"]) == ("yes", "noeviction")
        limit = container_of(component, name)["resources"]["limits"]["memory"]
        assert 0 < int(kept["maxmemory"]) < quantity(limit)
        client.close()


@pytest.mark.parametrize("name", ["gpu-production", "tidal"])
def test_photos_of_jobs_cannot_fill_the_store_of_accounts(name):
    made = rendered(f"overlays/{name}")
    told = made.environment(made.main)
    hosts = {urlsplit(told[key]).hostname for key in ("EMBER_REDIS_URL", "EMBER_JOBS_REDIS_URL")}
    assert hosts == set(stores(made))
    assert len(hosts) == 2


def test_every_image_of_others_is_named_in_one_file_only():
    text = (KNATIVE / "images" / "kustomization.yaml").read_text()
    named = {one["name"] for one in yaml.safe_load(text)["images"]} | set(overlay.BUILT)
    used = {}
    for path in KNATIVE.rglob("components/*/*.yaml"):
        for name in re.findall(r"^\s*(?:- )?image: ([^\s{]+)", path.read_text(), re.MULTILINE):
            used.setdefault(name, []).append(path.parent.name)
    assert set(used) <= named, "give it a line in knative/images/kustomization.yaml"
    for name in set(used) - set(overlay.BUILT):
        for component in used[name]:
            made = (KNATIVE / "components" / component / "kustomization.yaml").read_text()
            assert "- ../../images\n" in made


def test_make_pins_each_of_them_by_the_digest_that_its_registry_has(tmp_path):
    """The registry is the one thing that is not there: podman's answers are given."""
    for part in ("Makefile", "image/bases.env", "knative/images/kustomization.yaml"):
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / part, tmp_path / part)
    podman = tmp_path / "podman"
    podman.write_text("""#!/bin/sh
test "$1" = pull || echo "sha256:$(echo "$5$DAY" | sha256sum | cut -c-64)"
""")
    podman.chmod(0o755)
    path = tmp_path / "knative" / "images" / "kustomization.yaml"

    def pin(day):
        environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "DAY": day}
        subprocess.run(["make", "--silent", "image-pin"], cwd=tmp_path, env=environ, check=True)
        return yaml.safe_load(path.read_text())["images"]

    before = yaml.safe_load(path.read_text())["images"]
    first, second = pin("monday"), pin("tuesday")
    for old, one, other in zip(before, first, second, strict=True):
        assert {**one, "digest": ""} == {**other, "digest": ""} == {**old, "digest": ""}
        assert re.fullmatch("sha256:[0-9a-f]{64}", one["digest"])
        assert one["digest"] != other["digest"]
    assert len({one["digest"] for one in first}) == len(first)


@pytest.mark.parametrize("name", [one for one in COMPONENTS if one not in ALONE])
def test_each_pod_is_let_do_what_it_does_where_all_else_is_refused(name, tmp_path):
    made = overlay.built(tmp_path, [*with_needs([name]), "network-policy"])
    policies = [one["spec"] for one in made.of("NetworkPolicy") if one["spec"]["podSelector"]]
    for document in made.documents:
        if document["kind"] in {"Deployment", "DaemonSet", "StatefulSet", "Job", "CronJob"}:
            spec = document["spec"].get("jobTemplate", document)["spec"]
            labels = spec["template"].get("metadata", {}).get("labels", {})
            if document["metadata"]["name"] not in SILENT:
                assert any(selects(one["podSelector"], labels) for one in policies), document
    assert any(selects(one["podSelector"], made_by_knative(made)) for one in policies)


def made_by_knative(made):
    return {"serving.knative.dev/service": made.service["metadata"]["name"]}


def selects(selector, labels):
    named = selector.get("matchLabels", {}).items()
    among = selector.get("matchExpressions", [])
    return all(labels.get(key) == value for key, value in named) and all(
        labels.get(one["key"]) in one["values"] for one in among
    )
