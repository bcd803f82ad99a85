"""The init container and the replica, both from the image `cpu`, with one volume between them."""

from __future__ import annotations

import json
import os
import re
import shutil
from importlib.resources import files
from pathlib import Path

import pytest

from tests.function.live import SOURCE, TARGET
from tests.image.podman import HARDENED, SLOW
from tests.warmup.objects.gcs import fake_gcs

pytestmark = SLOW

FUNCTION = Path(str(files("function")))
MODELS = sorted((FUNCTION / "models").glob("*.onnx"))


@pytest.fixture
def site(tmp_path):
    """A bucket with the embedded models, a manifest that names it, and a volume to share."""
    shutil.copytree(FUNCTION / "samples", tmp_path / "samples")
    shutil.copytree(
        FUNCTION / "models", tmp_path / "models", ignore=shutil.ignore_patterns("*.onnx")
    )
    manifest = tmp_path / "models/models.toml"
    text = re.sub(r'uri = "(.*\.onnx)"', r'uri = "gs://models/v1/\1"', manifest.read_text())
    manifest.write_text(text)
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o777)  # as an emptyDir is
    tmp_path.chmod(0o755)
    with fake_gcs() as bucket:
        for model in MODELS:
            bucket.blob(f"v1/{model.name}").upload_from_filename(model)
        yield tmp_path


def volumes(site):
    return (
        f"--volume={site}:/config:ro",
        f"--volume={site / 'store'}:/store",
        "--env=EMBER_STORE=/store",
        "--env=EMBER_MANIFEST=/config/models/models.toml",
    )


def test_the_init_container_brings_what_the_replica_serves_offline(podman, cpu, site):
    emulator = f"--env=STORAGE_EMULATOR_HOST={os.environ['STORAGE_EMULATOR_HOST']}"
    words = (*volumes(site), emulator, "--network=host", "--user=65532", *HARDENED)
    done = podman("run", "--rm", *words, cpu, "prefetch")
    assert f"{len(MODELS)} files are here and proven" in done.stderr
    steps = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(step["state"] == "ready" for step in steps) == len(MODELS)
    assert len(list((site / "store/sha256").glob("?" * 64))) == len(MODELS)
    with podman.serving(cpu, *volumes(site), EMBER_OFFLINE="true") as replica:
        assert replica.form("/v1/swap", SOURCE, TARGET).status == 200


def test_an_init_container_that_cannot_get_the_models_fails_with_the_reason(podman, cpu, site):
    words = (*volumes(site), "--env=EMBER_OFFLINE=true", "--network=none", *HARDENED)
    done = podman("run", "--rm", *words, cpu, "prefetch", fine=False)
    assert done.returncode == 69
    assert "EMBER_OFFLINE" in done.stderr
