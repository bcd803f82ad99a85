"""`from function import Ember`: Ember inside a program."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from threading import Thread

import pytest
from PIL import Image

import function
from function import Ember
from function.problems import NoFaceError, Problem
from function.service.verification import Finding
from warmup.settings.variables import SettingsError

HEAVY = {"numpy", "cv2", "PIL", "onnxruntime", "aiohttp", "click", "asyncio"}


@pytest.fixture(scope="module")
def ember(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    with Ember({"EMBER_AUDIT": folder.as_uri(), "EMBER_THREADS": "1"}) as ember:
        ember.audit = folder
        yield ember


@pytest.fixture
def hopper(photos):
    return photos / "grace_hopper.jpg"


@pytest.fixture
def collins(photos):
    return photos / "astronaut.png"


def test_importing_function_is_light():
    code = "import function, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    names = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert names.isdisjoint(HEAVY | {"warmup"})
    with pytest.raises(AttributeError, match="has no attribute 'Embers'"):
        function.Embers  # noqa: B018


def test_the_lines_of_the_document_run(hopper, collins, tmp_path):
    text = (Path(function.__file__).parents[1] / "docs/clients.md").read_text()
    section = text.partition("## In a program, without a server\n")[2].partition("\nThat is")[0]
    (tmp_path / "me.jpg").write_bytes(hopper.read_bytes())
    (tmp_path / "portrait.jpg").write_bytes(collins.read_bytes())
    words = [sys.executable, "-c", textwrap.dedent(section)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("[0.")
    assert (tmp_path / "out.jpg").read_bytes().startswith(b"\xff\xd8")


def test_a_swap_is_marked_and_accounted_for(ember, hopper, collins):
    swap = ember.swap(hopper, str(collins), format="jpeg", quality=90)
    with Image.open(io.BytesIO(swap.image)) as image:
        assert (image.format, image.size) == ("JPEG", swap.size)
    (face,) = swap.faces
    assert face.after < 0.6 < face.before
    found = ember.verify(swap.image)
    assert found.finding is Finding.SWAP
    lines = "".join(path.read_text() for path in ember.audit.rglob("*") if path.is_file())
    assert found.metadata["request_id"] in lines
    assert ember.verify(collins.read_bytes()).finding is Finding.UNKNOWN


def test_faces_are_those_of_the_command(ember, collins):
    (face,) = ember.faces(collins).faces
    assert face.index == 0


def test_several_people_have_names(ember, hopper, collins):
    swap = ember.swap({"grace": [hopper]}, collins, faces="0=grace")
    assert list(swap.sources) == ["grace"]
    (face,) = ember.swap(
        {"grace": hopper}, collins, faces="eileen=grace", likes={"eileen": collins}
    ).faces
    assert face.after < 0.6


def test_threads_share_it(ember, hopper, collins):
    results = []
    threads = [Thread(target=lambda: results.append(ember.swap(hopper, collins))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.faces[0].after < 0.6 for result in results] == [True] * 3


@pytest.mark.parametrize(
    ("wrong", "code", "says"),
    [
        ({"quality": 101}, "bad_value", "`quality` is a whole number from 1 to 100"),
        ({"format": "gif"}, "bad_value", "`format` is one of jpeg"),
        ({"faces": "index:7"}, "no_such_face", "There is no face 7"),
        ({"faces": "like"}, "missing_field", "needs a photo"),
        ({"source": []}, "bad_value", "`source` takes 1 to 8 photos"),
        ({"source": b""}, "bad_image", "empty"),
        ({"source": {"ann": b"x"}}, "bad_value", "`sources` are several"),
        ({"boost": 256}, "bad_value", "boost"),
    ],
)
def test_what_cannot_be_done_is_a_problem(ember, hopper, collins, wrong, code, says):
    with pytest.raises(Problem, match=says) as raised:
        ember.swap(wrong.pop("source", hopper), collins, **wrong)
    assert raised.value.code == code


def test_a_problem_names_the_file(ember, collins, tmp_path):
    blank = tmp_path / "blank.png"
    Image.new("RGB", (64, 48)).save(blank)
    with pytest.raises(NoFaceError, match=f"source {blank}"):
        ember.swap(blank, collins)
    with pytest.raises(FileNotFoundError):
        ember.swap(Path("nowhere.jpg"), collins)


def test_it_asks_for_consent_where_the_settings_do(hopper, collins):
    with (
        Ember({"EMBER_CONSENT": "stated"}) as ember,
        pytest.raises(Problem) as raised,
    ):
        ember.swap(hopper, collins)
    assert raised.value.code == "consent_required"


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(SettingsError, match="EMBER_THREADS"):
        Ember({"EMBER_THREADS": "many"})
    with pytest.raises(SettingsError, match="EMBER_WATERMARK_KEYS"):
        Ember({"EMBER_WATERMARK_KEYS": "/nowhere"})


def test_what_is_closed_says_so(collins):
    ember = Ember()
    ember.close()
    ember.close()
    with pytest.raises(RuntimeError, match="closed"):
        ember.faces(collins)
