"""A client that openapi-python-client makes of the served document, without any configuration."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from PIL import Image

from tests.clients.photos import COLLINS, HOPPER
from tests.function.raw import eventually


@pytest.fixture(scope="module")
def made(server, tmp_path_factory):
    """The folder with the package `generated`, and what was said while it was made."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "config.yaml").write_text("post_hooks: []\n")  # which would only format it
    command = [
        Path(sys.executable).with_name("openapi-python-client"), "generate", "--meta", "none",
        "--url", f"{server.url}/openapi.json", "--output-path", folder / "generated",
        "--config", folder / "config.yaml",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    sys.path.insert(0, str(folder))
    yield folder, done.stdout + done.stderr
    sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def generated(made):
    """A module of it by name."""
    return lambda name: importlib.import_module(f"generated.{name}")


@pytest.fixture
def client(server, generated):
    with generated("client").Client(server.url, raise_on_unexpected_status=True) as client:
        yield client


@pytest.fixture
def file(generated):
    return lambda path: generated("types").File(io.BytesIO(path.read_bytes()), path.name)


def test_it_is_made_whole_without_a_warning(made):
    assert "WARN" not in made[1].upper(), made[1]


def test_it_swaps(client, generated, file):
    body = generated("models").SwapFilesBody(source=[file(HOPPER)], target=file(COLLINS))
    answer = generated("api.faces.swap").sync(client=client, body=body)
    with Image.open(answer.payload) as photo:
        assert photo.format == "JPEG"


def test_the_report_about_a_swap_can_be_read(client, generated, file):
    body = generated("models").SwapFilesBody(source=[file(HOPPER)], target=file(COLLINS))
    with client.with_headers({"Accept": "application/json"}) as asking:
        answer = generated("api.faces.swap").sync_detailed(client=asking, body=body)
    swap = generated("models").Swap.from_dict(json.loads(answer.content))
    assert swap.faces[0].identity.after < swap.faces[0].identity.before


def test_it_makes_a_job_and_has_its_result(client, generated, file):
    name = str(uuid.uuid4())
    body = generated("models").PutJobFilesBody(source=[file(HOPPER)], target=[file(COLLINS)])
    job = generated("api.jobs.put_job").sync(name, client=client, body=body)
    assert (job.id, job.lane) == (name, "bulk")
    told = generated("api.jobs.job")
    eventually(lambda: told.sync(name, client=client).state == "succeeded", 60)
    assert "succeeded" in generated("api.jobs.job_events").sync(name, client=client)
    result = generated("api.jobs.job_result").sync(name, 0, client=client)
    with Image.open(result.payload) as photo:
        assert photo.size == (128, 128)


def test_it_reads_problems(client, generated):
    problem = generated("api.jobs.job").sync("a" * 20, client=client)
    assert (problem.code, problem.status) == ("not_found", 404)
