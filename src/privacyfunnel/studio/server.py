"""The server: pages of sessions, on this machine alone.

Who may speak to the server: somebody on this machine, in the browser that was let in, from the page itself.

The address that is printed holds a token that works once; whoever comes with it gets a cookie, which scripts cannot
read and other sites cannot send. A cookie of 127.0.0.1 goes to every port of it, so to whoever else listens here: it
alone opens nothing. The address of a session, which no other server is told, is needed as well.

A name that was made to point here (DNS rebinding) is refused by its Host, a page of another site by its Origin.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from privacyfunnel.errors import PrivacyFunnelError
from privacyfunnel.report.bars import STYLE
from privacyfunnel.studio.choices import Choices, TableFile
from privacyfunnel.studio.pages import OTHERS, PAGES, WAY
from privacyfunnel.studio.pages.page_definition import PageRequest, StudioPage
from privacyfunnel.studio.pages.table_pages import choose_table
from privacyfunnel.studio.sessions import PrivateFolder, Session, Sessions
from privacyfunnel.studio.task_pool import DONE, FAILED, STOPPED, Job, TaskPool, fault_message
from privacyfunnel.studio.text_filters import environment, word_for_form
from privacyfunnel.tables.readers.formats import FOREIGN, SUFFIXES
from privacyfunnel.tables.readers.table_files import match_suffix

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


LARGEST_FORM = 1 << 22  # bytes; a table of ten thousand columns has a form of some hundred kilobytes
LARGEST_UPLOAD = 1 << 32  # bytes
UPLOADED = (".json", *SUFFIXES, *FOREIGN)  # ends of names that an uploaded file keeps
SLOTS = ("table", "protocol", "sanitised", "rules", "original", "drawn")  # what files may be uploaded as
LOOK = "look.css"  # the report's own style: one look for all pages
STATIC = {LOOK: "text/css", "studio.css": "text/css", "studio.js": "text/javascript"}


class Studio:
    """All that answers need."""

    def __init__(
        self,
        port: int,
        place: PrivateFolder,
        crew: TaskPool,
        keys: Keys,
        first: TableFile | None,
        say: Callable[[str], None],
    ):
        self.port, self.place, self.keys, self._say = port, place, keys, say
        self.sessions = Sessions(crew, lambda: Choices(source=first))
        self._environment = environment(way=WAY, others=OTHERS)

    @property
    def address(self) -> str:
        """The address that opens the door, once."""
        return f"http://127.0.0.1:{self.port}/?token={self.keys.token}"

    def app(self) -> ASGIApp:
        """The whole server."""
        routes = [
            Route("/", self._entry),
            Route("/static/{name}", self._static),
            Route("/s/{session}/copy", self._copy, methods=["POST"]),
            Route("/s/{session}/upload/{slot}", self._upload, methods=["POST"]),
            Route("/s/{session}/{page}", self._page, methods=["GET", "POST"]),
            Route("/s/{session}/{page}/part", self._part),
            Route("/s/{session}/{page}/{more}", self._view, methods=["GET", "POST"]),
        ]
        inner = Starlette(routes=routes)
        guard = Guard(_silence(inner), self.keys, self.port)
        self._cookie = guard.cookie_name
        return guard

    def render(self, template: str, **values: Any) -> str:
        return self._environment.get_template(f"{template}.html.jinja").render(**values)

    async def _entry(self, request: Request) -> Response:
        if not self.keys.spend(request.query_params.get("token", "")):
            if self.keys.is_used:  # somebody would like to come in; whoever sees the terminal may let them
                self._say(f"Somebody asked to come in. If that was you, open {self.address}")
            return HTMLResponse(self.render("door"), 403)
        session = self.sessions.new()
        # A page of ours goes on by itself: a redirect would still count as coming from where the address was clicked.
        answer = HTMLResponse(self.render("enter", to=f"/s/{session.name}/table"))
        answer.set_cookie(self._cookie, self.keys.cookie, httponly=True, samesite="strict", path="/")
        return answer

    async def _static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in STATIC:
            return Response("", 404)
        mine = files("privacyfunnel.studio").joinpath("static", name)
        text = STYLE if name == LOOK else mine.read_text(encoding="utf-8")
        return Response(text, media_type=STATIC[name], headers={"Cache-Control": "no-cache"})

    def _session(self, request: Request) -> Session | None:
        return self.sessions.get(request.path_params["session"])

    async def _copy(self, request: Request) -> Response:
        session = self._session(request)
        if session is None:
            return Response("", 404)
        fresh = request.query_params.get("fresh") == "yes"
        other = self.sessions.new() if fresh else self.sessions.duplicate(session)
        return JSONResponse({"session": other.name})

    async def _page(self, request: Request) -> Response:
        session, page = self._session(request), PAGES.get(request.path_params["page"])
        if session is None or page is None:
            return HTMLResponse(self.render("gone"), 404)
        sentence = ""
        if request.method == "POST":
            form = await _form(request)
            try:
                page.take(session, form)
            except PrivacyFunnelError as error:
                sentence = error.sentence
            quietly = "application/json" in request.headers.get("accept", "")
            if quietly:
                return JSONResponse({"sentence": word_for_form(self._name_uploads(session, sentence))})
            if not sentence:
                to = form.get("to", page.name)
                return RedirectResponse(f"/s/{session.name}/{to if to in PAGES else page.name}", 303)
        return await self._render_page(session, page, sentence)

    async def _render_page(self, session: Session, page: StudioPage, sentence: str = "") -> Response:
        try:
            values = page.show(session)
            job = page.work(session)
        except PrivacyFunnelError as error:
            values, job, sentence = {}, None, sentence or error.sentence
            lost = True
        else:
            lost = False
        text = self.render(
            page.name,
            page=page,
            session=session,
            choices=session.choices,
            sentence=self._name_uploads(session, sentence),
            lost=lost,
            job=job,
            part=None if job is None else self._render_part(session, page, job),
            **values,
        )
        return HTMLResponse(text, 422 if sentence else 200)

    async def _part(self, request: Request) -> Response:
        session, page = self._session(request), PAGES.get(request.path_params["page"])
        if session is None or page is None:
            return Response("", 404)
        try:
            job = page.work(session)
        except PrivacyFunnelError as error:
            return JSONResponse({"state": FAILED, "heard": 0, "html": self.render("failed", sentence=error.sentence)})
        if job is None:
            return JSONResponse({"state": DONE, "heard": 0, "html": ""})
        return JSONResponse({"state": job.state, "heard": job.heard, "html": self._render_part(session, page, job)})

    def _render_part(self, session: Session, page: StudioPage, job: Job) -> str:
        """The lower part of a page as far as the work for it is."""
        if job.state == FAILED:
            return self.render("failed", sentence=self._name_uploads(session, job.sentence))
        if job.state == DONE or job.messages or job.state == STOPPED:
            return self.render(
                f"{page.name}.part",
                page=page,
                session=session,
                choices=session.choices,
                **page.part(session, job),
            )
        return self.render("working", sentence="")

    async def _view(self, request: Request) -> Response:
        session, page = self._session(request), PAGES.get(request.path_params["page"])
        name = request.path_params["more"]
        if session is None or page is None:
            return Response("", 404)
        if request.method == "POST" and name in page.actions:
            sentence = ""
            try:
                page.actions[name](session, await _form(request))
            except PrivacyFunnelError as error:
                sentence = error.sentence
            if sentence:
                return await self._render_page(session, page, sentence)
            return RedirectResponse(f"/s/{session.name}/{page.name}", 303)
        if request.method == "GET" and name in page.views:
            try:
                return await page.views[name](PageRequest(request, session, self.place, self.render))
            except PrivacyFunnelError as error:
                return HTMLResponse(self.render("failed", sentence=self._name_uploads(session, error.sentence)), 422)
        return Response("", 404)

    async def _upload(self, request: Request) -> Response:
        """A file, piece by piece to the disk; it is there whole, or not at all."""
        session, slot = self._session(request), request.path_params["slot"]
        if session is None or slot not in SLOTS:
            return Response("", 404)
        name = Path(unquote(request.headers.get("x-file-name", ""))).name or "table.csv"
        suffix = match_suffix(Path(name), UPLOADED) or ".csv"
        path, file = self.place.new_file(f"upload{suffix}")
        size = 0
        try:
            async for piece in request.stream():
                size += len(piece)
                if size > LARGEST_UPLOAD:
                    raise _TooLargeError
                await run_in_threadpool(_write_piece, file, piece)
        except (ClientDisconnect, _TooLargeError, OSError):
            path.unlink(missing_ok=True)
            return JSONResponse(
                {"sentence": f"The file did not arrive: at most {LARGEST_UPLOAD >> 20} MB are taken, if the disk has "
                 "room for them. Name its path instead."}, 413
            )  # fmt: skip
        finally:
            os.close(file)
        source = TableFile(path, name, uploaded=True)
        if slot == "table":
            choose_table(session, source)
        else:
            session.beside[slot] = source
        return JSONResponse({"sentence": ""})

    def _name_uploads(self, session: Session, sentence: str) -> str:
        """The sentence with uploaded files under the names that their owner knows."""
        known = [session.choices.source, *(each for each in session.beside.values() if isinstance(each, TableFile))]
        for source in known:
            if source is not None and source.uploaded:
                sentence = sentence.replace(str(source.path), source.name)
        return sentence


class _TooLargeError(Exception):
    """More came than is taken."""


def _write_piece(file: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(file, view) :]


async def _form(request: Request) -> Mapping[str, str]:
    """The fields of a form. Too large a one is cut, and is no form then."""
    text = b""
    async for piece in request.stream():
        text += piece
        if len(text) > LARGEST_FORM:
            return {}
    return dict(parse_qsl(text.decode("utf-8", "replace"), keep_blank_values=True))


def _silence(app: ASGIApp) -> ASGIApp:
    """A fault of ours becomes a sentence; what it quotes reaches no log."""

    async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Exception as error:
            answer = Response(
                f"{fault_message(error)}\n",
                500,
                media_type="text/plain",
            )
            if scope["type"] == "http":
                await answer(scope, receive, send)

    return quiet


def bind_socket(port: int) -> socket.socket:
    """A socket of this machine alone; port 0 is any that is free."""
    here = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    here.bind(("127.0.0.1", port))
    here.listen(128)
    return here
