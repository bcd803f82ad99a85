"""Every pair of components works in both orders, or is refused with a reason.

It works when both have their whole effect, the order makes no difference, and all that is promised
of each still holds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from keepalive.cli import commands
from keepalive.doctor.pairs import BEFORE, NEEDS, REFUSED, complaints, components
from tests.knative import overlay, pairs, schemas
from tests.knative.manifests import KNATIVE, ROOT, Manifests, kubectl
from tests.knative.test_components import CHECKS, COMPONENTS, WITHOUT_KNATIVE
from tests.soak import tried

EXCEPT = (schemas.form,)
"""Judged by object instead, as most objects are those of many pairs."""


ORDERS = 5
"""Of so many pairs one is rendered in both orders, the others in alternate ones; all in a soak."""


def lists():
    """What each pair is rendered as: with what both need."""
    return [(), *((name,) for name in COMPONENTS), *ordered()]


def ordered():
    """Pairs in the orders that are tried, and those in which alone they are fine."""
    for number, pair in enumerate(combinations(COMPONENTS, 2)):
        orders = [pair, pair[::-1]]
        if all(map(fine, orders)) and number % tried(ORDERS, 1):
            yield orders[number % 2]
        else:
            yield from orders


def fine(names):
    return not [*complaints(pairs.with_needs(names))]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What every list renders to that nothing is wrong with."""
    batches: dict[str, set[tuple[str, ...]]] = {}
    for names in filter(fine, lists()):
        first = names[0] if names else ""
        batches.setdefault(first, set()).add(pairs.with_needs(names))
    folders = [tmp_path_factory.mktemp("pairs") for _ in batches]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(pairs.rendered, folders, map(sorted, batches.values()))
        return {names: one for batch in found for names, one in batch.items()}


@pytest.fixture(scope="module")
def leaves(made):
    return {names: pairs.leaves(one) for names, one in made.items()}


def either(name, other, rendered):
    """What a pair is rendered as, in an order that was tried."""
    orders = [pairs.with_needs(pair) for pair in ((name, other), (other, name))]
    return next(names for names in orders if names in rendered)


def partners(name):
    return [other for other in COMPONENTS if other != name and fine((name, other))]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPONENTS)
class TestPairs:
    def test_both_have_their_whole_effect(self, name, leaves):
        lost = []
        for other in partners(name):
            both = leaves[either(name, other, leaves)]
            alone = {
                one: pairs.effect(leaves[NEEDS.get(one, ())], leaves[pairs.with_needs((one,))])
                for one in (name, other)
            }
            for one, beside in ((name, other), (other, name)):
                if one in NEEDS.get(beside, ()):
                    continue  # which is there to change it
                told = alone[one].lost(both, alone[beside])
                lost += [f"{name}, {other}: of {one}: {each}" for each in told]
        assert lost == []

    def test_their_order_makes_no_difference(self, name, leaves):
        orders = {
            one: [pairs.with_needs(p) for p in ((name, one), (one, name))] for one in COMPONENTS
        }
        other = {
            one: leaves[there].items() ^ leaves[back].items()
            for one, (there, back) in orders.items()
            if there in leaves and back in leaves
        }
        assert {one: paths for one, paths in other.items() if paths} == {}

    def test_what_is_promised_holds(self, name, made):
        wrong = []
        for other in (one for one in partners(name) if one > name or not fine((one, name))):
            both = made[either(name, other, made)]
            checks = CHECKS if both.services else WITHOUT_KNATIVE
            told = [told for check in checks if check not in EXCEPT for told in check(both)]
            wrong += [f"{name}, {other}: {one}" for one in told]
        assert wrong == []


@pytest.mark.slow
def test_every_object_of_every_pair_has_the_right_form(made):
    objects = {
        json.dumps(document, sort_keys=True): document
        for one in made.values()
        for document in one.documents
    }
    assert list(schemas.form(Manifests(list(objects.values())))) == []


def test_the_tables_name_components_that_there_are():
    named = {name for pair in [*REFUSED, *BEFORE, *NEEDS.items()] for name in _flat(pair)}
    assert named <= set(COMPONENTS)


def _flat(pair):
    return [name for one in pair for name in ((one,) if isinstance(one, str) else one)]


@pytest.mark.parametrize("pair", sorted(map(sorted, REFUSED)), ids=" ".join)
def test_a_pair_that_is_refused_is_so_in_both_orders_and_with_its_reason(pair):
    why = REFUSED[frozenset(pair)]
    for names in (pair, pair[::-1]):
        assert any(why in told for told in complaints(pairs.with_needs(names)))


def test_what_needs_another_is_refused_without_it_and_before_it():
    assert list(complaints(["mig"])) == ["mig needs gpu before it in `components`"]
    assert list(complaints(["mig", "gpu"])) == ["mig needs gpu before it in `components`"]
    assert list(complaints(["gpu", "mig"])) == []


