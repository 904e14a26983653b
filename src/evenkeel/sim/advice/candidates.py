"""What the advisor tries: strategies with their settings, and the lines of code that choose them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenkeel.control import Controller, ControlOptions, WindowOptions
from evenkeel.errors import UnknownNameError
from evenkeel.planning import PLANNERS, make_planner
from evenkeel.routing import ROUTERS
from evenkeel.routing.routers.base import StickyRouter
from evenkeel.sim.strategies import Controlled, Routed

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CANDIDATES", "PLAIN", "Candidate", "find_candidates"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A strategy as one would ask Spark for it.

    Parameters
    ----------
    name
        How it is called here.
    strategy
        The planner or router.
    batches
        Micro-batches of a statistics window, for a planner; the controller's own default if not given.
    combine
        Whether tuples are combined to partial states before the shuffle.
    """

    name: str
    strategy: str
    batches: int | None = None
    combine: bool = False

    @property
    def splits(self) -> bool:
        """Whether tuples of one key go to several channels, which are then merged."""
        return self.strategy not in PLANNERS and not ROUTERS[self.strategy].keeps_keys_together

    @property
    def needs_merge(self) -> bool:
        """Whether the operator's partial states must merge."""
        return self.splits or self.combine

    def replayed(self) -> Routed | Controlled:
        """Give what a replay takes: planners under the controller that runs on Spark."""
        if self.strategy == "key_grouping":
            return Routed(self.strategy)
        if self.strategy in PLANNERS:
            return Controlled(Controller(make_planner(self.strategy), self._options()))
        return Routed(self.strategy, flush_every=1 if self.splits else None, afresh=True)

    def _options(self) -> ControlOptions:
        return ControlOptions() if self.batches is None else ControlOptions(windows=WindowOptions(batches=self.batches))

    def code(self, key: Sequence[str], channels: int) -> str:
        """Give the lines to paste, for rows called ``events`` and an operator called ``operator``."""
        imports, before, chosen = ["import evenkeel as ek"], [], f'"{self.strategy}"'
        if self.batches is not None:
            imports += [
                "from evenkeel.control import Controller, ControlOptions, WindowOptions",
                "from evenkeel.planning import make_planner",
            ]
            options = f"ControlOptions(windows=WindowOptions(batches={self.batches}))"
            before = [f"keeper = Controller(make_planner({chosen}), {options})"]
            chosen = "keeper"
        keys = ", ".join(json.dumps(name, ensure_ascii=False) for name in key)
        combine = ", combine=True" if self.combine else ""
        named = "-".join("".join(letter if letter.isalnum() else "_" for letter in name) for name in key)
        return "\n".join(
            [
                *imports,
                "",
                *before,
                "query = (",
                f"    ek.stream(events, key={keys if len(key) == 1 else f'[{keys}]'})",
                f"    .apply(operator, strategy={chosen}, channels={channels}{combine})",
                f'    .start("console", checkpoint="checkpoints/{named}")',
                ")",
            ]
        )


PLAIN = Candidate("key_grouping", "key_grouping")
"""What Spark does by itself."""

CANDIDATES = (
    PLAIN,
    Candidate("key_grouping+combine", "key_grouping", combine=True),
    Candidate("keel", "keel"),
    Candidate("keel+short", "keel", batches=1),
    Candidate("keel+combine", "keel", combine=True),
    Candidate("pkg", "pkg"),
    Candidate("d_choices", "d_choices"),
    Candidate("w_choices", "w_choices"),
    Candidate("readj", "readj"),
    Candidate("mixed", "mixed"),
)
"""What is tried by default, the simplest first: of those that are about as good, the first is advised."""


def find_candidates(names: Sequence[str]) -> tuple[Candidate, ...]:
    """Find candidates by name, or make them of any planner or router that Spark can run; plain Spark comes first."""
    known = {candidate.name: candidate for candidate in CANDIDATES}
    runs = {name for name, router in ROUTERS.items() if not issubclass(router, StickyRouter) and name != "off_greedy"}
    found = [PLAIN]
    for name in names:
        if name not in known and name not in PLANNERS and name not in runs:
            raise UnknownNameError("strategy to advise on", name, {*known, *PLANNERS, *runs})
        found.append(known.get(name) or Candidate(name, name))
    return tuple(dict.fromkeys(found))
