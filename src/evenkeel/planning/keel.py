"""keel, Evenkeel's own planner: as even as asked, with as little state moved as it takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.keel_search import NO_LIMIT, SLACK, Limits, Search

if TYPE_CHECKING:
    from collections.abc import Mapping


__all__ = ["Keel"]


@dataclass(frozen=True, slots=True)
class Keel(Planner):
    """Local search from the table in force: relieve the fullest channel by the move that helps most per byte.

    Until every channel is within the tolerance, the fullest one gives an item (a slot, or a hot key) to the emptiest
    channel, back to where it came from, or, for free, to one of its backups. Where no single item helps, two are
    exchanged. At the end, whatever can go home without harm goes home. A budget that does not suffice is spent where it
    helps most.

    Parameters
    ----------
    tolerance
        How far the fullest channel may lie above the average, as a fraction.
    budget_bytes
        The most state that may be sent; no limit by default. What a vanishing channel holds must be sent in any case.
    weights
        Resources to balance and how much they matter: ``"costs"``, ``"counts"``, ``"state_bytes"``. A resource with
        weight w may reach W/w times its average, W being the largest weight. Only ``"costs"`` by default.
    max_pins
        The most keys, the costliest first, that may get a place of their own, besides those that have one. Where more
        than so many have one, the coldest go back to their slots, if there is room and the budget pays for it.
    max_steps
        The most moves and exchanges of one descent; a plan is the best of a few.
    time_limit_ms
        The most time to search, looked at every few hundred steps. With a limit, plans may differ from run to run.

    Notes
    -----
    Never worse than the table in force, and never more bytes than the budget. Each step takes O(items of one channel)
    for a move and O(items of a few channels · log) for an exchange.
    """

    name = "keel"

    tolerance: float = 0.02
    budget_bytes: int | None = None
    weights: Mapping[str, float] = field(default_factory=lambda: {"costs": 1.0})
    max_pins: int = 1000
    max_steps: int = 20_000
    time_limit_ms: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance < 0:
            raise InvalidArgumentError(f"tolerance must not be negative; got {self.tolerance}.")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise InvalidArgumentError(f"budget_bytes must not be negative; got {self.budget_bytes}.")
        unknown = set(self.weights) - {"costs", "counts", "state_bytes"}
        if unknown or not self.weights or min(self.weights.values()) <= 0:
            raise InvalidArgumentError(
                f"weights must be positive, for 'costs', 'counts' or 'state_bytes'; got {dict(self.weights)}."
            )
        if self.max_pins < 0 or self.max_steps < 0:
            raise InvalidArgumentError(
                f"max_pins and max_steps must not be negative; got {self.max_pins} and {self.max_steps}."
            )

    def propose(self, problem: Problem) -> Proposal:
        """Search from the table in force."""
        search = Search(problem, self.weights, self.max_pins, self.budget_bytes)
        target = max(search.fair, 1e-300) * (1 + self.tolerance)
        forced = search.place_homeless(target)
        budget = NO_LIMIT if self.budget_bytes is None else max(self.budget_bytes - search.sent_back_bytes, forced)
        limits = search.limits(target=target, budget=budget, steps=self.max_steps, time_limit_ms=self.time_limit_ms)
        search.run(limits)
        table = search.items.table_with(search.board.homes, problem.channels)
        return Proposal(table, tuple(self._reasons(search, limits, forced)))

    def _reasons(self, search: Search, limits: Limits, forced: int) -> list[str]:
        """Say what was done and why it stopped."""
        after, moves, swaps = search.board.fullest, search.moves, search.swaps
        said = []
        if forced:
            said.append(f"{forced:,} bytes were on channels that vanish.")
        if search.sent_back:
            said.append(f"{search.sent_back} keys that are hot no more go back to their slots.")
        if after <= limits.target + SLACK:
            if moves + swaps == 0 and not said:
                return [f"The fullest channel is within {self.tolerance:.0%} of the average already."]
            said.append(f"{moves} moves and {swaps} exchanges bring the fullest channel within {self.tolerance:.0%}.")
            return said
        over = f"The fullest channel stays {after / search.fair - 1:.1%} above the average:"
        if search.hit_limit:
            said.append(f"{over} the limit of {self.max_steps} steps or of time was reached.")
        elif search.too_dear:
            said.append(f"{over} the budget of {limits.budget:,} bytes does not pay for more.")
        elif float(search.board.loads.max(initial=0.0)) > limits.target:
            said.append(f"{over} its hottest key or slot alone exceeds what a channel may have, and cannot be divided.")
        else:
            said.append(f"{over} no move or exchange helps further.")
        return said
