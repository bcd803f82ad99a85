"""Log lines: one event, one line, for machines and for people."""

from __future__ import annotations

import io
import json
import logging
import warnings
from datetime import UTC, datetime, timedelta

import pytest

from function.telemetry import logs


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def _leave_logging_as_it_was():
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture
def log():
    return logging.getLogger("ember.test")


def lines(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_of_json_where_there_is_no_terminal(log):
    stream = io.StringIO()
    logs.setup(stream=stream)
    log.info("swapped %d faces", 2, extra={"ms": 12.5, "faces": [0, 1]})
    (event,) = lines(stream)
    time = datetime.fromisoformat(event.pop("time"))
    assert timedelta(0) <= datetime.now(UTC) - time < timedelta(minutes=1)
    assert event == {
        "level": "info",
        "message": "swapped 2 faces",
        "logger": "ember.test",
        "ms": 12.5,
        "faces": [0, 1],
    }


def test_the_time_is_utc_after_rfc_3339(log):
    stream = io.StringIO()
    logs.setup(stream=stream)
    log.info("x")
    assert lines(stream)[0]["time"].endswith("Z")


def test_an_exception_is_a_field_and_no_further_line(log):
    stream = io.StringIO()
    logs.setup(stream=stream)
    try:
        raise RuntimeError("two\nlines")
    except RuntimeError:
        log.exception("failed")
    (event,) = lines(stream)
    assert event["message"] == "failed"
    assert event["error"].endswith("RuntimeError: two\nlines")


def test_a_line_carries_the_request_that_it_is_about(log):
    stream = io.StringIO()
    logs.setup(stream=stream)
    token = logs.request_id.set("abc")
    log.info("inside")
    logs.request_id.reset(token)
    log.info("outside")
    assert [event.get("request_id") for event in lines(stream)] == ["abc", None]


def test_a_field_cannot_replace_what_an_event_says_by_itself(log):
    stream = io.StringIO()
    logs.setup(stream=stream)
    log.warning("real", extra={"level": "fake", "logger": "fake", "time": "fake"})
    (event,) = lines(stream)
    assert (event["level"], event["logger"]) == ("warning", "ember.test")
    assert event["time"] != "fake"


def test_a_field_that_json_does_not_know_becomes_text(log, tmp_path):
    stream = io.StringIO()
    logs.setup(stream=stream)
    log.info("x", extra={"path": tmp_path, "odd": "\ud800 \u2028"})
    (event,) = lines(stream)
    assert event["path"] == str(tmp_path)
    assert len(stream.getvalue().splitlines()) == 1


def test_less_important_lines_are_left_out(log):
    stream = io.StringIO()
    logs.setup(level="warning", stream=stream)
    log.info("quiet")
    log.warning("loud")
    assert [event["message"] for event in lines(stream)] == ["loud"]


@pytest.mark.parametrize("name", ["asyncio", "aiohttp.server", "py.warnings"])
def test_libraries_log_to_the_same_place(name):
    stream = io.StringIO()
    logs.setup(stream=stream)
    logging.getLogger(name).warning("from a library")
    assert lines(stream)[0]["logger"] == name


def test_a_python_warning_is_a_line(log):
    stream = io.StringIO()
    logs.setup(stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(True)
        warnings.warn("old ways", stacklevel=1)
        logging.captureWarnings(False)
    (event,) = lines(stream)
    assert "old ways" in event["message"]


def test_setting_up_twice_does_not_write_twice(log):
    first, second = io.StringIO(), io.StringIO()
    logs.setup(stream=first)
    logs.setup(stream=second)
    log.info("once")
    assert first.getvalue() == ""
    assert len(lines(second)) == 1


def test_a_terminal_gets_readable_lines_in_colour(log, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = Terminal()
    logs.setup(stream=stream)
    log.warning("slow", extra={"ms": 900})
    line = stream.getvalue()
    assert "\x1b[33mwarning" in line
    assert "slow" in line
    assert "ms=900" in line


@pytest.mark.parametrize(("no_color", "coloured"), [("1", False), ("", True)])
def test_no_color_is_respected(log, monkeypatch, no_color, coloured):
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()
    logs.setup(stream=stream)
    log.info("x")
    assert ("\x1b[" in stream.getvalue()) is coloured


def test_text_that_is_asked_for_without_a_terminal_has_no_colour(log):
    stream = io.StringIO()
    logs.setup("text", stream=stream)
    log.error("x", extra={"code": "bad_image"})
    assert stream.getvalue().endswith(" error   x  code=bad_image\n")


def test_json_that_is_asked_for_on_a_terminal_is_json(log):
    stream = Terminal()
    logs.setup("json", stream=stream)
    log.info("x")
    assert lines(stream)[0]["message"] == "x"


def test_readable_lines_cannot_be_forged(log):
    stream = io.StringIO()
    logs.setup("text", stream=stream)
    log.info("a\nb\x1b[2J", extra={"path": "c\nd"})
    assert stream.getvalue().count("\n") == 1
    assert r"a\nb\x1b[2J  path=c\nd" in stream.getvalue()


def test_readable_lines_show_request_and_traceback(log):
    stream = io.StringIO()
    logs.setup("text", stream=stream)
    token = logs.request_id.set("abc")
    try:
        raise ValueError("why")
    except ValueError:
        log.exception("failed")
    finally:
        logs.request_id.reset(token)
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("failed  request_id=abc")
    assert rest[-1] == "ValueError: why"


def test_each_line_has_the_moment_of_its_own_event():
    lines_of, moments = logs.JsonLines(), [1.5, 1.75, 61.0, 1.999999, 1e9 + 0.001]
    records = [logging.makeLogRecord({"created": moment, "msg": "x"}) for moment in moments]
    times = [json.loads(lines_of.format(record))["time"] for record in records]
    assert times[:4] == [
        "1970-01-01T00:00:01.500Z",
        "1970-01-01T00:00:01.750Z",
        "1970-01-01T00:01:01.000Z",
        "1970-01-01T00:00:01.999Z",
    ]
    assert times[4].startswith("2001-09-09T01:46:40.00")
