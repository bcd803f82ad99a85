"""The schedule: what is wanted when, in every odd hour of the year, and what is refused."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keepalive.failure import Failure
from keepalive.prescaler.schedule_file import parse, read

HEAD = """
timezone = "Europe/Berlin"
lead_minutes = 12
floor = 1
max_floor = 20
gpu_hours_per_day = 120
"""
WEEKDAYS = """
[[window]]
start = "0 8 * * mon-fri"
hours = 10.5
floor = 4
"""
CHRISTMAS = """
[[event]]
from = 2026-12-24T18:00:00+01:00
to = 2026-12-24T23:00:00+01:00
floor = 8
"""
HOLIDAY = """
[[event]]
from = 2026-12-25T00:00:00
to = 2026-12-27T00:00:00
floor = 0
"""
patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
BERLIN = ZoneInfo("Europe/Berlin")


def berlin(text, fold=0):
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


def window(start, hours, floor=5, zone="Europe/Berlin"):
    return parse(
        f'timezone = "{zone}"\nlead_minutes = 0\nfloor = 0\nmax_floor = 20\n'
        f'[[window]]\nstart = "{start}"\nhours = {hours}\nfloor = {floor}\n'
    )


def test_all_of_a_schedule_is_read():
    schedule = parse(
        HEAD
        + "release_minutes = 45\n"
        + WEEKDAYS
        + CHRISTMAS
        + '[[pool]]\ntag = "canary"\nfloor = 1\n'
        + '[batch]\nservice = "ember-batch"\nfloor = 4\ngpus = 24\n'
    )
    assert schedule.timezone.key == "Europe/Berlin"
    assert (schedule.lead, schedule.release) == (timedelta(minutes=12), timedelta(minutes=45))
    assert (schedule.floor, schedule.max_floor, schedule.gpu_hours_per_day) == (1, 20, 120)
    assert schedule.windows[0].length == timedelta(hours=10.5)
    assert schedule.events[0].begins == datetime(2026, 12, 24, 17, tzinfo=UTC)
    assert schedule.pools[0].tag == "canary"
    assert schedule.batch.service == "ember-batch"


def test_what_may_be_left_out_has_its_default():
    schedule = parse('timezone = "UTC"\nfloor = 0\nmax_floor = 1\n')
    assert schedule.lead == timedelta(minutes=12)
    assert schedule.release == timedelta(minutes=30)
    assert schedule.gpu_hours_per_day == float("inf")
    assert schedule.at(datetime(2026, 1, 1, tzinfo=UTC)).floor == 0


@pytest.mark.parametrize(
    ("moment", "floor"),
    [
        ("2026-11-27 07:59:59", 1),  # a Friday
        ("2026-11-27 08:00:00", 4),
        ("2026-11-27 18:29:59", 4),
        ("2026-11-27 18:30:00", 1),
        ("2026-11-28 12:00:00", 1),  # the weekend
        ("2026-11-29 12:00:00", 1),
        ("2026-11-30 08:00:00", 4),  # Monday, the last of its month
        ("2026-12-01 08:00:00", 4),
        ("2026-12-31 12:00:00", 4),
        ("2027-01-01 12:00:00", 4),  # a holiday is an event, which nobody has written down
    ],
)
def test_a_window_is_open_on_its_days_from_its_start_for_its_hours(moment, floor):
    assert parse(HEAD + WEEKDAYS).at(berlin(moment)).floor == floor


@pytest.mark.parametrize(
    ("start", "hours", "moment", "is_open"),
    [
        # 2026-03-29, 02:00: clocks go forward to 03:00
        ("30 2 * * *", 1, "2026-03-29 01:59", False),
        ("30 2 * * *", 1, "2026-03-29 03:00", True),  # what the gap swallows begins after it
        ("30 2 * * *", 1, "2026-03-29 03:59", True),
        ("30 2 * * *", 1, "2026-03-29 04:00", False),
        ("0 0 * * *", 8, "2026-03-29 08:59", True),  # eight hours that pass, not eight by the clock
        ("0 0 * * *", 8, "2026-03-29 09:00", False),
        ("0 8 * * *", 10, "2026-03-29 08:00", True),  # the rest of the day is as ever
        ("0 8 * * *", 10, "2026-03-29 07:59", False),
        ("0 8 * * *", 10, "2026-03-29 18:00", False),
        # 2026-10-25, 03:00: clocks go back to 02:00
        ("30 2 * * *", 1, "2026-10-25 02:30", True),
        ("30 2 * * *", 1, "2026-10-25 02:29", False),
        ("30 2 * * *", 1, "2026-10-25 02:29 fold", True),
        ("30 2 * * *", 1, "2026-10-25 02:30 fold", False),  # it does not come twice
        ("0 0 * * *", 8, "2026-10-25 06:59", True),
        ("0 0 * * *", 8, "2026-10-25 07:00", False),
        ("0 3 * * *", 1, "2026-10-25 02:59 fold", False),
        ("0 3 * * *", 1, "2026-10-25 03:00", True),
        # leap days and the ends of months
        ("0 8 29 2 *", 1, "2028-02-29 08:00", True),
        ("0 8 29 2 *", 1, "2027-03-01 08:00", False),
        ("0 8 1 3 *", 1, "2028-02-29 08:00", False),
        ("0 8 31 * *", 1, "2026-04-30 08:00", False),
        ("0 8 L * *", 1, "2026-04-30 08:00", True),
        ("0 8 L * *", 1, "2028-02-29 08:00", True),
        ("0 8 L 2 *", 1, "2027-02-28 08:00", True),
        # over midnight, over the weekend, over the year
        ("0 22 * * fri", 12, "2026-11-28 09:59", True),
        ("0 22 * * fri", 12, "2026-11-28 10:00", False),
        ("0 18 * * fri", 60, "2026-11-30 05:59", True),
        ("0 18 * * fri", 60, "2026-11-30 06:00", False),
        ("0 20 31 12 *", 8, "2027-01-01 03:59", True),
        ("0 20 31 12 *", 8, "2027-01-01 04:00", False),
        # longer than its own period: always open
        ("0 * * * *", 2, "2026-11-30 05:30", True),
        ("0 0 * * *", 168, "2026-03-29 12:00", True),
    ],
)
def test_clocks_and_calendars_are_minded(start, hours, moment, is_open):
    at = berlin(moment.removesuffix(" fold"), fold=moment.endswith(" fold"))
    assert window(start, hours).at(at).floor == (5 if is_open else 0)


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kolkata"])
def test_a_daily_window_is_open_for_its_hours_on_every_day_of_a_year(zone):
    schedule = window("0 12 * * *", 6, zone=zone)
    begin = datetime(2028, 1, 1, tzinfo=ZoneInfo(zone))
    for day in range(366):
        noon = (begin + timedelta(days=day)).replace(hour=12)
        assert schedule.at(noon).floor == 5, noon
        assert schedule.at(noon.replace(hour=11, minute=59)).floor == 0, noon
        assert schedule.at(noon.replace(hour=18)).floor == 0, noon


@patient
@given(
    minutes=st.integers(0, 366 * 24 * 60),
    hours=st.integers(1, 30),
    start=st.sampled_from(["0 8 * * mon-fri", "30 2 * * *", "15 0 1 * *", "0 */6 * * sat,sun"]),
)
def test_a_window_is_open_exactly_after_one_of_its_starts(minutes, hours, start):
    """Against a walk over every start of the weeks before."""
    from cronsim import CronSim

    moment = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    length = timedelta(hours=hours)
    begin = (moment - timedelta(days=3)).astimezone(BERLIN)
    is_open = False
    for due in CronSim(start, begin):
        if due.astimezone(UTC) > moment:
            break
        is_open |= due.astimezone(UTC) + length > moment
    assert (window(start, hours).at(moment).floor == 5) is is_open


def test_of_windows_that_overlap_the_largest_counts():
    schedule = parse(HEAD + WEEKDAYS + '[[window]]\nstart = "0 12 * * *"\nhours = 2\nfloor = 9\n')
    assert schedule.at(berlin("2026-11-27 11:00")).floor == 4
    assert schedule.at(berlin("2026-11-27 12:00")).floor == 9
    assert schedule.at(berlin("2026-11-27 12:00")).why == "window 0 12 * * *"
    assert schedule.at(berlin("2026-11-27 14:00")).floor == 4


def test_a_window_never_lowers_the_floor():
    schedule = parse(HEAD + '[[window]]\nstart = "0 12 * * *"\nhours = 2\nfloor = 0\n')
    assert schedule.at(berlin("2026-11-27 12:30")).floor == 1


class TestEvents:
    def test_an_event_takes_the_place_of_windows(self):
        schedule = parse(HEAD + WEEKDAYS + CHRISTMAS)
        assert schedule.at(berlin("2026-12-24 17:59")).floor == 4
        planned = schedule.at(berlin("2026-12-24 18:00"))
        assert (planned.floor, planned.event) == (8, True)
        assert planned.why == "event until 2026-12-24 23:00+01:00"
        assert schedule.at(berlin("2026-12-24 23:00")).floor == 1

    def test_a_holiday_lowers_the_floor_and_ends_by_the_clock(self):
        schedule = parse(HEAD + WEEKDAYS + HOLIDAY)
        assert schedule.at(berlin("2026-12-25 12:00")).floor == 0  # a Friday
        assert schedule.at(berlin("2026-12-26 23:59")).floor == 0
        assert schedule.at(berlin("2026-12-27 00:00")).floor == 1

    def test_of_events_that_overlap_the_largest_counts(self):
        party = CHRISTMAS.replace("T18", "T20").replace("floor = 8", "floor = 2")
        schedule = parse(HEAD + party + CHRISTMAS)
        assert schedule.at(berlin("2026-12-24 21:00")).floor == 8


class TestAhead:
    def test_a_floor_is_wanted_its_lead_time_before(self):
        schedule = parse(HEAD + WEEKDAYS + CHRISTMAS)
        assert schedule.ahead(berlin("2026-11-27 07:47:59")).floor == 1
        assert schedule.ahead(berlin("2026-11-27 07:48")).floor == 4
        assert schedule.ahead(berlin("2026-12-24 17:47")).floor == 4
        assert schedule.ahead(berlin("2026-12-24 17:48")).floor == 8

    def test_a_floor_does_not_fall_before_its_time(self):
        schedule = parse(HEAD + WEEKDAYS + HOLIDAY)
        assert schedule.ahead(berlin("2026-11-27 18:29")).floor == 4
        assert schedule.ahead(berlin("2026-11-27 18:30")).floor == 1
        assert schedule.ahead(berlin("2026-12-24 23:55")).floor == 1
        assert schedule.ahead(berlin("2026-12-25 00:00")).floor == 0

    def test_the_end_of_a_holiday_is_foreseen(self):
        schedule = parse(HEAD + HOLIDAY)
        assert schedule.ahead(berlin("2026-12-26 23:47")).floor == 0
        assert schedule.ahead(berlin("2026-12-26 23:48")).floor == 1

    def test_a_window_within_the_lead_time_is_not_overlooked(self):
        short = '[[window]]\nstart = "5 12 * * *"\nhours = 0.05\nfloor = 7\n'
        assert parse(HEAD + short).ahead(berlin("2026-11-27 12:00")).floor == 7

    @patient
    @given(minutes=st.integers(0, 366 * 24 * 60))
    def test_it_is_the_most_that_any_minute_of_the_lead_time_wants(self, minutes):
        schedule = parse(HEAD + WEEKDAYS + CHRISTMAS + HOLIDAY)
        now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
        wanted = max(schedule.at(now + timedelta(minutes=m)).floor for m in range(13))
        assert schedule.ahead(now).floor == wanted


@pytest.mark.parametrize(
    ("moment", "left"),
    [
        ("2026-11-30 00:00", 24),
        ("2026-11-30 12:30", 11.5),
        ("2026-11-30 23:59", 1 / 60),
        ("2026-03-29 00:00", 23),
        ("2026-03-29 03:00", 21),
        ("2026-10-25 00:00", 25),
        ("2026-10-25 02:30", 22.5),
        ("2028-02-29 00:00", 24),
        ("2026-12-31 23:00", 1),
    ],
)
def test_a_day_has_the_hours_that_it_has(moment, left):
    schedule = parse(HEAD)
    assert schedule.hours_left(berlin(moment)) == pytest.approx(left)
    assert schedule.midnight(berlin(moment)) == berlin(moment[:10] + " 00:00")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("floor = ", "Invalid value"),
        ("", "timezone: is missing"),
        (HEAD.replace("Europe/Berlin", "Europe/Bärlin"), "'Europe/Bärlin' is not known here"),
        (HEAD.replace("Europe/Berlin", "../etc/passwd"), "is not known here"),
        (HEAD.replace('"Europe/Berlin"', "1"), "timezone: a text in quotes"),
        (HEAD.replace("floor = 1\n", ""), "floor: is missing"),
        (HEAD.replace("floor = 1\n", "floor = true\n"), "floor: a whole number from 0 to 20"),
        (HEAD.replace("floor = 1\n", "floor = -1\n"), "floor: a whole number from 0 to 20"),
        (HEAD.replace("floor = 1\n", "floor = 21\n"), "floor: a whole number from 0 to 20"),
        (HEAD.replace("floor = 1\n", "floor = 1.5\n"), "floor: a whole number from 0 to 20"),
        (HEAD.replace("max_floor = 20", "max_floor = 0"), "max_floor: a whole number from 1"),
        (HEAD.replace("lead_minutes = 12", "lead_minutes = 600"), "a number from 0 to 120"),
        (HEAD.replace("= 120", "= -1"), "gpu_hours_per_day: a number from 0 on"),
        (HEAD.replace("= 120", "= nan"), "gpu_hours_per_day: a number from 0 on"),
        (HEAD + "release_minutes = 0", "release_minutes: a number from 1 to 1440"),
        (HEAD + "lead_minute = 1", "lead_minute: there is no such key; is it `lead_minutes`?"),
        (HEAD + "xyz = 1", "xyz: there is no such key"),
        (HEAD + "window = 1", r"window: write it as \[\[window\]\]"),
        (HEAD + "[window]\nfloor = 1", r"window: write it as \[\[window\]\]"),
        (HEAD + WEEKDAYS.replace("hours", "hour"), "window 1: hours: is missing"),
        (HEAD + WEEKDAYS + "days = 1", "window 1: days: there is no such key"),
        (HEAD + WEEKDAYS + WEEKDAYS.replace("10.5", "0"), "window 2: hours: a window has more"),
        (HEAD + WEEKDAYS.replace("10.5", "169"), "window 1: hours: a number from 0 to 168"),
        (HEAD + WEEKDAYS.replace("= 4", "= 21"), "window 1: floor: a whole number from 0 to 20"),
        (HEAD + WEEKDAYS.replace("0 8 *", "8 *"), "has not the five fields"),
        (HEAD + WEEKDAYS.replace("0 8 *", "0 0 8 *"), "has not the five fields"),
        (HEAD + WEEKDAYS.replace("mon-fri", "mon-fry"), "is not cron's: Bad day-of-week"),
        (HEAD + WEEKDAYS.replace("mon-fri", "fri-mon"), "is not cron's: Bad day-of-week"),
        (HEAD + WEEKDAYS.replace("0 8 * * mon-fri", "0 8 30 2 *"), "Bad day-of-month"),
        (HEAD + CHRISTMAS.replace("T23", "T18"), "event 1: to: it is not after `from`"),
        (HEAD + CHRISTMAS.replace("2026-12-24T18:00:00+01:00", "12"), "from: a time like"),
        (HEAD + CHRISTMAS.replace("2026-12-24T18:00:00+01:00", "2026-12-24"), "from: a time like"),
        (HEAD + "[[pool]]\nfloor = 1", "pool 1: tag: is missing"),
        (HEAD + '[[pool]]\ntag = "x"\nfloor = 1\nflor = 2', "pool 1: flor: there is no such key"),
        (HEAD + "[batch]\nfloor = 1", "batch: service: is missing"),
        (
            HEAD + '[batch]\nservice = "x"\nfloor = 1\ngpus = 0',
            "batch: gpus: a whole number from 1",
        ),
        (HEAD + "batch = 1", r"batch: write it as \[batch\]"),
    ],
)
def test_what_is_not_possible_is_named(text, told):
    with pytest.raises(ValueError, match=told):
        parse(text)


def test_a_file_is_named_with_what_is_wrong(tmp_path):
    path = tmp_path / "schedule.toml"
    with pytest.raises(Failure, match=r"schedule\.toml cannot be read: No such file") as failure:
        read(path)
    assert failure.value.exit_code == 78
    path.write_text(HEAD + "floors = 1")
    with pytest.raises(Failure, match=r"schedule\.toml is wrong: floors: there is no such key"):
        read(path)
    path.write_bytes(b"\xff")
    with pytest.raises(Failure, match="cannot be read"):
        read(path)
    path.write_text(HEAD)
    assert read(path) == parse(HEAD)


def test_what_an_extra_brings_is_named_when_it_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cronsim", None)
    with pytest.raises(Failure, match=r"need cronsim: make install EXTRAS=k8s"):
        parse(HEAD + WEEKDAYS)
