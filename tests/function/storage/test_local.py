"""`file://` on a real file system: only what is inside, and nothing half."""

from __future__ import annotations

import os
from urllib.parse import quote

import pytest

from warmup.objects.errors import ChangedError

from .conftest import refused

DATA = bytes(range(256)) * 40
LIMIT = 100_000


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "allowed"
    made.mkdir()
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    (made / "photo ü.jpg").write_bytes(DATA)
    return made


@pytest.fixture
def here(storage, folder):
    return storage(folders=(folder,), timeout_s=2)


async def test_a_file_inside_is_read(here, folder):
    found = await here.read((folder / "photo ü.jpg").as_uri(), LIMIT)
    assert found.data == DATA
    assert found.facts.generation == (folder / "photo ü.jpg").stat().st_mtime_ns


@pytest.mark.parametrize(
    "way",
    [
        "../secret.jpg",
        "x/../../secret.jpg",
        "%2e%2e/secret.jpg",
        "..%2fsecret.jpg",
        "../../../../../../etc/passwd",
        "../allowed-too/photo.jpg",
        "..",
        ".",
    ],
)
async def test_no_way_leads_outside(here, folder, way):
    (folder.parent / "allowed-too").mkdir()
    (folder.parent / "allowed-too" / "photo.jpg").write_bytes(DATA)
    async with refused("object_forbidden"):
        await here.read(f"{folder.as_uri()}/{way}", LIMIT)
    async with refused("object_forbidden"):
        await here.write(f"{folder.as_uri()}/{way}", b"x", media_type="image/png")


async def test_a_name_is_decoded_once(here, folder):
    (folder / "100%2f.jpg").write_bytes(b"odd")
    found = await here.read(f"{folder.as_uri()}/{quote('100%2f.jpg')}", LIMIT)
    assert found.data == b"odd"


async def test_links_are_followed_only_inside(here, folder):
    (folder / "in").symlink_to("photo ü.jpg")
    (folder / "out").symlink_to("../secret.jpg")
    (folder / "up").symlink_to("..")
    (folder / "round").symlink_to("round")
    assert (await here.read(f"{folder.as_uri()}/in", LIMIT)).data == DATA
    async with refused("object_forbidden"):
        await here.read(f"{folder.as_uri()}/out", LIMIT)
    async with refused("object_forbidden"):
        await here.write(f"{folder.as_uri()}/up/new.jpg", b"x", media_type="image/png")
    async with refused("object_not_found", "object_forbidden"):
        await here.read(f"{folder.as_uri()}/round", LIMIT)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["allowed", "secret.jpg"]


async def test_a_folder_that_becomes_a_link_while_it_is_walked_is_not_followed(
    here, folder, monkeypatch
):
    (folder / "sub").mkdir()
    (folder / "sub" / "secret.jpg").write_bytes(DATA)
    real = os.open

    def swapping(path, *args, **kwargs):
        if path == "sub" and not (folder / "sub").is_symlink():
            (folder / "sub").rename(folder / "old")
            (folder / "sub").symlink_to("..")
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", swapping)
    async with refused("object_not_found"):
        await here.read(f"{folder.as_uri()}/sub/secret.jpg", LIMIT)


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo])
async def test_what_is_not_a_file_is_not_there(here, folder, make):
    make(folder / "odd")
    async with refused("object_not_found"):
        await here.read(f"{folder.as_uri()}/odd", LIMIT)


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("file://other-host/photo.jpg", "bad_value"),
        ("file:photo.jpg", "bad_value"),
        ("file:///%00", "bad_value"),
        ("file://[a/photo.jpg", "bad_value"),
    ],
)
async def test_what_is_malformed_is_a_bad_value(here, uri, code):
    async with refused(code):
        await here.read(uri, LIMIT)


async def test_without_folders_nothing_is_allowed(storage):
    async with refused("object_forbidden"):
        await storage().read("file:///etc/hostname", LIMIT)


async def test_a_file_that_is_too_large_is_refused_before_room_is_taken(here, folder):
    taken = []
    async with refused("object_too_large") as found:
        await here.read((folder / "photo ü.jpg").as_uri(), 100, taken.append)
    assert found.problem.extra == {"limit": 100, "value": len(DATA)}
    assert not taken


async def test_missing_folders_are_made_and_nothing_half_is_left(here, folder):
    await here.write(f"{folder.as_uri()}/a/b/new.jpg", DATA, media_type="image/jpeg")
    assert (folder / "a" / "b" / "new.jpg").read_bytes() == DATA
    assert [path.name for path in (folder / "a" / "b").iterdir()] == ["new.jpg"]


async def test_what_must_be_new_never_replaces(here, folder):
    uri = (folder / "new.jpg").as_uri()
    write = here.write
    await write(uri, b"1", media_type="image/png", if_generation_match=0)
    with pytest.raises(ChangedError):
        await write(uri, b"2", media_type="image/png", if_generation_match=0)
    assert (folder / "new.jpg").read_bytes() == b"1"
    assert len(list(folder.iterdir())) == 2


async def test_a_generation_has_to_be_the_one_that_is_there(here, folder):
    uri = (folder / "new.jpg").as_uri()
    first = await here.write(uri, b"1", media_type="image/png")
    await here.write(uri, b"2", media_type="image/png", if_generation_match=first)
    with pytest.raises(ChangedError):
        await here.write(uri, b"3", media_type="image/png", if_generation_match=first)
    assert (folder / "new.jpg").read_bytes() == b"2"


async def test_what_is_not_there_has_no_facts(here, folder):
    assert await here.stat((folder / "nothing.jpg").as_uri()) is None
    assert (await here.stat((folder / "photo ü.jpg").as_uri())).size == len(DATA)
