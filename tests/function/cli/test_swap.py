"""`ember swap`, `ember faces` and `ember config` on real photos."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from function.cli import lazy
from function.cli.files import SUFFIXES
from function.command import COMMANDS
from function.images.formats import FORMATS
from tests.function.video.films import scene


@dataclass
class Ended:
    code: int
    out: bytes
    err: str

    @property
    def reports(self):
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def ember(monkeypatch, capfdbinary):
    """Run `ember` in this process."""

    def run(*words, stdin=b""):
        monkeypatch.setattr(sys, "argv", ["ember", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = lazy.run(COMMANDS)
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Ended(int(code), out, err.decode())

    return run


@pytest.fixture
def hopper(photos):
    return photos / "grace_hopper.jpg"


@pytest.fixture
def collins(photos):
    return photos / "astronaut.png"


@pytest.fixture
def blank(tmp_path):
    path = tmp_path / "blank.png"
    Image.new("RGB", (64, 48), "white").save(path)
    return path


@pytest.fixture
def folder(tmp_path, hopper, collins):
    """Two photos of people, one of nobody, one that is none, and things to leave alone."""
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "a.jpg").write_bytes(hopper.read_bytes())
    (folder / "b.PNG").write_bytes(collins.read_bytes())
    Image.new("RGB", (64, 48)).save(folder / "c.png")
    (folder / "d.jpeg").write_bytes(b"no photo")
    (folder / "notes.txt").write_text("not a photo")
    (folder / ".hidden.jpg").write_bytes(b"left alone")
    (folder / "inner.jpg").mkdir()
    return folder


def pixels(path):
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(int)


def format_of(photo):
    """The format of a file or of the bytes of one."""
    with Image.open(io.BytesIO(photo) if isinstance(photo, bytes) else photo) as image:
        return image.format


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


class TestSwap:
    def test_a_face_is_put_onto_the_target(self, ember, hopper, collins, tmp_path):
        out = tmp_path / "out.png"
        ended = ember("swap", hopper, collins, "-o", out)
        assert ended.code == 0
        assert ended.out == b""
        assert "1 face swapped" in ended.err
        assert pixels(out).shape == pixels(collins).shape
        assert (pixels(out) != pixels(collins)).any()

    def test_several_sources_may_be_given(self, ember, hopper, collins, tmp_path):
        ended = ember("swap", hopper, hopper, collins, "-o", tmp_path / "out.jpg")
        assert ended.code == 0

    @pytest.fixture
    def pair(self, tmp_path):
        """Collins on the left, Hopper on the right."""
        path = tmp_path / "pair.png"
        Image.fromarray(next(scene(1, (768, 432)))).save(path)
        return path

    def test_each_face_gets_a_source_of_its_own(self, ember, hopper, collins, pair, tmp_path):
        out, photos = tmp_path / "out.png", tmp_path / "photos, of hopper"
        photos.mkdir()
        for name in ("a.jpg", "b.jpg"):
            (photos / name).write_bytes(hopper.read_bytes())
        ended = ember("swap", "--map", f"0={photos},{hopper}={collins}", pair, "-o", out, "--json")
        assert ended.code == 0, ended.err
        (report,) = ended.reports
        assert [face["source"] for face in report["faces"]] == [str(photos), str(collins)]
        for face in report["faces"]:
            assert face["identity"]["after"] < face["identity"]["before"]
        other = tmp_path / "other.png"
        assert (
            ember("swap", "--map", f"0={photos}", "--map", f"1={collins}", pair, "-o", other).code
            == 0
        )
        assert format_of(other) == "PNG"

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["--map", "0"], "not FACE=PHOTO"),
            (["--map", "0=HOPPER,0=HOPPER"], "mapped twice"),
            (["--map", "0=nowhere.jpg"], "does not exist"),
            (["--map", "nobody.jpg=HOPPER"], "does not exist"),
            (["--map", "0=HOPPER", "HOPPER"], "the target alone"),
            (["--map", "0=HOPPER", "--faces", "all"], "the target alone"),
            (["--faces", "0=a", "HOPPER"], "--map"),
        ],
    )
    def test_a_map_that_makes_no_sense_is_told(self, ember, hopper, pair, tmp_path, words, said):
        words = [word.replace("HOPPER", str(hopper)) for word in words]
        ended = ember("swap", *words, pair, "-o", tmp_path / "out.jpg")
        assert ended.code == 2
        assert said in " ".join(ended.err.replace("│", "").split())

    def test_the_report_is_one_line_of_json(self, ember, hopper, collins, tmp_path):
        ended = ember("swap", hopper, collins, "-o", tmp_path / "out.jpg", "--json")
        (report,) = ended.reports
        assert (report["height"], report["width"]) == pixels(collins).shape[:2]
        assert report["image"] is None
        (face,) = report["faces"]
        assert face["identity"]["after"] < face["identity"]["before"]
        assert {timing["stage"] for timing in report["timings"]} >= {"decode", "swap", "encode"}
        assert (tmp_path / "out.jpg").exists()

    def test_only_the_report_can_be_asked_for(self, ember, hopper, collins):
        ended = ember("swap", hopper, collins, "--json")
        assert ended.code == 0
        assert len(ended.reports) == 1

    @pytest.mark.parametrize(
        ("name", "options", "format_"),
        [
            ("out.webp", [], "WEBP"),
            ("out.JPG", [], "JPEG"),
            ("out", [], "PNG"),  # the target's own
            ("out.png", ["--format", "jpeg"], "JPEG"),
            ("out.avif", ["--quality", "50"], "AVIF"),
        ],
    )
    def test_the_format_follows_the_option_then_the_name(
        self, ember, hopper, collins, tmp_path, name, options, format_
    ):
        assert ember("swap", hopper, collins, "-o", tmp_path / name, *options).code == 0
        assert format_of(tmp_path / name) == format_

    def test_photos_come_and_go_through_standard_streams(self, ember, hopper, collins):
        ended = ember("swap", "-", collins, "-o", "-", stdin=hopper.read_bytes())
        assert ended.code == 0
        assert format_of(ended.out) == "PNG"
        assert ended.err == ""

    def test_the_target_may_come_from_standard_input(self, ember, hopper, collins, tmp_path):
        out = tmp_path / "out.jpg"
        assert ember("swap", hopper, "-", "-o", out, stdin=collins.read_bytes()).code == 0
        assert out.exists()

    def test_an_existing_folder_keeps_the_targets_name(self, ember, hopper, collins, tmp_path):
        assert ember("swap", hopper, collins, "-o", tmp_path).code == 0
        assert (tmp_path / "astronaut.png").exists()
        assert ember("swap", hopper, collins, "-o", tmp_path, "--format", "jpeg").code == 0
        assert (tmp_path / "astronaut.jpg").exists()

    def test_like_replaces_only_who_is_on_the_photo(self, ember, hopper, collins, tmp_path):
        out = tmp_path / "out.png"
        assert ember("swap", hopper, collins, "-o", out, "--like", collins).code == 0
        ended = ember("swap", collins, collins, "-o", out, "--like", hopper)
        assert ended.code == 65
        assert ended.err.count("\n") == 1

    def test_a_face_is_chosen_by_its_index(self, ember, hopper, collins, tmp_path):
        out = tmp_path / "out.png"
        assert ember("swap", hopper, collins, "-o", out, "--faces", "index:0").code == 0
        ended = ember("swap", hopper, collins, "-o", out, "--faces", "index:7")
        assert ended.code == 65
        assert "There is no face 7" in ended.err

    def test_no_face_is_bad_input_and_writes_nothing(self, ember, hopper, blank, tmp_path):
        ended = ember("swap", hopper, blank, "-o", tmp_path / "out.png")
        assert ended.code == 65
        assert ended.err.startswith("Error: No face was found")
        assert ended.err.count("\n") == 1
        assert not (tmp_path / "out.png").exists()

    def test_a_file_that_is_no_photo_is_named(self, ember, hopper, tmp_path):
        path = tmp_path / "text.jpg"
        path.write_text("no photo")
        ended = ember("swap", hopper, path, "-o", tmp_path / "out.png")
        assert ended.code == 65
        assert "text.jpg" in ended.err

    def test_the_pixel_limit_holds(self, ember, hopper, tmp_path, monkeypatch):
        monkeypatch.setenv("EMBER_MAX_PIXELS", "1M")
        large = tmp_path / "large.png"
        Image.new("L", (1001, 1000)).save(large)
        ended = ember("swap", hopper, large, "-o", tmp_path / "out.png")
        assert ended.code == 65
        assert "1001000" in ended.err.replace(",", "")

    def test_a_result_that_cannot_be_written_is_named(self, ember, hopper, collins, tmp_path):
        ended = ember("swap", hopper, collins, "-o", tmp_path / "nowhere" / "out.png")
        assert ended.code == 74
        assert "nowhere/out.png cannot be written: No such file or directory." in ended.err

    def test_writing_leaves_nothing_half_done(self, ember, hopper, collins, tmp_path):
        out = tmp_path / "out.png"
        out.write_bytes(b"from before")
        assert ember("swap", hopper, collins, "-o", out).code == 0
        assert names_in(tmp_path) == ["out.png"]
        assert format_of(out) == "PNG"

    def test_a_link_stays_a_link_and_a_device_a_device(self, ember, hopper, collins, tmp_path):
        real, link = tmp_path / "real.png", tmp_path / "link.png"
        link.symlink_to(real)
        assert ember("swap", hopper, collins, "-o", link).code == 0
        assert link.is_symlink()
        assert real.is_file()
        pipe = tmp_path / "pipe.png"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        ended = ember("swap", hopper, collins, "-o", pipe, "--format", "webp", "--quality", "1")
        os.close(reader)
        assert ended.code == 0
        assert pipe.is_fifo()

    def test_bad_settings_end_it(self, ember, hopper, collins, tmp_path, monkeypatch):
        monkeypatch.setenv("EMBER_THREADS", "many")
        ended = ember("swap", hopper, collins, "-o", tmp_path / "out.png")
        assert ended.code == 78
        assert ended.err == "Error: EMBER_THREADS is 'many'; allowed: 1 to 1024.\n"

    def test_a_damaged_manifest_ends_it(self, ember, hopper, collins, tmp_path, monkeypatch):
        manifest = tmp_path / "models.toml"
        manifest.write_text("")
        monkeypatch.setenv("EMBER_MANIFEST", str(manifest))
        ended = ember("swap", hopper, collins, "-o", tmp_path / "out.png")
        assert ended.code == 78
        assert str(manifest) in ended.err

    def test_ctrl_c_ends_it_quietly(self, hopper, collins, tmp_path):
        code = (
            "import asyncio, os, signal\n"
            "from function.service.service import Service\n"
            "async def load(self):\n"
            "    os.kill(os.getpid(), signal.SIGINT)\n"
            "    await asyncio.sleep(60)\n"
            "Service.load = load\n"
            "from function.command import main; main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "swap", hopper, collins, "-o", tmp_path / "out.png"],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 130
        assert done.stderr.strip() == b""


class TestSwapUsage:
    """Calls that make no sense end with 2 before any work is done."""

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (["{hopper}", "-o", "out.png"], "one or more source photos"),
            (["{hopper}", "{collins}"], "-o OUT"),
            (["{hopper}", "{collins}", "-o", "out.gif"], "not .gif"),
            (["{hopper}", "{collins}", "-o", "-", "--json"], "a report"),
            (["{hopper}", "{tmp}", "-o", "-"], "more than one photo"),
            (["{hopper}", "{tmp}", "-o", "{hopper}"], "must be one as well"),
            (["{hopper}", "{tmp}", "-o", "{tmp}"], "is read from"),
            (["{tmp}", "{collins}", "-o", "out.png"], "only the target can be one"),
            (["-", "-", "-o", "out.png"], "only one of the photos"),
            (["{hopper}", "-", "-o", "{tmp}"], "has no name"),
            (["{hopper}", "{collins}", "-o", "{collins}"], "is read from"),
            (["{hopper}", "{collins}", "-o", "{hopper}"], "is read from"),
            (["{hopper}", "{collins}", "-o", "o.png", "--faces", "some"], "must be all"),
            (["{hopper}", "{collins}", "-o", "o.png", "--faces", "like"], "belong together"),
            (
                ["{hopper}", "{collins}", "-o", "o.png", "--faces", "all", "--like", "{hopper}"],
                "belong together",
            ),
            (["{hopper}", "/nowhere.jpg", "-o", "out.png"], "does not exist"),
            (["{hopper}", "{collins}", "-o", "o.png", "--quality", "101"], "1<=x<=100"),
            (["{hopper}", "{collins}", "-o", "o.png", "--boost", "64"], "128<=x<=1024"),
            (["{hopper}", "{collins}", "-o", "o.png", "--masks", "box,hair"], "not 'hair'"),
            (["{hopper}", "{collins}", "-o", "o.png", "--format", "gif"], "'avif'"),
        ],
    )
    def test_it_is_refused_with_the_reason(self, ember, photos, tmp_path, words, said):
        places = {
            "hopper": photos / "grace_hopper.jpg",
            "collins": photos / "astronaut.png",
            "tmp": tmp_path,
        }
        ended = ember("swap", *(word.format(**places) for word in words))
        assert ended.code == 2
        assert said in ended.err
        assert "Traceback" not in ended.err

    def test_an_input_is_not_written_over_by_another_name(self, ember, hopper, tmp_path):
        target, link = tmp_path / "target.jpg", tmp_path / "link.jpg"
        target.write_bytes(hopper.read_bytes())
        os.link(target, link)
        assert ember("swap", hopper, target, "-o", link).code == 2
        assert ember("swap", hopper, target, "-o", tmp_path).code == 2
        assert target.read_bytes() == hopper.read_bytes()

    def test_the_formats_offered_are_those_that_ember_writes(self):
        assert list(dict.fromkeys(SUFFIXES.values())) == list(FORMATS)


class TestSwapFolder:
    def test_every_photo_is_swapped_past_those_that_cannot_be(
        self, ember, hopper, folder, tmp_path
    ):
        out = tmp_path / "new" / "out"
        ended = ember("swap", hopper, folder, "-o", out)
        assert ended.code == 65
        assert names_in(out) == ["a.jpg", "b.PNG"]
        lines = ended.err.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["c.png", "d.jpeg", "Error"]
        assert lines[-1] == "Error: 2 of 4 photos could not be swapped."

    def test_a_folder_without_bad_photos_is_a_success(self, ember, hopper, folder, tmp_path):
        (folder / "c.png").unlink()
        (folder / "d.jpeg").unlink()
        ended = ember("swap", hopper, folder, "-o", tmp_path / "out", "--format", "webp")
        assert ended.code == 0
        assert names_in(tmp_path / "out") == ["a.webp", "b.webp"]
        assert ended.err == "2 photos swapped.\n"

    def test_each_photo_has_its_line_of_json(self, ember, hopper, folder):
        ended = ember("swap", hopper, folder, "--json")
        assert ended.code == 65
        assert [report["target"] for report in ended.reports] == [
            "a.jpg",
            "b.PNG",
            "c.png",
            "d.jpeg",
        ]
        assert [report.get("problem", {}).get("code") for report in ended.reports] == [
            None,
            None,
            "no_face",
            "unsupported_media_type",
        ]
        assert ended.reports[0]["faces"][0]["index"] == 0

    def test_a_bad_source_is_reported_once(self, ember, blank, folder, tmp_path):
        ended = ember("swap", blank, folder, "-o", tmp_path / "out")
        assert ended.code == 65
        assert ended.err.startswith("Error: No face was found in the source blank.png.")
        assert ended.err.count("\n") == 1

    def test_two_results_never_share_a_name(self, ember, hopper, collins, tmp_path):
        folder, out = tmp_path / "photos", tmp_path / "out"
        folder.mkdir()
        for name in ("x.bmp", "x.tiff"):
            Image.fromarray(pixels(collins).astype(np.uint8)).save(folder / name)
        assert ember("swap", hopper, folder, "-o", out).code == 0
        assert names_in(out) == ["x.png", "x.tiff.png"]

    def test_a_source_in_the_output_folder_is_not_written_over(self, ember, hopper, tmp_path):
        folder, out = tmp_path / "photos", tmp_path / "out"
        for place in (folder, out):
            place.mkdir()
            (place / "a.jpg").write_bytes(hopper.read_bytes())
        ended = ember("swap", out / "a.jpg", folder, "-o", out)
        assert ended.code == 2
        assert (out / "a.jpg").read_bytes() == hopper.read_bytes()

    def test_an_empty_folder_is_bad_input(self, ember, hopper, tmp_path):
        ended = ember("swap", hopper, tmp_path, "-o", tmp_path / "out")
        assert ended.code == 65
        assert "holds no photos" in ended.err

    def test_a_folder_that_cannot_be_made_is_named(self, ember, hopper, folder, tmp_path):
        (tmp_path / "file").touch()
        ended = ember("swap", hopper, folder, "-o", tmp_path / "file" / "out")
        assert ended.code == 74
        assert "cannot be written: Not a directory." in ended.err


class TestFolderNames:
    def test_a_folder_of_results_is_not_called_like_a_photo(self, ember, hopper, tmp_path):
        (tmp_path / "in").mkdir()
        ended = ember("swap", hopper, tmp_path / "in", "-o", tmp_path / "out.jpg")
        assert ended.code == 2
        assert "name of one photo" in ended.err
        assert not (tmp_path / "out.jpg").exists()


class TestFaces:
    def test_the_faces_are_a_table(self, ember, collins):
        ended = ember("faces", collins)
        assert ended.code == 0
        assert b"score" in ended.out
        assert b"plain" in ended.out
        assert max(map(len, ended.out.decode().splitlines())) <= 80

    def test_the_faces_are_json(self, ember, collins):
        (report,) = ember("faces", collins, "--json").reports
        (face,) = report["faces"]
        assert report["order"] == "left_to_right"
        assert face["index"] == 0
        assert face["box"]["left"] < face["points"][0][0] < face["box"]["right"]
        assert "identity" not in face

    def test_no_face_is_no_failure(self, ember, blank):
        ended = ember("faces", blank)
        assert ended.code == 0
        assert b"No face was found" in ended.out

    def test_the_faces_are_drawn(self, ember, collins, tmp_path):
        out = tmp_path / "drawn.png"
        assert ember("faces", collins, "--draw", out).code == 0
        (report,) = ember("faces", collins, "--json").reports
        box = report["faces"][0]["box"]
        changed = (pixels(out) != pixels(collins)).any(axis=2)
        assert changed[box["bottom"] - 1, box["left"] : box["right"]].all()
        changed[box["top"] - 4 : box["bottom"] + 4, box["left"] - 4 : box["right"] + 4] = False
        assert not changed.any()

    def test_the_drawing_may_go_to_standard_output(self, ember, collins):
        ended = ember("faces", "-", "--draw", "-", stdin=collins.read_bytes())
        assert pixels(io.BytesIO(ended.out)).shape == pixels(collins).shape
        assert "score" in ended.err

    @pytest.mark.parametrize(
        "words", [["--draw", "-", "--json"], ["--draw", "{image}"], ["--draw", "out.bmp"]]
    )
    def test_calls_that_make_no_sense_are_refused(self, ember, collins, words):
        assert ember("faces", collins, *(w.format(image=collins) for w in words)).code == 2

    def test_a_folder_is_refused(self, ember, tmp_path):
        assert ember("faces", tmp_path).code == 2

    def test_a_broken_photo_is_bad_input(self, ember, tmp_path):
        path = tmp_path / "cut.png"
        path.write_bytes(b"\x89PNG\r\n\x1a\n")
        ended = ember("faces", path)
        assert ended.code == 65
        assert "cut.png" in ended.err


class TestConfig:
    def test_it_shows_values_and_where_they_came_from(self, ember, monkeypatch):
        monkeypatch.setenv("EMBER_THREADS", "3")
        monkeypatch.setenv("PORT", "9000")
        ended = ember("config")
        rows = [line.split() for line in ended.out.decode().splitlines()]
        assert ["EMBER_THREADS", "3", "EMBER_THREADS"] in rows
        assert ["EMBER_PORT", "9000", "PORT"] in rows
        assert ["EMBER_HOST", "127.0.0.1", "default"] in rows

    def test_it_shows_them_as_json(self, ember, monkeypatch):
        monkeypatch.setenv("EMBER_MAX_PIXELS", "2M")
        facts = json.loads(ember("config", "--json").out)
        assert facts["EMBER_MAX_PIXELS"] == {"value": 2_000_000, "from": "EMBER_MAX_PIXELS"}
        assert facts["EMBER_THREADS"] == {"value": None, "from": None}

    def test_wrong_settings_are_all_named(self, ember, monkeypatch):
        monkeypatch.setenv("EMBER_MAX_PIXELS", "none")
        monkeypatch.setenv("EMBER_MAXPIXELS", "1")
        ended = ember("config")
        assert ended.code == 78
        assert len(ended.err.splitlines()) == 2

    def test_secrets_are_not_shown(self, ember, monkeypatch):
        from dataclasses import dataclass

        from function.cli import config
        from warmup.settings.readers import text
        from warmup.settings.variables import variable

        @dataclass(frozen=True)
        class Declared:
            key: str = variable("", text(), "A key.", secret=True)

        monkeypatch.setattr(config, "Settings", Declared)
        monkeypatch.delenv("EMBER_STORE", raising=False)
        monkeypatch.setenv("EMBER_KEY", "hunter2")
        for words in (["config"], ["config", "--json"]):
            ended = ember(*words)
            assert b"***" in ended.out
            assert b"hunter2" not in ended.out


class TestOutput:
    """What standard output cannot take."""

    def run(self, *words, **environ):
        command = [sys.executable, "-m", "function", *map(str, words)]
        with Path("/dev/full").open("wb") as full:
            out = full if "EMBER_TEST_FULL" in environ else subprocess.PIPE
            return subprocess.run(
                command,
                check=False,
                stdout=out,
                stderr=subprocess.PIPE,
                env={**os.environ, **environ},
            )

    def test_a_full_disk_behind_standard_output_is_said(self, hopper, collins):
        for words in (["config"], ["swap", hopper, collins, "-o", "-"]):
            done = self.run(*words, EMBER_TEST_FULL="1")
            assert done.returncode == 74
            assert done.stderr == b"Error: The output cannot be written: No space left on device.\n"

    def test_a_terminal_without_unicode_is_no_failure(self, collins):
        done = self.run("faces", collins, LC_ALL="POSIX", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert b"512 ? 512" in done.stdout
        assert done.stderr == b""


@pytest.mark.parametrize(
    ("words", "file", "step"),
    [
        (["faces", "{folder}/a.jpeg"], "/a.jpeg does not exist", "did you mean {folder}/a.jpg?"),
        (["faces", "{folder}/zzzz"], "/zzzz does not exist", "nothing of this name in {folder}"),
        (
            ["faces", "{folder}/no/a.jpg"],
            "no/a.jpg does not exist",
            "nor does the folder {folder}/no",
        ),
        (["faces", "{folder}"], "{folder} is a folder", "such as {folder}/a.jpg"),
        (["faces", "{folder}/d.jpeg"], "image d.jpeg", "Send JPEG"),
        (["verify", "{folder}/d.jpeg"], "file {folder}/d.jpeg", "Send JPEG"),
        (
            ["swap", "{folder}/c.png", "{folder}/a.jpg", "-o", "x.jpg"],
            "source c.png",
            "Use a photo",
        ),
        (
            ["swap", "{folder}/a.jpg", "{folder}/c.png", "-o", "x.jpg"],
            "target c.png",
            "Use a photo",
        ),
        (
            ["swap", "{folder}/a.jpg", "{folder}/b.PNG", "--faces", "index:7", "-o", "x.jpg"],
            "{folder}/b.PNG: There is no face 7",
            "`ember faces {folder}/b.PNG` lists them",
        ),
        (
            ["swap", "{folder}/a.jpg", "{folder}/b.PNG", "-o", "{folder}/no/x.jpg"],
            "{folder}/no/x.jpg cannot be written",
            "mkdir -p {folder}/no",
        ),
        (
            ["swap", "{folder}/a.jpg", "{folder}/inner.jpg", "-o", "{folder}/out"],
            "{folder}/inner.jpg holds no photos",
            ".jpg",
        ),
    ],
)
def test_what_goes_wrong_names_the_file_and_the_next_step(ember, folder, words, file, step):
    ended = ember(*(word.format(folder=folder) for word in words))
    assert ended.code in {2, 65, 74}
    *_, last = ended.err.splitlines()
    assert file.format(folder=folder) in last
    assert step.format(folder=folder) in last


def test_a_photo_that_is_cut_short_is_named(ember, hopper, tmp_path):
    (tmp_path / "cut.jpg").write_bytes(hopper.read_bytes()[:3000])
    ended = ember("faces", tmp_path / "cut.jpg")
    assert ended.err == (
        "Error: The image cut.jpg is cut short: its JPEG data ends too early. Use the whole file.\n"
    )
