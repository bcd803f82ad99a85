"""Lists that change while a replica serves, and two who write one at once."""

from __future__ import annotations

import asyncio
import json
import multiprocessing

import pytest

from function.trust.gate.identity_list import IdentityList, IdentityListError, new_person
from function.trust.gate.kept_list import KeptList, change, read, store_of
from tests.warmup.objects.gcs import fake_gcs
from warmup.objects.errors import ChangedError
from warmup.settings.variables import SettingsError

from .conftest import MODEL, somebody


@pytest.fixture(scope="module")
def bucket():
    with fake_gcs("lists") as found:
        yield found


@pytest.fixture(params=["file", "gs"])
def uri(request, tmp_path):
    if request.param == "file":
        return f"file://{tmp_path}/lists/deny.jsonl"
    request.getfixturevalue("bucket")
    return f"gs://lists/{tmp_path.name}/deny.jsonl"


@pytest.fixture
async def store(uri):
    store = store_of(uri)
    yield store
    await store.close()


def adding(name):
    person = new_person(name, MODEL, [somebody(sum(name.encode()))])
    return lambda people: people.added(person)


async def labels(uri, store):
    return [each.label for each in (await read(uri, store))[0].people]


async def test_a_list_is_made_by_the_first_who_changes_it(uri, store):
    assert await labels(uri, store) == []
    await change(uri, store, adding("one"))
    await change(uri, store, adding("two"))
    assert await labels(uri, store) == ["one", "two"]


async def test_who_comes_second_changes_what_the_first_has_written(uri, store, monkeypatch):
    await change(uri, store, adding("one"))
    calls = []

    class Slow:
        """A store in which somebody else writes between our reading and our writing."""

        def __getattr__(self, name):
            return getattr(store, name)

        async def write(self, *args, **kwargs):
            calls.append(1)
            if len(calls) == 1:
                data = IdentityList((await read(uri, store))[0].people)
                other = adding("other")(data)
                await store.write(uri, other.data(), **kwargs | {"if_generation_match": None})
            return await store.write(*args, **kwargs)

    await change(uri, Slow(), adding("two"))
    assert await labels(uri, store) == ["one", "other", "two"]
    assert len(calls) == 2


async def test_when_others_always_come_first_that_is_said(uri, store):
    class Busy:
        def __getattr__(self, name):
            return getattr(store, name)

        async def write(self, *args, **kwargs):
            raise ChangedError

    with pytest.raises(ChangedError):
        await change(uri, Busy(), adding("one"))


async def test_a_damaged_list_is_not_written_over(uri, store):
    await change(uri, store, adding("one"))
    facts = {"media_type": "text/plain", "metadata": {}, "if_generation_match": None}
    await store.write(uri, b"{broken", **facts)
    with pytest.raises(IdentityListError):
        await change(uri, store, adding("one"))


def _writer(uri, name):
    asyncio.run(change(uri, store_of(uri), adding(name)))


def test_many_processes_write_one_file_and_none_is_lost(tmp_path):
    uri = f"file://{tmp_path}/deny.jsonl"
    names = [f"p{n}" for n in range(6)]
    spawn = multiprocessing.get_context("fork")
    workers = [spawn.Process(target=_writer, args=(uri, name)) for name in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert sorted(asyncio.run(labels(uri, store_of(uri)))) == names
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"deny.jsonl", ".deny.jsonl.lock"}


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


async def test_a_change_holds_at_the_next_look_and_damage_changes_nothing(uri, store):
    await change(uri, store, adding("one"))
    clock = Clock()
    kept = KeptList(uri, store, MODEL, clock)
    await kept.start()
    assert [each.label for each in kept.people.people] == ["one"]
    before = kept.people
    await kept.look()
    assert kept.people is before

    await change(uri, store, adding("two"))
    await kept.look()
    assert [each.label for each in kept.people.people] == ["one", "two"]

    facts = {"media_type": "text/plain", "metadata": {}, "if_generation_match": None}
    for damage in (b"{", json.dumps({"id": "x"}).encode()):
        clock.now += 10
        await store.write(uri, damage, **facts)
        await kept.look()
        assert len(kept.people.people) == 2
        assert kept.problem
        assert kept.facts()["seen_s_ago"] == clock.now
        assert "line" not in kept.facts()["problem"]  # what it is, is for the log
    await store.delete(uri)
    await kept.look()
    assert len(kept.people.people) == 2

    await store.write(uri, before.data(), **facts)
    await kept.look()
    assert (kept.problem, kept.facts()["people"], kept.facts()["seen_s_ago"]) == (None, 1, 0)


async def test_whatever_goes_wrong_at_one_look_the_next_one_comes(tmp_path, monkeypatch):
    uri = f"file://{tmp_path}/deny.jsonl"
    store = store_of(uri)
    await change(uri, store, adding("one"))
    kept = KeptList(uri, store, MODEL)
    await kept.start()
    with monkeypatch.context() as patch:
        patch.setattr(store, "stat", None)  # a fault of ours: whatever it raises
        await kept.look()
    assert (len(kept.people.people), bool(kept.problem)) == (1, True)
    await change(uri, store, adding("two"))
    await kept.look()
    assert (len(kept.people.people), kept.problem) == (2, None)


async def test_a_list_that_is_not_there_is_no_start_and_says_what_makes_one(uri, store):
    with pytest.raises(SettingsError, match="`ember deny`"):
        await KeptList(uri, store, MODEL).start()


async def test_nobody_else_reads_a_list_unless_its_owner_lets_them(tmp_path):
    uri, path = f"file://{tmp_path}/deny.jsonl", tmp_path / "deny.jsonl"
    store = store_of(uri)
    await change(uri, store, adding("one"))
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o640)
    await change(uri, store, adding("two"))
    assert path.stat().st_mode & 0o777 == 0o640


async def test_a_list_of_another_model_is_no_start_and_changes_nothing(uri, store):
    other = new_person("x", type(MODEL)("arcface", "1" * 64), [somebody(1)])
    await change(uri, store, lambda people: people.added(other))
    with pytest.raises(SettingsError, match="enrol them again"):
        await KeptList(uri, store, MODEL).start()


async def test_a_list_that_a_cluster_mounts_as_a_link_is_read_again(tmp_path):
    """Kubernetes swaps a link to a folder when a ConfigMap or a Secret changes."""
    for version, names in (("v1", ["one"]), ("v2", ["one", "two"])):
        people = IdentityList(tuple(new_person(n, MODEL, [somebody(1)]) for n in names))
        (tmp_path / version).mkdir()
        (tmp_path / version / "deny.jsonl").write_bytes(people.data())
    (tmp_path / "data").symlink_to("v1")
    (tmp_path / "deny.jsonl").symlink_to("data/deny.jsonl")
    uri = f"file://{tmp_path}/deny.jsonl"
    kept = KeptList(uri, store_of(uri), MODEL)
    await kept.start()
    assert len(kept.people.people) == 1
    (tmp_path / "new").symlink_to("v2")
    (tmp_path / "new").replace(tmp_path / "data")
    await kept.look()
    assert len(kept.people.people) == 2
