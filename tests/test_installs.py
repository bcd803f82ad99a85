"""Each line of the documents that installs, in a fresh environment without the checkout.

What it asks for is linked from the environment of the tests, so that no network is needed;
`make soak` really installs it. Then the command of an extra is run: it works in the environments
that have the extra, and names it in those that have all else.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from functools import cache
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

from tests.installs import (
    BY_MAKE,
    DOCUMENTS,
    FROM_WHEEL,
    LINES,
    NOT_HERE,
    PROJECT,
    ROOT,
    TRIES,
    Linked,
    chosen,
    put_in,
    runnable,
)
from tests.soak import SOAK

PIP = (sys._base_executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OF_OTHERS = "pip install --no-deps --only-binary=:all: --no-compile --target /av 'av>=18,<19'"
OF_CLIENTS = re.compile(r"pip install (\./clients/python|openapi-python-client)\b")
"""What tests/clients install."""
CHOSEN = chosen()


def named(extras):
    return "-".join(sorted(extras))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Ember's, built of what is in the checkout now and nothing that an earlier build has left."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("function", "warmup", "keepalive"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE"):
        shutil.copy(ROOT / name, source)
    command = (*PIP, "--python", sys.executable, "wheel", "--no-deps", "--no-build-isolation")
    subprocess.run([*command, "--wheel-dir", folder, source], check=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    return Linked(tmp_path_factory.mktemp("linked"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What commands are tried with."""
    import av
    import pillow_heif
    from PIL import Image

    folder = tmp_path_factory.mktemp("files")
    shutil.copy(ROOT / "function/samples/hopper.jpg", folder / "photo.jpg")
    shutil.copy(ROOT / "function/models/centerface.onnx", folder / "face.onnx")
    with Image.open(folder / "photo.jpg") as photo:
        pillow_heif.from_pillow(photo).save(folder / "photo.heic")
    with av.open(folder / "clip.mp4", "w") as clip:
        stream = clip.add_stream("mpeg4", rate=10, width=64, height=64, pix_fmt="yuv420p")
        clip.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        clip.mux(stream.encode())
    (folder / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    return folder


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    with ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def environment(unpacked, linked, tmp_path_factory):
    """Makes environments with extras, each once; the result is where its programs are."""

    @cache
    def make(extras):
        folder = tmp_path_factory.mktemp("-".join(["env", *sorted(extras)]))
        programs = linked.environment(folder, extras)
        put_in(folder, unpacked)
        return programs

    return make


def pip_install(programs, wheel, extras, *options):
    command = (*PIP, "--python", programs / "python", "install", *options)
    line = f"{wheel}[{','.join(sorted(extras))}]"
    done = subprocess.run([*command, line], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def works(programs, tried, files, folder):
    shutil.copytree(files, folder, dirs_exist_ok=True)
    for extra in tried:
        code, said = TRIES[extra].run(programs / "ember", folder)
        assert (code, "EXTRAS=" in said) == (TRIES[extra].code, False), said
        assert TRIES[extra].says in said


def test_every_line_that_installs_is_one_that_is_tried_here():
    for path in DOCUMENTS:
        text = FROM_WHEEL.sub("", BY_MAKE.sub("", path.read_text())).replace(OF_OTHERS, "")
        text = OF_CLIENTS.sub("", text)
        assert not re.findall(r"pip install .*|EXTRAS=.*|.*ember-function\[.*", text), path


def test_every_extra_is_documented_and_has_a_command_that_is_tried():
    extras = PROJECT["optional-dependencies"].keys()
    assert set().union(*LINES) == extras
    assert set(CHOSEN.values()) == TRIES.keys()
    assert TRIES.keys() | {"pycuda", "tensorrt", "tensorrt-lean"} == extras


def test_errors_name_extras_that_there_are_and_no_package_of_an_index():
    named = set()
    for package in ("function", "warmup", "keepalive"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text()
            assert "ember-function[" not in text, path
            named |= set(re.findall(r"""\bbring\(["']([a-z0-9-]+)["']\)""", text))
    assert named
    assert named <= PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize("extras", LINES, ids=named)
def test_a_documented_line_gives_what_it_says(extras, environment, linked, files, tmp_path):
    assert linked.closure(extras)[1] <= NOT_HERE
    tried = runnable(extras) if SOAK else {CHOSEN[extras]}
    works(environment(extras), tried, files, tmp_path)


@pytest.mark.parametrize("extra", sorted(TRIES.keys() - {"gpu"}))
def test_without_an_extra_its_command_says_which_it_is(extra, environment, files, tmp_path):
    shutil.copytree(files, tmp_path, dirs_exist_ok=True)
    programs = environment(TRIES[extra].beside)
    code, said = TRIES[extra].run(programs / "ember", tmp_path)
    assert code in {65, 69, 78}, said
    assert f"make install EXTRAS={extra} " in said
    assert f"'WHEEL[{extra}]'" in said
    assert "Traceback" not in said


def test_without_any_extra_every_command_starts(environment):
    every = (
        "from function.command import COMMANDS; from importlib import import_module\n"
        "for module, _, name in (place.partition(':') for place, _ in COMMANDS.values()):\n"
        "    getattr(import_module(module), name)\n"
    )
    command = (environment(frozenset()) / "python", "-Pc", every)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_pip_takes_the_wheel_with_extras_and_makes_the_command(linked, wheel, tmp_path):
    extras = frozenset({"cpu", "heic", "k8s"})
    programs = linked.environment(tmp_path, extras)
    pip_install(programs, wheel, extras, "--no-index")  # what it asks for is all there
    done = subprocess.run([programs / "ember", "--version"], capture_output=True, check=True)
    assert done.stdout.startswith(b"ember ")


@pytest.mark.skipif(not SOAK, reason="it takes gigabytes from the network: make soak")
@pytest.mark.parametrize("extras", LINES, ids=named)
def test_a_documented_line_can_be_had_from_the_indexes(extras, wheel, linked, files, tmp_path):
    venv.create(tmp_path / "environment", symlinks=True)
    programs = tmp_path / "environment/bin"
    if "tensorrt" in extras:
        try:
            urlopen("https://pypi.nvidia.com/tensorrt-cu13-libs/", timeout=10).close()
        except OSError as error:
            pytest.skip(f"NVIDIA's index, which has TensorRT, cannot be reached: {error}")
    if linked.closure(extras)[1]:
        pip_install(programs, wheel, extras - {"pycuda"}, "--dry-run")
    else:
        pip_install(programs, wheel, extras)
        works(programs, runnable(extras), files, tmp_path / "files")


@pytest.mark.parametrize("wanted", ["cpu", "gpu,tensorrt", "video,gcs"])
def test_make_puts_one_runtime_in_the_place_of_the_other(wanted):
    done = subprocess.run(
        ["make", "--dry-run", "--old-file=.venv/.run", "install", f"EXTRAS={wanted}"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    removed = "uninstall --yes onnxruntime onnxruntime-gpu" in done.stdout
    assert removed == (wanted != "video,gcs")
    assert done.stdout.index("uninstall" if removed else "sed") < done.stdout.index(f".[{wanted}]")


def test_the_launcher_sets_a_fresh_clone_up_and_then_runs_the_command_of_it(tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "bin/ember", tmp_path / "bin")
    (tmp_path / "Makefile").write_text(
        "install:\n\tmkdir -p .venv/bin; touch .venv/.run; echo installing\n"
        "\tprintf '#!/bin/sh\\necho ran \"$$@\"\\n' > .venv/bin/ember; chmod +x .venv/bin/ember\n"
    )
    (tmp_path / "ember").symlink_to("bin/ember")
    for program in ("bin/ember", "ember"):
        done = subprocess.run(
            [tmp_path / program, "faces", "a b.jpg"],
            cwd="/", capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "ran faces a b.jpg\n"
        assert ("installing" in done.stderr) == (program == "bin/ember")
