"""The manifest is checked when it is read, as a whole, and every mistake is named."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from warmup.failures import DamagedError, ManifestError
from warmup.models.licence import permissive
from warmup.models.manifest import narrowed, read

EMBEDDED = Path(str(files("function") / "models" / "models.toml"))
SHA256 = hashlib.sha256(b"bytes").hexdigest()
GOOD = {
    "role": '"detect"',
    "family": '"centerface"',
    "uri": '"a.onnx"',
    "size": "5",
    "sha256": f'"{SHA256}"',
    "licence": '"MIT"',
}


def entry(**changes: str | None) -> str:
    entries = {key: value for key, value in (GOOD | changes).items() if value is not None}
    return "[[model]]\n" + "\n".join(f"{key} = {value}" for key, value in entries.items()) + "\n"


def write(folder: Path, *entries: str) -> Path:
    path = folder / "models.toml"
    path.write_text("".join(entries))
    (folder / "a.onnx").write_bytes(b"bytes")
    return path


def problems(folder: Path, *entries: str) -> tuple[str, ...]:
    with pytest.raises(ManifestError) as caught:
        read(write(folder, *entries))
    return caught.value.problems


def test_the_embedded_set_is_whole():
    models = read(EMBEDDED)
    assert {model.role for model in models} == {"detect", "landmarks", "identity", "gate"}
    for model in models:
        model.file.verify(model.path)
        assert permissive(model.licence)


def test_a_good_entry_is_read_and_its_file_is_found_beside_the_manifest(tmp_path):
    (model,) = read(write(tmp_path, entry()))
    model.file.verify(model.path)
    assert model.path == tmp_path / "a.onnx"
    assert model.preload
    assert (model.variants, model.buckets, model.golden) == ((), (), None)


@pytest.mark.parametrize("key", GOOD)
def test_a_missing_key_is_named(tmp_path, key):
    (problem,) = problems(tmp_path, entry(**{key: None}))
    assert f"`{key}` is missing" in problem
    assert "models.toml: model 1" in problem


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("size", '"5"', "`size` must be a whole number"),
        ("size", "5.0", "`size` must be a whole number"),
        ("size", "true", "`size` must be a whole number"),
        ("size", "0", "`size` must be at least 1"),
        ("role", "1", "`role` must be text"),
        ("sha256", '"abc"', "`sha256` must be 64 hexadecimal digits"),
        ("preload", '"yes"', "`preload` must be true or false"),
        ("buckets", "[4, 2]", "`buckets` must be batch sizes in rising order"),
        ("buckets", "[1, 1]", "`buckets` must be batch sizes in rising order"),
        ("buckets", "[0]", "`buckets` must be batch sizes in rising order"),
        ("buckets", '["1"]', "`buckets` must be batch sizes in rising order"),
        ("variants", "[1]", "`variant 1` must hold tables"),
        ("golden", "1", "`golden` must hold tables"),
        ("golden", "{}", "`min_cosine` is missing"),
        ("golden", '{input="no", output="a.onnx", min_cosine=0.9}', "there is no file"),
        ("golden", '{input="a.onnx", output="a.onnx", min_cosine=2}', "must be from -1 to 1"),
        ("uri", '"ftp://host/a"', "`uri` must be a file name or begin with one of gs,"),
        ("uri", '"https://host"', "`uri` must be"),
        ("uri", '"gs:///name"', "`uri` must be like"),
        ("uri", '"file://name"', "`uri` must"),
        ("uri", '"http://[::1"', "`uri`: "),
        ("sha265", '"…"', "unknown key `sha265`"),
    ],
)
def test_a_wrong_value_is_named(tmp_path, key, value, said):
    found = problems(tmp_path, entry(**{key: value}))
    assert any(said in problem for problem in found)


def test_everything_that_is_wrong_is_named_at_once(tmp_path):
    found = problems(
        tmp_path,
        "colour = 1\n",
        entry(size="-1", licence=None),
        entry(role='"identity"', uri="1"),
    )
    assert len(found) == 4
    assert str(ManifestError(*found)).count("\n") == 3


def test_two_models_for_a_role_are_one_too_many(tmp_path):
    (problem,) = problems(tmp_path, entry(), entry())
    assert "2 models for the role detect" in problem


@pytest.mark.parametrize("text", ["", "[[model", "model = 3", 'model = ["a"]', "model = []"])
def test_what_is_not_a_manifest_is_refused(tmp_path, text):
    assert all("models.toml" in problem for problem in problems(tmp_path, text))


def test_a_manifest_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ManifestError, match=r"gone\.toml"):
        read(tmp_path / "gone.toml")


@pytest.mark.parametrize(
    "uri", ["gs://bucket/a/b.onnx", "https://host/a.onnx?x=1", "file:///a.onnx", "http://h:1/a"]
)
def test_a_remote_file_lies_nowhere_until_it_is_fetched(tmp_path, uri):
    (model,) = read(write(tmp_path, entry(uri=f'"{uri}"')))
    assert model.file.uri == uri
    with pytest.raises(ManifestError, match="has not been fetched"):
        _ = model.path


def test_everything_optional_is_read(tmp_path):
    variant = f'{{name="small", uri="gs://b/s", size=3, sha256="{SHA256.upper()}"}}'
    golden = '{input="a.onnx", output="a.onnx", min_cosine=1}'
    text = entry(preload="false", buckets="[1, 4]", variants=f"[{variant}]", golden=golden)
    (model,) = read(write(tmp_path, text))
    assert not model.preload
    assert model.buckets == (1, 4)
    assert [file.name for file in model.files] == ["detect", "detect/small"]
    assert model.variants[0].sha256 == SHA256
    assert model.golden is not None
    assert model.golden.min_cosine == 1


def test_variants_need_names_of_their_own(tmp_path):
    variant = f'{{name="small", uri="gs://b/s", size=3, sha256="{SHA256}"}}'
    (problem,) = problems(tmp_path, entry(variants=f"[{variant}, {variant}]"))
    assert "two variants have the same name" in problem


class TestNarrowed:
    @pytest.fixture
    def models(self, tmp_path):
        def variants(*names):
            tables = [f'{{name="{n}", uri="gs://b/{n}", size=3, sha256="{SHA256}"}}' for n in names]
            return f"[{', '.join(tables)}]"

        return read(
            write(
                tmp_path,
                entry(variants=variants("small", "tiny")),
                entry(role='"identity"', variants=variants("tiny")),
                entry(role='"landmarks"'),
            )
        )

    @pytest.mark.parametrize(
        ("variant", "left"),
        [
            (None, []),
            ("small", ["detect/small"]),
            ("tiny", ["detect/tiny", "identity/tiny"]),
        ],
    )
    def test_only_the_variants_of_that_name_are_left(self, models, variant, left):
        kept = narrowed(models, variant)
        assert [one.name for model in kept for one in model.variants] == left
        assert [model.file for model in kept] == [model.file for model in models]

    def test_a_name_that_no_model_has_is_told_with_those_that_there_are(self, models):
        with pytest.raises(ManifestError, match=r"EMBER_VARIANT is big.*detect/small, detect/tiny"):
            narrowed(models, "big")


class TestLicences:
    @pytest.mark.parametrize(
        "expression", ["MIT", "Apache-2.0 AND MIT", "GPL-3.0-only OR MIT", "MIT AND CC0-1.0"]
    )
    def test_permissive_ones_need_nothing(self, tmp_path, expression):
        assert read(write(tmp_path, entry(licence=f'"{expression}"')))

    @pytest.mark.parametrize(
        "expression",
        ["CC-BY-NC-4.0", "LicenseRef-research-only", "MIT AND GPL-3.0-only", "(MIT)", "mit", "?"],
    )
    def test_others_must_be_accepted(self, tmp_path, expression):
        text = f'"{expression}"'
        (problem,) = problems(tmp_path, entry(licence=text))
        assert f"its licence is {expression}" in problem
        assert "accept_licence = true" in problem
        problems(tmp_path, entry(licence=text, accept_licence="false"))
        assert read(write(tmp_path, entry(licence=text, accept_licence="true")))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"byte", "expected 5 bytes, got 4"),
        (b"bytez", f"expected sha256 {SHA256}, got "),
        (b"", "expected 5 bytes, got 0; it is empty"),
        (None, "No such file"),
    ],
)
def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path, content, expected):
    (model,) = read(write(tmp_path, entry()))
    if content is None:
        model.path.unlink()
    else:
        model.path.write_bytes(content)
    with pytest.raises(DamagedError, match=expected) as caught:
        model.file.verify(model.path)
    assert "a.onnx" in str(caught.value)
