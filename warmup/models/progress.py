"""How far a prefetch is, for people and for programs."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class FetchState(StrEnum):
    """What happens to a file. A damaged one is fetched anew."""

    CHECKING = "checking"
    WAITING = "waiting"
    FETCHING = "fetching"
    READY = "ready"


@dataclass(slots=True)
class FetchProgress:
    """One file on its way.

    Attributes:
        name: the file's name in the manifest.
        size: its bytes.
        done: how many of them are here.
        state: what happens to it; waiting means that another process fetches it.
    """

    name: str
    size: int
    done: int = 0
    state: FetchState = FetchState.CHECKING
    _began: float = field(default_factory=time.monotonic)
    _took: float | None = None
    _had: int = 0

    def begin(self, had: int) -> None:
        """Bytes come from now on."""
        self.state = FetchState.FETCHING
        self.done = self._had = had
        self._began = time.monotonic()

    def end(self) -> None:
        """All bytes are here."""
        if self.state is not FetchState.FETCHING:
            self._had = self.size
        self._took = time.monotonic() - self._began
        self.done, self.state = self.size, FetchState.READY

    @property
    def rate(self) -> float:
        """Bytes a second since they began to come."""
        took = time.monotonic() - self._began if self._took is None else self._took
        return (self.done - self._had) / max(1e-3, took)

    @property
    def eta_s(self) -> float | None:
        """Seconds until all will be here; None when nothing comes."""
        if self.state is FetchState.READY:
            return 0.0
        return (self.size - self.done) / self.rate if self.done > self._had else None

    def facts(self) -> dict[str, Any]:
        """The values that may be shown, as JSON knows them."""
        eta = self.eta_s
        return {
            "name": self.name,
            "state": str(self.state),
            "done": self.done,
            "size": self.size,
            "rate": round(self.rate),
            "eta_s": None if eta is None else round(eta, 1),
        }
