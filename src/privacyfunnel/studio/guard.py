"""Who may speak to the server: somebody on this machine, in the browser that was let in, from the page itself.

The address that is printed holds a token that works once; whoever comes with it gets a cookie, which scripts cannot
read and other sites cannot send. A cookie of 127.0.0.1 goes to every port of it, so to whoever else listens here: it
alone opens nothing. The address of a session, which no other server is told, is needed as well.

A name that was made to point here (DNS rebinding) is refused by its Host, a page of another site by its Origin.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPEN = ("/static/",)  # what everybody may see: it is in the package
CONTENT = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with none at all, browsers would not tell the Origin of a form either
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
FROM_HERE = {"same-origin", "none"}  # who a browser says asked: a page of ours, or the person


class Keys:
    """What opens the door: a token that works once, and the cookie that whoever used one carries."""

    def __init__(self) -> None:
        self._token: str | None = secrets.token_urlsafe(32)
        self.cookie = secrets.token_urlsafe(32)

    @property
    def token(self) -> str:
        """The token that works now; a new one where the last was used."""
        if self._token is None:
            self._token = secrets.token_urlsafe(32)
        return self._token

    @property
    def is_used(self) -> bool:
        """Whether the last token was used, and none made since."""
        return self._token is None

    def spend(self, token: str) -> bool:
        """Whether this is the token; if so, it is none any more."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token.encode()):
            return False
        self._token = None
        return True

    def fits(self, cookie: str) -> bool:
        return hmac.compare_digest(cookie.encode(), self.cookie.encode())


class Guard:
    """Every request passes here first, and every answer last."""

    def __init__(self, app: ASGIApp, keys: Keys, port: int) -> None:
        self._app, self._keys = app, keys
        self.cookie_name = f"privacyfunnel-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """Why this is not answered; None where it is."""
        headers, path = Headers(scope=scope), str(scope["path"])
        host, origin = headers.get("host", ""), headers.get("origin")
        reading = scope["method"] in {"GET", "HEAD"}
        if host not in self._hosts:
            return _refuse(421, "This address is not the studio's.")
        at_the_door = path == "/" and reading  # where a token is asked for, from wherever somebody comes
        from_here = at_the_door or headers.get("sec-fetch-site", "none") in FROM_HERE
        if not from_here or origin not in ({f"http://{host}", None} if reading else {f"http://{host}"}):
            return _refuse(403, "Only the studio's own pages may ask for that.")
        public = at_the_door or (path.startswith(OPEN) and reading)
        if not public and not self._keys.fits(_cookie(headers.get("cookie", ""), self.cookie_name)):
            return _refuse(403, "Open the address that the studio printed.")
        return None


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _refuse(status: int, sentence: str) -> Response:
    return Response(f"{sentence}\n", status, media_type="text/plain")
