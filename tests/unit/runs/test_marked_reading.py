"""Inputs at which a process was killed are read one at a time, and are not suspected once they were read."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

from crossdock.clock import SystemClock
from crossdock.runs.marked_reading import marked_reading
from crossdock.state import Pin, State, create, parse_url
from crossdock.state.sidecar_files.reading_marks import ReadingMark

PIN = Pin("https://api.example.com", "acme")


def opened(folder: Path) -> State:
    url = parse_url("sqlite:///state.db", folder)
    create(url, PIN)
    return State(url, PIN, keys=folder / "keys")


def test_suspected_inputs_are_read_one_at_a_time(tmp_path: Path) -> None:
    """If the process is killed, it is known at which; what was read is not suspected any more."""
    clock, reading_b, order = SystemClock(), threading.Event(), list[str]()
    with closing(opened(tmp_path)) as state:
        with state.begin() as tx:
            for name in ("A.csv", "B.csv"):
                tx.suspected_inputs.killed(ReadingMark(f"wms.{name[0]}", name, name), at=clock.now())
        with marked_reading(state, clock) as reading:

            def read_b() -> None:
                with reading.of("wms.B"):
                    reading_b.set()
                    reading.file("B.csv", "B.csv")
                    order.append("B")

            other = threading.Thread(target=read_b)
            with reading.of("wms.A"):
                reading.file("A.csv", "A.csv")
                other.start()
                assert reading_b.wait(30)
                reading.advance()
                order.append("A")
                marks = state.reading_marks()
                assert marks
                assert ReadingMark("wms.A", "A.csv", "A.csv", 1, alone=True) in marks.left()
            other.join(30)
        assert order == ["A", "B"]
        assert marks.left() == ()
        with state.look() as tx:
            assert not tx.suspected_inputs.any()
