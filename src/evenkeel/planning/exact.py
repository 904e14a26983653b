"""The yardstick: the best plan there is, by mixed-integer programming."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.errors import InvalidArgumentError
from evenkeel.planning.base import Planner, Problem, Proposal
from evenkeel.planning.items import Items
from evenkeel.planning.keel import Keel

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Exact"]

_PRICE = 1e-6  # fair shares of a channel that sending all state may cost in evenness


@dataclass(frozen=True, slots=True)
class Exact(Planner):
    """Find the optimum: the least imbalance for bounded bytes, or the fewest bytes for bounded imbalance.

    Every item (a slot, or a tracked or pinned key) with load is on exactly one channel. Without ``max_skewness``:
    minimise the load of the fullest channel, sending at most ``budget_bytes``, and no more than that takes. With it:
    send as few bytes as possible so that the fullest channel is at most ``max_skewness`` times the average. A switch to
    a backup sends nothing.

    Parameters
    ----------
    budget_bytes
        The most state that may be sent; no limit by default.
    max_skewness
        How full the fullest channel may be, relative to the average.
    time_limit_s
        When to stop; the plan is then the best one found, and its reasons name the gap that is left open.
    gap
        Stop when the plan is proved to be within this fraction of the optimum.
    max_choices
        The most items times channels to attempt. The problem is NP-hard; this is for small ones and for comparison.

    Notes
    -----
    Solved by HiGHS through SciPy. Items without load stay where they are, unless their channel vanishes.
    """

    name = "exact"

    budget_bytes: int | None = None
    max_skewness: float | None = None
    time_limit_s: float = 60.0
    gap: float = 1e-6
    max_choices: int = 200_000

    def __post_init__(self) -> None:
        if self.max_skewness is not None and self.max_skewness < 1:
            raise InvalidArgumentError(f"max_skewness must be at least 1; got {self.max_skewness}.")
        if self.budget_bytes is not None and self.budget_bytes < 0:
            raise InvalidArgumentError(f"budget_bytes must not be negative; got {self.budget_bytes}.")
        if self.time_limit_s <= 0 or self.gap < 0:
            raise InvalidArgumentError(
                f"time_limit_s must be positive and gap not negative; got {self.time_limit_s} and {self.gap}."
            )

    def propose(self, problem: Problem) -> Proposal:
        """Solve the programme, and say how good the answer is proved to be."""
        items = Items.of(problem.latest, problem.table)
        chosen = np.flatnonzero((items.loads > 0) | (items.homes >= problem.channels))
        loads = items.channel_loads(np.minimum(items.homes, problem.channels - 1), problem.channels)
        if not len(chosen) or (not problem.resizes and np.ptp(loads) == 0):
            table = items.table_with(items.homes, problem.channels)
            return Proposal(table, ("The channels are perfectly even already.",))
        size = len(chosen) * problem.channels
        if size > self.max_choices:
            raise InvalidArgumentError(
                f"{len(chosen)} items on {problem.channels} channels make {size:,} choices; max_choices allows "
                f"{self.max_choices:,}. Track fewer keys, use fewer slots, or plan with 'keel'."
            )
        solution = _Programme(items, chosen, problem.channels).solve(self)
        if solution.x is None:
            return self._fall_back(problem, solution.message)
        homes = items.homes.copy()
        homes[chosen] = solution.x[:size].reshape(len(chosen), problem.channels).argmax(axis=1)
        gap = 0.0 if solution.mip_gap is None else float(solution.mip_gap)
        proved = "optimal" if gap <= self.gap else f"within {gap:.2%} of the optimum, stopped by the time limit"
        goal = "fewest bytes" if self.max_skewness is not None else "least imbalance"
        return Proposal(items.table_with(homes, problem.channels), (f"The {goal}, proved {proved}.",))

    def _fall_back(self, problem: Problem, message: str) -> Proposal:
        """Without any solution, in time or at all, give keel's and say so."""
        tolerance = 0.0 if self.max_skewness is None else self.max_skewness - 1
        proposal = Keel(tolerance=tolerance, budget_bytes=self.budget_bytes).propose(problem)
        return Proposal(proposal.table, (f"No exact solution ({message.strip()}); this is keel's.", *proposal.reasons))


class _Programme:
    """Variables: x[i, c] = item i is on channel c; and z, the load of the fullest channel in fair shares."""

    def __init__(self, items: Items, chosen: NDArray[np.int64], channels: int) -> None:
        self.channels = channels
        self.count = len(chosen)
        fixed = items.fixed_for(channels)
        average = (items.loads.sum() + fixed.sum()) / channels
        self.scale = 1 / average if average > 0 else 1.0
        self.loads = items.loads[chosen] * self.scale
        self.fixed = fixed * self.scale
        self.held = max(int(items.state_bytes.sum()), 1)
        self.costs = self._costs(items, chosen)

    def _costs(self, items: Items, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        """Share of all state that is sent if item i ends on channel c."""
        costs = np.repeat(items.state_bytes[chosen, None] / self.held, self.channels, axis=1)
        rows = np.arange(self.count)
        stays = items.homes[chosen] < self.channels
        costs[rows[stays], items.homes[chosen][stays]] = 0
        backups = items.backups().take(chosen)
        alive = backups.channels < self.channels
        costs[backups.rows[alive], backups.channels[alive]] = 0
        return costs

    def solve(self, options: Exact) -> Any:
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import coo_array

        choices = self.count * self.channels
        item = np.repeat(np.arange(self.count), self.channels)
        channel = np.tile(np.arange(self.channels), self.count)
        column = np.arange(choices)
        once = coo_array((np.ones(choices), (item, column)), shape=(self.count, choices + 1))
        filled = coo_array(
            (
                np.concatenate([self.loads[item], -np.ones(self.channels)]),
                (
                    np.concatenate([channel, np.arange(self.channels)]),
                    np.concatenate([column, np.full(self.channels, choices)]),
                ),
            ),
            shape=(self.channels, choices + 1),
        )
        constraints = [LinearConstraint(once, 1, 1), LinearConstraint(filled, -np.inf, -self.fixed)]
        highest = np.inf if options.max_skewness is None else options.max_skewness
        # Of equally even plans the cheaper: a price far below what evenness is worth.
        goal = np.append(_PRICE * self.costs.ravel(), 1.0)
        if options.max_skewness is not None:
            goal = np.append(self.costs.ravel(), 0.0)
        if options.budget_bytes is not None:
            spent = np.append(self.costs.ravel(), 0.0)[None, :]
            # Half a byte of room, for what division and the solver's own tolerance lose.
            constraints.append(LinearConstraint(spent, -np.inf, (options.budget_bytes + 0.5) / self.held))
        return milp(
            goal,
            constraints=constraints,
            bounds=Bounds(0, np.append(np.ones(choices), highest)),
            integrality=np.append(np.ones(choices), 0),
            options={"time_limit": options.time_limit_s, "mip_rel_gap": options.gap},
        )
