"""Looks at a checkpoint again and again, and has the newest state ready for whoever asks."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenkeel.dashboard.state import state_of
from evenkeel.dashboard.text import plain
from evenkeel.errors import EvenkeelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from evenkeel.dashboard.reader import CheckpointReader

__all__ = ["Seen", "Watch"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A state, also as JSON, and a tag that changes with it."""

    state: dict[str, Any]
    text: bytes
    tag: str


class Watch:
    """A thread that looks, so that visitors are answered at once, however many come and however slow the store is.

    Parameters
    ----------
    reader
        What to look with; nobody else may use it meanwhile.
    interval_seconds
        How long to wait between two looks.
    mask_keys
        Whether keys are shown by their hashes only.
    """

    def __init__(
        self,
        reader: CheckpointReader,
        *,
        interval_seconds: float = 2.0,
        mask_keys: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._reader = reader
        self._interval_seconds = interval_seconds
        self._mask_keys = mask_keys
        self._clock = clock
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self.seen = self._see()

    def look(self) -> None:
        """Look once; if that fails, the last state stays and says why."""
        try:
            self._reader.look(self._show_progress)
            self.seen = self._see()
        except Exception as error:  # noqa: BLE001 - whatever it is, the page must say so instead of standing still
            told = str(error) if isinstance(error, EvenkeelError) else repr(error)
            self.seen = _as_seen({**self.seen.state, "trouble": plain(told, 400)})

    def _show_progress(self, done: int, of: int) -> None:
        if of > 1 and done % 5 == 0:  # a first look at many batches: show those that are read already
            self.seen = self._see()

    def _see(self) -> Seen:
        return _as_seen(state_of(self._reader, self._clock(), mask_keys=self._mask_keys))

    def start(self) -> None:
        """Begin to look, in the background."""
        self._stopped.clear()
        self._thread = threading.Thread(target=self._run, name="evenkeel-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End; waits for a look that is under way, but not for long."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.look()
            self._stopped.wait(self._interval_seconds)


def _as_seen(state: dict[str, Any]) -> Seen:
    text = json.dumps(state, allow_nan=False, separators=(",", ":")).encode()
    return Seen(state, text, f'"{hashlib.blake2b(text, digest_size=12).hexdigest()}"')
