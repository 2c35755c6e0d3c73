"""Headless Chromium over its DevTools protocol, through a pair of pipes: no driver, no port, no further package."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATIENCE_S = 90.0
PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
)  # fmt: skip

# The browser reads its commands from descriptor 3 and answers on 4; both are first moved out of each other's way.
LAUNCH = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3]]
for number, end in zip((3, 4), ends):
    os.dup2(end, number)
    os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""


def chromium() -> str:
    """Return the program, or say how to get it: a page that nobody looked at is not tested."""
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    assert found is not None, "the dashboard is tested in Chromium: apt-get install chromium"
    return found


class Tab:
    """One page in a browser of its own; what goes wrong in it is collected in `errors`."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._buffer = write, read, b""
        self._calls, self._session = 0, ""
        self.errors: list[str] = []
        """Messages of the console of level error or warning, exceptions, and failed requests."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._calls += 1
        message: dict[str, Any] = {"id": self._calls, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._calls:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            got = os.read(self._read, 1 << 20)
            assert got, "the browser ended"
            self._buffer += got
        message, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        return answer

    def _note(self, event: dict[str, Any]) -> None:
        method, values = event.get("method", ""), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(values["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(values["args"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.errors.append(values["entry"]["text"])

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{script}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def until(self, script: str, patience_s: float = PATIENCE_S) -> Any:
        """Evaluate until the answer is true, and return it."""
        deadline = time.monotonic() + patience_s
        while not (value := self.evaluate(script)):
            assert time.monotonic() < deadline, f"waited in vain for {script}; {self.text()}; errors: {self.errors}"
            time.sleep(0.1)
        return value

    def text(self) -> str:
        return str(self.evaluate("document.body ? document.body.innerText : ''"))

    def look(self, width: int, height: int, *, dark: bool = False, scale: float = 1.0) -> None:
        """Set the size of the window, and whether its user likes it dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 700,
        )
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, path: Path) -> bytes:
        """Write a PNG of the whole page, and return it."""
        image = base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        path.write_bytes(image)
        return image


@contextlib.contextmanager
def browsing() -> Iterator[Tab]:
    """Run a fresh browser for as long as the block lasts."""
    theirs_in, write = os.pipe()
    read, theirs_out = os.pipe()
    with tempfile.TemporaryDirectory(prefix="rtbrain-chromium-", ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-c", LAUNCH, theirs_in, theirs_out, chromium(), *FLAGS, f"--user-data-dir={folder}"]
        process = subprocess.Popen(
            list(map(str, command)),
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        try:
            yield Tab(write, read)
        finally:
            os.close(write)  # the browser ends with its pipe
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            os.close(read)
