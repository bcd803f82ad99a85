"""The Python client against a real server, from threads and from asyncio."""

from __future__ import annotations

import dataclasses
import io
from base64 import b64encode
from pathlib import Path

import httpx
import pytest
from PIL import Image

from ember_client import AsyncClient, Client, Unreachable, problems
from ember_client.problems import KINDS as CLASSES
from ember_client.results import Job, Swap
from function import __version__
from function.admission import keys
from function.problems import KINDS
from function.quality_warning import QualityWarning
from tests.clients.photos import COLLINS, HOPPER
from tests.openapi.document import document
from tests.running import running


@pytest.fixture(scope="module")
def ember(server):
    with Client(server.url) as client:
        yield client


def data_uri(data):
    return f"data:image/jpeg;base64,{b64encode(data).decode()}"


def both():
    """A photo with Hopper at the left and Collins at the right."""
    made, whole = io.BytesIO(), Image.new("RGB", (256, 128))
    for place, path in enumerate((HOPPER, COLLINS)):
        with Image.open(path) as photo:
            whole.paste(photo, (place * 128, 0))
    whole.save(made, "PNG")
    return made.getvalue()


def test_a_swap_has_the_photo_and_all_that_is_known_of_it(ember, tmp_path):
    swap = ember.swap(HOPPER, COLLINS, format="png", request_id="one")
    path = swap.save(tmp_path / "out.png")
    with Image.open(path) as photo:
        assert (photo.format, photo.size) == ("PNG", (swap.width, swap.height))
    (face,) = swap.faces
    assert face.identity.after < face.identity.before
    assert face.box.right > face.box.left
    assert len(face.points) == 5
    assert swap.request_id == "one"
    assert set(swap.warnings) <= {str(each) for each in QualityWarning}
    assert {"decode", "swap"} <= {each.stage for each in swap.timings}


def test_photos_are_paths_or_bytes_or_uris_which_mix(ember):
    uri = data_uri(HOPPER.read_bytes())
    wish = {"request_id": "same", "quality": 90}
    swaps = [
        ember.swap(source, target, **wish).image
        for source, target in [
            (HOPPER, COLLINS),
            (str(HOPPER), COLLINS.read_bytes()),
            (uri, COLLINS),
            ([HOPPER.read_bytes()], str(COLLINS)),
            (io.BytesIO(HOPPER.read_bytes()), COLLINS),
        ]
    ]
    assert all(image == swaps[0] for image in swaps)


def test_names_of_files_are_not_sent(ember, tmp_path):
    path = tmp_path / "Grace Hopper.txt"
    path.write_bytes(b"no photo")
    with pytest.raises(problems.UnsupportedMediaType) as raised:
        ember.faces(path)
    assert "Hopper" not in str(raised.value.members)


def test_several_sources_and_options_go_with_it(ember):
    swap = ember.swap([HOPPER, HOPPER], COLLINS, faces="like", like=COLLINS, lane="interactive")
    assert [face.index for face in swap.faces] == [0]
    with pytest.raises(problems.NoSuchFace) as raised:
        ember.swap(HOPPER, COLLINS, faces="index:4")
    assert raised.value.members["faces"]
    with pytest.raises(problems.BadValue):
        ember.swap(HOPPER, COLLINS, quality=1000)


@pytest.mark.parametrize("give", [Path, lambda path: data_uri(path.read_bytes())])
def test_each_face_may_have_a_person_of_its_own(ember, give):
    people = {"grace": [give(HOPPER), give(HOPPER)], "eileen": give(COLLINS)}
    faces = {0: "eileen", "her": "grace"}
    swap = ember.swap(people, both(), faces=faces, likes={"her": give(COLLINS)})
    assert [face.source for face in swap.faces] == ["eileen", "grace"]
    assert swap.source is None
    assert swap.sources.keys() == people.keys()


def test_faces_and_verification(ember):
    found = ember.faces(COLLINS)
    assert [face.identity for face in found.faces] == [None]
    swapped = ember.swap(HOPPER, COLLINS).image
    assert ember.verify(swapped.data).verdict == "swap"
    assert ember.verify(COLLINS).verdict == "unknown"


def test_a_problem_has_a_class_by_its_code(ember):
    assert {code: kind.__doc__.split("\n")[0] for code, kind in CLASSES.items()} == {
        code: f"{kind.title}." for code, kind in KINDS.items()
    }
    with pytest.raises(problems.NotFound) as raised:
        ember.job("a" * 20)
    assert (raised.value.status, raised.value.code) == (404, "not_found")
    assert raised.value.request_id in str(raised.value)


