"""`ember models inspect`, `batch` and `fp16` as commands."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import textwrap
import tomllib
from functools import partial
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnx
import pytest

from function.exits import Exit
from function.images.decode import decode
from function.runtime import onnxfile
from function.weights.licences import LICENCES
from tests import neural
from warmup.models import manifest

SAMPLES = Path(str(files("function"))) / "samples"
HOPPER, COLLINS = SAMPLES / "hopper.jpg", SAMPLES / "collins.jpg"


@pytest.fixture
def ember(tmp_path):
    """Run `ember models` with some words, in an empty folder."""

    def run(*words, missing=(), command=("models",), **environ):
        code = textwrap.dedent(f"""
            import sys
            sys.modules.update(dict.fromkeys({list(missing)!r}))
            sys.argv[1:] = {[*command, *map(str, words)]!r}
            from function.command import main
            main()
        """)
        return subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"EMBER_STORE": str(tmp_path / "store")} | environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    run.swap = partial(run, command=("swap",))
    return run


def test_the_help_lists_what_both_packages_bring(ember):
    done = ember("--help")
    for name in ("check", "gc", "ls", "verify", "import", "inspect", "batch", "cutout"):
        assert f"\n  {name} " in done.stdout


def test_a_check_tells_what_does_not_fit_together(ember, tmp_path):
    path = neural.make(tmp_path / "a.onnx", "inswapper_128")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "models.toml").write_text(
        '[[model]]\nrole = "swap"\nfamily = "inswapper_128"\nuri = "a.onnx"\nlicence = "MIT"\n'
        f'size = {path.stat().st_size}\nsha256 = "{digest}"\n'
    )
    done = ember("check", "models.toml")
    assert done.returncode == Exit.CONFIG
    assert "there is no model for detect" in done.stderr
    assert "there is no model for identity" in done.stderr
    assert ember("check").stdout.startswith("4 models")


class TestInspect:
    def test_it_says_what_a_graph_is(self, ember, tmp_path):
        neural.make(tmp_path / "face.onnx", "inswapper_128")
        done = ember("inspect", "face.onnx")
        assert done.returncode == 0, done.stderr
        lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
        assert lines == [
            "file face.onnx, 1.3 MB",
            "family inswapper_128, for swap",
            "inputs target float32 [1, 3, 128, 128]",
            "inputs source float32 [1, 512]",
            "outputs output float32 [1, 3, 128, 128]",
            "items 1 at once",
            "weights float32, 1.3 MB",
            "opset 11, made by pytorch",
            f"licence of the published weights: {LICENCES['inswapper_128']}",
        ]

    def test_json_has_the_same_facts_a_line_for_each_file(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "arcface")
        neural.make(tmp_path / "b.onnx", "ghost_256")
        done = ember("inspect", "--json", "a.onnx", "b.onnx")
        first, second = map(json.loads, done.stdout.splitlines())
        assert first["family"] == "arcface"
        assert first["items"] is None
        assert first["inputs"] == [
            {"name": "input.1", "kind": "float32", "shape": ["N", 3, 112, 112]}
        ]
        assert first["opset"] == 11
        assert first["size"] == (tmp_path / "a.onnx").stat().st_size
        assert second["family"] is None
        assert {"simswap_256", "ghost_256"} < set(second["candidates"])

    def test_shapes_of_several_families_are_said_to_need_a_name(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "gfpgan_512")
        done = ember("inspect", "a.onnx")
        told = "gfpgan_512 or restoreformer_512 or gpen_512: its name does not say which"
        assert told in done.stdout

    def test_it_needs_neither_onnx_nor_the_runtime(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "xseg")
        done = ember("inspect", "a.onnx", missing=["onnx", "onnxruntime", "numpy"])
        assert done.returncode == 0, done.stderr
        assert "xseg, for occlusion" in done.stdout

    def test_what_is_no_model_is_one_line_with_the_reason(self, ember, tmp_path):
        (tmp_path / "a.onnx").write_text("<html>not found</html>")
        done = ember("inspect", "a.onnx")
        assert done.returncode == Exit.BAD_INPUT
        assert done.stderr.startswith("Error: a.onnx: is no ONNX model; it is an HTML page")
        assert len(done.stderr.splitlines()) == 1


class TestBatch:
    def test_it_writes_beside_the_file_and_says_what_it_changed(self, ember, tmp_path):
        neural.make(tmp_path / "ghost.onnx", "ghost_256")
        done = ember("batch", "ghost.onnx")
        assert done.returncode == 0, done.stderr
        assert "[1, 24, 1, 1] to [-1, 24, 1, 1]" in done.stdout
        assert onnxfile.read(tmp_path / "ghost.batch.onnx").items is None

    def test_what_is_there_is_kept_unless_forced(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "crossface")
        (tmp_path / "b.onnx").write_text("mine")
        done = ember("batch", "a.onnx", "-o", "b.onnx")
        assert done.returncode == Exit.CANNOT_WRITE
        assert "b.onnx is there already; --force overwrites it" in done.stderr
        assert (tmp_path / "b.onnx").read_text() == "mine"
        assert ember("batch", "a.onnx", "-o", "b.onnx", "--force").returncode == 0
        assert onnxfile.read(tmp_path / "b.onnx").items is None

    def test_one_that_cannot_be_is_an_error(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "arcface")
        done = ember("batch", "a.onnx")
        assert done.returncode == Exit.BAD_INPUT
        assert done.stderr == "Error: a.onnx: it takes any number of items already\n"

    @pytest.mark.parametrize("command", ["batch", "fp16", "cutout"])
    def test_without_the_extra_it_says_what_to_install(self, command, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "inswapper_128")
        done = ember(command, "a.onnx", missing=["onnx"])
        assert done.returncode == Exit.UNAVAILABLE
        assert "needs onnx: make install EXTRAS=models" in done.stderr

    @pytest.mark.parametrize("command", ["batch", "fp16", "cutout"])
    def test_the_file_stays_as_it_is_whatever_is_said(self, command, ember, tmp_path):
        path = neural.make(tmp_path / "inswapper_128.onnx", "inswapper_128", dynamic=True)
        before = path.read_bytes()
        (tmp_path / "link.onnx").symlink_to(path)
        for out in ("inswapper_128.onnx", "link.onnx"):
            done = ember(command, "inswapper_128.onnx", "-o", out, "--force")
            assert f"{out} is read from; write the result elsewhere" in done.stderr
        assert path.read_bytes() == before

    @pytest.mark.parametrize("command", ["batch", "fp16", "cutout"])
    def test_a_folder_that_is_not_there_is_named(self, command, ember, tmp_path):
        neural.make(tmp_path / "inswapper_128.onnx", "inswapper_128", dynamic=True)
        done = ember(command, "inswapper_128.onnx", "-o", "nowhere/b.onnx")
        assert done.returncode == Exit.CANNOT_WRITE
        assert "nowhere is no folder that can be written to" in done.stderr


class TestHalf:
    def test_it_writes_half_the_bytes_and_says_how_alike_outputs_are(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "simswap_256")
        done = ember("fp16", "a.onnx")
        assert done.returncode == 0, done.stderr
        assert "a.fp16.onnx: 0.1 MB instead of 0.2 MB; outputs like those" in done.stdout
        onnx.checker.check_model(str(tmp_path / "a.fp16.onnx"))
        assert onnxfile.read(tmp_path / "a.fp16.onnx").precision == "float16"

    def test_a_known_input_is_used_and_checked(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "arcface")
        np.save(tmp_path / "face.npy", np.ones((1, 3, 112, 112), np.float32))
        assert ember("fp16", "a.onnx", "--golden", "face.npy").returncode == 0
        done = ember("fp16", "a.onnx", "-o", "b.onnx", *["--golden", "face.npy"] * 2)
        assert done.returncode == Exit.BAD_INPUT
        assert "takes the inputs input.1; 2 were given" in done.stderr
        assert not (tmp_path / "b.onnx").exists()


class TestCutout:
    def test_it_writes_the_graph_and_says_what_its_entry_has(self, ember, tmp_path):
        neural.make(tmp_path / "ghost_1_256.onnx", "ghost_256", dynamic=True)
        done = ember("cutout", "ghost_1_256.onnx", "--side", "320")
        assert done.returncode == 0, done.stderr
        out = tmp_path / "ghost_1_256.cutout.onnx"
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
        lines = done.stdout.splitlines()[1:]
        made = tomllib.loads("\n".join(lines))
        assert made["family"] == "ghost_256"
        assert made["uri"] == out.as_uri()
        assert made["size"] == out.stat().st_size
        assert made["sha256"] == digest
        assert made["options"] == {"cutout": 320}

    def test_a_side_below_that_of_what_is_made_is_refused(self, ember, tmp_path):
        neural.make(tmp_path / "ghost_1_256.onnx", "ghost_256", dynamic=True)
        done = ember("cutout", "ghost_1_256.onnx", "--side", "255")
        assert done.returncode == Exit.BAD_INPUT
        assert "cutouts of ghost_256 have 256 to 4096 pixels" in done.stderr

    def test_a_family_that_its_name_does_not_tell_has_to_be_said(self, ember, tmp_path):
        neural.make(tmp_path / "a.onnx", "gfpgan_512")
        done = ember("cutout", "a.onnx")
        assert done.returncode == Exit.BAD_INPUT
        assert "a.onnx: which family is it? --family says it: gfpgan_512, restore" in done.stderr
        assert ember("cutout", "a.onnx", "--family", "arcface").returncode == Exit.BAD_INPUT
        done = ember("cutout", "a.onnx", "--family", "gfpgan_512", "-o", "b.onnx")
        assert done.returncode == 0, done.stderr
        assert "options = { cutout = 768 }" in done.stdout


class TestImport:
    @pytest.fixture
    def pack(self, tmp_path):
        """A swapper and its identity model; detection is the embedded one, which finds faces."""
        folder = tmp_path / "pack"
        folder.mkdir()
        neural.make(folder / "w600k_r50.onnx", "arcface")
        neural.make(folder / "inswapper_128.onnx", "inswapper_128")
        return folder

    def test_licences_are_shown_and_have_to_be_accepted(self, ember, pack, tmp_path):
        done = ember("import", "--insightface", "pack")
        assert done.returncode == Exit.CONFIG
        assert f"licence: {LICENCES['inswapper_128']}" in done.stdout
        assert "w600k_r50.onnx, inswapper_128.onnx are not permissive" in done.stderr
        assert "--accept-licence" in done.stderr
        assert not (tmp_path / "models.toml").exists()

    def test_permissive_ones_need_no_word(self, ember, tmp_path):
        neural.make(tmp_path / "yunet.onnx", "yunet")
        done = ember("import", "--facefusion", ".")
        assert done.returncode == 0, done.stderr
        assert "accept_licence" not in (tmp_path / "models.toml").read_text()

    def test_the_manifest_is_checked_and_swaps(self, ember, pack, tmp_path):
        done = ember("import", "--insightface", "pack", "--accept-licence")
        assert done.returncode == 0, done.stderr
        assert "models.toml: 3 models" in done.stdout
        settings = {"EMBER_MANIFEST": str(tmp_path / "models.toml")}
        done = ember("check", **settings)
        assert done.returncode == 0, done.stderr
        assert "3 models" in done.stdout
        done = ember.swap(HOPPER, COLLINS, "-o", "out.png", **settings)
        assert done.returncode == 0, done.stderr
        result = decode((tmp_path / "out.png").read_bytes(), name="result").pixels
        target = decode(COLLINS.read_bytes(), name="target").pixels
        changed = (result != target).any(axis=-1)
        assert 0.01 < changed.mean() < 0.5

    def test_roles_can_be_left_out(self, ember, pack, tmp_path):
        neural.make(pack / "codeformer.onnx", "codeformer_512")
        words = ("import", "--insightface", "pack", "--accept-licence", "--force")
        for more, roles in (((), {"enhance"}), (("--without", "enhance"), set())):
            assert ember(*words, *more).returncode == 0
            found = {each.role for each in manifest.read(tmp_path / "models.toml")}
            assert found == {"detect", "identity", "swap"} | roles

    def test_what_is_there_is_kept_unless_forced(self, ember, pack, tmp_path):
        (tmp_path / "models.toml").write_text("mine")
        done = ember("import", "--insightface", "pack", "--accept-licence")
        assert done.returncode == Exit.CANNOT_WRITE
        assert "models.toml is there already; --force overwrites it" in done.stderr
        assert (tmp_path / "models.toml").read_text() == "mine"
        done = ember("import", "--insightface", "pack", "--accept-licence", "--force")
        assert done.returncode == 0, done.stderr

    def test_with_batch_it_names_graphs_that_take_batches(self, ember, pack, tmp_path):
        words = ("import", "--insightface", "pack", "--accept-licence", "--batch")
        done = ember(*words)
        assert done.returncode == 0, done.stderr
        named = {each.role: each.path for each in manifest.read(tmp_path / "models.toml")}
        assert named["swap"] == tmp_path / "inswapper_128.batch.onnx"
        assert onnxfile.read(named["swap"]).items is None
        assert named["identity"] == pack / "w600k_r50.onnx"  # it takes them as it is
        (tmp_path / "models.toml").unlink()
        assert "inswapper_128.batch.onnx is there already" in ember(*words).stderr

    def test_files_come_into_the_store_when_it_is_said(self, ember, pack, tmp_path):
        done = ember("import", "--insightface", "pack", "--accept-licence", "--store")
        assert done.returncode == 0, done.stderr
        kept = {path.stat().st_size for path in (tmp_path / "store" / "sha256").iterdir()}
        assert {path.stat().st_size for path in pack.iterdir()} <= kept

    def test_what_is_not_recognised_is_listed(self, ember, pack):
        (pack / "notes.onnx").write_text("<html>")
        done = ember("import", "--insightface", "pack", "--accept-licence")
        assert done.returncode == 0
        assert "not recognised: pack/notes.onnx: is no ONNX model" in done.stderr

    def test_without_a_folder_it_is_called_wrongly(self, ember):
        done = ember("import")
        assert done.returncode == 2
        assert "--insightface or --facefusion" in done.stderr

    def test_a_folder_that_is_not_there_is_one_line(self, ember):
        done = ember("import", "--insightface", "no_such_pack")
        assert done.returncode == Exit.CONFIG
        assert "there is no folder no_such_pack, and no pack of this name" in done.stderr
        assert len(done.stderr.splitlines()) == 1