def test_keys_before_the_ping_that_is_to_have_one_are_refused():
    (told,) = complaints(["keys", "keepalive"])
    assert told.startswith("keepalive has to come before keys: ")
    assert list(complaints(["keepalive", "keys"])) == []


def doctor(folder):
    words = ["doctor", f"--kubectl={kubectl()}", str(folder)]
    return CliRunner().invoke(commands, words)


class TestDoctor:
    def test_it_says_why_a_kustomization_is_refused(self, tmp_path):
        done = doctor(overlay.kustomization(tmp_path, ["min-scale", "scale-to-zero"]))
        assert done.exit_code == 65
        assert f"Components of {tmp_path}: wrong" in done.output
        assert "min-scale and scale-to-zero do not go together: the one keeps" in done.output

    def test_it_sees_those_that_are_in_what_an_overlay_is_made_of(self, tmp_path):
        below = tmp_path / "below"
        below.mkdir()
        overlay.kustomization(below, ["min-scale"])
        above = tmp_path / "above"
        above.mkdir()
        made = {
            "resources": ["../below"],
            "components": ["../below/knative/components/scale-to-zero"],
        }
        (above / "kustomization.yaml").write_text(yaml.safe_dump(made))
        assert components(above) == ("min-scale", "cold-start", "scale-to-zero")

    @pytest.mark.parametrize("name", ["dev", "gpu-small", "gpu-production", "tidal"])
    def test_an_overlay_of_ours_goes_together(self, name):
        folder = KNATIVE / "overlays" / name
        assert components(folder)
        assert list(complaints(components(folder))) == []

    def test_what_is_no_kustomization_has_no_components(self, tmp_path):
        (tmp_path / "service.yaml").write_text("kind: Service\n")
        assert components(Path(tmp_path)) == ()


class TestRender:
    @pytest.fixture
    def make(self, tmp_path):
        """Runs `make render`, or another target, for an overlay of some components."""

        def run(*names, target="render", **variables):
            for part in ("Makefile", "image/bases.env"):
                (tmp_path / part).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / part, tmp_path / part)
            (mine := tmp_path / "knative" / "overlays" / "mine").mkdir(parents=True)
            overlay.kustomization(mine, names)
            given = {"KUBECTL": kubectl(), "BIN": Path(sys.executable).parent, **variables}
            words = ["make", "--silent", target, "OVERLAY=mine"]
            words += [f"{name}={value}" for name, value in given.items()]
            return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)

        return run

    def test_it_says_why_components_do_not_go_together_and_prints_nothing(self, make):
        done = make("min-scale", "single-gpu")
        assert (done.returncode, done.stdout) == (2, "")
        assert "a second replica would wait for a second GPU" in done.stderr

    def test_nor_is_it_deployed_and_nothing_is_asked_of_the_cluster(self, make, tmp_path):
        log = tmp_path / "asked"
        spy = tmp_path / "kubectl"
        spy.write_text(f'#!/bin/sh\necho "$1" >> {log}\nexec {kubectl()} "$@"\n')
        spy.chmod(0o755)
        given = {"CARRY": "", "PING": "", "KUBECTL": spy}
        done = make("min-scale", "single-gpu", target="deploy", **given)
        assert (done.returncode, done.stdout) == (2, "")
        assert "a second replica would wait for a second GPU" in done.stderr
        assert set(log.read_text().split()) == {"kustomize"}

    def test_an_overlay_of_ones_own_needs_no_list_of_what_the_cluster_allows(self, make):
        """The base's init container needs a flag, of which only the cluster can know."""
        done = make("pdb")
        assert done.returncode == 0, done.stderr
        assert list(yaml.safe_load_all(done.stdout))

    def test_it_says_which_has_to_come_first(self, make):
        done = make("keys", "keepalive")
        assert (done.returncode, done.stdout) == (2, "")
        assert "keepalive has to come before keys" in done.stderr

    def test_without_the_program_it_prints_and_says_that_nobody_looked(self, make, tmp_path):
        done = make("rps", BIN=tmp_path / "bin")
        assert done.returncode == 0
        assert "make install" in done.stderr
        assert list(yaml.safe_load_all(done.stdout))

    def test_an_image_is_put_into_all_that_is_made_of_it(self, make, tmp_path):
        names = ["models", "node-cache", "prepull", "keepalive", "prescaler", "prescaler-watch"]
        given = {"IMAGE": "r.example/e:1", "KEEPALIVE_IMAGE": "r.example/k:2"}
        done = make(*names, BIN=tmp_path / "bin", **given)
        assert done.returncode == 0, done.stderr
        made = Manifests(list(yaml.safe_load_all(done.stdout)))
        found = {container["image"] for _, _, container in made.containers}
        assert {*given.values()} <= found
        assert not any(image.startswith("ember") for image in found)
