"""The page, its data and the metrics, over HTTP."""

from __future__ import annotations

from contextlib import asynccontextmanager
from importlib import resources
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from evenkeel.dashboard.guard import Guard
from evenkeel.dashboard.prometheus import exposition

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from evenkeel.dashboard.guard import Access
    from evenkeel.dashboard.watch import Watch

__all__ = ["make_app"]

_PAGE = {
    "/": ("index.html", "text/html"),
    "/style.css": ("style.css", "text/css"),
    "/plots.js": ("plots.js", "text/javascript"),
    "/page.js": ("page.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


def make_app(watch: Watch, access: Access) -> ASGIApp:
    """Put the page together; it watches while it is served.

    Nothing is served but five fixed files, ``/api/state`` and ``/metrics``: no path that a visitor names is opened.
    """
    folder = resources.files("evenkeel.dashboard") / "static"
    files = {path: ((folder / name).read_bytes(), kind) for path, (name, kind) in _PAGE.items()}

    async def page(request: Request) -> Response:
        content, kind = files[request.url.path]
        return Response(content, media_type=kind)

    async def state(request: Request) -> Response:
        seen = watch.seen
        headers = {"ETag": seen.tag}
        if request.headers.get("if-none-match") == seen.tag:
            return Response(status_code=304, headers=headers)
        return Response(seen.text, media_type="application/json", headers=headers)

    def metrics(_request: Request) -> Response:  # Not async: it takes a while with many channels, so in a thread.
        return Response(exposition(watch.seen.state), headers={"Content-Type": CONTENT_TYPE_LATEST})

    @asynccontextmanager
    async def watching(_app: Starlette) -> AsyncIterator[None]:
        watch.start()
        yield
        watch.stop()

    routes = [Route(path, page) for path in _PAGE]
    routes += [Route("/api/state", state), Route("/metrics", metrics)]
    return Guard(Starlette(routes=routes, lifespan=watching), access)
