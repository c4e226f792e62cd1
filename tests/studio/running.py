"""A studio as a process of its own, and how to speak to it without a browser."""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.commands import LONGEST

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=(\S+)")


def search(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    """The first match, which there must be."""
    found = pattern.search(text)
    assert found is not None, text
    return found


@dataclass(slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str


@dataclass(slots=True)
class Running:
    """A studio that runs."""

    process: subprocess.Popen[str]
    address: str  # that was printed first
    home: Path  # its temporary folder
    here: Path  # where it was started
    said: list[str]  # all that it printed
    used: bool = False

    @property
    def port(self) -> int:
        return int(search(ADDRESS, self.address).group(1))

    def ask(
        self, path: str, method: str = "GET", body: bytes | str | None = None, host: str | None = None, **headers: str
    ) -> Answer:
        """One request; names of headers have _ for -."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST)
        line.putrequest(method, path, skip_host=True)
        line.putheader("Host", host or f"127.0.0.1:{self.port}")
        data = body.encode() if isinstance(body, str) else body
        if data is not None:
            line.putheader("Content-Length", str(len(data)))
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        line.endheaders(data)
        told = line.getresponse()
        headers = {name.lower(): value for name, value in told.getheaders()}
        answer = Answer(told.status, headers, told.read().decode("utf-8", "replace"))
        line.close()
        return answer

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def new_address(self) -> str:
        """An address that works: the first, or one that is printed because somebody asked to come in."""
        if not self.used:
            self.used = True
            return self.address
        assert self.ask("/").status == 403
        while True:
            line = self._heard()
            if "asked to come in" in line:
                return search(ADDRESS, line).group(0)

    def _heard(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the studio has ended"
        self.said.append(line)
        return line

    def entered(self) -> tuple[str, str]:
        """A session's address and the cookie, without a browser."""
        answer = self.ask(self.new_address().removeprefix(self.origin))
        assert answer.status == 200
        path = search(re.compile(r'url=(/s/[^/"]+)/table'), answer.text).group(1)
        return path, answer.headers["set-cookie"].split(";")[0]


@contextmanager
def running(table: Path | None, folder: Path, **more: str) -> Iterator[Running]:
    """A studio with a temporary folder of its own, ended as a system does; with a browser if one is named."""
    home, here = folder / "tmp", folder / "here"
    home.mkdir(exist_ok=True)
    here.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "privacyfunnel", "studio", *([str(table)] if table else [])]
    command += [] if "BROWSER" in more else ["--no-browser"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=here,
        env={**os.environ, "TMPDIR": str(home), "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path),
             **more},
    )  # fmt: skip
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = ADDRESS.search(first)
        assert found is not None, first + process.stdout.read()
        yield Running(process, found.group(0), home, here, [first])
    finally:
        process.terminate()
        process.wait(LONGEST)
        if process.stdout is not None:
            process.stdout.close()
