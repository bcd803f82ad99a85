"""A source for each face: named in `sources`, mapped by `faces`, by place or by `likes`."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from function.faces.person import near
from function.faces.pipeline import Pipeline
from function.http import fields
from function.http.tables import SWAP
from function.images.decode import decode
from function.images.picture import Picture
from function.problems import Problem
from function.telemetry.timings import Timings
from tests.function.background.jobs.conftest import finished, new_id, put
from tests.function.http.test_swap import uri
from tests.function.live import COLLINS, HOPPER, NOBODY, Part, multipart
from tests.function.video.films import scene

ONE = {"Ember_Request_Id": "one"}
REPORT = ONE | {"Accept": "application/json"}


def png(pixels):
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


PAIR = png(next(scene(1, (768, 432))))
"""Collins on the left, Hopper on the right."""
TARGET = ("target", PAIR)


def source(name, data=HOPPER, field="sources"):
    return Part(field, data, f"{name}.jpg")


def pixels(body):
    return np.asarray(Image.open(io.BytesIO(body)).convert("RGB")).astype(int)


@pytest.fixture(scope="module")
def crossed(live):
    """Each has the face of the other, as a report."""
    parts = (source("h"), source("c", COLLINS), TARGET, ("faces", "0=h,1=c"))
    return live.form("/v1/swap", *parts, **REPORT).json


def test_each_face_becomes_that_of_its_source(live, crossed):
    assert [face["source"] for face in crossed["faces"]] == ["h", "c"]
    for face in crossed["faces"]:
        assert face["identity"]["after"] < face["identity"]["before"] - 0.1
    assert crossed["source"] is None
    assert crossed["sources"].keys() == {"h", "c"}
    parts = (source("h"), source("c", COLLINS), TARGET, ("faces", "0=c,1=h"))
    own = live.form("/v1/swap", *parts, **REPORT).json
    for face in own["faces"]:  # each its own: nearly the same person as before
        assert face["identity"]["before"] < 0.4


def test_the_place_of_a_source_is_told_as_it_is_on_its_whole_photo(live, crossed):
    alone = live.form("/v1/swap", ("source", COLLINS), TARGET, **REPORT).json
    assert crossed["sources"]["c"] == alone["source"]


def test_a_face_that_nobody_is_put_onto_stays(live):
    parts = (source("h"), TARGET, ("faces", "0=h"))
    answer = live.form("/v1/swap", *parts, ("format", "png"), **ONE)
    before, after = pixels(PAIR), pixels(answer.body)
    (face,) = live.form("/v1/swap", *parts, **REPORT).json["faces"]
    box = face["box"]
    differs = np.abs(before - after).max(-1) > 0
    differs[box["top"] : box["bottom"], box["left"] : box["right"]] = False
    assert not differs.any()


def test_json_says_the_same_as_multipart(live, crossed):
    value = {
        "sources": {"h": uri(HOPPER), "c": [uri(COLLINS)]},
        "target": uri(PAIR, "image/png"),
        "faces": "0=h,1=c",
    }
    found = live.json("/v1/swap", value, **REPORT).json
    assert found["image"] == crossed["image"]


def test_one_person_for_each_face_is_one_person_for_all(live):
    all_ = live.form("/v1/swap", ("source", HOPPER), TARGET, **ONE)
    each = live.form("/v1/swap", source("h"), TARGET, ("faces", "0=h,1=h"), **ONE)
    assert np.abs(pixels(all_.body) - pixels(each.body)).max() <= 2
    assert all_.headers["Ember-Warnings"] == each.headers["Ember-Warnings"]


def test_people_are_replaced_who_look_like_a_photo(live, crossed):
    parts = (source("h"), source("c", COLLINS), source("hers", HOPPER, "likes"), TARGET)
    found = live.form("/v1/swap", *parts, ("faces", "0=h,hers=c"), **REPORT).json
    assert found["image"] == crossed["image"]
    absent = (source("h"), source("hers", HOPPER, "likes"), source("his", COLLINS, "likes"))
    target = ("target", COLLINS)
    found = live.form("/v1/swap", *absent, target, ("faces", "hers=h,his=h"), **REPORT).json
    assert [face["source"] for face in found["faces"]] == ["h"]
    assert "person_missing" in found["warnings"]
    gone = (source("h"), source("hers", HOPPER, "likes"), target, ("faces", "hers=h"))
    live.form("/v1/swap", *gone).problem("no_match", 422)


def test_several_photos_of_one_of_them_are_one_person(live):
    parts = (source("h.1"), source("h.2"), source("c", COLLINS), TARGET, ("faces", "0=h,1=c"))
    found = live.form("/v1/swap", *parts, **REPORT).json
    assert found["sources"].keys() == {"h", "c"}
    mixed = (source("h.1"), source("h.2", COLLINS), TARGET, ("faces", "0=h"))
    assert "sources_differ" in live.form("/v1/swap", *mixed, **REPORT).json["warnings"]


@pytest.mark.parametrize(
    ("parts", "code", "field"),
    [
        ([], "missing_field", "source"),
        ([("faces", "0=h")], "missing_field", "source"),
        ([source("h")], "bad_value", "sources"),
        ([source("h"), ("faces", "all")], "bad_value", "sources"),
        ([("source", HOPPER), source("h"), ("faces", "0=h")], "bad_value", "source"),
        ([("source", HOPPER), ("faces", "0=h")], "bad_value", "faces"),
        ([source("h"), ("faces", "0=c")], "bad_value", "faces"),
        ([source("h"), ("faces", "x=h")], "bad_value", "faces"),
        ([source("h"), source("c"), ("faces", "0=h")], "bad_value", "sources"),
        ([source("h"), ("faces", "0=h,0=h")], "bad_value", "faces"),
        ([source("h"), source("x", field="likes"), ("faces", "0=h")], "bad_value", "likes"),
        ([("source", HOPPER), source("x", field="likes")], "bad_value", "likes"),
        ([source("h"), ("like", HOPPER), ("faces", "0=h")], "bad_value", "like"),
        ([source("my photo"), ("faces", "0=my")], "bad_value", "sources"),
        ([source(""), ("faces", "0=h")], "bad_value", "sources"),
        ([*[source("h")] * 9, ("faces", "0=h")], "bad_value", "sources.h"),
        ([source(f"h{n}") for n in range(17)], "bad_value", "sources"),
        ([*[source("x", field="likes")] * 2, source("h")], "bad_value", "likes.x"),
        ([source("h"), ("faces", "2=h")], "no_such_face", "faces"),
    ],
)
def test_what_makes_no_sense_is_told_with_its_field(live, parts, code, field):
    assert live.form("/v1/swap", *parts, TARGET).problem(code, 422)["field"] == field


@pytest.mark.parametrize("sources", [[], {}, "data:,", {"a b": "data:,x"}, {"a": 1}, {"a": []},
                                     {"a": {"b": "data:,x"}}, {"": "data:,x"}])  # fmt: skip
def test_in_json_sources_are_names_with_uris(live, sources):
    value = {"sources": sources, "target": uri(COLLINS), "faces": "0=a"}
    live.json("/v1/swap", value).problem("bad_value", 422)


def test_the_photo_without_a_face_is_named(live):
    bad = source("n", NOBODY)
    members = live.form("/v1/swap", source("h"), bad, TARGET, ("faces", "0=h,1=n")).problem(
        "no_face"
    )
    assert (members["image"], members["index"]) == ("sources.n", 0)
    bad = source("x", NOBODY, "likes")
    members = live.form("/v1/swap", source("h"), bad, TARGET, ("faces", "0=h,x=h")).problem(
        "no_face"
    )
    assert members["image"] == "likes.x"


def test_a_job_does_the_same(live):
    hers = source("hers", HOPPER, "likes")
    parts = (source("h"), hers, source("c", COLLINS), TARGET, ("faces", "0=h,hers=c"))
    name = new_id()
    put(live, name, *parts, **{"Ember-Request-Id": "one"})
    (item,) = finished(live, name)["items"]
    assert item["result"]["faces"] == 2
    assert live.get(item["result"]["uri"]).body == live.form("/v1/swap", *parts, **ONE).body
    put(live, name, *parts[:-1], ("faces", "0=c,hers=h")).problem("job_conflict", 409)


def test_each_target_of_a_job_has_its_own_people(live):
    hers = source("hers", HOPPER, "likes")
    parts = (source("h"), hers, source("c", COLLINS), TARGET, ("target", COLLINS))
    name = new_id()
    put(live, name, *parts, ("faces", "0=h,hers=c"))
    results = [item["result"] for item in finished(live, name)["items"]]
    assert [each["faces"] for each in results] == [2, 1]
    assert ["person_missing" in each["warnings"] for each in results] == [False, True]
    put(live, new_id(), source("h"), TARGET, ("faces", "0=c")).problem("bad_value", 422)


def test_an_animation_follows_each_of_them(live):
    frames = [Image.fromarray(frame) for frame in scene(3)]
    out = io.BytesIO()
    frames[0].save(out, "WEBP", save_all=True, append_images=frames[1:], quality=95)
    target = ("target", out.getvalue())
    parts = (source("h"), source("c", COLLINS), target, ("faces", "0=h,1=c"))
    found = live.form("/v1/swap", *parts, **REPORT).json
    assert [face["source"] for face in found["faces"]] == ["h", "c"]
    assert found["sources"].keys() == {"h", "c"}
    live.form("/v1/swap", source("h"), target, ("faces", "2=h")).problem("no_such_face", 422)


NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,32}", fullmatch=True)
PHOTOS = st.dictionaries(NAMES, st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=2),
                         min_size=1, max_size=8)  # fmt: skip


@given(PHOTOS)
def test_both_encodings_give_the_same_names_and_photos(people):
    parts = [Part("sources", each, f"{name}.{k}.jpg")
             for name, several in people.items() for k, each in enumerate(several)]  # fmt: skip
    form = fields.from_multipart(multipart(*parts), "a-boundary", SWAP)
    found = {name: tuple(each.data for each in several) for name, several in form.photos.items()}
    assert found == {f"sources.{name}": tuple(several) for name, several in people.items()}
    assert fields.names_of(form.photos, "sources") == list(people)
    whole = fields.Form(form.photos, {}).people("source", "sources")
    assert [(each.name, each.data) for each in whole] == [
        (name, each) for name, several in people.items() for each in several
    ]


@given(st.text(st.characters(codec="utf-8"), max_size=40) | NAMES)
def test_a_name_has_few_letters_and_any_other_is_a_bad_value(name):
    body = json.dumps({"sources": {name: "https://a.example/b"}}).encode()
    try:
        found = fields.from_json(body, SWAP).photos
    except Problem as problem:
        found = problem.code
    good = re.fullmatch("[A-Za-z0-9_-]{1,32}", name)
    assert found == ({f"sources.{name}": ("https://a.example/b",)} if good else "bad_value")


def test_only_the_part_of_a_photo_is_kept_that_a_swap_looks_at(live):
    stages = live.service.engines.stages()
    pipeline = Pipeline(stages, stages.swapper())
    photo = decode(COLLINS)
    wide = np.full((900, 1200, 3), 90, np.uint8)
    wide[300:812, 400:912] = photo.pixels
    whole, _ = pipeline.portrait(Picture(wide), Timings())
    part = near(whole)
    assert part.picture.pixels.size < wide.size / 3
    assert not np.shares_memory(part.picture.pixels, wide)
    faces = pipeline.find(photo, Timings(), identify=True)
    both = [pipeline.swap(photo, faces, {"": each}, Timings())[0] for each in (whole, part)]
    assert np.abs(both[0].astype(int) - both[1]).max() <= 2
