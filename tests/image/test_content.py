"""What images hold and what they do not."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest

from function import __version__
from image.bytecode import NEVER_IMPORTED
from image.sbom import listing
from tests.image.podman import ROOT, SLOW

if TYPE_CHECKING:
    from tarfile import TarInfo

pytestmark = SLOW

LOCKS = {"cpu": ("function", "cpu"), "keepalive": ("keepalive",)}
WITHOUT_TEXT = {"flatbuffers"}
"""Wheels without the text of their licence; this one's is Apache-2.0, which `LICENSE` is."""
SHELLS = {"ash", "bash", "busybox", "dash", "ksh", "sh", "zsh"}
INSTALLERS = {"pip", "setuptools", "uv", "wheel", "apt", "dpkg"}


@pytest.fixture(scope="module", params=LOCKS)
def image(request) -> str:
    """The name of each image in turn."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def content(podman, image) -> dict[str, TarInfo]:
    """Everything in the image, by path."""
    container = podman("create", image).stdout.strip()
    try:
        with (
            subprocess.Popen(
                ["podman", "export", container], env=podman.environ, stdout=subprocess.PIPE
            ) as export,
            tarfile.open(fileobj=export.stdout, mode="r|") as archive,
        ):
            return {member.name.removeprefix("./"): member for member in archive}
    finally:
        podman("rm", container)


@pytest.fixture(scope="module")
def bill(image) -> dict[str, Any]:
    """What `make image` wrote about it."""
    target = image.rpartition(":")[2]
    return dict(json.loads((ROOT / f"build/image/{target}.cdx.json").read_text()))


def test_there_is_no_shell_and_nothing_that_installs(content):
    programs = {
        PurePosixPath(path).name
        for path, member in content.items()
        if member.issym() or (member.isreg() and member.mode & 0o111)
    }
    assert "python3.11" in programs
    assert not programs & (SHELLS | INSTALLERS)
    modules = {PurePosixPath(path).parent.name for path in content if path.endswith("__init__.py")}
    assert "click" in modules
    assert not modules & INSTALLERS


def test_there_are_no_tests_and_no_sources_of_compiled_modules(content):
    ours = [PurePosixPath(path) for path in content if path.startswith("opt/ember/")]
    assert ours
    assert not [path for path in ours if {"tests", "test", "__tests__"} & set(path.parts)]
    assert not [path for path in ours if path.suffix in {".c", ".h", ".pyx", ".pxd", ".pyi", ".a"}]


def test_every_module_is_compiled(content):
    modules = [
        PurePosixPath(path)
        for path, member in content.items()
        if path.endswith(".py")
        and member.isfile()
        and path.startswith(("opt/ember/", "usr/lib/python3"))
        and not set(PurePosixPath(path).parts) & NEVER_IMPORTED
    ]
    assert len(modules) > 300
    compiled = {path.parent / f"__pycache__/{path.stem}.cpython-311.pyc" for path in modules}
    assert not {str(path) for path in compiled} - content.keys()


def test_nothing_of_ours_can_be_written_or_gives_rights(content):
    ours = {
        path: member
        for path, member in content.items()
        if path.startswith(("opt/", "usr/local/bin/", "usr/share/ember"))
    }
    assert {(member.uid, member.gid) for member in ours.values()} == {(0, 0)}
    assert not [path for path, member in ours.items() if member.mode & 0o022 and member.isreg()]
    programs = {path: member for path, member in content.items() if member.isreg()}
    assert not [path for path, member in programs.items() if member.mode & 0o6000]


def test_nothing_of_the_machine_that_built_it_is_in_it(podman, image, content):
    names = {PurePosixPath(path).name for path in content}
    assert not names & {"pip.conf", ".netrc", ".pypirc", ".git", ".env", "direct_url.json"}
    keys = [path for path in content if path.endswith((".pem", ".key"))]
    assert [path for path in keys if not path.endswith("certifi/cacert.pem")] == []
    facts = podman.inspect(image)
    told = json.dumps([facts["History"], facts["Config"]])
    assert not re.search(r"token|password|secret|://[^/\s]+@", told, re.IGNORECASE)
    assert str(ROOT) not in told


def test_it_starts_without_rights_and_listens_where_a_platform_asks(podman, image):
    config = podman.inspect(image)["Config"]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"][:2] == ["/usr/bin/python3.11", "-m"]
    labels = config["Labels"]
    assert labels["org.opencontainers.image.title"] == f"ember-{image.rpartition(':')[2]}"
    assert re.fullmatch(r"\d+\.\d+\.\d+", labels["org.opencontainers.image.version"])
    if "function" in config["Entrypoint"]:
        assert "EMBER_HOST=0.0.0.0" in config["Env"]


def test_licences_and_notices_are_inside(content):
    assert {"usr/share/ember/LICENSE", "usr/share/ember/NOTICE"} <= content.keys()
    distributions = {path.split("/")[2] for path in content if ".dist-info/" in path}
    names = {each.partition("-")[0] for each in distributions}
    texts = re.compile(r"opt/ember/([^/-]+)\b.*/(licen[cs]es?|copying)\b", re.IGNORECASE)
    with_text = {found[1] for path in content if (found := texts.match(path))}
    assert names - with_text <= WITHOUT_TEXT


def test_the_bill_of_materials_names_what_was_locked_with_licences(bill, image):
    found = {one["name"]: one for one in bill["components"] if "pypi" in one.get("purl", "")}
    locked = [
        line.split()[0].split("==")
        for name in LOCKS[image.rpartition(":")[2]]
        for line in (ROOT / f"locks/image-{name}.txt").read_text().splitlines()
        if "==" in line
    ]
    assert {name for name, _ in locked} == found.keys()
    assert all([name, one["version"]] in locked for name, one in found.items())
    assert not [one["name"] for one in found.values() if not one["licenses"]]
    assert bill["metadata"]["component"]["version"] == __version__


def test_each_licence_can_be_listed(bill):
    rows = listing(json.dumps(bill)).splitlines()
    assert any(re.fullmatch(r"\| click \| [\d.]+ \| BSD-3-Clause \|", row) for row in rows)
    assert not [row for row in rows if row.endswith("|  |")]


def test_the_bill_of_materials_names_the_models_by_digest(bill, image):
    models = [one for one in bill["components"] if one["type"] == "machine-learning-model"]
    digests = {one["hashes"][0]["content"] for one in models}
    shipped = (ROOT / "function/models").glob("*.onnx") if "cpu" in image else ()
    assert digests == {hashlib.sha256(path.read_bytes()).hexdigest() for path in shipped}


def test_the_bill_beside_the_image_is_the_one_inside(podman, image, bill):
    code = "print(open('/usr/share/ember/sbom.cdx.json').read())"
    entry = "--entrypoint=/usr/bin/python3.11"
    assert json.loads(podman("run", "--rm", entry, image, "-c", code).stdout) == bill
