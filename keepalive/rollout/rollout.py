"""The rollout: a new revision at 0 %, proven warm, tried, then given the traffic in steps.

Everything that is to be remembered is on the Service, so a rollout that was interrupted goes on
where it was when the same command is run again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from keepalive.cluster.client import Conflict, Missing, Resource
from keepalive.cluster.target import held
from keepalive.exchange import Unreachable
from keepalive.failure import Exit, Failure
from keepalive.pinger import swap
from keepalive.rollout import judge, traffic
from keepalive.rollout.traffic import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from keepalive.cluster.client import Cluster
    from keepalive.prometheus import Prometheus

_TRIES = 5
_LOOK_S = 2.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for.

    Attributes:
        image: the new one.
        service: the name of the Knative Service.
        tag: under which the new revision has an address of its own.
        steps: percentages of the traffic, rising, the last one 100.
        pause_s: for how long each step is watched.
        wait_s: how long the new revision may take until it is ready.
        swaps: how many golden swaps it has to make at its own address.
        most_s: the most seconds that one of them may take.
        timeout_s: how long to wait for an answer.
        headers: of these swaps.
        single_gpu: whether the old revision has to go before the new one can come.
        prometheus: compares the revisions; None to compare nothing.
        matchers: of its series.
        limits: by how much the new one may be worse.
    """

    image: str
    service: str = "ember"
    tag: str = "next"
    steps: tuple[int, ...] = (5, 25, 50, 100)
    pause_s: float = 120.0
    wait_s: float = 1260.0
    swaps: int = 3
    most_s: float | None = None
    timeout_s: float = 45.0
    headers: Mapping[str, str] = field(default_factory=dict)
    single_gpu: bool = False
    prometheus: Prometheus | None = None
    matchers: str = ""
    limits: judge.Limits = field(default_factory=judge.Limits)


