"""`ember models publish` and `configmap`, up to the sessions of a server in a cluster."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

import function
from function.cli.failure import Failure
from function.cli.models import models
from function.process.wiring.service import build_service
from function.settings import load
from tests.warmup.objects.gcs import fake_gcs
from warmup.failures import ManifestError, UnavailableError
from warmup.models import manifest

EMBEDDED = Path(function.__file__).parent / "models/models.toml"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EMBER_STORE", str(tmp_path / "store"))


def run(*words):
    done = CliRunner().invoke(models, words, obj=EMBEDDED)
    if done.exception:
        raise done.exception
    return done


def mounted(text, folder):
    """The folder in which a pod has a ConfigMap."""
    content = yaml.safe_load(text)
    folder.mkdir()
    for name, data in content["data"].items():
        (folder / name).write_text(data)
    for name, data in content["binaryData"].items():
        (folder / name).write_bytes(base64.b64decode(data))
    return folder / "models.toml"


async def test_what_is_published_is_served_by_a_pod_that_has_only_the_configmap(tmp_path):
    with fake_gcs() as bucket:
        done = run("publish", "gs://models/ember")
        assert done.stderr.count("uploaded ") == 4
        assert run("publish", "gs://models/ember", "--force").stderr.count("there ") == 4
        assert len(list(bucket.client.list_blobs(bucket, prefix="ember/sha256/"))) == 4
        done = run("configmap", "--manifest", "published.toml")
        assert "`make deploy` refuses it" in done.stderr  # its golden photos are large
        text = done.stdout
        path = mounted(text, tmp_path / "pod")
        environ = {"EMBER_MANIFEST": str(path), "EMBER_STORE": str(tmp_path / "node")}
        service = build_service(load(environ))
        try:
            await service.fetch()
            await service.load(whole=True)
            await service.warm()  # the golden pair has come along
            assert set(service.engines.providers.values()) == {"CPUExecutionProvider"}
        finally:
            service.close()
    assert len(list((tmp_path / "node/sha256").iterdir())) == 4


def test_a_folder_that_was_published_to_is_a_store_that_may_be_shared(tmp_path, monkeypatch):
    run("publish", "shared", "-o", "elsewhere.toml")
    monkeypatch.setenv("EMBER_SHARED_STORE", str(tmp_path / "shared"))
    monkeypatch.setenv("EMBER_STORE", str(tmp_path / "empty"))
    done = run("verify", "elsewhere.toml")
    assert done.stdout.count(f"{tmp_path}/shared/sha256/") == 4


def test_the_new_manifest_names_the_same_models_and_golden_files(tmp_path):
    (tmp_path / "out").mkdir()
    run("publish", "shared", "-o", "out/new.toml")
    before, after = manifest.read(EMBEDDED), manifest.read(tmp_path / "out/new.toml")
    assert [(m.role, m.file.sha256, m.licence) for m in after] == [
        (m.role, m.file.sha256, m.licence) for m in before
    ]
    for model in after:
        assert model.file.uri == (tmp_path / "shared/sha256" / model.file.sha256).as_uri()
    here = [m.golden.input.resolve() for m in after if m.golden]
    assert here == [m.golden.input.resolve() for m in before if m.golden]


def test_the_new_manifest_can_go_to_standard_output(tmp_path):
    text = run("publish", "shared", "-o", "-").stdout
    (tmp_path / "said.toml").write_text(text)
    assert len(manifest.read(tmp_path / "said.toml")) == 4
    assert not (tmp_path / "published.toml").exists()


def test_a_manifest_that_is_there_is_not_overwritten_and_nothing_is_published(tmp_path):
    (tmp_path / "published.toml").write_text("mine")
    with pytest.raises(Failure, match=r"published\.toml is there already; --force"):
        run("publish", "shared")
    assert (tmp_path / "published.toml").read_text() == "mine"
    assert not (tmp_path / "shared").exists()


def test_a_new_manifest_that_cannot_be_written_is_said_before_anything_is_published(tmp_path):
    with pytest.raises(Failure, match="nowhere is no folder that can be written to"):
        run("publish", "shared", "-o", "nowhere/new.toml")
    run("publish", "first", "-o", "mine.toml")
    words = ("publish", "shared", "--manifest", "mine.toml", "-o", "mine.toml", "--force")
    assert "mine.toml is read from" in CliRunner().invoke(models, words, obj=EMBEDDED).stderr
    assert not (tmp_path / "shared").exists()


def test_without_a_manifest_what_is_taken_is_said_first(tmp_path, monkeypatch):
    first = run("publish", "shared", "-o", "mine.toml").stderr.splitlines()[0]
    assert first == (
        f"Without --manifest it is {EMBEDDED}, the embedded models:"
        " detect, landmarks, identity, gate"
    )
    monkeypatch.setenv("EMBER_MANIFEST", str(tmp_path / "mine.toml"))
    first = run("publish", "shared").stderr.splitlines()[0]
    assert first.startswith(f"Without --manifest it is {tmp_path}/mine.toml, EMBER_MANIFEST: det")
    assert "Without" not in run("publish", "shared", "--manifest", "mine.toml", "--force").stderr


def test_an_empty_place_or_name_is_refused(tmp_path):
    with pytest.raises(UnavailableError, match="'': files are published to"):
        run("publish", "")
    run("publish", "shared", "-o", "mine.toml")
    with pytest.raises(ManifestError, match="'' is no name of a ConfigMap"):
        run("configmap", "--manifest", "mine.toml", "--name", "")


def test_a_manifest_that_could_not_be_served_is_neither_published_nor_printed(tmp_path):
    path = tmp_path / "part.toml"
    text = EMBEDDED.read_text()
    path.write_text(text[text.index("[[model]]") : text.index('[[model]]\nrole = "landmarks')])
    for words in (["publish", "shared"], ["configmap"]):
        with pytest.raises(ManifestError, match="there is no model for identity"):
            run(*words, "--manifest", str(path))
    assert not (tmp_path / "shared").exists()


def test_the_embedded_set_is_not_for_pods_until_it_is_published():
    with pytest.raises(ManifestError, match="no pod sees it"):
        run("configmap")


def test_without_a_file_of_a_golden_check_nothing_is_published(tmp_path):
    run("publish", "first", "-o", "mine.toml")
    text = (tmp_path / "mine.toml").read_text()
    name = next(line.split('"')[1] for line in text.splitlines() if "hopper" in line)
    (tmp_path / "mine.toml").write_text(text.replace(name, "gone.jpg"))
    with pytest.raises(ManifestError, match=r"is no file: 'gone\.jpg'"):
        run("publish", "shared", "--manifest", "mine.toml")
    with pytest.raises(ManifestError, match="is no file: 'gone"):
        run("check", "mine.toml")
    assert not (tmp_path / "shared").exists()
