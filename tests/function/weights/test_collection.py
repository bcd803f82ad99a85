"""Folders of other face tools become manifests that can be served."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from pathlib import Path

import pytest

from function.faces.families import check
from function.weights import collection
from function.weights.collection import choose, scan
from tests import neural
from warmup.failures import ManifestError
from warmup.models import manifest

EMBEDDED = Path(str(files("function"))) / "models" / "models.toml"

BUFFALO = {"det_10g": "scrfd", "2d106det": "insightface_2d106", "w600k_r50": "arcface"}


def fill(folder, **families):
    """Make a graph for each name of a file, of the family that it says."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, family in families.items():
        neural.make(folder / f"{name}.onnx", family)
    return folder


@pytest.fixture
def facefusion(tmp_path):
    return fill(
        tmp_path / "assets",
        **{"retinaface_10g": "retinaface", "scrfd_2.5g": "scrfd", "2dfan4": "fan_68"},
        arcface_w600k_r50="arcface",
        simswap_256="simswap_256",
        ghost_1_256="ghost_256",
        crossface_ghost="crossface",
        crossface_simswap="crossface",
        xseg_1="xseg",
        bisenet_resnet_34="bisenet",
    )


def families(choice):
    return {each.role: each.family for each in choice.chosen}


def test_a_pack_with_its_swapper_needs_nothing_embedded(tmp_path):
    folder = fill(tmp_path / "pack", inswapper_128="inswapper_128", **BUFFALO)
    known, unknown = scan([folder])
    assert not unknown
    choice = choose(known, (), EMBEDDED)
    assert families(choice) == {
        "detect": "scrfd",
        "landmarks": "insightface_2d106",
        "identity": "arcface",
        "swap": "inswapper_128",
    }
    assert not choice.embedded
    assert not choice.others


def test_what_is_written_is_read_again_and_can_be_served(tmp_path):
    folder = fill(tmp_path / "pack", inswapper_128="inswapper_128", **BUFFALO)
    known, _ = scan([folder])
    path = tmp_path / "models.toml"
    choice = choose(known, (), EMBEDDED)
    written = collection.write(collection.entries(choice, tmp_path), path)
    assert written == manifest.read(path)
    check(written)
    by_role = {each.role: each for each in written}
    swapper = folder / "inswapper_128.onnx"
    assert by_role["swap"].path == swapper
    assert by_role["swap"].file.size == swapper.stat().st_size
    assert by_role["swap"].file.sha256 == hashlib.sha256(swapper.read_bytes()).hexdigest()
    assert 'uri = "pack/inswapper_128.onnx"' in path.read_text()
    assert path.read_text().count("accept_licence = true") == 4


def test_files_elsewhere_are_named_by_their_whole_path(tmp_path):
    folder = fill(tmp_path / "a pack", inswapper_128="inswapper_128", **BUFFALO)
    known, _ = scan([folder])
    (tmp_path / "deploy").mkdir()
    path = tmp_path / "deploy" / "models.toml"
    collection.write(collection.entries(choose(known, (), EMBEDDED), path.parent), path)
    assert {each.path.parent for each in manifest.read(path)} == {folder}


def test_for_the_store_they_are_named_as_files_to_copy(tmp_path):
    folder = fill(tmp_path / "pack", inswapper_128="inswapper_128", **BUFFALO)
    known, _ = scan([folder])
    path = tmp_path / "models.toml"
    text = collection.entries(choose(known, (), EMBEDDED), tmp_path, store=True)
    collection.write(text, path)
    found = manifest.read(path)
    assert all(each.file.uri.startswith("file:///") for each in found)
    assert all(each.file.path is None for each in found)


