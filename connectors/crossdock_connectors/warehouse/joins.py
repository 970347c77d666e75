"""Streams over the files of several sources: look-ups and joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from crossdock import Context, Repair
from crossdock.sources import Expectation, FileSource, Join, Joined, JoinedFiles, Lookup, Part, Rule, StreamId
from crossdock_connectors.warehouse.settings import SourceConfig, WarehouseStreamConfig

if TYPE_CHECKING:
    from crossdock_connectors.warehouse.streams import WarehouseStream


_TRIM = Repair(strip="both")


def layout(config: WarehouseStreamConfig, source: SourceConfig, others: Mapping[str, SourceConfig]) -> dict[str, Any]:
    """Return the parts of look-ups and joins that decide how bytes become records; empty without any."""
    rules: dict[str, Lookup] = {**config.lookup, **config.join}
    if not rules:
        return {}
    used = {rule.source: others[rule.source] for rule in rules.values()}
    repairs = {**source.columns, **config.columns}
    return {
        "columns": {name: repair.model_dump(exclude_none=True) for name, repair in repairs.items()},
        "rules": {name: rule.model_dump(exclude_none=True, exclude={"within"}) for name, rule in rules.items()},
        "sources": {
            name: each.model_dump(include={"columns", "skip"}, exclude_none=True) | {"format": each.layout}
            for name, each in sorted(used.items())
        },
    }


class JoinedStream:
    """One stream with look-ups or joins, in one run. *repairs* are those of *main*, its own source."""

    def __init__(
        self,
        stream: WarehouseStream[Any],
        ctx: Context[Any],
        main: SourceConfig,
        repairs: Mapping[str, Repair],
        others: Mapping[str, SourceConfig],
    ) -> None:
        self._stream, self._ctx, self._config = stream, ctx, stream.config
        self._main, self._repairs, self._others = main, repairs, others
        self._snapshot = stream.mode == "snapshot"

    def files(self) -> JoinedFiles:
        stream_id = self._stream.stream_id(self._ctx)
        source = self._file_source(self._main, stream_id, kept=self._kept, snapshot=self._snapshot)
        rules = (*self._config.lookup.values(), *self._config.join.values())
        names = [*self._stream.key, *(name for rule in rules for name in rule.columns)]
        main = Part(
            self._main.files,
            source,
            stream_id,
            lambda rows: self._trimmed(repaired(rows, self._repairs), names),
            self._stream.expectation,
        )
        lookups = {name: self._lookup(name, rule) for name, rule in self._config.lookup.items()}
        joins = {name: self._join(name, rule) for name, rule in self._config.join.items()}
        return JoinedFiles(main, lookups, joins, self._ctx.run, snapshot=self._snapshot)

    def _lookup(self, name: str, rule: Lookup) -> Joined:
        used = self._columns_of(name)
        columns = None if used is None else [*rule.columns.values(), *used]
        return self._joined(name, rule, Rule(rule.columns), columns, kept=timedelta(), snapshot=True)

    def _join(self, name: str, rule: Join) -> Joined:
        used = self._stream.joined_columns
        columns = None if used is None else [*rule.columns.values(), *rule.key, *used.get(name, ())]
        # a record that is kept has all its rows: also those that arrived `within` before it
        kept = rule.kept_for + (self._kept or timedelta())
        return self._joined(name, rule, Rule(rule.columns, rule.key), columns, kept=kept, snapshot=self._snapshot)

    @property
    def _kept(self) -> timedelta | None:
        """How long files of the main source are kept. A snapshot is read again with each new look-up file."""
        alone = timedelta() if self._snapshot else None
        return max((join.kept_for for join in self._config.join.values()), default=alone)

    def _joined(
        self,
        name: str,
        rule: Lookup,
        found_by: Rule,
        columns: Sequence[str] | None,
        *,
        kept: timedelta,
        snapshot: bool,
    ) -> Joined:
        config, own = self._others[rule.source], self._stream.stream_id(self._ctx)
        stream_id = StreamId(f"{own.stream}:{name}", own.version)
        is_join = isinstance(rule, Join)
        source = self._file_source(config, stream_id, kept=kept, snapshot=snapshot, is_join=is_join)
        expectation = Expectation(config.required, config.expect)
        names = [*rule.columns.values(), *found_by.key]
        part = Part(
            config.files,
            source,
            stream_id,
            lambda rows: filtered(self._trimmed(repaired(rows, config.columns), names), config),
            expectation,
        )
        return Joined(part, found_by, None if columns is None else list(dict.fromkeys(columns)))

    def _file_source(
        self,
        config: SourceConfig,
        stream_id: StreamId,
        *,
        kept: timedelta | None,
        snapshot: bool,
        is_join: bool = False,
    ) -> FileSource:
        """Return the files of a source. Those of a join are put in order, and several may be parts of a snapshot."""
        run = self._ctx.run.apart(stream_id.stream.replace(":", "."))
        return self._stream.file_source(
            self._ctx, config, [stream_id], run, kept=kept, snapshot=snapshot, parts=is_join, takes_late=is_join
        )

    def _trimmed(self, rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
        present = [name for name in dict.fromkeys(names) if name in rows.columns]
        return rows.with_columns(_TRIM.expression(name) for name in present) if self._stream.trim_keys else rows

    def _columns_of(self, lookup: str) -> list[str] | None:
        stream, config = self._stream, self._config
        if stream.uses is None:
            return None
        others = [column for rule in config.lookup.values() for column in rule.columns]
        filters = [column for rule in stream.skip.values() for column in rule.columns()]
        order = [each if isinstance(each, str) else each.column for each in stream.order_by or ()]
        names = [*stream.uses, *filters, *order, *stream.key, *others]
        prefix = f"{lookup}."
        return [name.removeprefix(prefix) for name in names if name.startswith(prefix)]


def repaired(rows: pl.DataFrame, repairs: Mapping[str, Repair]) -> pl.DataFrame:
    """Repair the texts of *rows*. Repairs of missing columns are left out, and reported where they are used."""
    return rows.with_columns(repair.expression(name) for name, repair in repairs.items() if name in rows.columns)


def filtered(rows: pl.DataFrame, config: SourceConfig) -> pl.DataFrame:
    return rows.filter(~pl.any_horizontal(rule.expression() for rule in config.skip.values())) if config.skip else rows
