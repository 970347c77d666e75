"""Tests of where the runs of a stream continue, for sources that are asked by time. They need no sandbox."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from unittest import SkipTest

from crossdock.config.project.connections_and_bound_streams import BoundStream
from crossdock.errors import CrossdockError
from crossdock.mapping.incremental_cursors import Checkpoint, format_iso_instant_cursor
from crossdock.runs.checked_batches import pulled_batches
from crossdock.runs.parts_between_checkpoints import ReadParts
from crossdock.testing.connector_context_and_stream_trial import bound_stream
from crossdock.testing.connector_under_test import StreamUnderTest, shown_method_name
from crossdock.testing.cursors_and_times_in_requests import moments_in, parse_instant
from crossdock.values.raw_rows_and_records import RawBatch

if TYPE_CHECKING:
    from crossdock.testing.transport_recorders import LatestTimeInAnswers, RequestRecorder

_AT_ONCE, _BETWEEN_RUNS = timedelta(seconds=1), timedelta(minutes=1)
_WINDOW = 2  # a request for a window of time has its beginning and its end


class CursorContract(StreamUnderTest):
    """Tests of cursors that are times.

    Attributes:
        shows_late: Whether the source may show a change late, or its clock may differ from that of this machine. False
            permits a stream to ask for nothing again.
    """

    shows_late: bool = True

    def test_no_checkpoint_is_ahead_of_what_was_asked_for(self) -> None:
        """A checkpoint between windows of time is not later than what was asked for up to then.

        Otherwise a run that ends there passes over what follows, also where the example has no record.
        """
        observed, asked = self._time_and_request_recorders()
        bound = self._bound_stream_over_transport(asked, self.run_start)
        waiting: tuple[Checkpoint, datetime | None] | None = None
        for item in self._pulled_batches_and_checkpoints(bound):
            if waiting is not None:  # more is read after it
                self._check_checkpoint_not_ahead(bound, *waiting)
            waiting = (
                (item, self._latest_requested_or_answered_time(asked, observed))
                if isinstance(item, Checkpoint)
                else None
            )

    def test_a_record_that_the_source_shows_late_is_read(self) -> None:
        """A run asks again for some time before the one before it: clocks differ, and changes may be shown late."""
        observed, asked = self._time_and_request_recorders()
        trial = self.read_in(self.context_over(asked))
        stream = trial.bound.stream
        declared, read_at = stream.cursor, self._time_after_latest_change(observed)
        if not self.shows_late or stream.mode != "incremental":
            raise SkipTest("the stream reads everything, or shows_late is False: no overlap is needed")
        is_declared = declared is not None and declared.as_ == "instant"
        assert not (is_declared and declared.overlap_s == 0), (  # type: ignore[union-attr]  # it is declared
            f"{type(stream).__name__}.cursor has overlap_s=0: a record that the source shows late is never read; leave "
            "overlap_s out, or set shows_late to False in the test if the source shows every change at once"
        )
        since = self._since_of_next_run(self._bound_stream_over_transport(asked, read_at))
        begins = parse_instant(since)
        if since is None or begins is None:
            return
        asked.requests.clear()
        self.read_in(self.context_over(asked, read_at + _BETWEEN_RUNS), since)
        zone = declared.timezone if declared is not None else None
        moments = [moment for request in asked.requests for moment in moments_in(_query_and_body_text(request), zone)]
        if begins < read_at:  # what was read last is asked for again
            is_from = not moments or min(moments).earliest <= begins
            hint = "ask for what changed from since on, that value included"
            assert is_from, (
                f"{shown_method_name(stream, 'pull')}: asked from {since} on, it asks for later records only; {hint}"
            )
            return
        if not moments:
            raise SkipTest(
                f"the requests of {shown_method_name(stream, 'pull')} have no time: whether they overlap is unknown"
            )
        assert min(moments).earliest < read_at, (
            f"{shown_method_name(stream, 'pull')}: a run at {format_iso_instant_cursor(read_at)} ends with the cursor "
            f"{since}, and the next one asks for nothing before it: a record that the source shows late is never read; "
            "use windows() with an overlap, or subtract one from since"
        )

    # ---- how far was read

    def _time_and_request_recorders(self) -> tuple[LatestTimeInAnswers, RequestRecorder]:
        network = self.network()
        if network is None:
            raise SkipTest("the stream reads no API, which could be asked by time")
        from crossdock.testing import transport_recorders  # noqa: PLC0415  it imports httpx

        self.example()
        observed = transport_recorders.LatestTimeInAnswers(network)
        return observed, transport_recorders.RequestRecorder(observed)

    def _time_after_latest_change(self, observed: LatestTimeInAnswers) -> datetime:
        """Return a time at which the latest record of the example has just been changed."""
        return self.run_start if observed.latest is None else min(observed.latest + _AT_ONCE, self.run_start)

    def _bound_stream_over_transport(self, network: RequestRecorder, run_start: datetime) -> BoundStream:
        return bound_stream(self.connector, self.context_over(network, run_start), self.stream)

    def _pulled_batches_and_checkpoints(self, bound: BoundStream) -> Generator[RawBatch | Checkpoint, None, None]:
        items = pulled_batches(bound, None)
        with _reading_errors_as_failures(bound):
            while (item := self._next_pulled_in_environment(items)) is not None:
                yield item

    def _next_pulled_in_environment(self, items: Iterator[RawBatch | Checkpoint]) -> RawBatch | Checkpoint | None:
        # A generator that is left in the middle must not hold the environment: it would take it from a later test.
        with self.in_environment():
            return next(items, None)

    def _since_of_next_run(self, bound: BoundStream) -> str | None:
        """Return the argument of `pull` after a run that reads everything, but without `overlap_s`."""
        declared, clock = bound.stream.cursor, bound.context.run.clock
        if declared is not None and declared.as_ == "instant":
            declared = declared.model_copy(update={"overlap_s": 0.0})
        parts = ReadParts(self._pulled_batches_and_checkpoints(bound), declared, clock, whole=True)
        with _reading_errors_as_failures(bound):  # of a list that is not sorted
            for _ in parts.batches_of_next_part():
                pass
        if declared is None:
            return parts.cursor
        at_end = parts.latest or None  # of a source that is not sorted, whose cursor moves after everything was read
        return declared.pull_since(parts.cursor if declared.sorted else at_end)

    @staticmethod
    def _latest_requested_or_answered_time(asked: RequestRecorder, observed: LatestTimeInAnswers) -> datetime | None:
        """Return the latest time that was asked for or answered; None if no request has two times."""
        moments = [{*moments_in(_query_and_body_text(request))} for request in asked.requests]
        if not any(len(each) >= _WINDOW for each in moments):
            return None
        latest = max(moment.latest for each in moments for moment in each)
        return max(latest, observed.latest or latest)

    @staticmethod
    def _check_checkpoint_not_ahead(bound: BoundStream, checkpoint: Checkpoint, reached: datetime | None) -> None:
        cursor = parse_instant(checkpoint.cursor)
        is_ahead = reached is not None and cursor is not None and cursor > reached
        assert not is_ahead, (
            f"{shown_method_name(bound.stream, 'pull')}: the checkpoint {checkpoint.cursor} is ahead of what was "
            "read: until "
            f"then, requests ask for times up to {reached}; yield the end of the window that was read"
        )


@contextmanager
def _reading_errors_as_failures(bound: BoundStream) -> Iterator[None]:
    try:
        yield
    except CrossdockError as error:
        raise AssertionError(f"{shown_method_name(bound.stream, 'pull')}: reading failed: {error}") from None


def _query_and_body_text(request: tuple[str, str, bytes]) -> str:
    _, url, body = request
    return f"{url.partition('?')[2]} {body.decode('utf-8', 'replace')}"
