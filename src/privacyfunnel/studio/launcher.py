"""Starting and ending: a socket, a place, a crew and a server, and nothing left of them."""

from __future__ import annotations

import logging
import os
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from privacyfunnel.errors import ParameterError
from privacyfunnel.hints import hint
from privacyfunnel.studio.choices import TableFile
from privacyfunnel.studio.server import Keys
from privacyfunnel.studio.sessions import PrivateFolder, open_private_folder
from privacyfunnel.studio.task_pool import TaskPool


def run(table: Path | None, *, port: int, browser: bool, say: Callable[[str], None]) -> None:
    """Serve until somebody ends it."""
    try:
        import uvicorn
    except ImportError as error:
        raise ParameterError(
            "The studio needs a web server, which is not installed. Install it: pip install 'privacyfunnel[studio]'."
        ) from error
    from privacyfunnel.studio.server import Studio, bind_socket

    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logging.getLogger(name).disabled = True  # a log might quote what was asked
    first = None if table is None else TableFile(table.absolute(), table.name)
    try:
        here = bind_socket(port)
    except OSError as error:
        raise ParameterError(
            f"Port {port} must be free on this machine; it is not. Leave out {hint('port')} to use a free one."
        ) from error
    crew = TaskPool()
    with here, open_private_folder() as where:
        studio = Studio(here.getsockname()[1], where, crew, Keys(), first, say)
        settings = uvicorn.Config(
            studio.app(), log_config=None, access_log=False, lifespan="off", server_header=False, ws="none",
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        try:
            threading.Thread(target=crew.warm_up, daemon=True).start()
            say(f"The studio is open at {studio.address}\nIt works once, for you alone. Ctrl-C ends it.")
            if browser:
                threading.Thread(target=webbrowser.open, args=(_opener(where, studio.address),), daemon=True).start()
            uvicorn.Server(settings).run(sockets=[here])
        finally:
            crew.close()


def _opener(where: PrivateFolder, address: str) -> str:
    """The address of a file of the owner's that leads to the studio.

    A browser is told what to open by its command line, which everybody on the machine can read: the token must not be
    there, or somebody else could use it first.
    """
    path, file = where.new_file("open.html")
    with os.fdopen(file, "w", encoding="utf-8") as opened:
        opened.write(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={address}">\n')
    return path.as_uri()