class Worse(Exception):
    """The new revision is not good enough; the text says why."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """Rolls out.

    Attributes:
        cluster: it is in.
        wanted: what for.
        say: told what happens, a line each.
        sleep: waits for some seconds.
        clock: seconds, never going back.
    """

    cluster: Cluster
    wanted: Wanted
    say: Callable[[str], None]
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic

    def plan(self) -> list[str]:
        """What would be done; nothing is changed.

        Raises:
            Failure: it could not be.
        """
        service = self._service()
        made, wanted = self._progress(service), self.wanted
        begins = f"make a revision with {wanted.image} under the tag {wanted.tag}, at 0 %"
        if wanted.single_gpu:
            begins = (
                f"give a revision with {wanted.image} the traffic, held until {made.old} is gone"
            )
        lines = [] if traffic.progress(service) else [begins]
        lines.append(f"wait until it is proven warm, {wanted.wait_s:g} s at most")
        lines.append(f"have it make {wanted.swaps} golden swaps")
        if not wanted.single_gpu:
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
            Worse: all traffic is with the old revision again.
            Failure: something does not answer or is not allowed; the same command goes on with it.
        """
        service = self._service()
        made = self._progress(service)
        if traffic.progress(service) is None:
            pod_first = not self.wanted.single_gpu
            self._change(lambda found: traffic.begun(found, made, pod_first=pod_first))
            self.say(f"{made.old} serves; a revision with {made.image} is made")
        else:
            self.say(f"A rollout of {made.image} goes on after {made.step} steps")
        try:
            new = self._warm(made)
            self._try(made)
            if not self.wanted.single_gpu:
                self._shift(made, new)
        except Worse:
            self.undo(made)
            raise
        self._change(lambda _: traffic.ended())
        self.say(f"{new} has all traffic")
        return new

    def abort(self) -> None:
        """Give all traffic back to the old revision.

        Raises:
            Failure: there is no rollout.
        """
        if (made := traffic.progress(self._service())) is None:
            raise Failure(f"The Service {self.wanted.service} is in no rollout.", Exit.CONFIG)
        self.undo(made)

    def undo(self, made: Progress) -> None:
        """Give all traffic back to the old revision."""
        self._change(lambda _: traffic.undone(made))
        self.say(f"{made.old} has all traffic again")

    def _progress(self, service: dict[str, Any]) -> Progress:
        """The rollout that is under way, or the new one."""
        wanted, made = self.wanted, traffic.progress(service)
        if made is None:
            containers = service["spec"]["template"]["spec"]["containers"]
            if containers[0]["image"] == wanted.image:
                raise Failure(
                    f"{wanted.service} has the image {wanted.image} already.", Exit.CONFIG
                )
            return Progress(wanted.image, traffic.sole(service), wanted.tag)
        if made.image != wanted.image:
            raise Failure(
                f"A rollout of {made.image} is under way: finish it with --image {made.image}, or"
                " end it with --abort.",
                Exit.CONFIG,
            )
        return made

    def _warm(self, made: Progress) -> str:
        """Wait until the new revision is ready, which with Ember means warm and proven."""
        end, told = self.clock() + self.wanted.wait_s, ""
        while True:
            service = self._service()
            name = service.get("status", {}).get("latestCreatedRevisionName", made.old)
            ready, why = "Unknown", ""
            if name != made.old:
                ready, why = self._condition(name)
            if ready == "True" and traffic.condition(service)[0] == "True":
                self.say(f"{name} is ready")
                return str(name)
            if ready == "False":
                raise Worse(f"{name} does not become ready: {why or 'no reason is given'}")
            if self.clock() >= end:
                raise Worse(f"{name} is not ready after {self.wanted.wait_s:g} s. {why}".strip())
            if why and why != told:
                self.say(f"waiting for {name}: {why}")
                told = why
            self.sleep(_LOOK_S)

    def _try(self, made: Progress) -> None:
        """Have the new revision make golden swaps at its own address."""
        status = self._service().get("status", {})
        parts = status.get("traffic", [])
        urls = [one["url"] for one in parts if one.get("tag") == made.tag and "url" in one]
        if self.wanted.single_gpu:
            urls = [status["url"]] if "url" in status else []
        if not urls:
            raise Worse("the new revision has no address")
        at = swap.address(f"{urls[0].rstrip('/')}/readyz")
        for number in range(1, self.wanted.swaps + 1):
            try:
                done = swap.swap(at, self.wanted.timeout_s, self.wanted.headers)
            except (Unreachable, swap.Wrong) as error:
                raise Worse(f"golden swap {number} at {urls[0]}: {error}") from None
            except swap.Busy as error:
                raise Failure(
                    f"Golden swap {number} at {urls[0]}: {error}. Run the same command again.",
                    Exit.AGAIN,
                ) from None
            if self.wanted.most_s is not None and done.latency_s > self.wanted.most_s:
                raise Worse(
                    f"golden swap {number} took {done.latency_s:.3f} s;"
                    f" {self.wanted.most_s:g} are allowed"
                )
            self.say(f"golden swap {number}: well, {done.latency_s * 1e3:.0f} ms")

    def _shift(self, made: Progress, new: str) -> None:
        """Give the new revision the traffic in steps, while it is as good as the old one."""
        for step in self.wanted.steps[made.step :]:
            self._give(made, step)
            self.say(f"{new} has {step} %")
            self._watch(made.old, new)
            made = made.passed()

    def _give(self, made: Progress, percent: int) -> None:
        self._change(lambda _: traffic.shifted(made, percent))

    def _watch(self, old: str, new: str) -> None:
        """See for a while that both are there and the new one is no worse."""
        self.sleep(self.wanted.pause_s)
        ready, why = self._condition(new)
        if ready == "False":
            raise Worse(f"{new} is not ready any more: {why}")
        if (prometheus := self.wanted.prometheus) is None:
            return
        before, after = (
            judge.look(prometheus, name, self.wanted.pause_s, self.wanted.matchers)
            for name in (old, new)
        )
        verdict = judge.judge(before, after, self.wanted.limits)
        if verdict.good is False:
            raise Worse(f"{new}: {verdict.why}")
        self.say(f"{new}: {verdict.why}")

    def _condition(self, revision: str) -> tuple[str, str]:
        """See `traffic.condition`."""
        try:
            return traffic.condition(self.cluster.get(Resource.REVISION, revision))
        except Missing:
            raise Worse(f"{revision} is gone") from None

    def _service(self) -> dict[str, Any]:
        try:
            return self.cluster.get(Resource.SERVICE, self.wanted.service)
        except Missing:
            raise Failure(
                f"There is no Knative Service {self.wanted.service} in the namespace"
                f" {self.cluster.namespace}: use --service and --namespace.",
                Exit.CONFIG,
            ) from None

    def _change(self, patch: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Patch the Service as it is, and again when somebody else was faster."""
        for _ in range(_TRIES):
            service = self._service()
            if why := held(service):
                raise Failure(f"{why}; remove it to go on.", Exit.CONFIG)
            version = service["metadata"]["resourceVersion"]
            try:
                self.cluster.patch(
                    Resource.SERVICE, self.wanted.service, patch(service), version=version
                )
            except (Conflict, Missing):
                continue  # a Service that is gone is told of when it is read again
            return
        raise Failure(f"Somebody else keeps changing {self.wanted.service}.", Exit.AGAIN)
