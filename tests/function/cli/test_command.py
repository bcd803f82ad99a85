"""The command `ember` as a whole: what it imports, what it needs, how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import version

import pytest

from function import __version__

HEAVY = {"cv2", "numpy", "onnxruntime", "PIL", "aiohttp"}
MAIN = "from function.command import main; main()"


def ember(*words, before="", code=MAIN, **environ):
    """Run `ember` in a process of its own, after the Python statement `before`."""
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv[1:] = {list(words)!r}; {before}\n{code}"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def block(*modules):
    """A statement that makes modules look as if they were not installed."""
    return f"sys.modules.update(dict.fromkeys({list(modules)!r}))"


def imported_by(*words):
    """What `ember` with these words has imported when it ends."""
    watch = "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    done = ember(*words, before=watch)
    assert done.returncode == 0
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["config"],
        ["serve", "--help"],
        ["swap", "--help"],
        ["faces", "--help"],
        ["ping", "--help"],
        ["prefetch", "--help"],
        ["models", "check"],
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(words):
    assert not imported_by(*words) & HEAVY


def test_a_package_is_imported_only_when_one_of_its_subcommands_runs():
    assert not imported_by("--help") & {"keepalive", "warmup"}
    assert "warmup" not in imported_by("ping", "--help")
    assert "keepalive" not in imported_by("prefetch", "--help")


def test_the_version_is_that_of_the_distribution():
    done = ember("--version")
    assert done.stdout == f"ember {__version__}\n"
    assert version("ember-function") == __version__


def test_help_lists_every_subcommand_and_what_it_is_for():
    from function.command import COMMANDS

    done = ember("--help")
    for name, (_, line) in COMMANDS.items():
        assert f"{name} " in done.stdout
        assert line in done.stdout


def test_every_subcommand_of_the_table_exists_and_helps():
    from function.command import COMMANDS

    for name in COMMANDS:
        done = ember(name, "--help")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"Usage: ember {name} ")


def test_a_misspelt_subcommand_is_a_usage_error_with_a_suggestion():
    done = ember("swpa")
    assert done.returncode == 2
    assert "Did you mean 'swap'?" in done.stderr


def test_without_a_subcommand_the_help_is_shown():
    done = ember()
    assert done.returncode == 2
    assert "Commands:" in done.stderr


def test_subcommands_complete_by_their_names():
    done = ember(
        code="from function.command import main; main()",
        _EMBER_COMPLETE="bash_complete",
        COMP_WORDS="ember co",
        COMP_CWORD="1",
    )
    assert done.stdout.split() == ["plain,consent", "plain,coldstart", "plain,config"]


class TestServing:
    """`python -m function` and `ember serve`."""

    SERVE = "import runpy; runpy.run_module('function', run_name='__main__')"

    def test_further_words_make_it_the_command_line(self):
        done = ember("config", code=self.SERVE)
        assert done.returncode == 0
        assert "EMBER_HOST  " in done.stdout

    def test_bad_settings_stop_it_with_all_of_them_named(self):
        done = ember(code=self.SERVE, EMBER_THREADS="none", EMBER_PROT="1")
        assert done.returncode == 78
        assert "EMBER_THREADS is 'none'; allowed: 1 to 1024." in done.stderr
        assert "EMBER_PROT is not a setting; did you mean EMBER_PORT?" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_port_that_is_taken_is_named_with_advice(self, server):
        done = ember("serve", EMBER_PORT=str(server.port))
        assert done.returncode == 69
        assert f"port {server.port}: Address already in use" in done.stderr
        assert "EMBER_PORT" in done.stderr

    def test_a_host_that_does_not_exist_is_named(self):
        done = ember("serve", EMBER_HOST="no-such-host.invalid")
        assert done.returncode == 69
        assert "no address no-such-host.invalid" in done.stderr

    def test_an_address_of_another_machine_is_named_with_advice(self):
        done = ember("serve", EMBER_HOST="192.0.2.1")
        assert done.returncode == 69
        assert "Set EMBER_HOST to an address of this machine." in done.stderr

    def test_a_manifest_that_is_wrong_stops_it(self, tmp_path):
        manifest = tmp_path / "models.toml"
        manifest.write_text("[[model]]\nrole = 'detect'\n")
        done = ember("serve", EMBER_MANIFEST=str(manifest), EMBER_PORT="0")
        assert done.returncode == 78
        assert str(manifest) in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_bug_is_one_event_in_the_log(self):
        broken = "import function.process.server as s; s.serve = lambda *_: 1 / 0"
        done = ember(before=broken, code=self.SERVE, EMBER_PORT="0")
        assert done.returncode == 70
        assert "stopped by an error" in done.stderr
        assert "ZeroDivisionError" in done.stderr
        assert len(done.stderr.splitlines()) == 1

    def test_it_serves_without_click_and_rich(self, tmp_path, free_port):
        from keepalive.exchange import Unreachable
        from keepalive.pinger.ping import ping, readyz

        log = (tmp_path / "log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; {block('click', 'rich')}\n{self.SERVE}"],
            env={**os.environ, "EMBER_PORT": str(free_port)},
            stderr=log,
        )
        try:
            answer = None
            while answer is None and process.poll() is None:
                try:
                    answer = ping(readyz(f"127.0.0.1:{free_port}"))
                except Unreachable:
                    time.sleep(0.05)
            assert answer is not None, (tmp_path / "log").read_text()
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)
            log.close()

    def test_a_terminal_shows_the_address(self, free_port):
        pty = pytest.importorskip("pty")
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "function"],
            env={**os.environ, "EMBER_PORT": str(free_port), "EMBER_HOST": "0.0.0.0"}
            | {"EMBER_ALLOW_ANONYMOUS": "true"},
            stderr=theirs,
        )
        os.close(theirs)
        try:
            assert f"http://localhost:{free_port}" in os.read(ours, 1000).decode()
        finally:
            process.send_signal(signal.SIGINT)
            while process.poll() is None:
                try:
                    os.read(ours, 1000)
                except OSError:
                    process.wait(60)
            os.close(ours)


@pytest.mark.parametrize(("kind", "code"), [("RetryLaterError", 69), ("Problem", 65)])
def test_what_may_be_tried_again_ends_in_another_way_than_what_may_not(kind, code):
    raising = f"""
from function.cli import keys
from function import problems
def fails(*_, **__): raise problems.{kind}("audit_unavailable", "Later.", *[1.0][{code == 65}:])
keys.new.callback = fails
"""
    done = ember("keys", "new", "ann", before=raising)
    assert (done.returncode, done.stderr[:13]) == (code, "Error: Later.")
