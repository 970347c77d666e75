"""Tests of a stream's syncs to a sandbox: they may end anywhere, and repeat nothing.

Tests of where runs continue, for sources that are asked by time, need no sandbox.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import SkipTest

from crossdock.config.project.connections_and_bound_streams import BoundStream, Connection
from crossdock.errors import CrossdockError
from crossdock.mapping.row_order_and_cursors import Checkpoint, format_iso_instant_cursor
from crossdock.mapping.stream_declaration import PLATFORM
from crossdock.runs.batches_read_from_connector import pull_checked_batches
from crossdock.runs.parts_between_checkpoints import CheckpointedReading
from crossdock.runs.run_report import Report
from crossdock.runs.stream_trial import Trial
from crossdock.state import Scope
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.testing.connector_under_test import StreamUnderTest, captured_output, shown_method_name
from crossdock.testing.cursors_and_times_in_requests import moments_in, parse_instant
from crossdock.testing.prerequisite_records import referenced_records_no_trial_creates
from crossdock.testing.sandbox_effects_comparison import describe_count_differences
from crossdock.testing.sandbox_syncs import STOPPED, Network, SandboxSyncs, Tenant
from crossdock.values.raw_rows_and_records import RawBatch

if TYPE_CHECKING:
    import httpx

    from crossdock.testing.httpx_test_transports import LatestTimeRecorder, RequestRecorder

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
                self._assert_checkpoint_not_ahead(bound, *waiting)
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

    def _time_and_request_recorders(self) -> tuple[LatestTimeRecorder, RequestRecorder]:
        network = self.network()
        if network is None:
            raise SkipTest("the stream reads no API, which could be asked by time")
        from crossdock.testing import httpx_test_transports  # noqa: PLC0415  it imports httpx

        self.example()
        observed = httpx_test_transports.LatestTimeRecorder(network)
        return observed, httpx_test_transports.RequestRecorder(observed)

    def _time_after_latest_change(self, observed: LatestTimeRecorder) -> datetime:
        """Return a time at which the latest record of the example has just been changed."""
        return self.run_start if observed.latest is None else min(observed.latest + _AT_ONCE, self.run_start)

    def _bound_stream_over_transport(self, network: RequestRecorder, run_start: datetime) -> BoundStream:
        return bind_checked_stream(self.connector, self.context_over(network, run_start), self.stream)

    def _pulled_batches_and_checkpoints(self, bound: BoundStream) -> Generator[RawBatch | Checkpoint, None, None]:
        items = pull_checked_batches(bound, None)
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
        parts = CheckpointedReading(self._pulled_batches_and_checkpoints(bound), declared, clock, whole=True)
        with _reading_errors_as_failures(bound):  # of a list that is not sorted
            for _ in parts.batches_of_next_part():
                pass
        if declared is None:
            return parts.cursor
        at_end = parts.latest or None  # of a source that is not sorted, whose cursor moves after everything was read
        return declared.pull_since(parts.cursor if declared.sorted else at_end)

    @staticmethod
    def _latest_requested_or_answered_time(asked: RequestRecorder, observed: LatestTimeRecorder) -> datetime | None:
        """Return the latest time that was asked for or answered; None if no request has two times."""
        moments = [{*moments_in(_query_and_body_text(request))} for request in asked.requests]
        if not any(len(each) >= _WINDOW for each in moments):
            return None
        latest = max(moment.latest for each in moments for moment in each)
        return max(latest, observed.latest or latest)

    @staticmethod
    def _assert_checkpoint_not_ahead(bound: BoundStream, checkpoint: Checkpoint, reached: datetime | None) -> None:
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


_STOPS = 12  # at most so many points at which a run is stopped


class SyncContract(CursorContract):
    """Tests of one stream in whole syncs. The sandbox contains the records to which the example refers.

    Attributes:
        given: Resources and namespaces of records that drafts refer to and that others write, such as another
            connection: ``[("product", "erp")]``. None if it is not stated.
    """

    given: Collection[tuple[str, str]] | None = None

    def network_since(self, since: str | None) -> httpx.BaseTransport | None:  # noqa: ARG002  a subclass uses it
        """Return the replacement of the network in a run that continues from *since*; by default `network`."""
        return self.network()

    def networks_in_another_order(self) -> Iterator[httpx.BaseTransport]:
        """Yield the same records, as a source may list them next time; none by default."""
        return iter(())

    # ---- tests

    def test_references_lead_to_records_that_are_written(self) -> None:
        """Streams of the connector write what drafts refer to, or others do, as `given` states. In a real sync a record
        waits for one that nobody writes.
        """
        trial = self.example()
        to_resource = shown_method_name(trial.bound.stream, "to_resource")
        own = {(each.resource, each.namespace) for each in self._written_scopes(trial.bound)}
        absent = {
            name[:2]: name[2]
            for name, target_id in referenced_records_no_trial_creates([trial]).items()
            if target_id is None
        }
        needed = {place: key for place, key in sorted(absent.items()) if place not in own}
        unstated = {place: key for place, key in needed.items() if place not in (self.given or ())}
        if not unstated:
            return
        named = ", ".join(f"{resource} {namespace}:{key}" for (resource, namespace), key in unstated.items())
        text = (
            f"{to_resource} needs {named}, and no stream of this connector writes such records under this namespace: "
            'they wait until another one does. Reference("product", key, namespace) names another namespace; if others '
            f"write them, state it: given = {[*needed]}"
        )
        if self.given is None:
            raise SkipTest(text)
        raise AssertionError(text)

    def _written_scopes(self, bound: BoundStream) -> Iterator[Scope]:
        """Yield the scopes at the target of *bound* whose records the streams of the connector write."""
        with self.in_environment():
            settings = self.new_context().settings
            connection = Connection(bound.connection_namespace, self.connector, settings, ())
            scopes = [connection.scope_of_written_records(each) for each in self.connector.streams(settings)]
        yield from (each for each in scopes if each.target == bound.scope.target and not each.is_contribution)

    def test_a_second_sync_sends_nothing(self) -> None:
        """Records that have not changed are not sent again, also if the source lists them in another order."""
        with self._tenant_factory() as new_tenant:
            tenant = new_tenant()
            first = self._sync(tenant, lambda _: self.network())
            assert first.counters.requests, f"{self._mapping}: the first sync sends nothing"
            before = tenant.count_stored_records_by_body()
            self._assert_next_sync_sends_nothing(tenant, self.network_since)
            self._assert_next_sync_sends_nothing(tenant, lambda _: self.network())
            for network in self.networks_in_another_order():
                self._assert_next_sync_sends_nothing(tenant, partial(_network_for_any_cursor, network))
            assert not (wrong := describe_count_differences(before, tenant.count_stored_records_by_body())), (
                f"syncs that send nothing change records:{wrong}"
            )

    def test_a_sync_continues_after_any_batch(self) -> None:
        """A run that ends after any batch or checkpoint, and the next one, together deliver what one run delivers."""
        with self._tenant_factory() as new_tenant:
            whole = new_tenant()
            self._sync(whole, lambda _: self.network())
            expected = whole.count_stored_records_by_body()
            pull = f"{self._class}.pull"
            for most in _items_to_stop_after(whole.pulled, whole.with_rows):
                tenant, where = new_tenant(), f"a run that ends after batch or checkpoint {most} of {whole.pulled}"
                self._sync(tenant, lambda _: self.network(), most=most)
                self._sync(tenant, self.network_since)
                wrong = describe_count_differences(expected, tenant.count_stored_records_by_body())
                assert not wrong, (
                    f"{pull}: after {where}, the next one does not deliver the rest; the cursor or checkpoint must not "
                    f"be ahead of what was yielded, and pull must ask from since on, that value included:{wrong}"
                )
                sent = self._sync(tenant, self.network_since).counters.requests
                assert not sent, f"{pull}: after {where} and the next one, a third sends {sent} requests"

    # ---- syncs

    @contextmanager
    def _tenant_factory(self) -> Iterator[Callable[[], Tenant]]:
        """Yield a function that makes a tenant of a new sandbox."""
        folder = Path(tempfile.mkdtemp(prefix="crossdock-test-"))
        try:
            trial = self.example()
            self._class = type(trial.bound.stream).__name__
            self._mapping = shown_method_name(trial.bound.stream, "to_resource")
            _skip_unless_syncable(trial.bound)
            with SandboxSyncs(folder) as syncs:
                yield lambda: self._new_tenant(syncs, trial)
            with self.in_environment():
                self.no_secret_in_files(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _assert_next_sync_sends_nothing(self, tenant: Tenant, network: Network) -> None:
        sent = self._sync(tenant, network).counters.requests
        assert not sent, (
            f"{self._class}.pull or {self._mapping}: a second sync of the same records sends {sent} requests; rows and "
            "drafts must not have the time of the run, the cursor, or what else changes while a record does not"
        )

    def _new_tenant(self, syncs: SandboxSyncs, trial: Trial) -> Tenant:
        with self.in_environment():
            return syncs.create_tenant(self.connector, self.new_context(), trial)

    def _sync(self, tenant: Tenant, network: Network, *, most: int | None = None) -> Report:
        """Sync without an error and without open records, unless it is stopped, and return the report."""
        failed: list[Exception] = []

        def told(since: str | None) -> httpx.BaseTransport | None:
            try:
                return network(since)
            except Exception as error:
                failed.append(error)  # it is the test's own, and no failure of the stream
                raise

        with self.in_environment(), captured_output() as output:
            report = tenant.sync(told, most=most)
        if failed:
            raise failed[0]
        self.no_secret_in("what a sync printed or logged", output.getvalue())
        self.no_secret_in("the report of a sync", json.dumps(report.as_json(), default=str))
        errors = [error for error in report.errors.values() if STOPPED not in str(error)]
        assert not errors, f"{self._class}.pull: the sync failed: {errors[0]}"
        if not most and report.all_open.total:
            why = "; ".join(tenant.reasons_of_open_records())
            text = f"records of the example are open after a sync: {report.all_open}: {why}"
            raise AssertionError(f"{self._mapping}: {text}")
        assert report.balanced, "the tally does not balance"
        return report


def _skip_unless_syncable(bound: BoundStream) -> None:
    """Skip the test, with the reason, for a stream whose syncs need more than one stream and a platform."""
    stream = bound.stream
    if bound.target.name != PLATFORM:
        raise SkipTest(f"the stream writes to {bound.target.name}; test its syncs with a config and SyncAcceptance")
    if stream.matches == "origin":
        raise SkipTest("the stream contributes to the origin of what it reads, which another stream has to send first")


def _network_for_any_cursor(network: httpx.BaseTransport, _: str | None) -> httpx.BaseTransport:
    return network


def _items_to_stop_after(number: int, with_rows: Sequence[int]) -> list[int]:
    """Return after which items a run ends: after all of them or, if they are many, around those with rows.

    Between them, empty windows of time move no cursor past a record.
    """
    around = {stop for place in with_rows for stop in (place - 1, place, place + 1)}
    stops = [stop for stop in range(1, number + 1) if number <= _STOPS or stop in around]
    if len(stops) <= _STOPS:
        return stops
    return sorted({stops[index * (len(stops) - 1) // (_STOPS - 1)] for index in range(_STOPS)})
