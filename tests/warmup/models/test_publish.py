"""Files of a manifest in a bucket of a real server, and in a folder."""

from __future__ import annotations

from dataclasses import replace

import pytest
from google.auth.credentials import AnonymousCredentials
from google.oauth2.credentials import Credentials

from tests.warmup.conftest import content_of, file_of, model_of
from tests.warmup.objects.gcs import fake_gcs
from tests.warmup.objects.hostile import hostile
from warmup.failures import DamagedError, UnavailableError
from warmup.models.prefetch import prefetch
from warmup.models.publish import PublishState, place_of, publish
from warmup.settings.variables import replace as changed

THERE, UPLOADING, REPLACING, UPLOADED = PublishState
CONTENTS = {"detect": content_of(700_000), "identity": content_of(300_000, 1)}


@pytest.fixture(scope="module")
def bucket():
    with fake_gcs() as bucket:
        yield bucket


@pytest.fixture
def patient(settings):
    return changed(settings, fetch_stall_s=10)


@pytest.fixture(params=["bucket", "folder", "uri"])
def place(request, tmp_path, patient):
    """Opens a place that nobody has published to, as often as somebody wants to."""
    where = {
        "bucket": lambda: f"gs://models/a b+ü/{tmp_path.name}",
        "folder": lambda: str(tmp_path / "shared"),
        "uri": (tmp_path / "a b+ü").as_uri,
    }[request.param]()
    if request.param == "bucket":
        request.getfixturevalue("bucket")
    return lambda: place_of(where, patient.fetch)


@pytest.fixture
def models(tmp_path):
    """Two models of which the files lie somewhere."""
    found = []
    for name, content in CONTENTS.items():
        path = tmp_path / name
        path.write_bytes(content)
        found.append(model_of(file_of(content, path.as_uri(), name, path)))
    return found


def states(models, place):
    seen = []
    publish(models, place(), lambda file, state: seen.append((file.name, state)))
    return seen


def test_what_is_published_is_what_a_node_fetches(place, models, patient):
    assert states(models, place) == [
        *[("detect", UPLOADING), ("detect", UPLOADED)],
        *[("identity", UPLOADING), ("identity", UPLOADED)],
    ]
    moved = [
        replace(model, file=replace(model.file, uri=place().uri(model.file.sha256), path=None))
        for model in models
    ]
    with prefetch(moved, patient) as ready:
        assert [model.path.read_bytes() for model in ready.models] == list(CONTENTS.values())


def test_what_is_there_and_right_is_not_written_again(place, models):
    states(models[:1], place)
    assert states(models, place) == [
        *[("detect", THERE), ("identity", UPLOADING), ("identity", UPLOADED)]
    ]
    assert states(models, place) == [("detect", THERE), ("identity", THERE)]


@pytest.mark.parametrize("wrong", [b"short", content_of(300_000, 7)])
def test_what_is_there_and_wrong_is_replaced(place, models, wrong, tmp_path):
    other = tmp_path / "wrong"
    other.write_bytes(wrong)
    file = models[1].file
    writer = place()
    writer.found(file)
    writer.put(replace(file, path=other))
    assert states(models[1:], place) == [("identity", REPLACING), ("identity", UPLOADED)]
    assert states(models[1:], place) == [("identity", THERE)]


def test_it_goes_on_where_it_was_ended(place, models):
    def ended(file, state):
        if state is UPLOADING and file.name == "identity":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish(models, place(), ended)
    assert states(models, place)[0] == ("detect", THERE)


def test_a_file_that_is_not_what_the_manifest_says_is_not_published(place, models):
    models[1].file.path.write_bytes(content_of(300_000, 2))
    with pytest.raises(DamagedError, match=r"identity: .*expected sha256"):
        publish(models, place())
    models[1].file.path.unlink()
    with pytest.raises(DamagedError, match=r"identity: .*No such file"):
        publish(models, place())
    assert place().found(models[0].file) is None


def test_what_another_writes_there_meanwhile_is_found_out(place, models, tmp_path):
    """Somebody puts something else under the name between our writing it and our reading it."""
    (tmp_path / "other").write_bytes(content_of(700_000, 3))
    mine, other = place(), place()

    class Between:
        uri, found, close = mine.uri, mine.found, mine.close

        def put(self, file):
            mine.put(file)
            other.found(file)
            other.put(replace(file, path=tmp_path / "other"))

    with pytest.raises(UnavailableError, match=r"detect: what was written to .* is not what is"):
        publish(models, Between())


def test_two_that_publish_the_same_at_once_both_succeed(place, models):
    mine, other = place(), place()
    assert mine.found(models[0].file) is other.found(models[0].file) is None
    mine.put(models[0].file)
    other.put(models[0].file)
    assert mine.found(models[0].file)
    assert other.found(models[0].file)


def test_large_files_go_in_chunks(bucket, models, monkeypatch, patient):
    monkeypatch.setattr("warmup.models.publish_gcs._CHUNK", 256 * 1024)
    place = lambda: place_of("gs://models/chunks", patient.fetch)  # noqa: E731
    assert states(models, place)[-1] == ("identity", UPLOADED)
    name = f"chunks/sha256/{models[0].file.sha256}"
    assert bucket.blob(name).download_as_bytes() == CONTENTS["detect"]


@pytest.mark.usefixtures("bucket")
def test_a_bucket_that_is_not_there_is_named(models, patient):
    with pytest.raises(UnavailableError, match=r"there is no bucket gs://nowhere.*buckets create"):
        publish(models, place_of("gs://nowhere/x", patient.fetch))


def answering(status):
    """A server of which every answer has one status."""
    return lambda request: request.head(status, 0)


@pytest.mark.parametrize(
    ("credentials", "status", "hint"),
    [
        (AnonymousCredentials(), 401, "no Google credentials were found"),
        (AnonymousCredentials(), 403, "no Google credentials were found"),
        (Credentials("token"), 403, "needs the role roles/storage.objectUser"),
    ],
)
def test_who_may_not_is_told_what_is_missing(
    models, patient, monkeypatch, credentials, status, hint
):
    monkeypatch.setattr("warmup.objects.gcs._credentials", lambda _: credentials)
    with hostile() as site:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", site.url)
        path = f"/storage/v1/b/models/o/sha256%2F{models[0].file.sha256}"
        site.behaviours[path] = answering(status)
        with pytest.raises(UnavailableError, match=hint):
            publish(models, place_of("gs://models", patient.fetch))


def test_a_server_that_does_not_answer_is_named(models, settings, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    place = place_of("gs://models", changed(settings, fetch_stall_s=0.1).fetch)
    with pytest.raises(UnavailableError, match=r"gs://models does not answer.*goes on from there"):
        publish(models, place)


def test_a_folder_in_place_of_which_is_a_file_is_named(models, patient, tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnavailableError, match="Not a directory"):
        publish(models, place_of(str(tmp_path / "file"), patient.fetch))


@pytest.mark.parametrize(
    "place",
    ["https://host/folder", "gs://", "gs:///name", "gs://b/x?y=z", "file://host/x", "s3://b"],
)
def test_where_nothing_can_be_published_says_where_it_can(place, patient):
    with pytest.raises(UnavailableError, match="published to gs://bucket/folder"):
        place_of(place, patient.fetch)
