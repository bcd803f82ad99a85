"""Whether an image can run what a Service asks for, and the one table of what each can run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from image.size import BUDGETS_MB
from keepalive.doctor.config import KnativeConfig
from keepalive.doctor.doctor import examine
from keepalive.doctor.images import LABEL, RUNS, own, target
from tests.keepalive.doctor.test_doctor import container, service

ROOT = Path(__file__).parents[3]
CONTAINERFILE = (ROOT / "image/Containerfile").read_text()
SHARE = {"resources": {"limits": {"nvidia.com/mig-1g.10gb": "1"}}}
WHOLE = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
DIGEST = "@sha256:" + 64 * "0"


def ours(image, **settings):
    """A change that makes a container one of Ember."""
    env = [{"name": f"EMBER_{name}", "value": text} for name, text in settings.items()]
    return container(image=image, env=[{"name": "EMBER_STORE", "value": "/store"}, *env])


def every(*changes):
    return lambda made: [change(made) for change in changes]


def asked(*changes):
    """What is wrong with a Service that swaps by mesh, as it is meant, and what is warned of."""
    made = service(every(*changes))
    made["metadata"]["annotations"] = {"ember.dev/swaps": "mesh"}
    (found,) = examine([made], KnativeConfig()).findings
    return found


@pytest.mark.parametrize(
    ("image", "known"),
    [
        ("registry.example/ember:cpu", "cpu"),
        ("registry.example:5000/ember:gpu-ort" + DIGEST, "gpu-ort"),
        ("dev.local/ember:1.4.0-gpu", "gpu"),
        ("ember:gpu-both-1.4.0", "gpu-both"),
        ("registry.example/ember-gpu-ort:1.4.0", "gpu-ort"),
        ("registry.example/ember-gpu:cpu", "cpu"),
        ("registry.example/ember" + DIGEST, None),
        ("registry.example/gpu/ember:latest", None),
        ("registry.example:5000/ember", None),
        ("ember:gpus", None),
        ("ember:mycpu", None),
        ("", None),
    ],
)
def test_an_image_is_known_by_its_tag_or_else_its_name(image, known):
    assert target(image) == known


class TestTable:
    @pytest.mark.parametrize("kind", RUNS)
    def test_it_is_in_the_label_and_the_setting_of_each_image(self, kind):
        stage = CONTAINERFILE.split(f" AS {kind}\n", 1)[1].split("\nFROM ", 1)[0]
        assert f'LABEL {LABEL}="{",".join(RUNS[kind])}"' in stage
        (said,) = re.findall(r"EMBER_BACKENDS=(\S+)", stage) or ["cpu"]  # as Ember's default is
        assert tuple(said.split(",")) == own(kind)

    def test_each_has_a_lock_and_a_budget(self):
        assert RUNS.keys() <= BUDGETS_MB.keys()
        assert [kind for kind in RUNS if not (ROOT / f"locks/image-{kind}.txt").exists()] == []

    @pytest.mark.parametrize("kind", RUNS)
    def test_an_image_has_the_runtimes_of_its_backends_and_no_others(self, kind):
        lock = (ROOT / f"locks/image-{kind}.txt").read_text()
        packages = {"tensorrt": "tensorrt-lean-cu13-libs", "cuda": "onnxruntime-gpu"}
        found = {name for name, package in packages.items() if f"\n{package}==" in f"\n{lock}"}
        assert found == set(RUNS[kind]) - {"cpu"}

    def test_what_is_in_two_images_is_of_one_version(self):
        versions = {}
        for kind in RUNS:
            lock = (ROOT / f"locks/image-{kind}.txt").read_text()
            for name, version in re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE):
                versions.setdefault(name, set()).add(version)
        assert [name for name, several in versions.items() if len(several) > 1] == []

    @pytest.mark.parametrize("kind", RUNS)
    def test_the_docs_say_which_to_take(self, kind):
        text = (ROOT / "docs/gpu.md").read_text()
        cells = f"| `{kind}` | {', '.join(f'`{name}`' for name in RUNS[kind])} |"
        assert f"{cells} `{','.join(own(kind))}` |" in text


class TestFit:
    def test_a_backend_that_is_not_in_the_image_is_named_with_the_images_that_have_it(self):
        found = asked(ours("r.example/ember:gpu", BACKENDS="cuda,cpu"), container(**WHOLE))
        (wrong,) = found.wrong
        assert wrong == (
            "EMBER_BACKENDS: cuda is not in the image gpu, which can run tensorrt, cpu;"
            " leave EMBER_BACKENDS out, or take the image `gpu-ort` or `gpu-both`"
        )

    def test_so_it_is_on_a_cpu_and_in_capitals(self):
        found = asked(ours("r.example/ember:cpu", BACKENDS="TensorRT, CUDA"))
        assert found.wrong[0].startswith("EMBER_BACKENDS: tensorrt and cuda are not in the image")

    def test_an_image_for_cpus_leaves_a_gpu_idle(self):
        found = asked(ours("r.example/ember:cpu"), container(**SHARE))
        (wrong,) = found.wrong
        assert wrong == (
            "nvidia.com/mig-1g.10gb is asked for, and the image cpu leaves it idle: models run on"
            " the CPU; take the image `gpu-ort` or `gpu-both` (docs/gpu.md)"
        )

    def test_so_does_a_setting_whatever_the_image_is(self):
        found = asked(ours("r.example/ember:latest", BACKENDS="cpu"), container(**WHOLE))
        assert "EMBER_BACKENDS leaves it idle" in found.wrong[0]

    def test_what_needs_plans_needs_a_place_of_them(self):
        gpu = ours("r.example/ember:gpu"), container(**WHOLE)
        assert asked(*gpu).wrong[0].startswith("EMBER_PLANS: nothing runs on TensorRT without")
        assert asked(ours("r.example/ember:gpu", PLANS="gs://mine"), gpu[1]).wrong == ()
        assert asked(ours("r.example/ember:gpu-both"), gpu[1]).wrong == ()

    @pytest.mark.parametrize("build", ["false", "true"])
    def test_our_images_cannot_build_them_and_another_only_where_it_is_told_to(self, build):
        settings = {"BACKENDS": "tensorrt", "BUILD_PLANS": build}
        for image, wrong in (("gpu", True), ("mine", build == "false")):
            found = asked(ours(f"r.example/ember:{image}", **settings), container(**WHOLE))
            assert [each.startswith("EMBER_PLANS: nothing runs") for each in found.wrong] == (
                [True] if wrong else []
            )

    def test_an_image_of_which_nothing_is_known_is_warned_of_where_it_matters(self):
        image = "r.example/ember" + DIGEST
        found = asked(ours(image), container(**WHOLE))
        assert found.wrong == ()
        assert any(
            f"whether {image} can run models on a GPU is not seen" in w for w in found.warned
        )
        assert not any("is not seen" in told for told in asked(ours(image)).warned)

    def test_what_is_not_ember_is_left_alone(self):
        found = asked(container(image="r.example/other:gpu", **WHOLE))
        assert found.wrong == ()
        assert not any("is not seen" in told for told in found.warned)
