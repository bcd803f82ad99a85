"""Reading environment variables: every value, every refusal, and what is never printed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 (looked at when it runs)

import pytest

from warmup.settings.readers import amount, choice, file, seconds, text, whole
from warmup.settings.variables import (
    SettingsError,
    build,
    group,
    load,
    read,
    replace,
    variable,
    variables,
)


@dataclass(frozen=True)
class Declared:
    name: str = variable("ash", text(), "A name.")
    count: int = variable(3, whole(1, 9), "A count.", fallback="COUNT")
    pin: str = variable("", text(), "A secret.", secret=True)
    tries: int = variable(2, whole(1, 9), "A secret number.", secret=True)


def values(environ):
    return {value.variable.field: value for value in read(Declared, environ)}


def refused(environ):
    with pytest.raises(SettingsError) as caught:
        read(Declared, environ)
    return caught.value.problems


def test_a_variable_that_is_not_set_has_its_default():
    assert {name: value.value for name, value in values({}).items()} == {
        "name": "ash",
        "count": 3,
        "pin": "",
        "tries": 2,
    }
    assert all(value.origin is None for value in values({}).values())


@pytest.mark.parametrize("empty", ["", " "])
def test_a_variable_that_is_set_to_nothing_counts_as_not_set(empty):
    assert values({"EMBER_NAME": empty})["name"].value == "ash"
    assert values({"EMBER_COUNT": empty, "COUNT": "7"})["count"].origin == "COUNT"


def test_a_value_knows_which_variable_gave_it():
    assert values({"EMBER_NAME": "coal"})["name"].origin == "EMBER_NAME"


def test_the_platforms_variable_counts_only_without_ours():
    assert values({"COUNT": "7"})["count"].value == 7
    assert values({"COUNT": "7"})["count"].origin == "COUNT"
    assert values({"COUNT": "7", "EMBER_COUNT": "8"})["count"].value == 8


def test_a_bad_value_of_the_platforms_variable_is_blamed_on_it():
    assert refused({"COUNT": "x"}) == ["COUNT is 'x'; allowed: 1 to 9."]


def test_everything_that_is_wrong_is_named_at_once():
    assert refused({"EMBER_COUNT": "0", "EMBER_NAME": "a b", "EMBER_NAMES": "x"}) == [
        "EMBER_NAME is 'a b'; allowed: text without spaces.",
        "EMBER_COUNT is '0'; allowed: 1 to 9.",
        "EMBER_NAMES is not a setting; did you mean EMBER_NAME?",
    ]


def test_a_variable_that_resembles_none_gets_no_suggestion():
    assert refused({"EMBER_XYZ": "1"}) == ["EMBER_XYZ is not a setting."]


def test_variables_of_others_are_left_alone():
    assert read(Declared, {"HOME": "/", "LEMBER_NAME": "x", "EMBER": "x"})


@pytest.mark.parametrize(
    "name",
    [
        "EMBER_SERVICE_HOST",
        "EMBER_SERVICE_PORT",
        "EMBER_SERVICE_PORT_HTTP_METRICS",
        "EMBER_PORT_80_TCP",
        "EMBER_PORT_80_TCP_ADDR",
        "EMBER_00001_PRIVATE_SERVICE_HOST",
        "EMBER_00001_PORT",
        "EMBER_TEST_STRICT",
        "EMBER_BUILD_MOUNTS",
    ],
)
def test_a_variable_that_kubernetes_makes_for_a_service_is_not_ours(name):
    assert read(Declared, {name: "tcp://10.0.0.1:80"})


def test_a_secret_is_never_printed():
    secret = values({"EMBER_PIN": "hunter2", "EMBER_TRIES": "9"})
    assert (secret["pin"].shown, secret["tries"].shown) == ("***", "***")
    assert secret["pin"].public == "***"
    assert secret["pin"].value == "hunter2"
    assert "hunter2" not in repr(Declared(pin="hunter2"))
    assert refused({"EMBER_TRIES": "hunter2"}) == ["EMBER_TRIES is ***; allowed: 1 to 9."]


def test_a_default_is_shown_in_words_where_it_has_some():
    @dataclass(frozen=True)
    class Worded:
        threads: int | None = variable(None, whole(1, 9), "Threads.", shown_default="as many as")
        wait: float = variable(5.0, seconds(0, 9), "A wait.")

    assert [value.shown for value in read(Worded, {})] == ["as many as", "5"]
    assert [value.shown for value in read(Worded, {"EMBER_THREADS": "4"})] == ["4", "5"]


@dataclass(frozen=True, slots=True)
class Part:
    tries: int = variable(2, whole(1, 9), "Tries.")


@dataclass(frozen=True, slots=True)
class Whole:
    name: str = variable("ash", text(), "A name.")
    part: Part = group(Part)
    count: int = variable(3, whole(1, 9), "A count.")


def test_variables_of_a_group_are_read_and_listed_where_the_group_stands():
    assert [item.name for item in variables(Whole)] == ["EMBER_NAME", "EMBER_TRIES", "EMBER_COUNT"]
    assert load(Whole, {"EMBER_TRIES": "5", "EMBER_COUNT": "4"}) == Whole("ash", Part(5), 4)
    assert load(Whole, {}) == Whole()


def test_settings_are_built_and_changed_by_the_names_of_variables_in_whichever_group_they_are():
    assert build(Whole, tries=7) == Whole(part=Part(7))
    assert replace(Whole("oak"), tries=7, count=1) == Whole("oak", Part(7), 1)
    with pytest.raises(TypeError, match="Whole has no trees"):
        build(Whole, trees=7)


def test_the_declaration_can_be_listed():
    assert [(item.name, item.doc) for item in variables(Declared)][:2] == [
        ("EMBER_NAME", "A name."),
        ("EMBER_COUNT", "A count."),
    ]


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("5", 5),
        ("50M", 50_000_000),
        ("50MB", 50_000_000),
        ("64MiB", 64 * 1024**2),
        ("64Mi", 64 * 1024**2),
        ("1.5k", 1500),
        ("2 GiB", 2 * 1024**3),
        ("10B", 10),
    ],
)
def test_an_amount_may_have_a_unit(given, value):
    assert amount(1).read(given) == value


@pytest.mark.parametrize("given", ["", "-1", "0", "M", "1T", "1,5M", "0x10", "1e3", "5i", "٣"])
def test_an_amount_that_is_none_is_refused(given):
    with pytest.raises(ValueError):  # noqa: PT011
        amount(1).read(given)


@pytest.mark.parametrize("given", ["nan", "inf", "0.9", "9.5", "5s", ""])
def test_a_length_of_time_that_is_none_is_refused(given):
    with pytest.raises(ValueError):  # noqa: PT011
        seconds(1, 9).read(given)


@pytest.mark.parametrize("given", ["9" * 400, "~nobody-has-this-name/models.toml"])
def test_a_value_that_python_cannot_take_is_one_of_the_problems(given):
    @dataclass(frozen=True)
    class Declared:
        size: int = variable(1, amount(1), "A size.")
        path: Path | None = variable(None, file(), "A file.")

    with pytest.raises(SettingsError) as caught:
        read(Declared, {"EMBER_SIZE": given, "EMBER_PATH": given})
    assert len(caught.value.problems) == 2


def test_a_length_of_time_may_have_a_fraction():
    assert seconds(0, 9).read("2.5") == 2.5


def test_a_choice_may_be_in_any_case():
    assert choice("json", "text").read("JSON") == "json"
    with pytest.raises(ValueError, match="xml"):
        choice("json", "text").read("xml")


def test_a_file_must_exist(tmp_path):
    path = tmp_path / "models.toml"
    with pytest.raises(ValueError, match=r"models\.toml"):
        file().read(str(path))
    path.touch()
    assert file().read(str(path)) == path
    with pytest.raises(ValueError, match=tmp_path.name):
        file().read(str(tmp_path))
