"""A real Chromium, driven through its own pipe (the DevTools protocol): tabs that go, click, type, wait and look."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATIENCE = 300.0  # seconds until a wait is in vain
# The browser reads from file 3 and writes to file 4: what is there goes elsewhere first.
NUMBERED = """
import fcntl, os, sys
above = [fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3]]
for file, number in zip(above, (3, 4)):
    os.dup2(file, number)
os.execv(sys.argv[3], sys.argv[3:])
"""
LOOK = 0.03  # seconds between two looks


class LeftError(AssertionError):
    """The page was left while it was asked."""


class Browser:
    """One browser, with as many tabs as are opened."""

    def __init__(self, into: int, out: int) -> None:
        self._into, self._out = into, out
        self._number, self._left = 0, b""
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **words: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer; events that come meanwhile are kept."""
        self._number += 1
        asked: dict[str, Any] = {"id": self._number, "method": method, "params": words}
        if session is not None:
            asked["sessionId"] = session
        os.write(self._into, json.dumps(asked).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._number:
                if "navigated or closed" in str(told.get("error")):
                    raise LeftError(told["error"])
                assert "error" not in told, told["error"]
                return dict(told["result"])
            self.events.append(told)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            piece = os.read(self._out, 1 << 20)
            assert piece, "the browser is gone"
            self._left += piece
        message, self._left = self._left.split(b"\0", 1)
        return dict(json.loads(message))

    def tab(self, address: str = "about:blank", *, width: int = 1280) -> Tab:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        return self._attached(target, address, width)

    def opened(self) -> list[str]:
        """The targets that are pages."""
        found = self.call("Target.getTargets")["targetInfos"]
        return [each["targetId"] for each in found if each["type"] == "page"]

    def attach(self, target: str) -> Tab:
        """A tab that a page opened."""
        return self._attached(target, "", 1280)

    def _attached(self, target: str, address: str, width: int) -> Tab:
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.resize(width)
        if address:
            tab.go(address)
        return tab


class Tab:
    """A tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self.target = browser, session, target

    def call(self, method: str, **words: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **words)

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def go(self, address: str) -> None:
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of an expression; a promise is waited for."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, condition: str) -> Any:
        """Wait until the expression is true; its value."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(LeftError):  # a page on its way has no answer
                told = self.call("Runtime.evaluate", expression=condition, returnByValue=True, awaitPromise=True)
                value = told["result"].get("value")
                if value and "exceptionDetails" not in told:
                    return value
            time.sleep(LOOK)
        raise AssertionError(f"in vain: {condition}; the page says: {self.text()[:2000]}")

    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def shows(self, text: str) -> None:
        """Wait until the page shows this."""
        self.until(f"document.body.innerText.includes({json.dumps(text)})")

    def click(self, query: str) -> None:
        """Click as a person does: with the mouse, where it is, once it rests there."""
        where = (
            f"(() => {{ const e = document.querySelector({json.dumps(query)}); "
            "if (!e || document.readyState !== 'complete') return null; "
            "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
            "return b.width ? [b.x + b.width / 2, b.y + b.height / 2] : null; })()"
        )
        before, (x, y) = None, self.until(where)
        while before != (x, y):
            time.sleep(LOOK)
            before, (x, y) = (x, y), self.until(where)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def fill(self, query: str, text: str) -> None:
        """Put text into a field, as typing does."""
        self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(query)}); e.value = {json.dumps(text)}; "
            "e.dispatchEvent(new Event('input', {bubbles: true})); "
            "e.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def upload(self, query: str, path: Path) -> None:
        node = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(query)})")["result"]
        self.call("DOM.setFileInputFiles", files=[str(path)], objectId=node["objectId"])

    def complaints(self) -> list[str]:
        """Errors of scripts and breaches of the content policy in this tab."""
        self.run("1")  # so that what happened has arrived
        found = []
        for event in self._browser.events:
            if event.get("sessionId") == self._session:
                if event["method"] == "Runtime.exceptionThrown":
                    found.append(json.dumps(event["params"]["exceptionDetails"])[:500])
                elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                    found.append(str(event["params"]["entry"]["text"]))
        return found

    def picture(self, path: Path, *, whole: bool = True) -> None:
        told = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **(self._all() if whole else {})
        )
        path.write_bytes(base64.b64decode(told["data"]))

    def _all(self) -> dict[str, Any]:
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 6000), "scale": 1}}


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser of our own, without a window."""
    name = next(filter(None, map(shutil.which, NAMES)), None)
    assert name, "this test needs a browser: apt-get install chromium"
    (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
    command = [
        name, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--mute-audio",
        "--disable-dev-shm-usage", f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip

    process = subprocess.Popen(
        [sys.executable, "-c", NUMBERED, str(theirs_in), str(theirs_out), *command],
        pass_fds=[theirs_in, theirs_out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    found = Browser(ours_in, ours_out)
    try:
        yield found
    finally:
        with_end = {"id": 0, "method": "Browser.close"}
        try:
            os.write(ours_in, json.dumps(with_end).encode() + b"\0")
            process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        os.close(ours_in)
        os.close(ours_out)
