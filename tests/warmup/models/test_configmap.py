"""A manifest as a ConfigMap."""

from __future__ import annotations

import base64
import hashlib

import pytest
import yaml

from warmup.failures import ManifestError
from warmup.models.configmap import MOST, configmap

ENTRY = """\
[[model]]
role = "identity"
family = "f"  # été, "quoted"
uri = "{uri}"
size = 5
sha256 = "{digest}"
licence = "MIT"
"""


@pytest.fixture
def write(tmp_path):
    def write(uri="gs://bucket/a", more=""):
        digest = hashlib.sha256(b"model").hexdigest()
        path = tmp_path / "models.toml"
        path.write_text(ENTRY.format(uri=uri, digest=digest) + more)
        return path

    return write


@pytest.fixture
def golden(tmp_path):
    """The words of a golden check, of which one file has some bytes."""

    def golden(content=b"\x93NUMPY"):
        (tmp_path / "golden").mkdir()
        (tmp_path / "golden/in.npy").write_bytes(content)
        (tmp_path / "out.npy").write_bytes(b"out")
        return 'golden = { input = "golden/in.npy", output = "out.npy", min_cosine = 0.99 }\n'

    return golden


def test_it_has_the_manifest_as_it_was_written(write):
    path = write()
    found = yaml.safe_load(configmap(path))
    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")
    assert found["metadata"]["name"] == "ember-models"
    assert found["data"] == {"models.toml": path.read_text()}
    assert "binaryData" not in found


@pytest.mark.parametrize(
    "more", ["\n\n", "# \u2028 \u0085\n", "# \ufeff\n", "  # in\n# tab\t\n", ""]
)
def test_whatever_is_written_in_it_comes_out_again(write, more):
    path = write(more=more)
    text = yaml.safe_load(configmap(path))["data"]["models.toml"]
    assert text.rstrip("\n") == path.read_text().rstrip("\n")


def test_files_of_golden_checks_come_along_under_names_that_a_configmap_may_have(write, golden):
    found = yaml.safe_load(configmap(write(more=golden())))
    files = {name: base64.b64decode(text) for name, text in found["binaryData"].items()}
    assert sorted(files.values()) == [b"out", b"\x93NUMPY"]
    assert all(f'"{name}"' in found["data"]["models.toml"] for name in files)


def test_it_is_the_same_each_time_and_another_when_anything_changes(write, golden, tmp_path):
    path = write(more=golden())
    first = configmap(path)
    assert configmap(path) == first
    (tmp_path / "out.npy").write_bytes(b"other")
    assert configmap(path) != first


@pytest.mark.parametrize("uri", ["file:///models/a.onnx", "a.onnx", "../a.onnx"])
def test_what_lies_on_this_machine_is_refused_with_what_to_do(write, uri):
    with pytest.raises(
        ManifestError, match=r"identity: file:///.* no pod sees it\n.*models publish"
    ):
        configmap(write(uri))


def test_more_than_a_configmap_takes_is_refused_with_the_largest_file(write, golden):
    with pytest.raises(ManifestError, match=r"may have 1048576.*largest is golden-.*models image"):
        configmap(write(more=golden(bytes(MOST))))


@pytest.mark.parametrize("name", ["", "Ember", "a_b", "-a", "a..b", "a" * 254, "a\n"])
def test_a_name_that_kubernetes_does_not_take_is_refused(write, name):
    with pytest.raises(ManifestError, match="is no name of a ConfigMap"):
        configmap(write(), name)


def test_a_manifest_that_is_wrong_is_refused(write):
    with pytest.raises(ManifestError, match="licence"):
        configmap(write(more='[[model]]\nrole = "detect"\n'))
