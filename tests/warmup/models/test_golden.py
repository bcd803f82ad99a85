"""The table [golden] of a manifest is read whole or refused."""

from __future__ import annotations

import pytest

from function.process.wiring.service import embedded
from warmup.failures import ManifestError
from warmup.models.golden import Golden, read

GOOD = {
    "source": '"a.jpg"',
    "target": '"b.jpg"',
    "image": '"c.png"',
    "max_distance": "0.5",
    "min_psnr": "32",
}


def write(folder, **changes):
    for name in ("a.jpg", "b.jpg", "c.png"):
        (folder / name).write_bytes(b"")
    entries = {key: value for key, value in (GOOD | changes).items() if value is not None}
    path = folder / "models.toml"
    path.write_text(
        "\n".join(["[golden]", *(f"{key} = {value}" for key, value in entries.items())])
    )
    return path


def test_its_files_lie_beside_the_manifest(tmp_path):
    assert read(write(tmp_path)) == Golden(
        tmp_path / "a.jpg", tmp_path / "b.jpg", tmp_path / "c.png", 0.5, 32.0
    )


def test_a_manifest_needs_none(tmp_path):
    path = tmp_path / "models.toml"
    path.write_text("")
    assert read(path) is None


def test_the_embedded_set_has_one():
    assert read(embedded()) is not None


@pytest.mark.parametrize("key", GOOD)
def test_a_missing_key_is_named(tmp_path, key):
    with pytest.raises(ManifestError, match=key):
        read(write(tmp_path, **{key: None}))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"max_psnr": "3"}, "needs exactly"),
        ({"source": '"gone.jpg"'}, r"gone\.jpg"),
        ({"target": "3"}, "`target`"),
        ({"min_psnr": '"high"'}, "`min_psnr`"),
        ({"max_distance": "0"}, "`max_distance`"),
        ({"max_distance": "nan"}, "`max_distance`"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, change, named):
    with pytest.raises(ManifestError, match=named):
        read(write(tmp_path, **change))


@pytest.mark.parametrize("text", ["golden = 3", "[golden", '[[golden]]\nsource = "a"'])
def test_what_is_no_table_is_refused(tmp_path, text):
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=r"models\.toml"):
        read(path)
