"""A dashboard that is really served, for the tests of its page and its guard."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn

from evenkeel.dashboard import CheckpointReader
from evenkeel.dashboard.guard import Access
from evenkeel.dashboard.server import make_app
from evenkeel.dashboard.watch import Watch


@pytest.fixture(scope="session")
def serve():
    """Serve a checkpoint on a free port: ``with serve(path, access) as port``."""

    @contextmanager
    def serving(path, access=None, *, bind="127.0.0.1", **options):
        watch = Watch(CheckpointReader(str(path)), interval_seconds=0.1, **options)
        app = make_app(watch, access or Access())
        server = uvicorn.Server(
            uvicorn.Config(app, host=bind, port=0, log_level="error", server_header=False, ws="none")
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        deadline = time.monotonic() + 20
        while (not server.started or watch.seen.state["batch"] is None) and time.monotonic() < deadline:
            time.sleep(0.01)
        try:
            yield server.servers[0].sockets[0].getsockname()[1]
        finally:
            server.should_exit = True
            thread.join(10)

    return serving
