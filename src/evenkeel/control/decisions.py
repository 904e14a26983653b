"""Decisions: what was decided, on which numbers and why; also the decisions to leave all as it is."""

from __future__ import annotations

import dataclasses
import json
from collections import deque
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.control.gates import Answer, check_range
from evenkeel.control.saved import Saved
from evenkeel.errors import CorruptDataError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Choice", "Decision", "DecisionLog"]


class Choice(str, Enum):
    """What was decided."""

    WAIT = "wait"
    """The window is not over; nothing was looked at. The only choice that is not logged."""
    STAY = "stay"
    """The table stays."""
    MOVE = "move"
    """State moves between the channels that there are."""
    RESIZE = "resize"
    """The number of channels changes."""
    CONTINUE = "continue"
    """The next step of a plan that takes several batches."""
    REHOME = "rehome"
    """A channel moves to another host; decided by the engine."""
    REPLICATE = "replicate"
    """Backup copies are made, or given up; decided by the engine, by the service levels."""
    RECOVER = "recover"
    """Channels lost their state, and copies elsewhere were switched on; decided by the engine."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision, its numbers and its reasons.

    Parameters
    ----------
    batch, window, time
        The last batch observed, the window judged, and the time that was passed in.
    choice
        What was decided.
    reasons
        Why, in words; at least one.
    channels, next_channels
        How many channels there are, and are to be.
    planner
        Who was asked to plan, if anyone was.
    before, predicted, achieved
        Skewness of the window under the table in force, under the one planned, and, filled in later, in the first
        whole window after the plan was carried out, as the channels measured it.
    plan_ms
        How long planning took.
    state_bytes
        State that the whole plan moves.
    step, steps, step_bytes
        Which step of how many this is, and the state that it moves.
    answers
        What the gates said.
    number
        Counts the logged decisions, from 0.
    """

    batch: int
    window: int
    time: float
    choice: Choice
    reasons: tuple[str, ...]
    channels: int
    next_channels: int
    planner: str | None = None
    before: float | None = None
    predicted: float | None = None
    achieved: float | None = None
    state_bytes: int = 0
    plan_ms: float = 0.0
    step: int = 0
    steps: int = 0
    step_bytes: int = 0
    answers: tuple[Answer, ...] = ()
    number: int = -1

    @property
    def changes(self) -> bool:
        """Whether a new table was handed out."""
        return self.choice in {Choice.MOVE, Choice.RESIZE, Choice.CONTINUE}

    def to_json(self) -> dict[str, Any]:
        """Give the decision as plain values."""
        plain = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}
        answers = [answer.to_json() for answer in self.answers]
        return {**plain, "choice": self.choice.value, "reasons": list(self.reasons), "answers": answers}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Decision:
        """Read what :meth:`to_json` gave."""
        try:
            read = {
                "choice": Choice(values["choice"]),
                "reasons": tuple(values["reasons"]),
                "answers": tuple(Answer(**answer) for answer in values["answers"]),
            }
            return cls(**{**values, **read})
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(f"This is not a stored decision: {error}") from error

    def __str__(self) -> str:
        return f"batch {self.batch}: {self.choice.value}. {' '.join(self.reasons)}"


class DecisionLog:
    """The last decisions, oldest first; those over ``limit`` are forgotten.

    Notes
    -----
    About 1 kB per decision. Each is encoded once, so that storing the log with every batch costs a copy of it.
    """

    def __init__(self, limit: int = 250) -> None:
        check_range("limit", limit, 1)
        self._decisions: deque[Decision] = deque(maxlen=limit)
        self._encoded: deque[bytes] = deque(maxlen=limit)
        self._next = 0

    def __len__(self) -> int:
        return len(self._decisions)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self._decisions)

    def __getitem__(self, index: int) -> Decision:
        return self._decisions[index]

    def append(self, decision: Decision) -> Decision:
        """Log a decision; it is given back with its number."""
        numbered = dataclasses.replace(decision, number=self._next)
        self._next += 1
        self._decisions.append(numbered)
        self._encoded.append(_encode(numbered))
        return numbered

    def complete(self, number: int, achieved: float) -> None:
        """Fill in what a decision achieved, if it is still remembered."""
        place = number - (self._next - len(self._decisions))
        if 0 <= place < len(self._decisions):
            self._decisions[place] = dataclasses.replace(self._decisions[place], achieved=achieved)
            self._encoded[place] = _encode(self._decisions[place])

    def snapshot(self) -> Saved:
        """Give all decisions, to be stored: as lines of JSON."""
        return Saved({"next": self._next}, {"lines": np.frombuffer(b"\n".join(self._encoded), np.uint8)})

    def restore(self, saved: Saved) -> None:
        """Continue from what :meth:`snapshot` gave."""
        self._next = saved.facts["next"]
        self._decisions.clear()
        self._encoded.clear()
        for line in saved.arrays["lines"].tobytes().splitlines():
            self._decisions.append(Decision.from_json(json.loads(line)))
            self._encoded.append(line)


def _encode(decision: Decision) -> bytes:
    return json.dumps(decision.to_json(), allow_nan=False).encode()
