"""Plans that are really built here, by TensorRT-RTX, which needs no GPU for that."""

from __future__ import annotations

import pytest

from tests.graphs import convolved, joined
from warmup.failures import ManifestError, UnavailableError
from warmup.plans import build, tensorrt
from warmup.plans.build import RTX_TARGETS, BuildError, BuildJob, compile_plan
from warmup.plans.plan_key import Recipe, profiles_for
from warmup.plans.tensorrt import Library

ITEM = (3, 16, 16)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return convolved(tmp_path_factory.mktemp("graph") / "model.onnx")


def job(graph, sizes=(1, 4), target="8.9", inputs=(("", ITEM),), recipe=Recipe(), **more):
    profiles = profiles_for([(name, item, item) for name, item in inputs], sizes)
    return BuildJob(graph, profiles, recipe, target, **more)


def test_a_plan_is_the_same_to_the_byte_whenever_it_is_built(graph, rtx):
    plan = compile_plan(job(graph), rtx)
    assert len(plan) > 1000
    assert compile_plan(job(graph), rtx) == plan


@pytest.mark.parametrize(
    "change",
    [{"target": "12.0"}, {"sizes": (1, 8)}],
    ids=["capability", "sizes"],
)
def test_what_the_key_distinguishes_makes_another_plan(graph, rtx, change):
    assert compile_plan(job(graph, **change), rtx) != compile_plan(job(graph), rtx)


@pytest.mark.parametrize("target", RTX_TARGETS[1:])
def test_it_compiles_for_every_capability_that_it_names(graph, rtx, target):
    assert compile_plan(job(graph, target=target), rtx)


def test_inputs_are_told_apart_by_name(tmp_path, rtx):
    path = joined(tmp_path / "model.onnx", 4)
    names = (("right", (4,)), ("left", (4,)))
    assert compile_plan(job(path, inputs=names), rtx)
    with pytest.raises(BuildError, match=r"has the inputs \['left', 'right'\], not middle"):
        compile_plan(job(path, inputs=(("left", (4,)), ("middle", (4,)))), rtx)


def test_a_graph_of_one_size_needs_no_profiles(tmp_path, rtx):
    path = joined(tmp_path / "model.onnx", 4, batch=1)
    assert compile_plan(job(path, inputs=(("right", (4,)), ("left", (4,)))), rtx)


@pytest.mark.parametrize("item", [(4, 16, 16), (3, 16)])
def test_shapes_that_the_graph_cannot_have_are_an_error(graph, rtx, item):
    with pytest.raises(BuildError, match=r"takes inputs of \(-1, 3, 16, 16\), not of"):
        compile_plan(job(graph, inputs=(("", item),)), rtx)


def test_how_far_it_is_is_told(graph, rtx):
    told = []
    compile_plan(job(graph), rtx, tell=lambda phase, part: told.append((phase, part)))
    assert ("Building engine", 0.0) in told
    assert ("Building engine", 1.0) in told
    assert all(0 <= part <= 1 for _, part in told)


def test_one_that_takes_too_long_is_given_up(graph, rtx):
    seconds = iter(range(10_000))
    with pytest.raises(BuildError, match=r"longer than 3 s \(--time-limit\)"):
        compile_plan(job(graph, limit_s=3), rtx, clock=lambda: next(seconds))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"target": "9.0"}, "not for 9.0.*Data-centre GPUs"),
        ({"target": "7.5"}, "7.5 in fp16 only"),
        ({"recipe": Recipe(flags=("version-compatible",))}, "no version-compatible plans"),
        ({"recipe": Recipe(flags=("hardware-compatible",))}, "no hardware-compatible plans"),
    ],
)
def test_what_tensorrt_rtx_cannot_do_is_said_before_it_tries(graph, rtx, change, problem):
    with pytest.raises(ManifestError, match=problem):
        compile_plan(job(graph, **change), rtx)


def test_a_library_that_only_runs_plans_says_what_builds_them(graph):
    lean = Library(tensorrt.LEAN, object(), "11.4.0.106")
    with pytest.raises(UnavailableError, match="tensorrt_lean only runs plans"):
        compile_plan(job(graph), lean)


class Installed:
    """Which of the three libraries are there."""

    def __init__(self, monkeypatch, *names):
        tensorrt.library.cache_clear()
        modules = {name: tensorrt._MODULES[name][0] for name in names}

        def find(module):
            if module not in modules.values():
                raise ImportError(module)
            return type("Module", (), {"__version__": "11.4"})

        monkeypatch.setattr(tensorrt, "import_module", find)


@pytest.fixture
def installed(monkeypatch):
    yield lambda *names: Installed(monkeypatch, *names)
    tensorrt.library.cache_clear()


@pytest.mark.parametrize(
    ("names", "flags", "expected"),
    [
        (("tensorrt", "tensorrt_lean"), (), "tensorrt"),
        (("tensorrt", "tensorrt_lean"), ("version-compatible",), "tensorrt_lean"),
        (("tensorrt",), ("version-compatible",), "tensorrt"),
        (("tensorrt_rtx",), (), "tensorrt_rtx"),
        (("tensorrt", "tensorrt_rtx"), (), "tensorrt"),
    ],
)
def test_the_library_that_runs_plans_is_the_one_that_can(installed, names, flags, expected):
    installed(*names)
    found = tensorrt.runner(flags)
    assert found.name == expected
    assert found.runtime == ("tensorrt_rtx" if expected == "tensorrt_rtx" else "tensorrt")


def test_where_only_the_lean_runtime_is_there_its_condition_is_named(installed):
    installed("tensorrt_lean")
    with pytest.raises(UnavailableError, match="EMBER_PLAN_FLAGS=version-compatible"):
        tensorrt.runner(())


def test_where_none_is_there_what_to_install_is_named(installed):
    installed()
    with pytest.raises(UnavailableError, match=r"make install EXTRAS=tensorrt"):
        tensorrt.runner(())


def test_a_capability_can_be_asked_about_before_there_is_a_job():
    with pytest.raises(ManifestError, match=r"not for 10\.0"):
        build.check_rtx("10.0", Recipe())
