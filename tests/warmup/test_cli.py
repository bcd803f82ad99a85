"""`ember prefetch` and `ember models …`, also as `python -m warmup …`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import pytest

from function.exits import Exit
from tests.warmup.conftest import content_of, file_of
from tests.warmup.plans.test_plan_key import KEY
from warmup import failures
from warmup.models.store import Store
from warmup.plans.stored import Plans, described
from warmup.settings.settings import StoreSettings

MODELS = Path(str(files("function"))) / "models"
CONTENT = content_of(300_000)


@pytest.fixture
def ember(tmp_path):
    """Run `ember`; the settings are those of the environment."""

    def run(*words, code="from function.command import main; main()", **environ):
        return subprocess.run(
            [sys.executable, "-c", f"import sys; sys.argv[1:] = {list(map(str, words))}\n{code}"],
            env=os.environ | {"EMBER_STORE": str(tmp_path / "store")} | environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def write(tmp_path):
    """Write a manifest with one model for each URI; its path."""

    def write(*uris, content=CONTENT, name="models.toml", licence="MIT"):
        entries = []
        for number, uri in enumerate(uris):
            file = file_of(content, uri)
            entries.append(
                f'[[model]]\nrole = "m{number}"\nfamily = "f"\nuri = "{file.uri}"\n'
                f'size = {file.size}\nsha256 = "{file.sha256}"\nlicence = "{licence}"\n'
            )
        path = tmp_path / name
        path.write_text("".join(entries))
        return str(path)

    return write


@pytest.fixture
def copy(tmp_path):
    """A copy of the embedded models that may be damaged."""
    shutil.copytree(MODELS, tmp_path / "models")
    return tmp_path / "models" / "models.toml"


def test_exit_codes_agree_with_those_of_ember():
    assert failures.ManifestError("").exit_code == Exit.CONFIG
    assert failures.UnavailableError("").exit_code == Exit.UNAVAILABLE
    assert failures.DamagedError("").exit_code == Exit.BAD_INPUT
    assert failures.StoreError("").exit_code == Exit.CANNOT_WRITE
    assert failures.WarmupError("").exit_code == Exit.INTERNAL


class TestPrefetch:
    def test_the_embedded_set_is_there(self, ember, tmp_path):
        done = ember("prefetch")
        assert done.returncode == 0
        assert "4 files are here and proven" in done.stderr
        assert {path.name for path in (tmp_path / "store").iterdir()} == {"verified"}

    @pytest.mark.parametrize(("variant", "brought"), [({}, [0]), ({"EMBER_VARIANT": "b"}, [0, 2])])
    def test_of_variants_only_the_named_one_comes(self, ember, site, tmp_path, variant, brought):
        contents = [content_of(1000, seed) for seed in range(3)]
        found = [file_of(content, site.put(content)) for content in contents]
        facts = [f'uri = "{f.uri}"\nsize = {f.size}\nsha256 = "{f.sha256}"\n' for f in found]
        entry = f'[[model]]\nrole = "m"\nfamily = "f"\nlicence = "MIT"\n{facts[0]}'
        for name, of in zip("ab", facts[1:], strict=True):
            entry += f'[[model.variants]]\nname = "{name}"\n{of}'
        (tmp_path / "models.toml").write_text(entry)
        environ = {"EMBER_MANIFEST": str(tmp_path / "models.toml")} | variant
        assert ember("prefetch", **environ).returncode == 0
        stored = {path.name for path in (tmp_path / "store" / "sha256").iterdir()}
        assert stored == {found[number].sha256 for number in brought}
        assert ember("models", "verify", **environ).returncode == 0
        assert ember("prefetch", **environ | {"EMBER_VARIANT": "c"}).returncode == Exit.CONFIG

    def test_it_fetches_and_says_so_in_lines_of_json(self, ember, site, write, tmp_path):
        done = ember("prefetch", EMBER_MANIFEST=write(site.put(CONTENT)))
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert lines[0]["state"] == "checking"
        assert lines[-1] | {"name": "m0", "state": "ready", "done": 300_000} == lines[-1]
        assert len(list((tmp_path / "store" / "sha256").iterdir())) == 1

    @pytest.mark.parametrize(
        ("code", "said"),
        [
            (65, "expected sha256"),
            (69, "HTTP 404"),
            (74, "the store"),
            (78, "`size` is missing"),
        ],
    )
    def test_every_kind_of_failure_has_its_exit_code(
        self, ember, site, write, tmp_path, code, said
    ):
        environ = {"EMBER_MANIFEST": write(site.put(CONTENT))}
        match code:
            case 65:
                site.put(CONTENT, lambda request: request.answer(CONTENT[:-1] + b"x"))
            case 69:
                site.put(CONTENT, lambda request: request.head(404, 0))
            case 74:
                environ["EMBER_STORE"] = "/proc/store"
            case 78:
                text = Path(environ["EMBER_MANIFEST"]).read_text()
                Path(environ["EMBER_MANIFEST"]).write_text(text.replace("size = ", "length = "))
        done = ember("prefetch", **environ)
        assert done.returncode == code
        assert said in done.stderr
        assert done.stderr.startswith("Error: ")
        assert "Traceback" not in done.stderr
        again = ember("prefetch", code="import warmup.__main__ as m; m.main()", **environ)
        assert (again.returncode, again.stderr) == (code, done.stderr)

    def test_wrong_settings_end_it(self, ember):
        done = ember("prefetch", EMBER_FETCH_CONNECTIONS="none")
        assert done.returncode == 78
        assert "EMBER_FETCH_CONNECTIONS is 'none'; allowed: 1 to 64." in done.stderr

    def test_settings_of_other_packages_are_not_its_business(self, ember):
        assert ember("prefetch", EMBER_HEARTBEAT_OF_TOMORROW="1").returncode == 0

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 130), (signal.SIGINT, 130)])
    def test_a_signal_ends_it_soon_and_what_came_is_kept(self, site, write, tmp_path, number, code):
        coming = threading.Event()

        def behave(request):
            if not request.probe:
                threading.Timer(0.5, coming.set).start()
            request.answer(CONTENT, chunk=3000, pause=0.05)

        environ = {"EMBER_MANIFEST": write(site.put(CONTENT, behave))}
        process = subprocess.Popen(
            [sys.executable, "-c", "from function.command import main; main()", "prefetch"],
            env=os.environ | environ | {"EMBER_STORE": str(tmp_path / "store")},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        coming.wait(30)
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
        assert process.returncode == code, said
        assert "Traceback" not in said
        (state,) = (tmp_path / "store" / "partial").glob("*.json")
        assert json.loads(state.read_text())["done"] > 0

    def test_a_terminal_sees_bars(self, site, write, tmp_path):
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        environ = {"EMBER_MANIFEST": write(site.put(CONTENT)), "TERM": "xterm", "COLUMNS": "100"}
        process = subprocess.Popen(
            [sys.executable, "-m", "warmup", "prefetch"],
            env=os.environ | environ | {"EMBER_STORE": str(tmp_path / "store")},
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        try:
            while data := os.read(ours, 4096):
                seen += data
        except OSError:
            pass
        os.close(ours)
        assert process.communicate()[0] == b""
        assert process.returncode == 0
        assert b"m0" in seen
        assert "━".encode() in seen


class TestCheck:
    def test_a_good_manifest_is_summed_up(self, ember):
        done = ember("models", "check")
        assert done.returncode == 0
        assert done.stdout == "4 models, 22.7 MB: nothing is wrong\n"

    def test_everything_that_is_wrong_is_named(self, ember, write):
        path = write("a.onnx", "ftp://host/b", licence="CC-BY-NC-4.0")
        done = ember("models", "check", path)
        assert done.returncode == 78
        assert len(done.stderr.splitlines()) == 3
        assert done.stderr.count("CC-BY-NC-4.0") == 2
        assert "ftp" not in done.stderr

    def test_alone_it_needs_a_manifest(self, ember):
        done = ember("models", "check", code="import warmup.__main__ as m; m.main()")
        assert done.returncode == 78
        assert "EMBER_MANIFEST" in done.stderr


class TestVerify:
    def test_good_files_are_listed(self, ember, copy):
        done = ember("models", "verify", copy)
        assert done.returncode == 0
        assert [line.split()[:2] for line in done.stdout.splitlines()] == [
            ["ok", "detect:"],
            ["ok", "landmarks:"],
            ["ok", "identity:"],
            ["ok", "gate:"],
        ]

    def test_every_bad_file_is_named(self, ember, copy):
        (copy.parent / "centerface.onnx").unlink()
        with (copy.parent / "face_mesh_468.onnx").open("r+b") as file:
            file.write(b"x")
        done = ember("models", "verify", copy)
        assert done.returncode == 65
        assert "bad      detect:" in done.stderr
        assert "bad      landmarks:" in done.stderr
        assert "ok       identity:" in done.stdout
        assert "2 of 4 files cannot be used" in done.stderr

    def test_what_is_not_fetched_is_missing(self, ember, write):
        done = ember("models", "verify", write("https://host/a"))
        assert done.returncode == 65
        assert "missing  m0: https://host/a" in done.stderr

    def test_a_marker_does_not_help_a_damaged_file(self, ember, site, write, tmp_path):
        path = write(site.put(CONTENT))
        assert ember("prefetch", EMBER_MANIFEST=path).returncode == 0
        (stored,) = (tmp_path / "store" / "sha256").iterdir()
        before = stored.stat()
        stored.chmod(0o644)
        stored.write_bytes(CONTENT[:-1] + b"x")
        os.utime(stored, ns=(before.st_atime_ns, before.st_mtime_ns))
        done = ember("models", "verify", path)
        assert done.returncode == 65
        assert "expected sha256" in done.stderr


class TestListAndClean:
    @pytest.fixture
    def two(self, ember, site, write):
        """A store with two files, and the manifest of the second; the first's digest."""
        other = content_of(200_000, 5)
        first = write(site.put(other), content=other, name="first.toml")
        second = write(site.put(CONTENT))
        for path in (first, second):
            assert ember("prefetch", EMBER_MANIFEST=path).returncode == 0
        return second, file_of(other, "").sha256

    def test_a_manifest_and_what_else_there_is_are_listed(self, ember, two, tmp_path):
        path, other = two
        done = ember("models", "ls", path)
        assert [line.split()[3:] for line in done.stdout.splitlines()] == [
            ["in", "the", "store", "m0"],
            ["not", "named", "-"],
        ]
        assert done.stdout.splitlines()[1].startswith(other[:12])

    def test_what_is_missing_or_in_place_is_listed(self, ember, write):
        assert "missing" in ember("models", "ls", write("https://host/a")).stdout
        assert ember("models", "ls").stdout.count("in place") == 4

    def test_what_is_not_named_is_removed_when_asked(self, ember, two, tmp_path):
        path, other = two
        stored = tmp_path / "store" / "sha256"
        assert f"would go  {other[:12]}" in ember("models", "gc", path, "--dry-run").stdout
        assert len(list(stored.iterdir())) == 2
        assert f"removed   {other[:12]}" in ember("models", "gc", path).stdout
        assert [one.name for one in stored.iterdir()] != [other]
        assert len(list(stored.iterdir())) == 1
        assert ember("models", "gc", path).stdout == ""

    def test_plans_stay_as_long_as_their_models(self, ember, two, tmp_path):
        path, other = two
        store = Store(tmp_path / "store")
        plans = Plans(store, StoreSettings())
        for model in (other, sha256(CONTENT).hexdigest()):
            content = content_of(50_000, len(model) + ord(model[0]))
            key = replace(KEY, model=model)
            plans.keep(described(key, content, built_by="11.4", seconds=1), content)
        assert ember("models", "ls", path).stdout.count("a plan") == 2
        assert ember("models", "gc", path).returncode == 0
        (kept,) = plans.entries()
        assert kept.key.model == sha256(CONTENT).hexdigest()
        assert store.path(kept.sha256).exists()
        assert len(list((tmp_path / "store" / "sha256").iterdir())) == 2

    def test_kernels_go_when_their_plan_is_gone(self, ember, two, tmp_path):
        path, other = two
        plans = Plans(Store(tmp_path / "store"), StoreSettings())
        own, lost, foreign = (
            replace(KEY, model=model, precision=precision)
            for model, precision in (
                (sha256(CONTENT).hexdigest(), "fp32"),
                (sha256(CONTENT).hexdigest(), "fp16"),
                (other, "fp32"),
            )
        )
        for number, key in enumerate((own, lost, foreign)):
            content = content_of(1000, number)
            plans.keep(described(key, content, built_by="11.4", seconds=1), content)
            plans.kernels(key.digest, "GPU-a-1").write_bytes(b"kernels")
        sidecar, held = plans.find(lost)
        held.close()
        assert plans.store.remove(sidecar.sha256)  # as one that was evicted is
        gone = {f"kernels-{key.digest[:12]}" for key in (lost, foreign)}
        would = ember("models", "gc", path, "--dry-run").stdout
        assert {each for each in gone if f"would go  {each}" in would} == gone
        assert len(list((tmp_path / "store" / "plans").glob("kernels-*"))) == 3
        done = ember("models", "gc", path).stdout
        assert {each for each in gone if f"removed   {each}" in done} == gone
        (left,) = (tmp_path / "store" / "plans").glob("kernels-*")
        assert left == plans.kernels(own.digest, "GPU-a-1")
        assert [each.key for each in plans.entries()] == [own]

    def test_what_is_in_use_stays(self, ember, two, tmp_path):
        from warmup.models import lock

        path, other = two
        with (tmp_path / "store" / "sha256" / other).open("rb") as used:
            lock.share(used.fileno())
            assert f"in use    {other[:12]}" in ember("models", "gc", path).stdout
            assert f"in use    {other[:12]}" in ember("models", "gc", path, "--dry-run").stdout
        assert (tmp_path / "store" / "sha256" / other).exists()
