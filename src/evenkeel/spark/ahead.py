"""What a task does while it waits: for tuples, or for an operator that takes its time; and after it, for its batch."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from evenkeel.errors import EvenkeelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evenkeel.state import ManifestRef, StateStore, StateView

__all__ = ["OPENING", "OpenedAhead", "catch_up_later", "read_ahead"]

Item = TypeVar("Item")
_AHEAD = 2
"""How many transfers of Spark's are read before they are asked for."""
_FIRST_LOOK_SECONDS, _LAST_LOOK_SECONDS, _LOOKS = 0.002, 10.0, 8
"""When a commit is first looked for, and when last; in between, so many times as often as it has been waited for."""
OPENING = threading.Lock()
"""Held by who opens a working copy that others of this process may open: it can only grow while it is open once."""


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Give what comes, reading on in a thread meanwhile; raises what reading raises."""
    read: queue.Queue[tuple[Item] | BaseException | None] = queue.Queue(_AHEAD)

    def read_all() -> None:
        try:
            for item in items:
                read.put((item,))
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            read.put(error)
        else:
            read.put(None)

    # Where the task fails, its worker ends, and the thread with it, whatever it waits for.
    threading.Thread(target=read_all, daemon=True).start()
    while (got := read.get()) is not None:
        if isinstance(got, BaseException):
            raise got
        yield got[0]


@dataclass(slots=True)
class OpenedAhead:
    """A channel's state, opened by a thread while tuples come, and others' that it needs.

    Use it as a context manager, which closes them.

    Parameters
    ----------
    open
        Opens the state of a channel.
    """

    open: Callable[[int], StateView]
    waited_ms: float = 0.0
    """How long the task had to wait for it."""
    _helper: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    _opening: Future[StateView] | None = None
    _others: ExitStack = field(default_factory=ExitStack)

    def begin(self, channel: int) -> None:
        """Begin to open, if that has not begun."""
        if self._opening is None:
            self._opening = self._helper.submit(self.open, channel)

    @property
    def view(self) -> StateView:
        """The state; raises what opening it failed with."""
        assert self._opening is not None
        started = time.perf_counter()
        view = self._opening.result()
        self.waited_ms += 1000 * (time.perf_counter() - started)
        return view

    def other(self, channel: int) -> StateView:
        """Open the state of another channel, too."""
        return self._others.enter_context(self.open(channel))

    def close(self) -> None:
        """Close the state, once it is open, and all others; harmless when done twice."""
        self._helper.shutdown()
        self._others.close()
        if self._opening is not None and self._opening.exception() is None:
            self._opening.result().close()

    def __enter__(self) -> OpenedAhead:  # noqa: PYI034 - typing.Self came with Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def catch_up_later(store: StateStore, ref: ManifestRef) -> threading.Thread | None:
    """Bring a channel's working copy to what a batch wrote as soon as that is committed; and write what it asked for.

    That is while the driver gets the next batch ready, and cores are idle. Whoever opens the copy before does it
    himself, so nothing hangs on it: it is not done where looking for a commit would be a journey. To write a snapshot
    takes longer, and the next batches do not wait for it.
    """
    if not store.checkpoint.files.near:
        return None
    thread = threading.Thread(target=_catch_up, args=(store, ref), daemon=True)
    thread.start()
    return thread


def _catch_up(store: StateStore, ref: ManifestRef) -> None:
    started = time.monotonic()
    with suppress(EvenkeelError, OSError):  # Who opens the copy next finds the same, and tells.
        while (waited := time.monotonic() - started) < _LAST_LOOK_SECONDS:
            time.sleep(max(_FIRST_LOOK_SECONDS, waited / _LOOKS))
            if store.checkpoint.is_committed(ref):
                with OPENING:
                    view = store.open_if_near(ref)
                if view is not None:
                    with view:
                        store.write_asked(view)
                return
