"""``evenkeel dashboard``: a query's live page, and its metrics."""

from __future__ import annotations

import json
import os
import socket
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console

from evenkeel.errors import EvenkeelError, InvalidArgumentError

__all__ = ["dashboard"]

_TOKEN = "EVENKEEL_DASHBOARD_TOKEN"  # noqa: S105 - its name, not its value


def dashboard(
    checkpoint: Annotated[str, typer.Argument(help="The query's checkpoint: a directory, or a URI.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond this machine, a token is needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8470,
    token: Annotated[
        str | None, typer.Option(help=f"What visitors must show; better given as {_TOKEN}, which ps does not list.")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name by which the page is called, such as a proxy's.")
    ] = None,
    interval: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks at the checkpoint.")] = 2.0,
    mask_keys: Annotated[bool, typer.Option("--mask-keys", help="Show keys by their hashes only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Say where the page is as JSON.")] = False,
) -> None:
    """Serve a live page about a query that runs, or has run, and its metrics for Prometheus.

    It reads the checkpoint only, so it needs no Spark and does not disturb the query. Ctrl-C ends it.
    """
    from evenkeel.dashboard import CheckpointReader

    try:
        import uvicorn

        from evenkeel.dashboard.guard import Access
        from evenkeel.dashboard.server import make_app
        from evenkeel.dashboard.watch import Watch
    except ImportError as error:
        raise EvenkeelError(
            f"The dashboard needs {error.name}: pip install 'evenkeel[dashboard]'. 'evenkeel top' works without."
        ) from error

    names = frozenset(name.lower() for name in allow_host or ())
    access = Access(host, token or os.environ.get(_TOKEN) or None, names)
    watch = Watch(CheckpointReader(checkpoint), interval_seconds=interval, mask_keys=mask_keys)
    listening = _listen(host, port)
    address, port = listening.getsockname()[:2]
    url = f"http://{f'[{address}]' if ':' in address else address}:{port}/"
    if as_json:
        typer.echo(json.dumps({"url": url, "metrics": f"{url}metrics", "state": f"{url}api/state"}))
    else:
        ask = " Open it with ?token=… once." if access.token else ""
        Console(stderr=True).print(f"{url} shows {checkpoint}.{ask} Ctrl-C ends it.", highlight=False, soft_wrap=True)
    # No access log: it would hold tokens. No server header: nobody needs it.
    config = uvicorn.Config(make_app(watch, access), log_level="warning", access_log=False, server_header=False)
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """Listen from now on, so that who reads the address finds somebody there."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen()
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise InvalidArgumentError(
            f"Cannot listen on {host}, port {port}: {error.strerror or error}. Take another one: --port 0 finds one."
        ) from error
    return listening
