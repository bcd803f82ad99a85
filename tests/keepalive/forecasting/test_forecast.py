"""Forecasts: of weeks that are alike, odd weeks, changed clocks, and data that are too thin."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keepalive.forecasting.backtest import backtest
from keepalive.forecasting.forecast import STEP, Forecaster
from keepalive.prometheus import Point
from tests.keepalive.forecasting.weeks import BERLIN, END, usual, weeks

LEAD = timedelta(minutes=15)
DAY = timedelta(days=1)


def forecaster(points, **more):
    return Forecaster(points, BERLIN, LEAD, **more)


def test_weeks_that_are_alike_come_again():
    forecast = forecaster(weeks(6, noise=0)).forecast(END)
    assert forecast.at == END + LEAD
    assert forecast.expected == pytest.approx(usual(END + LEAD), rel=0.02)
    assert forecast.weeks == 4
    assert forecast.trend == pytest.approx(1, abs=0.02)
    assert forecast.low <= forecast.expected <= forecast.high
    assert forecast.high < 1.1 * forecast.expected


@pytest.mark.parametrize("factor", [0.5, 1.5, 3.0])
def test_what_is_going_on_now_counts(factor):
    def change(at, value):
        return value * factor if at > END - timedelta(hours=2) else value

    forecast = forecaster(weeks(6, noise=0, change=change)).forecast(END)
    assert forecast.trend == pytest.approx(factor, rel=0.1)
    assert forecast.expected == pytest.approx(factor * usual(END + LEAD), rel=0.15)


def test_a_trend_fades_with_the_time_ahead():
    def change(at, value):
        return value * 2 if at > END - timedelta(hours=2) else value

    known = forecaster(weeks(6, noise=0, change=change))
    shares = [
        known.forecast(END, timedelta(hours=h)).expected / usual(END + timedelta(hours=h))
        for h in (0.25, 3.25, 12)
    ]
    assert shares[0] == pytest.approx(2, rel=0.1)
    assert shares[1] == pytest.approx(2**0.5, rel=0.1)
    assert shares[2] == pytest.approx(1, abs=0.1)


def test_a_flash_crowd_of_one_week_does_not_come_again():
    crowd = END + LEAD - 7 * DAY

    def change(at, value):
        return value + 50 if abs(at - crowd) < timedelta(minutes=30) else value

    forecast = forecaster(weeks(6, noise=0, change=change)).forecast(END)
    assert forecast.expected == pytest.approx(usual(END + LEAD), rel=0.05)


def test_an_outage_of_one_week_is_no_end_of_demand():
    def change(at, value):
        gone = END - 8 * DAY < at < END - 6 * DAY
        return (None if at.hour % 2 else 0.0) if gone else value

    forecast = forecaster(weeks(6, noise=0, change=change)).forecast(END)
    assert forecast.expected == pytest.approx(usual(END + LEAD), rel=0.1)


def test_days_of_events_are_left_out():
    """Two holidays in four weeks make the usual too low, and the day look like a crowd."""
    holidays = [
        (END - timedelta(days=7 * ago) - DAY, END - timedelta(days=7 * ago) + DAY)
        for ago in (1, 2, 3)
    ]

    def change(at, value):
        return 0.1 if any(begins <= at < ends for begins, ends in holidays[:2]) else value

    points = weeks(6, noise=0, change=change)
    came = usual(END + LEAD)
    assert forecaster(points).forecast(END).trend > 1.5
    known = forecaster(points, leave_out=holidays[:2])
    assert known.forecast(END).expected == pytest.approx(came, rel=0.02)
    assert known.forecast(END).trend == pytest.approx(1, abs=0.02)
    assert known.forecast(END).weeks == 2
    assert forecaster(points, leave_out=holidays).forecast(END) is None, "one week is too thin"


@pytest.mark.parametrize("day", ["2026-03-30", "2026-10-26"])
def test_the_clock_counts_when_clocks_have_changed(day):
    """The Monday after: eight by the clock is an hour off from eight of last week."""
    end = datetime.fromisoformat(f"{day} 08:00").replace(tzinfo=BERLIN).astimezone(UTC)
    forecast = forecaster(weeks(6, end=end, noise=0)).forecast(end)
    assert forecast.expected == pytest.approx(usual(end + LEAD), rel=0.03)
    off_by_an_hour = usual(end + LEAD - timedelta(hours=1))
    assert abs(off_by_an_hour - usual(end + LEAD)) > 0.2 * usual(end + LEAD)


class TestThin:
    @pytest.mark.parametrize(("count", "enough"), [(1, False), (2, False), (3, True), (4, True)])
    def test_a_band_needs_forecasts_from_two_weeks_each(self, count, enough):
        forecast = forecaster(weeks(count, noise=0)).forecast(END)
        assert (forecast is not None) is enough
        assert forecast is None or forecast.weeks == min(4, count)

    def test_nothing_known_is_no_forecast(self):
        assert forecaster([]).forecast(END) is None
        assert forecaster([Point(END, 3.0)]).forecast(END) is None

    def test_gaps_at_this_time_of_the_week_leave_none(self):
        def change(at, value):
            return None if (END - at) % (7 * DAY) > 7 * DAY - timedelta(hours=1) else value

        assert forecaster(weeks(6, change=change)).forecast(END) is None
        assert forecaster(weeks(6, change=change)).forecast(END - 2 * DAY) is not None

    def test_without_the_last_hour_the_usual_is_expected(self):
        def change(at, value):
            return None if at > END - timedelta(hours=1) else value * 2

        forecast = forecaster(weeks(6, noise=0, change=change)).forecast(END)
        assert forecast.trend == 1


class TestBand:
    def test_most_of_what_comes_is_within_it(self):
        result = backtest(forecaster(weeks(7)), END - 4 * DAY, END)
        assert 0.85 <= result.inside <= 0.96
        assert 0.9 <= result.covered <= 0.99
        assert result.asked == len(result.rows) == 4 * 288 + 1

    def test_it_is_wider_where_weeks_differ_more(self):
        widths = []
        for noise in (0.02, 0.1, 0.3):
            forecast = forecaster(weeks(8, noise=noise)).forecast(END)
            widths.append((forecast.high - forecast.low) / forecast.expected)
        assert widths == sorted(widths)
        assert widths[2] > 3 * widths[0]


class TestBacktest:
    def test_forecasts_beat_last_week_and_no_change(self):
        result = backtest(forecaster(weeks(7)), END - 4 * DAY, END)
        assert result.forecast.error < 0.8 * result.last_week.error
        assert result.forecast.error < 0.85 * result.before.error
        assert abs(result.forecast.bias) < 0.03

    def test_nothing_of_the_time_to_come_is_known(self):
        """What comes after a moment changes no forecast made at it."""
        moment = END - DAY

        def change(at, value):
            return value * 7 if at > moment else value

        plain = forecaster(weeks(8)).forecast(moment)
        assert plain is not None
        assert forecaster(weeks(8, change=change)).forecast(moment) == plain

    def test_data_that_are_too_thin_give_none(self):
        assert backtest(forecaster(weeks(1)), END - 7 * DAY, END) is None

    def test_each_row_is_held_against_its_own_time(self):
        known = forecaster(weeks(6, noise=0))
        result = backtest(known, END - STEP, END)
        assert [row.forecast.at for row in result.rows] == [END - STEP, END]
        assert result.rows[1].came == pytest.approx(usual(END))
        assert result.rows[1].before == pytest.approx(usual(END - LEAD))
        assert result.rows[1].last_week == pytest.approx(usual(END - 7 * DAY))
