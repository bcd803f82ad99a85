"""The rollout: a new revision at 0 %, proven warm, tried, then given the traffic in steps.

Everything that is to be remembered is on the Service, so a rollout that was interrupted goes on
where it was when the same command is run again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from keepalive.cluster.autoscaling import scale
from keepalive.cluster.client import Missing
from keepalive.cluster.pin import complaint
from keepalive.cluster.readiness import condition, failed
from keepalive.exchange import Unreachable
from keepalive.failure import Exit, Failure
from keepalive.pinger import swap
from keepalive.rollout import judge, replicas, traffic
from keepalive.rollout.config import RevisionRejected, RolloutConfig
from keepalive.rollout.live import LiveService
from keepalive.rollout.traffic import RolloutProgress
from keepalive.rollout.unpin import unpin

if TYPE_CHECKING:
    from collections.abc import Callable

from keepalive.cluster.client import Cluster

_LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class Rollout:
    """Rolls out.

    Attributes:
        cluster: it is in.
        wanted: what for.
        say: called with a line for each thing that happens.
        sleep: waits for some seconds.
        clock: seconds, never going back.
    """

    cluster: Cluster
    wanted: RolloutConfig
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def plan(self) -> list[str]:
        """What would be done; nothing is changed.

        Raises:
            Failure: it could not be.
        """
        service = self._live.settled()
        made, wanted = self._progress(service), self.wanted
        with_many = f", with {made.replicas} replicas" if made.replicas > 1 else ""
        begins = (
            f"make a revision with {wanted.image} under the tag {wanted.tag}, at 0 %{with_many}"
        )
        if not made.replicas:
            begins = (
                f"give a revision with {wanted.image} the traffic, held until {made.old} is gone"
            )
        lines = [] if traffic.progress(service) else [begins]
        lines.append(f"wait until it is proven warm, {wanted.wait_s:g} s at most")
        lines.append(f"have it make {wanted.swaps} golden swaps")
        if made.replicas:
            how = "compared with the old one" if wanted.prometheus else "not compared"
            lines += [
                f"give it {step} %, watched for {wanted.pause_s:g} s, {how}"
                for step in wanted.steps[made.step :]
            ]
        return [*lines, f"when something is wrong: all traffic back to {made.old}"]

    def run(self) -> str:
        """Do it, or go on with it.

        Returns:
            The new revision.

        Raises:
            RevisionRejected: all traffic is with the old revision again.
            Failure: something does not answer or is not allowed; the same command goes on with it.
        """
        service = self._live.settled()
        made = self._progress(service)
        if traffic.progress(service) is None:
            self._live.change(lambda found: traffic.begun(self._live.same(service, found), made))
            self.say(f"{made.old} serves; a revision with {made.image} is made")
        else:
            self.say(f"A rollout of {made.image} goes on after {made.step} steps")
        if made.undoing:
            self.undo(made)
            raise RevisionRejected(f"{made.image} was being undone.")
        try:
            if made.replicas:  # what serves keeps what it has until it is known how this ends
                self._live.set_floor(made.old, lambda floor: max(floor, made.replicas))
            made = self._named(made)
            self._warm(made)
            if made.replicas:
                self._try(made)
                self._steps(made)
            else:  # it gets its pod when the old one has gone, and that goes when nobody asks it
                self._shift(made, replicas.WHOLE)
                self._try(made)
        except RevisionRejected:
            self.undo(made)
            raise
        self._end(made)
        return made.new

    def abort(self) -> None:
        """Give all traffic back to the old revision.

        Raises:
            Failure: there is no rollout.
        """
        if (made := traffic.progress(self._live.service())) is None:
            raise Failure(f"The Service {self.wanted.service} is in no rollout.", Exit.CONFIG)
        self.undo(made)

    def unpin(self) -> None:
        """Let the latest revision have the traffic again, if it is the one that serves.

        Raises:
            Failure: another one would get the traffic, unproven.
        """
        unpin(self._live, self.say)

    def undo(self, made: RolloutProgress) -> None:
        """Give all traffic back to the old revision, which keeps its replicas until it has that."""
        self._hold(made, lambda floor: max(floor, made.replicas))
        self._live.change(lambda found: traffic.undone(found, made))
        try:
            self._moved(made.old)
        except Failure as failure:
            self.say(f"{made.old} is to have all traffic again. {failure}")
            return
        self._hold(made, lambda floor: made.lasting(floor, made.floor))
        self._live.change(lambda _: traffic.marked(None))
        self.say(
            f"{made.old} has all traffic again. It is pinned by name: until a rollout ends well, or"
            " `ember rollout --unpin`, neither `make deploy` nor `kn service update` moves any."
        )

    def _hold(self, made: RolloutProgress, wanted: Callable[[int], int]) -> None:
        """Give the old revision a floor, if that can be: its traffic matters more."""
        if made.replicas:
            try:
                self._live.set_floor(made.old, wanted)
            except Failure as failure:
                self.say(f"The floor of {made.old} stays as it is: {failure}")

    @property
    def _live(self) -> LiveService:
        wanted = self.wanted
        return LiveService(self.cluster, wanted.service, wanted.wait_s, self.sleep, self.clock)

    def _progress(self, service: dict[str, Any]) -> RolloutProgress:
        """The rollout that is under way, or the new one."""
        wanted, made = self.wanted, traffic.progress(service)
        if made is None:
            return self._new(service)
        if made.image != wanted.image:
            raise Failure(
                f"A rollout of {made.image} is under way: finish it with --image {made.image}, or"
                " end it with --abort.",
                Exit.CONFIG,
            )
        return made

    def _new(self, service: dict[str, Any]) -> RolloutProgress:
        wanted = self.wanted
        old, latest = traffic.sole(service), traffic.latest(service)
        if old == latest and traffic.image(service["spec"]["template"]) == wanted.image:
            told = f"{wanted.service} has the image {wanted.image} already."
            raise Failure(" ".join(filter(None, (told, complaint(service)))), Exit.CONFIG)
        serving = self._revision(old)
        template = traffic.template(service)
        count = replicas.needed([serving], template)
        if wanted.replicas:
            count = replicas.bounded(wanted.replicas, template)
        if wanted.single_gpu:
            count = 0
        return RolloutProgress(
            wanted.image,
            old,
            wanted.tag,
            before=latest,
            replicas=count,
            floor=replicas.floor(serving),
        )

    def _named(self, made: RolloutProgress) -> RolloutProgress:
        """With the name of the new revision, which is known when Knative has made it."""
        if made.new:
            return made
        before = made.before or made.old
        service = self._live.settled(
            lambda found: traffic.latest(found) != before, f"the image {made.image}"
        )
        new = traffic.latest(service)
        if (image := traffic.image(self._revision(new))) != made.image:
            raise Failure(
                f"Somebody has changed {self.wanted.service} while {made.image} was rolled out: its"
                f" latest revision {new} has the image {image}. End the rollout with --abort.",
                Exit.CONFIG,
            )
        made = replace(made, new=new)
        self._live.change(lambda _: traffic.marked(made))
        return made

    def _warm(self, made: RolloutProgress) -> None:
        """Wait until the new revision is ready, which with Ember means warm and proven."""
        end, told = self.clock() + self.wanted.wait_s, ""
        while True:
            revision = self._revision(made.new)
            ready, why = condition(revision)
            if ready == "True" and self._reachable(made):
                self.say(f"{made.new} is ready")
                return
            if failed(revision):
                raise RevisionRejected(
                    f"{made.new} does not become ready: {why or 'no reason is given'}"
                )
            if self.clock() >= end:
                room = (
                    f" It starts with {made.replicas} replicas, as many as serve; where there is no"
                    " room for so many, use --replicas."
                    if made.replicas > 1
                    else ""
                )
                why = f"{made.new} is not ready after {self.wanted.wait_s:g} s. {why}".strip()
                raise RevisionRejected(why + room)
            if why and why != told:
                self.say(f"waiting for {made.new}: {why}")
                told = why
            self.sleep(_LOOK_S)

    def _reachable(self, made: RolloutProgress) -> bool:
        """Whether it has an address of its own; where it has to get the traffic first, later."""
        service = self._live.service()
        return not made.replicas or (
            traffic.reconciled(service) and traffic.address(service, made) is not None
        )

    def _try(self, made: RolloutProgress) -> None:
        """Have the new revision make golden swaps.

        One that has the traffic before it has a replica is waited for by the first of them.
        """
        if (url := traffic.address(self._live.service(), made)) is None:
            raise RevisionRejected("the new revision has no address")
        at = swap.address(f"{url.rstrip('/')}/readyz")
        for number in range(1, self.wanted.swaps + 1):
            starts = number == 1 and not made.replicas
            try:
                patience = self.wanted.wait_s if starts else self.wanted.timeout_s
                done = swap.swap(at, patience, self.wanted.headers)
            except (Unreachable, swap.SwapWrong) as error:
                raise RevisionRejected(f"golden swap {number} at {url}: {error}") from None
            except swap.SwapBusy as error:
                raise Failure(
                    f"Golden swap {number} at {url}: {error}. Run the same command again.",
                    Exit.AGAIN,
                ) from None
            late = self.wanted.most_s is not None and done.latency_s > self.wanted.most_s
            if late and not starts:
                raise RevisionRejected(
                    f"golden swap {number} took {done.latency_s:.3f} s;"
                    f" {self.wanted.most_s:g} are allowed"
                )
            self.say(f"golden swap {number}: well, {done.latency_s * 1e3:.0f} ms")

    def _steps(self, made: RolloutProgress) -> None:
        """Give the new revision the traffic in steps, while it is as good as the old one."""
        for percent in self.wanted.steps[made.step :]:
            self._give(made, percent)
            self._watch(made)
            made = made.passed()

    def _give(self, made: RolloutProgress, percent: int) -> None:
        """Give the new revision a part of the traffic, and first the replicas for it."""
        count = replicas.share(made.replicas, percent)
        self._live.set_floor(made.new, lambda floor: max(floor, count))
        end = self.clock() + self.wanted.wait_s
        while (there := replicas.replicas(self._revision(made.new))) < count:
            if self.clock() >= end:
                raise RevisionRejected(
                    f"{made.new} has {there} of the {count} replicas that {percent} % of the"
                    f" traffic need after {self.wanted.wait_s:g} s; where there is no room for so"
                    " many, use --replicas."
                )
            self.sleep(_LOOK_S)
        self._shift(made, percent)

    def _shift(self, made: RolloutProgress, percent: int) -> None:
        self._live.change(lambda found: traffic.shifted(found, made, percent))
        self._live.settled(
            lambda found: traffic.percents(found).get(made.new) == percent, "the traffic"
        )
        self.say(f"{made.new} has {percent} %")

    def _watch(self, made: RolloutProgress) -> None:
        """See for a while that both are there and the new one is no worse."""
        self.sleep(self.wanted.pause_s)
        ready, why = condition(self._revision(made.new))
        if ready == "False":
            raise RevisionRejected(f"{made.new} is not ready any more: {why}")
        if (prometheus := self.wanted.prometheus) is None:
            return
        before, after = (
            judge.revision_metrics(prometheus, name, self.wanted.pause_s, self.wanted.matchers)
            for name in (made.old, made.new)
        )
        verdict = judge.judge(before, after, self.wanted.limits)
        if verdict.good is False:
            raise RevisionRejected(f"{made.new}: {verdict.why}")
        self.say(f"{made.new}: {verdict.why}")

    def _end(self, made: RolloutProgress) -> None:
        """Leave all as after any other update, with the floor that there was before."""
        template = traffic.template(self._live.settled())
        own = replicas.bounded(max(made.floor, scale(template, "min-scale")), template)
        self._live.set_floor(made.new, lambda floor: made.lasting(floor, own))
        self._live.change(lambda found: traffic.ended(found, made))
        if told := complaint(self._moved(made.new)):
            raise Failure(
                f"{made.new} has all traffic, but somebody has changed the Service meanwhile."
                f" {told}",
                Exit.AGAIN,
            )
        self.say(f"{made.new} has all traffic")

    def _moved(self, name: str) -> dict[str, Any]:
        """The Service, once a revision really has all traffic."""
        return self._live.settled(
            lambda found: traffic.percents(found) == {name: replicas.WHOLE}, "the traffic"
        )

    def _revision(self, name: str) -> dict[str, Any]:
        try:
            return self._live.revision(name)
        except Missing:
            raise RevisionRejected(f"{name} is gone") from None
