"""A plan's key holds everything that it depends on; whatever differs, it is another plan."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from tests.warmup.plans.gpus import H100
from warmup.failures import DamagedError
from warmup.plans import plan_key
from warmup.plans.plan_key import PlanKey, Recipe, Sidecar, key_for, profiles_for

PROFILES = profiles_for(
    [("target", (3, 32, 32), (3, 128, 128)), ("source", (512,), (512,))], (1, 4)
)


def key(recipe=Recipe(), gpu=H100, **more):
    facts = {"runtime": "tensorrt", "version": "11.4.0.106"} | more
    return key_for("a" * 64, PROFILES, recipe, gpu=gpu, **facts)


KEY = key()
OTHERS = {
    "model": "b" * 64,
    "runtime": "tensorrt_rtx",
    "version": "11.4.0.107",
    "cuda": "13.1",
    "driver": "581",
    "sm": "9.1",
    "gpu": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "precision": "fp16",
    "profiles": PROFILES[:1],
    "flags": ("level=4",),
}


def test_every_field_has_another_value_here():
    assert set(OTHERS) == {field.name for field in fields(PlanKey)}
    assert all(getattr(KEY, name) != other for name, other in OTHERS.items())


@pytest.mark.parametrize("field", OTHERS)
def test_each_field_alone_makes_another_plan(field):
    assert replace(KEY, **{field: OTHERS[field]}).digest != KEY.digest


@pytest.mark.parametrize("part", ["name", "least", "usual", "most"])
def test_each_part_of_a_profile_does_too(part):
    (extent, *rest), *others = PROFILES
    changed = replace(extent, **{part: "other" if part == "name" else (2, 3, 128, 128)})
    assert replace(KEY, profiles=((changed, *rest), *others)).digest != KEY.digest


def test_the_key_is_that_of_the_machine_and_the_recipe():
    assert (
        PlanKey(
            model="a" * 64,
            runtime="tensorrt",
            version="11.4.0.106",
            cuda="13.0",
            driver="580",
            sm="9.0",
            gpu="NVIDIA H100 80GB HBM3",
            precision="fp32",
            profiles=PROFILES,
            flags=("level=3",),
        )
        == KEY
    )


def test_a_minor_version_of_the_driver_is_no_reason_to_build_anew():
    assert key(gpu=replace(H100, driver="580.99")).digest == KEY.digest


@pytest.mark.parametrize(
    "recipe",
    [Recipe("fp16"), Recipe(level=5), Recipe(workspace=10**9), Recipe(flags=("tf32",))],
    ids=["precision", "level", "workspace", "flags"],
)
def test_what_the_operator_chooses_is_in_the_key(recipe):
    assert key(recipe).digest != KEY.digest


def test_the_order_of_flags_does_not_matter():
    both = "tf32", "version-compatible"
    assert key(Recipe(flags=both)) == key(Recipe(flags=both[::-1]))


def test_a_version_compatible_plan_is_that_of_its_major_version():
    recipe = Recipe(flags=("version-compatible",))
    assert key(recipe, version="11.9").digest == key(recipe).digest
    assert key(recipe, version="12.0").digest != key(recipe).digest


def test_a_hardware_compatible_plan_is_that_of_every_such_gpu():
    recipe = Recipe(flags=("hardware-compatible",))
    assert key(recipe, gpu=replace(H100, name="NVIDIA A100", sm="8.0")) == key(recipe)


def test_without_a_gpu_the_plan_is_for_all_of_one_capability():
    ahead = key(gpu=None, sm="8.9", runtime="tensorrt_rtx")
    assert (ahead.gpu, ahead.driver, ahead.cuda, ahead.sm) == ("any", "any", "any", "8.9")


def test_profiles_are_of_exactly_the_sizes_that_are_served():
    assert [profile[1].shapes for profile in PROFILES] == [((1, 512),) * 3, ((4, 512),) * 3]


def test_what_varies_does_so_from_the_smallest_to_the_largest_item():
    assert PROFILES[1][0].shapes == ((4, 3, 32, 32), (4, 3, 128, 128), (4, 3, 128, 128))


SIDECAR = Sidecar(KEY, 1000, "c" * 64, "11.4.0.106", 12.5, 2.25)


def test_what_a_sidecar_says_is_read_back_whole():
    assert plan_key.read(SIDECAR.text(), "plan.json") == SIDECAR
    assert json.loads(SIDECAR.text())["key"]["driver"] == "580"


def test_the_name_of_a_plan_does_not_change_from_version_to_version():
    assert key().digest == "31aac10cb12a1ebdff1badeea8b39f80f3c9385c"


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.pop("key"),
        lambda facts: facts.pop("format"),
        lambda facts: facts.update(format=2),
        lambda facts: facts.update(sha256="../../etc/passwd"),
        lambda facts: facts.update(size="1000"),
        lambda facts: facts.update(size=0),
        lambda facts: facts.update(more=1),
        lambda facts: facts["key"].pop("sm"),
        lambda facts: facts["key"].update(colour="red"),
        lambda facts: facts["key"].update(profiles=[[{"name": "x"}]]),
    ],
)
def test_what_describes_no_plan_is_refused(change):
    facts = json.loads(SIDECAR.text())
    change(facts)
    with pytest.raises(DamagedError, match=r"plan.json: does not describe a plan"):
        plan_key.read(json.dumps(facts), "plan.json")


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"<html>", b"\xff"])
def test_so_is_what_is_no_json(text):
    with pytest.raises(DamagedError, match="does not describe a plan"):
        plan_key.read(text, "plan.json")
