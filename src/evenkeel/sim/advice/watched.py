"""A workload that tells how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.sim.workloads import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evenkeel.sim.window import Window

__all__ = ["Watched"]


@dataclass(frozen=True, eq=False)
class Watched(Workload):
    """Another workload, with a function that is told the number of each window before it is given."""

    name = "watched"

    base: Workload
    tell: Callable[[int], None]

    @property
    def sources(self) -> int:
        """Those of the base."""
        return self.base.sources

    @property
    def endless(self) -> bool:
        """Whether the base is."""
        return self.base.endless

    def windows(self) -> Iterator[Window]:
        """Give the base's windows."""
        for window in self.base.windows():
            self.tell(window.number)
            yield window
