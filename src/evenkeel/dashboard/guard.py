"""Who may look: the checks that stand before every page, and the headers that go with every answer."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse

from evenkeel.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["HEADERS", "Access", "Guard", "is_loopback"]

_COOKIE = "evenkeel_dashboard"
_SHORTEST_TOKEN = 16

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Sent with every answer, also with refusals."""


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach what listens on ``host``."""
    if host.lower() == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Access:
    """Who may look.

    Parameters
    ----------
    bound
        The address that is listened on.
    token
        What a visitor must show; needed where others than this machine can come.
    names
        Further names by which the page may be called, such as that of a proxy.
    """

    bound: str = "127.0.0.1"
    token: str | None = None
    names: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.token is None and not is_loopback(self.bound):
            raise InvalidArgumentError(
                f"On {self.bound} others than this machine could look: that needs a token. Set the environment "
                "variable EVENKEEL_DASHBOARD_TOKEN, or --token; or listen on 127.0.0.1."
            )
        if self.token is not None and len(self.token) < _SHORTEST_TOKEN:
            raise InvalidArgumentError(
                f"A token needs at least {_SHORTEST_TOKEN} characters; got {len(self.token)}. "
                "Make one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
            )

    def knows_host(self, header: str | None) -> bool:
        """Say whether a request was meant for us.

        A page elsewhere can have its own name resolve to this machine (DNS rebinding), but its requests still carry
        that name. An address as the name cannot come about like that.
        """
        host = _without_port(header or "").lower()
        if is_loopback(host) or host in self.names:
            return True
        return not is_loopback(self.bound) and (_address(host) is not None or host == self.bound.lower())

    def knows(self, shown: Iterable[str]) -> bool:
        """Say whether the token, or the cookie made from it, is among what was shown; in constant time for each."""
        if self.token is None:
            return True
        good = [self.token.encode(), self.cookie.encode()]
        return any(hmac.compare_digest(given.encode(), wanted) for given in shown for wanted in good)

    @property
    def cookie(self) -> str:
        """What a visitor's browser keeps in place of the token."""
        return hmac.new((self.token or "").encode(), b"evenkeel dashboard cookie", hashlib.sha256).hexdigest()


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0]


class Guard:
    """Checks host and token before anything else is done, and adds the headers to every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # Nothing else is served; the server closes it.

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        if not self._access.knows_host(headers.get("host")):
            return PlainTextResponse(
                "This name is not one of this page's. Start it with --allow-host NAME to use another.\n", 421
            )
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        shown = [*given, *([bearer.strip()] if scheme.lower() == "bearer" else []), *_cookies(headers.get("cookie"))]
        if not self._access.knows(shown):
            told = "A token is needed: open /?token=… once, or send 'Authorization: Bearer …'.\n"
            return PlainTextResponse(told, 401, {"WWW-Authenticate": "Bearer"})
        if given and self._access.token is not None:
            # The token goes into a cookie and out of the address, so that no history or screenshot keeps it.
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            path = f"/{scope['path'].lstrip('/')}"  # never to another host
            answer = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
            answer.set_cookie(_COOKIE, self._access.cookie, httponly=True, samesite="strict")
            return answer
        return None


def _cookies(header: str | None) -> list[str]:
    try:
        found = SimpleCookie(header or "").get(_COOKIE)
    except CookieError:
        return []
    return [found.value] if found else []
