"""Families are recognised by the shapes of graphs, and by names where shapes do not decide."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from function.faces.signatures import candidates, recognise, seen
from function.runtime import onnxfile
from tests import neural

EMBEDDED = Path(str(files("function"))) / "models"
PUBLISHED = {
    "retinaface": "retinaface_10g",
    "scrfd": "det_10g",
    "simswap_256": "simswap_256",
    "ghost_256": "ghost_2_256",
    "hififace_256": "hififace_unofficial_256",
    "gfpgan_512": "GFPGANv1.4",
    "restoreformer_512": "restoreformer_plus_plus",
    "gpen_512": "gpen_bfr_512",
}
"""Names of files, where the family depends on them."""


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("family", neural.ROLES)
def test_every_family_is_recognised(family, dynamic, tmp_path):
    path = tmp_path / f"{PUBLISHED.get(family, 'a')}.onnx"
    found = recognise(onnxfile.read(neural.make(path, family, dynamic=dynamic)))
    assert found
    assert (found.role, found.family) == (neural.ROLES[family], family)


@pytest.mark.parametrize("path", sorted(EMBEDDED.glob("*.onnx")), ids=lambda path: path.stem)
def test_the_embedded_models_are_recognised(path):
    found = recognise(onnxfile.read(path))
    assert found
    assert found.family == path.stem


def test_names_and_order_of_inputs_and_initialisers_do_not_matter(tmp_path):
    path = neural.make(tmp_path / "ghost.onnx", "inswapper_128", shuffled=True, outputs=["face"])
    found = recognise(onnxfile.read(path))
    assert found
    assert found.family == "inswapper_128"


def test_shapes_that_several_families_have_need_the_name(tmp_path):
    graph = onnxfile.read(neural.make(tmp_path / "a.onnx", "ghost_256"))
    assert recognise(graph) is None
    assert {each.family for each in candidates(graph)} == {
        "simswap_256",
        "ghost_256",
        "hififace_256",
        "hyperswap_256",
    }


def test_a_name_never_outweighs_shapes(tmp_path):
    path = neural.make(tmp_path / "simswap_256.onnx", "arcface")
    found = recognise(onnxfile.read(path))
    assert found
    assert found.family == "arcface"


def test_an_unknown_graph_is_described(tmp_path):
    from tests import graphs

    graph = onnxfile.read(graphs.joined(tmp_path / "a.onnx", 3))
    assert recognise(graph) is None
    assert not candidates(graph)
    assert seen(graph) == "takes left [N, 3], right [N, 3] and gives mul [N, 3], sub [N, 3]"
