"""A headless Chromium that a test drives, by the Chrome DevTools Protocol over a pipe."""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from tests.servers import require

_DEADLINE_S = 60
_OPTIONS = (
    "--headless",
    "--no-sandbox",  # the pages are ours, and a container's root may not make a sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)


class Tab:
    """One tab of a browser. *events* are those that the protocol sent since the last navigation."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._numbers, self._rest, self._session = itertools.count(1), b"", ""
        self.events: list[dict[str, Any]] = []

    def attach(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        return self

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    def open(self, address: str) -> None:
        self.events.clear()
        self.call("Page.navigate", url=address)
        self.wait_for("Page.loadEventFired")

    def wait_for(self, event: str) -> None:
        while not any(each.get("method") == event for each in self.events):
            self.events.append(self._next())

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def click(self, script: str) -> None:
        """Click the element of a JavaScript expression, which loads another page."""
        self.events.clear()
        self.run(f"({script}).click()")
        self.wait_for("Page.loadEventFired")

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def resize(self, width: int, *, dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def screenshot(self, file: Path) -> None:
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(found["data"]))

    @property
    def requested(self) -> list[str]:
        """The addresses that the page requested."""
        sent = (each for each in self.events if each.get("method") == "Network.requestWillBeSent")
        return [each["params"]["request"]["url"] for each in sent]

    @property
    def complaints(self) -> list[str]:
        """What the browser wrote to its console, for example about a policy that was violated."""
        logged = (each["params"]["entry"] for each in self.events if each.get("method") == "Log.entryAdded")
        return [each["text"] for each in logged]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], _DEADLINE_S)
            assert ready, "the browser does not answer"
            part = os.read(self._answers, 1 << 16)
            assert part, "the browser has ended"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def opened(profile: Path) -> Iterator[Tab]:
    """A browser with its profile in that folder; the test is skipped if there is none."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    require(program is not None, "Chromium")
    assert program is not None
    read_command, commands = os.pipe()
    answers, write_answer = os.pipe()
    moved = f'exec 3<&{read_command} 4>&{write_answer}; exec "$@"'  # the protocol's descriptors are 3 and 4
    browser = subprocess.Popen(
        ["bash", "-c", moved, "bash", program, *_OPTIONS, f"--user-data-dir={profile}"],
        pass_fds=(read_command, write_answer),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for used in (read_command, write_answer):
        os.close(used)
    try:
        yield Tab(commands, answers).attach()
    finally:
        os.close(commands)  # the browser ends when its pipe does
        try:
            browser.wait(_DEADLINE_S)
        finally:
            browser.kill()
            os.close(answers)
