"""Tests that every stream should pass, to inherit in the tests of a connector.

Their assertions name the record by its place. Values appear only where they are the author's example data.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any
from unittest import SkipTest

import polars as pl

from crossdock.config.project.connections_and_bound_streams import (
    BoundStream,
    Connection,
    write_conflict_messages_and_hints,
)
from crossdock.delta.row_preparation import (
    DELETED,
    KEY,
    SKIP,
    add_key_filter_and_fingerprint_columns,
    is_column_added_by_engine,
)
from crossdock.errors import RecordError
from crossdock.runs.batches_read_from_connector import fetch_checked_batches
from crossdock.testing.connector_context_and_reading import bind_checked_stream
from crossdock.testing.connector_under_test import normalized_key_text, shown_key, shown_method_name, shown_record_place
from crossdock.testing.mapping_contract import MappingContract
from crossdock.testing.reading_with_two_hash_seeds import read_with_two_seeds
from crossdock.testing.record_variants import drifted_objects
from crossdock.testing.sync_contract import SyncContract
from crossdock.values import exact_json
from crossdock.values.raw_rows_and_records import RawBatch
from crossdock.values.record_keys import key_parts_of, key_text
from crossdock.webhooks import Hint, Webhook, Webhooks

__all__ = ["StreamContract"]


class StreamContract(MappingContract, SyncContract):
    """Tests of one stream, for any source; `HttpStreamContract` has more.

    Set the attributes of `StreamUnderTest`, and define `network` or `prepare`.

    Attributes:
        webhooks: Webhooks that the connector receives: the topic, the JSON body, and the keys of this stream's records
            that it names.
    """

    webhooks: Sequence[tuple[str, Any, Sequence[Any]]] = ()

    # ---- tests

    def test_no_other_stream_writes_the_same_records(self) -> None:
        """A config with two streams that write one resource in one namespace is refused."""
        ctx = self.example().bound.context
        streams = tuple(self.connector.streams(ctx.settings))
        for _, message, hint in write_conflict_messages_and_hints(
            [Connection(ctx.connection, self.connector, ctx.settings, streams)]
        ):
            raise AssertionError(f"no config can have these streams together: {message}; {hint}")

    def test_a_second_run_reads_the_same(self) -> None:
        """Two runs over the same data give the same keys, rows and drafts."""
        first, second = (
            [(tried.record.key, tried.record.rows, tried.members) for tried in self.example().records] for _ in range(2)
        )
        assert first == second, (
            f"{self._shown_method_name('pull')}: a second run over the same data reads other keys, rows or drafts; "
            "make no key of "
            "a position, a random number, the time, or anything that an earlier run left behind"
        )

    def test_a_record_is_fetched_as_it_is_pulled(self) -> None:
        """`Stream.fetch` gives the rows that `pull` gives. Otherwise webhooks and runs would change records back and
        forth.

        Keys that cannot be fetched by themselves are allowed, but not all of them.
        """
        trial = self.example()
        if not trial.bound.stream.fetches:
            raise SkipTest("the stream fetches no named records")
        pulled = {tried.record.key: tried.record for tried in trial.records}
        bound = bind_checked_stream(self.connector, self.new_context(), self.stream)
        with self.in_environment():
            found = fetched_rows_by_key(bound, list(pulled)[: bound.stream.fetch_size])
        fetch = shown_method_name(bound.stream, "fetch")
        assert found.keys() & pulled.keys(), (
            f"{fetch} gives none of the records that pull gives, asked for their keys; is the key of its rows the same?"
        )
        for key, rows in found.items():
            same = key not in pulled or rows == pulled[key].rows
            assert same, (
                f"{fetch}, {shown_record_place(pulled[key])}: fetch gives other rows than pull; read the same members "
                "in both"
            )

    def test_webhooks_name_their_records(self) -> None:
        """Each of `webhooks` names the records that the author states, and `fetch` reads those that `pull` gives."""
        trial = self.example()
        with self.in_environment():
            declared = self.connector.webhooks and self.connector.webhooks(self.new_context().settings)
        if not (declared and self.webhooks):
            reason = (
                f"webhooks is not set: no webhook shows that it names the records of {self._shown_method_name('fetch')}"
            )
            if not trial.bound.stream.fetches:
                reason = "the stream fetches no named records"
            raise SkipTest(reason if declared else "the connector receives no webhooks with these settings")
        bound = bind_checked_stream(self.connector, self.new_context(), self.stream)
        for topic, body, keys in self.webhooks:
            document = exact_json.loads(exact_json.dumps(body))
            named = [
                key_text(hint.key)
                for hint in _hints_of_webhook(declared, topic, document)
                if hint.stream == self.stream
            ]
            where = f"{declared.hints.__qualname__} of the connector's webhooks, topic {topic!r}"
            wanted = [normalized_key_text(key, named) for key in keys]
            shown = " instead of ".join(f"[{', '.join(map(shown_key, each))}]" for each in (named, wanted))
            assert named == wanted, f"{where}: names the records {shown}"
            for change, changed in drifted_objects(document):
                self._assert_hints_survive_drift(f"{where}, {change}", declared, topic, changed)
            with self.in_environment():
                fetched = fetched_rows_by_key(bound, named) if named else {}
            lost = {*named} & {tried.record.key for tried in trial.records} - fetched.keys()
            named_only = ", ".join(map(shown_key, sorted(lost)))
            assert not lost, (
                f"{self._shown_method_name('fetch')} does not read the record {named_only}, which a webhook names"
            )

    @staticmethod
    def _assert_hints_survive_drift(where: str, declared: Webhooks[Any], topic: str, body: Any) -> None:
        try:
            _hints_of_webhook(declared, topic, body)
        except RecordError:
            return
        except Exception as error:  # noqa: BLE001  it is an author's, and shown as a failure
            raise AssertionError(
                f"{where}: raises {type(error).__name__}; read the body with methods of the webhook, such as identifier"
            ) from None

    def test_keys_and_drafts_are_the_same_in_every_process(self) -> None:
        """The key, the rows and the draft of a record do not depend on how Python hashes texts (PYTHONHASHSEED)."""
        stream = self.example().bound.stream
        pull, to_resource = shown_method_name(stream, "pull"), shown_method_name(stream, "to_resource")
        hint = "use no hash() and no order of a set"
        one, other = (sorted(reading) for reading in read_with_two_seeds(type(self)))
        assert len(one) == len(other), f"{pull}: one process reads {len(one)} records, and another {len(other)}"
        for (key, rows, draft), (other_key, other_rows, other_draft) in zip(one, other, strict=True):
            record, text = f"record {shown_key(key)}", f"{shown_key(key)} is the key of a record in one process"
            text += f", and {shown_key(other_key)} in another"
            assert key == other_key, f"{pull}: {text}; {hint}"
            assert rows == other_rows, f"{pull}: {record} has other rows in another process; {hint}"
            assert draft == other_draft, f"{to_resource}: {record} has another draft in another process; {hint}"

    def _shown_method_name(self, name: str) -> str:
        return shown_method_name(bind_checked_stream(self.connector, self.new_context(), self.stream).stream, name)


def _hints_of_webhook(declared: Webhooks[Any], topic: str, body: Any) -> list[Hint]:
    return [*declared.hints(Webhook(topic, {}, body))]


Rows = tuple[dict[str, Any], ...]


def fetched_rows_by_key(bound: BoundStream, keys: Sequence[str]) -> dict[str, Rows]:
    """Return the rows of each record that `fetch` yields and no filter leaves out, by key. The last rows of a key
    count.

    Args:
        keys: In their text form, at most `Stream.fetch_size`, each once.
    """
    found: dict[str, Rows] = {}
    batches = fetch_checked_batches(bound, [key_parts_of(key) for key in keys])
    for _, pages in groupby(batches, key=lambda batch: batch.source):
        rows = sorted((row for page in pages for row in _rows_kept_by_filters(bound, page)), key=itemgetter(KEY))
        for key, group in groupby(rows, key=itemgetter(KEY)):
            cells = [{name: cell for name, cell in row.items() if not is_column_added_by_engine(name)} for row in group]
            found[key] = tuple(cells) if bound.stream.group_by else (cells[-1],)
    return found


def _rows_kept_by_filters(bound: BoundStream, batch: RawBatch) -> list[dict[str, Any]]:
    """Keep the rows with a key that no filter leaves out and that are not marked as deleted."""
    frame = add_key_filter_and_fingerprint_columns(bound.stream, batch.source, batch.load())
    frame = frame.filter(pl.col(SKIP).is_null() & pl.col(KEY).is_not_null())
    if bound.stream.deleted is not None:
        frame = frame.filter(~pl.col(DELETED))
    return frame.to_dicts()