class TestChoice:
    """Which of several files a role gets."""

    def test_the_first_family_of_the_table_is_preferred(self, facefusion):
        known, _ = scan([facefusion])
        choice = choose(known, (), EMBEDDED)
        assert families(choice) == {
            "detect": "scrfd",
            "landmarks": "fan_68",
            "identity": "arcface",
            "swap": "simswap_256",
            "convert": "crossface",
            "occlusion": "xseg",
            "region": "bisenet",
        }
        others = {each.path.stem for each in choice.others}
        assert others == {"retinaface_10g", "ghost_1_256", "crossface_ghost"}

    @pytest.mark.parametrize("swap", ["simswap_256", "ghost_1_256"])
    def test_the_converter_is_that_of_the_swapper(self, swap, facefusion):
        known, _ = scan([facefusion])
        chosen = choose(known, (swap,), EMBEDDED).chosen
        names = {each.role: each.path.stem for each in chosen}
        assert names["swap"] == swap
        assert names["convert"] == f"crossface_{swap.partition('_')[0]}"

    def test_a_swapper_without_one_gets_none(self, facefusion):
        neural.make(facefusion / "inswapper_128.onnx", "inswapper_128")
        known, _ = scan([facefusion])
        assert "convert" not in families(choose(known, ("inswapper_128",), EMBEDDED))

    def test_a_pick_counts_for_its_own_role_only(self, facefusion):
        known, _ = scan([facefusion])
        choice = choose(known, ("retinaface_10g.onnx", "ghost_1_256"), EMBEDDED)
        assert families(choice)["detect"] == "retinaface"
        assert families(choice)["identity"] == "arcface"

    def test_a_pick_that_is_not_there_names_what_is(self, facefusion):
        known, _ = scan([facefusion])
        with pytest.raises(ManifestError, match=r"hyperswap.*there are: 2dfan4, arcface_w600k_r50"):
            choose(known, ("hyperswap",), EMBEDDED)

    def test_two_picks_for_one_role_are_an_error(self, facefusion):
        known, _ = scan([facefusion])
        with pytest.raises(ManifestError, match="simswap_256 is picked for its role"):
            choose(known, ("simswap_256", "ghost_1_256"), EMBEDDED)


class TestEmbedded:
    """What the embedded set adds."""

    def test_a_detector_where_there_is_none(self, tmp_path):
        folder = fill(tmp_path / "pack", inswapper_128="inswapper_128", w600k_r50="arcface")
        known, _ = scan([folder])
        choice = choose(known, (), EMBEDDED)
        assert [each.family for each in choice.embedded] == ["centerface"]
        path = tmp_path / "models.toml"
        found = collection.write(collection.entries(choice, tmp_path), path)
        assert {each.family for each in found} == {"centerface", "arcface", "inswapper_128"}

    def test_without_a_swapper_the_mesh_that_swaps(self, tmp_path):
        folder = fill(tmp_path / "pack", **BUFFALO)
        known, _ = scan([folder])
        choice = choose(known, (), EMBEDDED)
        assert [each.family for each in choice.embedded] == ["face_mesh_468"]
        assert families(choice) == {"detect": "scrfd", "identity": "arcface"}
        collection.write(collection.entries(choice, tmp_path), tmp_path / "models.toml")

    def test_a_swapper_without_its_identity_is_an_error_and_nothing_is_written(self, tmp_path):
        folder = fill(tmp_path / "pack", inswapper_128="inswapper_128")
        known, _ = scan([folder])
        choice = choose(known, (), EMBEDDED)
        with pytest.raises(ManifestError, match=r"inswapper_128 needs .* arcface"):
            collection.write(collection.entries(choice, tmp_path), tmp_path / "models.toml")
        assert [each.name for each in tmp_path.iterdir()] == ["pack"]


class TestScan:
    """What is found in folders."""

    def test_what_is_not_recognised_is_listed_with_the_reason(self, tmp_path):
        folder = fill(tmp_path / "pack", swapper="ghost_256")
        (folder / "broken.onnx").write_bytes(b"<html>")
        from tests import graphs

        graphs.joined(folder / "odd.onnx", 3)
        (folder / "readme.txt").write_text("hello")
        known, unknown = scan([folder])
        assert not known
        broken, odd, several = unknown
        assert "broken.onnx: is no ONNX model; it is an HTML page" in broken
        assert odd.startswith("odd.onnx: takes left [N, 3], right [N, 3] and gives")
        assert several.startswith("swapper.onnx: simswap_256 or ghost_256")

    def test_a_folder_without_models_is_an_error(self, tmp_path):
        with pytest.raises(ManifestError, match=r"no \.onnx file in"):
            scan([tmp_path])
        with pytest.raises(ManifestError, match="No such file"):
            scan([tmp_path / "none"])


class TestPacks:
    """Where InsightFace keeps what it has fetched."""

    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HOME", str(tmp_path))
        return tmp_path

    def test_a_name_stands_for_the_pack_and_the_folder_of_packs(self, home):
        pack = fill(home / ".insightface/models/buffalo_l", **BUFFALO)
        fill(pack.parent, inswapper_128="inswapper_128")
        assert collection.pack("buffalo_l") == [pack, pack.parent]
        known, _ = scan(collection.pack("buffalo_l"))
        assert len(known) == 4

    def test_a_folder_stands_for_itself(self, home):
        assert collection.pack(str(home)) == [home]

    def test_an_unknown_name_tells_which_there_are(self, home):
        fill(home / ".insightface/models/buffalo_l", **BUFFALO)
        with pytest.raises(ManifestError, match=r"no folder antelope.*buffalo_l"):
            collection.pack("antelope")

    def test_without_any_pack_that_is_said(self):
        with pytest.raises(ManifestError, match="which has none"):
            collection.pack("buffalo_l")
