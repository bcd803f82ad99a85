"""A manifest and its files as an OCI image."""

from __future__ import annotations

import hashlib
import json
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from click.testing import CliRunner

import function
from function.cli.models import models
from function.weights import ociimage
from warmup.failures import ManifestError
from warmup.models import manifest
from warmup.models.golden import read as read_golden

EMBEDDED = Path(function.__file__).parent / "models/models.toml"


def blob(folder, described):
    """A blob, proven by what describes it."""
    data = (folder / "blobs" / described["digest"].replace(":", "/")).read_bytes()
    assert len(data) == described["size"]
    assert hashlib.sha256(data).hexdigest() == described["digest"].removeprefix("sha256:")
    return data


def unpacked(folder, target):
    """Unpack an image as a node does; its layers' descriptions."""
    assert json.loads((folder / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    (described,) = json.loads((folder / "index.json").read_text())["manifests"]
    whole = json.loads(blob(folder, described))
    config = json.loads(blob(folder, whole["config"]))
    assert config["rootfs"]["diff_ids"] == [layer["digest"] for layer in whole["layers"]]
    for layer in whole["layers"]:
        with tarfile.open(fileobj=BytesIO(blob(folder, layer))) as tar:
            tar.extractall(target, filter="data")
    return whole["layers"]


def made(path, folder):
    return ociimage.write(path, manifest.read(path), folder)


def test_what_is_mounted_is_the_same_manifest_with_the_same_files(tmp_path):
    image = made(EMBEDDED, tmp_path / "image")
    layers = unpacked(tmp_path / "image", tmp_path / "mounted")
    mounted = manifest.read(tmp_path / "mounted/models.toml")
    before = manifest.read(EMBEDDED)
    assert [(m.role, m.family, m.file.sha256) for m in mounted] == [
        (m.role, m.family, m.file.sha256) for m in before
    ]
    for model in mounted:
        assert model.path.is_relative_to(tmp_path / "mounted")
        model.file.verify(model.path)
    assert (image.layers, image.size) == (len(layers), sum(layer["size"] for layer in layers))
    assert len(layers) == len(before) + 1  # one each, so that one that changes comes alone


def test_the_same_manifest_gives_the_same_image(tmp_path):
    digests = {made(EMBEDDED, tmp_path / name).digest for name in ("one", "two")}
    assert len(digests) == 1


def test_a_model_that_changes_is_the_only_layer_that_does(tmp_path):
    layers = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        texts = []
        for role, content in (("detect", b"same" * 100), ("identity", name.encode() * 100)):
            (folder / f"{role}.onnx").write_bytes(content)
            digest = hashlib.sha256(content).hexdigest()
            texts.append(
                f'[[model]]\nrole = "{role}"\nfamily = "f"\nuri = "{role}.onnx"\n'
                f'size = {len(content)}\nsha256 = "{digest}"\nlicence = "MIT"\n'
            )
        (folder / "models.toml").write_text("".join(texts))
        made(folder / "models.toml", folder / "image")
        found = unpacked(folder / "image", folder / "mounted")
        layers.append({layer["digest"] for layer in found})
    assert len(layers[0] & layers[1]) == 1
    assert len(layers[0] | layers[1]) == 5  # two models, and two manifests


def test_the_golden_pair_comes_along(tmp_path):
    made(EMBEDDED, tmp_path / "image")
    unpacked(tmp_path / "image", tmp_path / "mounted")
    assert read_golden(tmp_path / "mounted/models.toml") is not None


def test_a_place_that_is_not_found_in_the_text_is_named(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"a")
    digest = hashlib.sha256(b"a").hexdigest()
    (tmp_path / "models.toml").write_text(
        f"[[model]]\nrole = 'detect'\nfamily = 'f'\nuri = 'a.onnx'\nsize = 1\n"
        f"sha256 = '{digest}'\nlicence = 'MIT'\n"
    )
    with pytest.raises(ManifestError, match="double quotes"):
        made(tmp_path / "models.toml", tmp_path / "image")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "models.toml"]


def test_the_command_says_how_it_is_pushed_and_named(tmp_path):
    out = tmp_path / "image"
    done = CliRunner().invoke(models, ["image", "-o", str(out)], obj=EMBEDDED)
    assert done.exit_code == 0, done.output
    (described,) = json.loads((out / "index.json").read_text())["manifests"]
    assert f"REGISTRY/NAME@{described['digest']}" in done.output
    assert f"skopeo copy oci:{out} docker://" in done.output
    again = CliRunner().invoke(models, ["image", "-o", str(out)], obj=EMBEDDED)
    assert again.exit_code != 0
    assert "already" in str(again.exception)
