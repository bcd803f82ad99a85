"""The manifest is checked when it is read, and its files before a runtime sees them."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from warmup.manifest import ManifestError, read

EMBEDDED = Path(str(files("function") / "models" / "models.toml"))
GOOD = {
    "role": '"detect"',
    "family": '"centerface"',
    "file": '"a.onnx"',
    "size": "5",
    "sha256": f'"{hashlib.sha256(b"bytes").hexdigest()}"',
    "licence": '"MIT"',
}


def write(folder: Path, **changes: str | None) -> Path:
    entries = {key: value for key, value in (GOOD | changes).items() if value is not None}
    lines = [f"{key} = {value}" for key, value in entries.items()]
    path = folder / "models.toml"
    path.write_text("[[model]]\n" + "\n".join(lines))
    (folder / "a.onnx").write_bytes(b"bytes")
    return path


def test_the_embedded_set_is_whole():
    models = read(EMBEDDED)
    assert {model.role for model in models} == {"detect", "landmarks", "identity"}
    for model in models:
        model.verify()


def test_a_good_entry_is_read_and_its_file_is_found_beside_the_manifest(tmp_path):
    (model,) = read(write(tmp_path))
    model.verify()
    assert model.path == tmp_path / "a.onnx"


@pytest.mark.parametrize("key", GOOD)
def test_a_missing_key_is_named(tmp_path, key):
    with pytest.raises(ManifestError, match=f"`{key}`"):
        read(write(tmp_path, **{key: None}))


def test_a_wrong_type_is_named(tmp_path):
    with pytest.raises(ManifestError, match=r"`size` \(int\)"):
        read(write(tmp_path, size='"5"'))


def test_an_unknown_key_is_named(tmp_path):
    with pytest.raises(ManifestError, match="sha265"):
        read(write(tmp_path, sha265='"…"'))


@pytest.mark.parametrize("text", ["", "[[model", "model = 3", 'model = ["a"]'])
def test_what_is_not_a_manifest_is_refused(tmp_path, text):
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=r"models\.toml"):
        read(path)


def test_a_manifest_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ManifestError, match=r"gone\.toml"):
        read(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    ("content", "expected"),
    [(b"byte", "expected 5 bytes, found 4"), (b"bytez", "expected sha256"), (None, "No such file")],
)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path, content, expected):
    (model,) = read(write(tmp_path))
    if content is None:
        model.path.unlink()
    else:
        model.path.write_bytes(content)
    with pytest.raises(ManifestError, match=expected) as caught:
        model.verify()
    assert "a.onnx" in str(caught.value)
