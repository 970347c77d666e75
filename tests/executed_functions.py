"""A pytest plugin that records which functions of crossdock each test executes: ``-p tests.executed_functions``.

``CROSSDOCK_EXECUTED`` names a folder, to which each process of pytest writes one file. Functions that only other
processes execute are not recorded.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from uuid import uuid4

import pytest

ROOT = Path(__file__).parents[1]
_CODE = tuple(f"{ROOT / folder}{os.sep}" for folder in ("core", "connectors"))


class Recorder:
    """Keeps the functions that were called since `begin`."""

    def __init__(self) -> None:
        self._seen = set[CodeType]()
        self.tests = dict[str, list[tuple[str, int]]]()

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> None:
        self._seen.add(frame.f_code)

    def begin(self) -> None:
        self._seen = set()
        threading.settrace(self._called)
        sys.settrace(self._called)

    def end(self, test: str) -> None:
        sys.settrace(None)
        threading.settrace(None)
        seen = (code for code in self._seen.copy() if code.co_filename.startswith(_CODE))
        self.tests[test] = sorted({(os.path.relpath(code.co_filename, ROOT), code.co_firstlineno) for code in seen})


RECORDER = Recorder()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    RECORDER.begin()
    try:
        return (yield)
    finally:
        RECORDER.end(item.nodeid)


def pytest_sessionfinish() -> None:
    folder = Path(os.environ["CROSSDOCK_EXECUTED"])
    folder.mkdir(parents=True, exist_ok=True)
    if RECORDER.tests:
        (folder / f"{uuid4().hex}.json").write_text(json.dumps(RECORDER.tests), "utf-8")
