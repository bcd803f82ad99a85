"""events.toml: what fits, what is wrong, what would go round in circles."""

from __future__ import annotations

import pytest

from function.background.events import rules_file
from function.background.events.notice import Notice
from function.problems import Problem
from warmup.settings.variables import SettingsError

NOTICE = Notice("gs", "uploads", "in/Ann b.JPG", "17", "image/jpeg", {"kind": "portrait"})
RULE = """
[[rule]]
name = "portraits"
bucket = "uploads"
source = "gs://photos/alice.jpg"
output = "gs://swapped/{name}"
"""


@pytest.fixture
def rules(tmp_path):
    def make(text):
        path = tmp_path / "events.toml"
        path.write_text(text)
        return rules_file.read(path)

    return make


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("", None),
        ('prefix = "in/"', None),
        ('prefix = "out/"', "does not begin with out/"),
        ('suffix = ".jpg"', None),
        ('suffix = [".png", ".jpg"]', None),
        ('suffix = [".png"]', "does not end with .png"),
        ('content_type = "image/*"', None),
        ('content_type = "image/png"', "content type is image/jpeg"),
        ('metadata = { kind = "port*" }', None),
        ('metadata = { kind = "*" }', None),
        ('metadata = { kind = "group" }', "metadata kind is portrait"),
        ('metadata = { size = "*" }', "metadata size is missing"),
    ],
)
def test_each_condition_has_to_fit(rules, more, reason):
    (verdict,) = rules(RULE + more).verdicts(NOTICE)
    assert (verdict.refusal is None) if reason is None else (reason in verdict.refusal)


def test_the_first_rule_that_fits_counts(rules):
    text = (
        RULE.replace("portraits", "first")
        + 'suffix = ".png"'
        + RULE.replace("portraits", "b")
        + RULE
    )
    assert rules(text).first(NOTICE).name == "b"


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("gs://swapped/{name}", "gs://swapped/in/Ann%20b.JPG"),
        ("gs://swapped/{dir}{stem}-{version}{suffix}", "gs://swapped/in/Ann%20b-17.JPG"),
        ("gs://swapped/{bucket}/{rule}/{stem}.webp", "gs://swapped/uploads/portraits/Ann%20b.webp"),
        ("file:///mnt/out/{stem}{suffix}", "file:///mnt/out/Ann%20b.JPG"),
    ],
)
def test_outputs_are_named_by_a_template(rules, template, uri):
    made = rules(RULE.replace("gs://swapped/{name}", template))
    assert made.first(NOTICE).output_uri(NOTICE) == uri


@pytest.mark.parametrize("name", ["../x.jpg", "a/../../x.jpg", "./x", "a/..", "a\nb.jpg", "\0"])
def test_names_that_lead_out_of_their_folder_are_refused(rules, name):
    from dataclasses import replace

    with pytest.raises(Problem) as raised:
        rules(RULE).rules[0].output_uri(replace(NOTICE, name=name))
    assert raised.value.code == "bad_value"


def test_outputs_are_known_by_their_mark_and_by_their_place(rules):
    made = rules(RULE.replace("gs://swapped/", "gs://uploads/swapped/") + 'prefix = "in/"')
    assert made.own(NOTICE) is None
    assert made.own(Notice("gs", "uploads", "swapped/in/a.jpg"))
    assert made.own(Notice("gs", "elsewhere", "a.jpg", metadata={"ember-of": "x"}))


@pytest.mark.parametrize(
    ("output", "more"),
    [
        ("gs://uploads/{name}", ""),
        ("gs://uploads/in/{name}", 'prefix = "in/"'),
        ("gs://uploads/{dir}swapped-{stem}{suffix}", 'prefix = "in/"'),
        ("gs://uploads/i{name}", 'prefix = "in/"'),
    ],
)
def test_rules_that_would_read_their_own_outputs_are_refused(rules, output, more):
    with pytest.raises(SettingsError, match="its outputs would be among what rule portraits reads"):
        rules(RULE.replace("gs://swapped/{name}", output) + more)


def test_rules_that_would_read_outputs_of_each_other_are_refused(rules):
    back = RULE.replace("portraits", "back").replace("uploads", "swapped")
    back = back.replace("gs://swapped/{name}", "gs://third/{name}")
    with pytest.raises(SettingsError, match="rule portraits: its outputs would be among"):
        rules(RULE + back)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no [[rule]]"),
        ("x = [", "events.toml: "),
        ("[other]\n" + RULE, "`other` is neither"),
        (RULE + 'prefx = "in/"', "rule portraits: there is no member `prefx`"),
        (RULE.replace('bucket = "uploads"', ""), "`bucket` is missing"),
        (RULE + "prefix = 1", "`prefix` has to be text"),
        (RULE.replace('source = "gs://photos/alice.jpg"', ""), "it says no source"),
        (RULE.replace("gs://photos/alice.jpg", "alice"), "`alice` is neither a URI nor"),
        (RULE.replace("{name}", "{nam}"), "there is no {nam}"),
        (RULE.replace("{name}", "{name.__class__}"), "there is no {name.__class__}"),
        (RULE.replace("{name}", "{"), "gs://swapped/{"),
        (RULE.replace("{name}", "one.jpg"), "names one object"),
        (RULE.replace("gs://swapped", "gs://{bucket}"), "the bucket of `output`"),
        (RULE.replace("gs://swapped", "https://swapped"), "gs:// or file://"),
        (RULE + 'faces = "like"', "is all, largest"),
        (RULE + 'faces = "some"', "faces"),
        (RULE + 'format = "bmp"', "`format` is one of"),
        (RULE + "quality = 0", "from 1 to 100"),
        (RULE + 'at = "minio"', "`at` has to be a URI"),
        ("[sources]\nalice = 1\n" + RULE, "source alice"),
    ],
)
def test_an_error_of_the_file_is_named(rules, text, told):
    with pytest.raises(SettingsError) as raised:
        rules(text)
    assert told in str(raised.value)


def test_all_errors_of_the_file_are_reported_at_once(rules):
    with pytest.raises(SettingsError) as raised:
        rules(RULE + "quality = 0" + RULE + 'format = "bmp"')
    assert len(raised.value.problems) == 2


def test_uploaders_may_name_only_what_the_rule_allows(rules):
    made = rules('[sources]\nalice = ["gs://a/1.jpg", "gs://a/2.jpg"]\n' + RULE)
    within = ("gs://photos/sources/",)
    assert made.named("alice") == ("gs://a/1.jpg", "gs://a/2.jpg")
    assert made.named("gs://photos/sources/bob.jpg", within) == ("gs://photos/sources/bob.jpg",)
    for wish in ("bob", "gs://secret/x", "gs://photos/sources/../x", "https://h/x", ""):
        with pytest.raises(Problem) as raised:
            made.named(wish, within)
        assert raised.value.code == "no_source"
    with pytest.raises(Problem):
        made.named("gs://photos/sources/bob.jpg")


def test_other_stores_are_read_where_the_rule_says(rules):
    s3 = Notice("s3", "uploads", "in/a b.jpg", "v")
    (verdict,) = rules(RULE).verdicts(s3)
    assert "`at`" in verdict.refusal
    rule = rules(RULE + 'at = "file:///mnt/uploads/"').first(s3)
    assert rule.input_uri(s3) == "file:///mnt/uploads/in/a%20b.jpg"
