"""Every error that Evenkeel raises on purpose.

::

    EvenkeelError
    ├── InvalidArgumentError (ValueError)   a value outside what is allowed
    │   ├── UnknownNameError                a router, planner, … that does not exist
    │   └── UnsupportedTypeError            a key type that Spark cannot hash
    ├── InvalidTableError                   a routing table that breaks its own laws
    ├── InvalidPlanError                    a plan that would lose state, or does not do what it says
    ├── StageFailedError                    a keyed stage that failed: operator, channel, batch and key
    │   ├── KeyFailedError                  what an operator raised for one key
    │   ├── MisplacedTaskError              a task that found no home row, or two
    │   └── ColdChannelError                a channel without its state, while others hold copies of it
    ├── StorageError                        a disk or file system that fails, or is full
    ├── IncompatibleCheckpointError         a checkpoint of another job, or of a newer format
    ├── CheckpointInUseError                a checkpoint that another query holds
    ├── CommitConflictError                 a batch that is committed already with other content, or out of turn
    └── CorruptDataError                    stored bytes that are not what they claim to be
        └── UnrecoverableStateError         no good snapshot and deltas suffice to restore a state

Messages say what was wrong, what was got, what is allowed and what to do. Errors carry their facts as
fields and survive pickling, since Spark sends them between processes.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CheckpointInUseError",
    "ColdChannelError",
    "CommitConflictError",
    "CorruptDataError",
    "EvenkeelError",
    "IncompatibleCheckpointError",
    "InvalidArgumentError",
    "InvalidPlanError",
    "InvalidTableError",
    "KeyFailedError",
    "MisplacedTaskError",
    "StageFailedError",
    "StorageError",
    "UnknownNameError",
    "UnrecoverableStateError",
    "UnsupportedTypeError",
]


class EvenkeelError(Exception):
    """Root of all errors that Evenkeel raises on purpose."""

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        # Reached only for names that normal look-up did not find. During unpickling there is no `fields` yet.
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.fields)


def _rebuild(kind: type[EvenkeelError], message: str, fields: dict[str, Any]) -> EvenkeelError:
    error = kind.__new__(kind)
    EvenkeelError.__init__(error, message, **fields)
    return error


class InvalidArgumentError(EvenkeelError, ValueError):
    """A value outside what is allowed."""


class UnknownNameError(InvalidArgumentError):
    """A name that is not registered; the message suggests the nearest one."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = sorted(known)
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(
            f"There is no {kind} called {name!r}.{hint} Known: {', '.join(known)}.", name=name, known=known
        )


class UnsupportedTypeError(InvalidArgumentError):
    """A key type that Spark cannot hash, or that has no place in a key."""


class InvalidTableError(EvenkeelError):
    """A routing table that breaks its own laws, such as a channel that does not exist."""


class InvalidPlanError(EvenkeelError):
    """A plan that would lose or strand state, or that does not do what it says."""


class StageFailedError(EvenkeelError):
    """A keyed stage that failed; says operator, channel, batch and, where it is known, the key."""


class KeyFailedError(StageFailedError):
    """What an operator raised while it worked on one key."""


class MisplacedTaskError(StageFailedError):
    """A task that did not find exactly one home row, so that it does not know which channel it is."""


class ColdChannelError(StageFailedError):
    """A channel whose state is not where it was, while others hold copies of it: roles must be switched."""


class StorageError(EvenkeelError):
    """A disk or file system that fails, or is full; what was committed before is untouched."""


class IncompatibleCheckpointError(EvenkeelError):
    """A checkpoint of another job, or written by a newer version of Evenkeel."""


class CheckpointInUseError(EvenkeelError):
    """A checkpoint that another query holds."""


class CommitConflictError(EvenkeelError):
    """A batch that is committed already with other content, or whose turn it is not."""


class CorruptDataError(EvenkeelError):
    """Stored bytes that are not what they claim to be."""


class UnrecoverableStateError(CorruptDataError):
    """No good snapshot and deltas suffice to restore a state; ``damaged`` names the files."""
