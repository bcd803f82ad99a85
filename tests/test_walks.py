"""The ways that docs/gpu.md tells, walked as far as they go without a card and a cluster.

`ember` and kustomize really run, the bucket is a real server's. What needs a GPU, a cluster, a
registry or root is looked at only: that the command exists and takes these words.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import pytest
import yaml

from tests import neural
from tests.installs import ROOT
from tests.warmup.objects.gcs import fake_gcs

WAYS = re.compile(r"^### (.*?)$(.*?)(?=^##)", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHECKOUT = ("Makefile", "bin", "image", "knative", "locks", "pyproject.toml")

# Functions of the shell in front of programs; make itself does not see them.
LOOKED_AT = r"""
set -eu
ember() {
    case "$1 $2" in
        "engines build") command ember "$@" ${WITHOUT_A_CARD:---help} > built ;;
        "engines check" | "doctor "*) command ember "$@" --help > help ;;
        *) command ember "$@" ;;
    esac
}
make() {
    case "$1" in
        render) command make --no-print-directory "$@" > "render.yaml" ;;
        *) command make --no-print-directory -n "$@" > planned ;;
    esac
    echo "make $*" >> made
}
kubectl() { command kubectl "$1" --help > help; echo "kubectl $*" >> asked; }
podman() { echo "podman $*" >> asked; }
sudo() { echo "$*" >> asked; }
nvidia-smi() { echo "nvidia-smi $*" >> asked; }
"""


def ways():
    """The commands of each way, by its heading."""
    text = (ROOT / "docs/gpu.md").read_text()
    section = text.partition("\n## Three ways to a first swap\n")[2]
    section = section[: re.search(r"^## ", section, re.MULTILINE).start()] + "## "
    return {head: "".join(BLOCK.findall(body)) for head, body in WAYS.findall(section)}


@pytest.fixture(scope="module")
def bucket():
    with fake_gcs("my-models") as bucket:
        yield bucket


@pytest.fixture
def checkout(tmp_path, bucket):
    """Whatever of a checkout the commands need, and a home with a pack of InsightFace."""
    place, pack = tmp_path / "ember", tmp_path / "home/.insightface/models/buffalo_l"
    pack.mkdir(parents=True)
    neural.make(pack / "det_10g.onnx", "scrfd")
    neural.make(pack / "w600k_r50.onnx", "arcface")
    neural.make(pack.parent / "inswapper_128.onnx", "inswapper_128")
    place.mkdir()
    for name in CHECKOUT:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, place / name)
    (place / ".venv").symlink_to(ROOT / ".venv")
    return place


def walk(checkout, commands, **environ):
    """Go a way; what was asked of programs that are not really run, and of make."""
    done = subprocess.run(
        ["bash", "-c", LOOKED_AT + commands],
        cwd=checkout,
        env=os.environ
        | {
            "HOME": str(checkout.parent / "home"),
            "EMBER_STORE": str(checkout.parent / "store"),
            "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}",
        }
        | environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [
        (checkout / name).read_text() if (checkout / name).exists() else ""
        for name in ("asked", "made")
    ]


def rendered(checkout):
    """What the overlay deploys, by kind; the first of each."""
    found = {}
    for each in yaml.safe_load_all((checkout / "render.yaml").read_text()):
        found.setdefault(each["kind"], each)
    return found


def test_there_are_three():
    assert list(ways()) == [
        "A workstation with an RTX card",
        "A data-centre card on Knative",
        "Slices of a card (MIG)",
    ]


@pytest.mark.usefixtures("rtx")
def test_on_a_workstation_models_are_imported_and_their_plans_built(checkout):
    commands = ways()["A workstation with an RTX card"]
    _, made = walk(checkout, commands, WITHOUT_A_CARD="--target=8.9")
    assert made.splitlines() == [
        "make install EXTRAS=gpu,rtx,engines",
        "make run",
        "make gpu-check EXTRAS=gpu,rtx,engines",
    ]
    assert 'family = "inswapper_128"' in (checkout / "models.toml").read_text()
    assert "\nswap         fp32  compute capability 8.9" in (checkout / "built").read_text()


def test_on_knative_what_is_published_is_deployed_and_in_slices_as_well(checkout, bucket):
    asked, made = walk(checkout, ways()["A data-centre card on Knative"])
    there = {blob.name.rpartition("/")[2] for blob in bucket.client.list_blobs(bucket)}
    found = rendered(checkout)
    (manifest,) = found["ConfigMap"]["data"].values()
    assert set(re.findall('sha256 = "(.*)"', manifest)) <= there
    pod = found["Service"]["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert found["Job"]["spec"]["template"]["spec"]["nodeSelector"] == pod["nodeSelector"]
    pushed = re.findall(r"podman push registry\.example/ember:(\S+)", asked)
    assert pushed == re.findall(r"make image TARGET=(\S+)", made)
    images = {pod["containers"][0]["image"], _container(found["Job"])["image"]}
    images.add(_container(found["CronJob"]["spec"]["jobTemplate"])["image"])
    assert images == {f"registry.example/ember:{target}" for target in pushed}

    walk(checkout, ways()["Slices of a card (MIG)"])
    found = rendered(checkout)
    for limits in (
        found["Service"]["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"],
        _container(found["Job"])["resources"]["limits"],
    ):
        assert limits["nvidia.com/mig-1g.10gb"] == "1"
        assert "nvidia.com/gpu" not in limits


def _container(job):
    return job["spec"]["template"]["spec"]["containers"][0]