def test_a_job_is_followed_to_its_end_and_its_results_are_had(ember, tmp_path):
    job = ember.submit(HOPPER, [COLLINS, HOPPER], format="webp")
    states = list(ember.progress(job))
    assert [each.ended for each in states] == [*[False] * (len(states) - 1), True]
    versions = [each.version for each in states]
    assert versions == sorted(set(versions))
    assert states[-1].state == "succeeded"
    result = ember.result(job, 1)
    assert result.media_type == "image/webp"
    assert len(result.data) == states[-1].items[1].result.bytes
    assert result.save(tmp_path / "out.webp").stat().st_size == len(result.data)
    assert ember.end(job).state == "deleted"
    with pytest.raises(problems.NotFound):
        ember.result(job)


def test_the_same_job_may_be_sent_twice_and_another_under_its_id_may_not(ember):
    first = ember.submit(HOPPER, COLLINS, id="the-same-job-every-time")
    assert ember.submit(HOPPER, COLLINS, id=first.id).created == first.created
    with pytest.raises(problems.JobConflict):
        ember.submit(COLLINS, HOPPER, id=first.id)
    assert ember.wait(first.id).state == "succeeded"


def test_a_target_that_cannot_be_done_says_why(ember):
    gray = io.BytesIO()
    Image.new("RGB", (64, 64)).save(gray, "PNG")
    ended = ember.wait(ember.submit(HOPPER, gray.getvalue()))
    assert (ended.state, ended.items[0].problem.code) == ("failed", "no_face")


async def test_asyncio_has_the_same(server, ember):
    async with AsyncClient(server.url) as client:
        await client.wake()
        wish = {"request_id": "same"}
        swap = await client.swap(HOPPER, COLLINS, **wish)
        assert swap.image == ember.swap(HOPPER, COLLINS, **wish).image
        assert (await client.faces(COLLINS)).faces == ember.faces(COLLINS).faces
        assert (await client.verify(swap.image.data)).verdict == "swap"
        job = await client.submit(HOPPER, COLLINS)
        states = [each async for each in client.progress(job)]
        assert states[-1].state == "succeeded"
        assert (await client.job(job)).version == (await client.wait(job.id)).version
        assert (await client.result(job)).media_type == "image/jpeg"
        assert (await client.end(job)).state == "deleted"
        with pytest.raises(problems.NotFound):
            await client.job("a" * 20)


def test_both_clients_have_the_same_calls():
    calls = (
        {name for name in vars(each) if not name.startswith("_")} for each in (Client, AsyncClient)
    )
    one, other = calls
    assert one == other


def test_a_replica_that_starts_is_waited_for_by_whoever_may_call(tmp_path):
    key, line = keys.new("somebody", "free")
    (tmp_path / "keys").write_text(line)
    settings = {"EMBER_AUTH": "keys", "EMBER_KEYS": str(tmp_path / "keys")}
    with running(ready=False, **settings) as server, Client(server.url, token=key) as ember:
        job = ember.submit(HOPPER, COLLINS)
        assert ember.wait(job).state == "succeeded"
        page = ember.jobs(count=10)
        assert ([each.id for each in page.jobs], page.next) == ([job.id], None)
        with Client(server.url, token="another") as other, pytest.raises(problems.Unauthenticated):
            other.jobs()


def test_what_is_of_no_use_any_more_is_not_waited_for(ember):
    with pytest.raises(problems.DeadlineExceeded):
        ember.swap(HOPPER, COLLINS, timeout_s=0.001)


def test_patience_with_one_that_is_not_there_ends():
    with Client("http://127.0.0.1:9", patience_s=0.3) as ember, pytest.raises(Unreachable):
        ember.wake()


async def test_asyncio_cannot_reach_it_either():
    async with AsyncClient("http://127.0.0.1:9", patience_s=0.3) as client:
        with pytest.raises(Unreachable) as raised:
            await client.wake()
    assert isinstance(raised.value.__cause__, httpx.ConnectError)


def test_connections_that_others_have_made_stay_open(server):
    with httpx.Client() as http:
        with Client(server.url, http=http) as ember:
            ember.wake()
        assert not http.is_closed


def test_results_have_what_the_schemas_say():
    schemas = document()["components"]["schemas"]
    for kind in (Swap, Job):
        names = {each.metadata.get("name", each.name) for each in dataclasses.fields(kind)}
        assert names == schemas[kind.__name__]["properties"].keys()


def test_the_version_is_that_of_ember():
    import ember_client

    assert ember_client.__version__ == __version__
