"""A replica becomes ready by fetching, loading and warming, once, whoever asks."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from warmup.failures import StoreError
from warmup.phase import IllegalStep, Phase
from warmup.replica import Replica
from warmup.retry import Retry

AT_ONCE = Retry(total_s=60, first_s=0.001, most_s=0.001)
LATER = Retry(total_s=60, first_s=50)


class Thing:
    """Warmable that counts, and can be told to wait or to break."""

    def __init__(self, *, fetches: bool = False) -> None:
        self.fetches = fetches
        self.done: list[str] = []
        self.cold = True
        self.go = asyncio.Event()
        self.go.set()
        self.failures: dict[str, list[Exception]] = {}

    async def fetch(self) -> None:
        await self.do("fetch")

    async def load(self, *, whole: bool) -> None:
        await self.do("load all" if whole else "load")
        self.cold = self.cold and not whole

    async def warm(self) -> None:
        await self.do("warm")

    async def do(self, what: str) -> None:
        self.done.append(what)
        await self.go.wait()
        if failures := self.failures.get(what):
            raise failures.pop(0)


@pytest.fixture
async def thing() -> Thing:
    return Thing()


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


async def ready(replica):
    replica.start()
    await until(lambda: replica.ready)


def phases(replica):
    return [step.phase for step in replica.steps]


async def test_it_is_ready_only_after_load_and_warm(thing):
    seen: list[Phase] = []
    replica = Replica(thing, listeners=[seen.append])
    assert not replica.ready
    await replica.warm()
    assert replica.ready
    assert thing.done == ["load all", "warm"]
    assert seen == [Phase.LOADING, Phase.WARMING, Phase.READY]
    assert phases(replica) == [Phase.STARTING, *seen]
    times = [step.at_s for step in replica.steps]
    assert times == sorted(times)


async def test_what_can_be_fetched_is_fetched_first():
    thing = Thing(fetches=True)
    replica = Replica(thing)
    await ready(replica)
    assert thing.done == ["fetch", "load", "warm"]
    assert phases(replica)[1] is Phase.FETCHING


async def test_the_timeline_has_each_phase_of_the_first_start_and_nothing_later(thing):
    replica = Replica(thing)
    await replica.warm()
    await replica.warm(force=True)
    assert [span.name for span in replica.timeline.spans] == ["loading", "warming"]


async def test_a_hundred_callers_share_one_warm_up(thing):
    thing.go.clear()
    replica = Replica(thing)
    callers = [asyncio.create_task(replica.warm()) for _ in range(100)]
    await asyncio.sleep(0)
    thing.go.set()
    await asyncio.gather(*callers)
    assert thing.done == ["load all", "warm"]


async def test_a_caller_that_goes_away_does_not_stop_the_warm_up(thing):
    thing.go.clear()
    replica = Replica(thing)
    caller = asyncio.create_task(replica.warm())
    await asyncio.sleep(0.001)
    caller.cancel()
    thing.go.set()
    await replica.warm()
    assert replica.ready
    assert thing.done == ["load all", "warm"]


async def test_force_warms_again_without_loading_again_and_serves_meanwhile(thing):
    replica = Replica(thing)
    await replica.warm()
    await replica.warm()
    thing.go.clear()
    again = asyncio.create_task(replica.warm(force=True))
    await until(lambda: thing.done[2:] == ["warm"])
    assert (replica.ready, replica.serves) == (False, True)
    thing.go.set()
    await again
    assert replica.ready
    assert thing.done == ["load all", "warm", "warm"]


async def test_a_replica_that_is_ready_but_cold_is_loaded_when_asked(thing):
    replica = Replica(thing)
    await ready(replica)
    assert thing.cold
    await asyncio.gather(*(replica.warm() for _ in range(10)))
    assert thing.done == ["load", "warm", "load all", "warm"]
    await replica.warm()
    assert len(thing.done) == 4


async def test_who_asks_during_a_start_that_leaves_it_cold_waits_until_it_is_not(thing):
    thing.go.clear()
    replica = Replica(thing)
    replica.start()
    asking = asyncio.create_task(replica.warm())
    await asyncio.sleep(0.001)
    thing.go.set()
    await asking
    assert thing.done == ["load", "warm", "load all", "warm"]


async def test_a_failure_without_retry_is_final_and_reported(thing):
    thing.failures["warm"] = [ValueError("black image")]
    replica = Replica(thing)
    with pytest.raises(ValueError, match="black image"):
        await replica.warm()
    assert replica.phase is Phase.FAILED
    assert replica.last_error == "ValueError; see the log"
    assert not replica.serves
    await replica.warm()
    replica.drain()
    assert replica.phase is Phase.FAILED
    assert thing.done == ["load all", "warm"]


@pytest.mark.parametrize("what", ["fetch", "load", "warm"])
async def test_a_step_that_fails_is_repeated_and_those_before_it_are_not(what):
    thing = Thing(fetches=True)
    thing.failures[what] = [OSError("no"), OSError("no")]
    replica = Replica(thing, AT_ONCE)
    await ready(replica)
    plan = ["fetch", "load", "warm"]
    place = plan.index(what)
    assert thing.done == [*plan[:place], what, what, *plan[place:]]
    assert (replica.last_error, replica.next_try_s) == (None, None)
    assert phases(replica) == list(dict.fromkeys(phases(replica)))


async def test_a_retry_loads_as_much_as_the_try_before_it(thing):
    thing.failures["load all"] = [OSError("no")]
    replica = Replica(thing, AT_ONCE)
    with pytest.raises(OSError, match="no"):
        await replica.warm()
    await until(lambda: replica.ready)
    assert thing.done == ["load all", "load all", "warm"]


async def test_while_it_waits_it_is_unready_and_tells_why_and_how_long(thing):
    thing.failures["load"] = [OSError("not there")]
    replica = Replica(thing, LATER)
    replica.start()
    await until(lambda: replica.last_error)
    assert (replica.ready, replica.phase) == (False, Phase.LOADING)
    assert replica.last_error == "OSError; see the log"
    assert 20 < replica.next_try_s <= 30
    replica.drain()


async def test_asking_while_it_waits_tries_at_once(thing):
    thing.failures["load"] = [OSError("no")]
    replica = Replica(thing, LATER)
    replica.start()
    await until(lambda: replica.last_error)
    await replica.warm()
    assert replica.ready
    assert thing.done == ["load", "load all", "warm"]


async def test_it_fails_for_good_when_the_time_is_over(thing):
    thing.failures["load"] = [StoreError(str(n)) for n in range(1000)]
    replica = Replica(thing, Retry(total_s=0.05, first_s=0.001, most_s=0.01))
    replica.start()
    await until(lambda: replica.phase is Phase.FAILED)
    assert len(thing.done) > 2
    assert replica.last_error == f"StoreError: {len(thing.done) - 1}"


async def test_a_repair_ends_readiness_at_once_and_success_brings_it_back(thing):
    replica = Replica(thing)
    await replica.warm()
    replica.repair(RuntimeError("no heartbeat"))
    assert (replica.ready, replica.serves) == (False, False)
    assert replica.last_error == "RuntimeError; see the log"
    await until(lambda: replica.ready)
    assert (replica.last_error, replica.serves) == (None, True)
    assert thing.done == ["load all", "warm", "warm"]


async def test_a_repair_of_what_is_not_ready_changes_nothing(thing):
    thing.go.clear()
    replica = Replica(thing)
    replica.start()
    await until(lambda: thing.done)
    replica.repair(RuntimeError("no heartbeat"))
    thing.go.set()
    await until(lambda: replica.ready)
    assert thing.done == ["load", "warm"]


async def test_draining_during_the_warm_up_is_never_undone_and_keeps_nobody_waiting(thing):
    thing.go.clear()
    replica = Replica(thing)
    warming = asyncio.create_task(replica.warm())
    await until(lambda: thing.done)
    replica.drain()
    await asyncio.wait_for(warming, 10)
    assert replica.phase is Phase.DRAINING
    assert (replica.ready, replica.serves) == (False, False)


async def test_draining_while_it_waits_ends_the_tries(thing):
    thing.failures["load"] = [OSError("no")]
    replica = Replica(thing, Retry(total_s=60, first_s=0.01))
    replica.start()
    await until(lambda: replica.last_error)
    replica.drain()
    await asyncio.sleep(0.05)
    assert thing.done == ["load"]


async def test_a_replica_that_drains_still_serves(thing):
    replica = Replica(thing)
    await replica.warm()
    replica.drain()
    replica.drain()
    assert replica.serves
    assert phases(replica).count(Phase.DRAINING) == 1


@pytest.mark.parametrize(("phase", "later"), list(itertools.product(Phase, Phase)))
async def test_an_illegal_step_is_an_error_and_changes_nothing(thing, phase, later):
    replica = Replica(thing)
    replica.phase = phase
    if later is phase or phase.may_become(later):
        replica._enter(later)
        assert replica.phase is later
        return
    with pytest.raises(IllegalStep, match=f"is {phase} cannot become {later}"):
        replica._enter(later)
    assert replica.phase is phase


async def test_very_many_steps_are_not_all_kept(thing):
    replica = Replica(thing)
    for _ in range(200):
        await replica.warm(force=True)
    assert len(replica.steps) == 100
    assert replica.steps[-1].phase is Phase.READY


class FinalError(Exception):
    final = True


async def test_what_only_a_new_process_can_mend_is_not_tried_again(thing):
    thing.failures["warm"] = [FinalError("the GPU is lost")]
    replica = Replica(thing, LATER)
    replica.start()
    await until(lambda: replica.phase is Phase.FAILED)
    assert replica.next_try_s is None
    assert "FinalError" in replica.last_error


async def test_nor_is_a_heartbeat_that_finds_it(thing):
    replica = Replica(thing, LATER)
    await ready(replica)
    replica.repair(FinalError("the GPU is lost"))
    assert replica.phase is Phase.FAILED
    assert thing.done == ["load", "warm"]


async def test_one_that_fails_for_good_while_it_loads_gives_that_up(thing):
    replica = Replica(thing, LATER)
    thing.go.clear()
    replica.start()
    await until(lambda: thing.done == ["load"])
    replica.fail(FinalError("the GPU is lost"))
    thing.go.set()
    await asyncio.sleep(0.01)
    assert (replica.phase, thing.done) == (Phase.FAILED, ["load"])


async def test_one_that_drains_does_not_fail_any_more(thing):
    replica = Replica(thing, LATER)
    await ready(replica)
    replica.drain()
    replica.fail(FinalError("the GPU is lost"))
    assert replica.phase is Phase.DRAINING
