"""Bindings: the target's id of each record, and the payload that the target last accepted.

Each change of a scope's bindings gives it a new random stamp: a key index with that stamp is current. Bindings,
resources and streams are unverified until they were compared with their targets, as all are after a restored backup.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain, islice
from typing import Any, NamedTuple

from msgspec import Struct, field
from sqlalchemy import (
    Connection,
    Integer,
    Select,
    Text,
    bindparam,
    delete,
    exists,
    func,
    literal,
    select,
    true,
    tuple_,
    type_coerce,
    union,
    update,
)

from crossdock.state.db import sql_types_and_statements
from crossdock.state.db.schema import (
    bindings,
    dead_letters,
    key_stamps,
    snapshots,
    taken_files,
    untrimmed_keys,
    unverified,
    waiting_records,
)
from crossdock.state.tables.inputs_of_streams import READ_AGAIN
from crossdock.state.tables.record_identity_and_scope import (
    CONTRIBUTION,
    Scope,
    Step,
    scope_condition,
    scope_condition_with_parameters,
)
from crossdock.values import exact_json
from crossdock.values.record_keys import trimmed_key


class KeyIndexChange(NamedTuple):
    """The write of a transaction for one key. *is_live* is false once the target no longer has the record."""

    key_hash: int
    fingerprint: int | None
    position: str | None
    is_live: bool = True


class ScopeChanges(Struct):
    """The changes of one transaction in a scope, and the stamps before and after it; 0 if there was none."""

    before: int
    after: int
    changes: list[KeyIndexChange] = field(default_factory=list)


_RENEW_STAMP = sql_types_and_statements.BulkStatement(
    update(key_stamps)
    .where(scope_condition_with_parameters(key_stamps), key_stamps.c.stamp == bindparam("before"))
    .values(stamp=bindparam("after"))
)


_CONTRIBUTIONS = select(key_stamps.c.namespace).where(
    key_stamps.c.target == bindparam("target"),
    key_stamps.c.resource == bindparam("resource"),
    func.substr(key_stamps.c.namespace, 1, bindparam("length", type_=Integer)) == bindparam("begin"),
)


class KeyIndexStamps:
    """The stamps in one transaction. *expected* returns a scope's stamp after this process changed it last, or 0."""

    def __init__(self, connection: Connection, expected: Callable[[Scope], int]) -> None:
        self._connection, self._expected = connection, expected
        self.touched: dict[Scope, ScopeChanges] = {}

    def renew_stamp_and_record_changes(self, scope: Scope, changes: list[KeyIndexChange]) -> None:
        if scope not in self.touched:
            self.touched[scope] = self._renew_stamp_of_scope(scope)
        self.touched[scope].changes += changes

    def current(self, scope: Scope) -> int:
        return stamp_of_scope(self._connection, scope)

    def contribution_scopes(self, scope: Scope) -> list[Scope]:
        begin = f"{scope.namespace}{CONTRIBUTION}"
        of = {"target": scope.target, "resource": scope.resource, "begin": begin, "length": len(begin)}
        found = self._connection.execute(_CONTRIBUTIONS, of)
        return [Scope(scope.target, scope.resource, namespace) for (namespace,) in found]

    def renew_stamps_of_resource(self, target: str, resource: str) -> None:
        """Record changes of all bindings of these scopes, whose key indexes must be rebuilt."""
        query = select(key_stamps.c.namespace).where(key_stamps.c.target == target, key_stamps.c.resource == resource)
        for (namespace,) in self._connection.execute(query).all():
            scope, after = Scope(target, resource, namespace), secrets.randbits(62) + 1
            sql_types_and_statements.upsert_rows(self._connection, key_stamps, [{**scope.columns, "stamp": after}])
            self.touched[scope] = ScopeChanges(0, after)

    def _renew_stamp_of_scope(self, scope: Scope) -> ScopeChanges:
        after, before = secrets.randbits(62) + 1, self._expected(scope)
        stamps = {"before": [before], "after": [after]}
        if not before or not _RENEW_STAMP.run(self._connection, stamps, scope.columns):
            before = stamp_of_scope(self._connection, scope)
            sql_types_and_statements.upsert_rows(self._connection, key_stamps, [{**scope.columns, "stamp": after}])
        return ScopeChanges(before, after)


def stamp_of_scope(connection: Connection, scope: Scope) -> int:
    """Return the stamp of *scope*; 0 if it never had a binding."""
    return connection.execute(select(key_stamps.c.stamp).where(scope_condition(key_stamps, scope))).scalar() or 0


SEARCHED_AT_ONCE = 20_000  # payloads


class UntrimmedKeys:
    """Keys with white space around them. The names of their records stay the same although keys are trimmed now."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def untrimmed_keys_of_scope(self, scope: Scope) -> list[str]:
        """Return those of the bindings and intents of *scope*."""
        found = self._connection.execute(
            select(untrimmed_keys.c.key).where(scope_condition(untrimmed_keys, scope)).order_by(untrimmed_keys.c.key)
        )
        return list(found.scalars())

    def untrimmed_keys_of_rejected_and_waiting(self, stream: str) -> list[str]:
        """Return those of the rejected and waiting records of *stream*."""
        each = (
            select(other.c.key).where(other.c.stream == stream, other.c.key.contains("%", autoescape=True))
            for other in (dead_letters, waiting_records)
        )
        return sorted(key for key in self._connection.execute(union(*each)).scalars() if trimmed_key(key) != key)

    def add_if_untrimmed(self, scope: Scope, keys: Iterable[tuple[int, str]]) -> None:
        """Store those of *keys*, with their hashes, that have white space around them."""
        found = ((number, key) for number, key in keys if "%" in key and trimmed_key(key) != key)
        rows = [{**scope.columns, "key_hash": number, "key": key} for number, key in found]
        if rows:
            sql_types_and_statements.upsert_rows(self._connection, untrimmed_keys, rows)


class Binding(Struct):
    """A record and its counterpart on the target.

    Attributes:
        fingerprint: Of the rows that the accepted payload was mapped from; None unless *step* is ``whole``, or
            ``import`` from an export that has it.
        payload: The last accepted payload, with wire names and resolved references. Empty if something else has changed
            the record since, or if *step* is ``import``, unless the record is written once and was compared.
        counter: Number of operations created for it; part of idempotency keys.
        unverified: True if it must be compared with the target before it is used, as after a restored backup.
    """

    key_hash: int
    key: str
    target_id: str
    fingerprint: int | None
    position: str | None
    step: Step
    payload: dict[str, Any]
    etag: str | None
    counter: int
    changed_at: str | None = None
    unverified: bool | None = None

    @property
    def is_unused_import(self) -> bool:
        """True if an import has bound it and no operation was made for it: nothing shows that the target has its id."""
        return self.step == "import" and self.counter == 0

    def forget_content_at_target(self) -> None:
        """Keep only the id: what the target holds is unknown."""
        self.fingerprint = self.etag = self.changed_at = None
        self.step, self.payload = "import", {}


class AcceptedBinding(Struct, frozen=True):
    """A `Binding` to write in the form of delivery: *payload* is canonical JSON text."""

    scope: Scope
    key_hash: int
    key: str
    target_id: str
    fingerprint: int | None
    position: str | None
    step: Step
    payload: str
    etag: str | None
    counter: int
    changed_at: str | None = None


ScopedBinding = tuple[Scope, Binding]


_COLUMNS = {name: name for name in Binding.__struct_fields__ if name not in {"fingerprint", "unverified"}}
_COLUMNS |= {"record_fp": "fingerprint"}
_SCOPE = {name: f"scope.{name}" for name in Scope.__struct_fields__}
_FIELDS = tuple(bindings.c["record_fp" if name == "fingerprint" else name] for name in Binding.__struct_fields__)
_HERE = scope_condition_with_parameters(bindings)
_IS_LIVE = bindings.c.deleted_at.is_(None)
IS_UNUSED_IMPORT = (bindings.c.step == "import") & (bindings.c.counter == 0)  # as `Binding.is_unused_import`
_IS_WHOLE = ~bindings.c.namespace.contains(CONTRIBUTION)
_GET = sql_types_and_statements.QueryByKeys(select(*_FIELDS).where(_HERE, _IS_LIVE), bindings.c.key_hash)
_IDS = sql_types_and_statements.QueryByKeys(
    select(bindings.c.key_hash, bindings.c.target_id).where(_HERE, _IS_LIVE), bindings.c.key_hash
)
_NOT_FOUND = sql_types_and_statements.QueryByKeys(
    select(bindings.c.key_hash).where(_HERE, _IS_LIVE, bindings.c.unverified.is_(True), IS_UNUSED_IMPORT),
    bindings.c.key_hash,
)
_OF_RESOURCE = bindings.c.target == bindparam("target"), bindings.c.resource == bindparam("resource")
_target, _resource = (
    sql_types_and_statements.column_without_index(bindings.c[name]) for name in ("target", "resource")
)
_AMONG_IDS = _target == bindparam("target"), _resource == bindparam("resource"), _IS_LIVE
_OF_ID = sql_types_and_statements.QueryByKeys(
    select(bindings.c.target_id, bindings.c.namespace, bindings.c.key_hash, bindings.c.key).where(
        *_AMONG_IDS, _IS_WHOLE
    ),
    bindings.c.target_id,
)
_BOUND = sql_types_and_statements.QueryByKeys(
    select(bindings.c.namespace, *_FIELDS).where(*_AMONG_IDS), bindings.c.target_id
)
_CONTRIBUTED = sql_types_and_statements.QueryByKeys(
    select(bindings.c.target_id, bindings.c.payload).where(*_AMONG_IDS, ~_IS_WHOLE), bindings.c.target_id
)
_TO_ONE_ID = update(bindings).where(
    _target == bindparam("of_target"),
    _resource == bindparam("of_resource"),
    bindings.c.target_id == bindparam("of_id"),
    _IS_LIVE,
)
_RENEW = sql_types_and_statements.BulkStatement(
    _TO_ONE_ID.values(etag=bindparam("renewed"), changed_at=bindparam("then"))
)
_DOUBT_CHANGE = sql_types_and_statements.BulkStatement(_TO_ONE_ID.values(changed_at=None))
_COUNTERS = sql_types_and_statements.QueryByKeys(
    select(bindings.c.key_hash, bindings.c.counter).where(_HERE), bindings.c.key_hash
)
_BURY = sql_types_and_statements.BulkStatement(
    update(bindings)
    .where(_HERE, bindings.c.key_hash == bindparam("gone"))
    .values(deleted_at=bindparam("at"), payload={}, etag=None, changed_at=None, unverified=None)
)
_VERIFY = sql_types_and_statements.BulkStatement(
    update(bindings).where(_HERE, bindings.c.key_hash == bindparam("verified")).values(unverified=None)
)
_MAP_AGAIN = sql_types_and_statements.BulkStatement(
    update(bindings).where(_HERE, bindings.c.key_hash == bindparam("created"), _IS_LIVE).values(record_fp=None)
)
_FORMER = sql_types_and_statements.QueryByKeys(
    select(bindings.c.key_hash, bindings.c.target_id).where(_HERE, bindings.c.deleted_at.is_not(None)),
    bindings.c.key_hash,
)
_RECORD = bindings.alias("record")
_CREATED_AGAIN = select(*_FIELDS).where(
    _HERE,
    _IS_LIVE,
    bindings.c.record_fp.is_(None),
    exists().where(
        _RECORD.c.target == bindings.c.target,
        _RECORD.c.resource == bindings.c.resource,
        _RECORD.c.namespace == bindparam("of"),
        _RECORD.c.key_hash == bindings.c.key_hash,
        _RECORD.c.target_id != bindings.c.target_id,
        _RECORD.c.deleted_at.is_(None),
    ),
)
_DISTRUST = sql_types_and_statements.BulkStatement(
    update(bindings).where(_HERE, bindings.c.key_hash == bindparam("doubted")).values(unverified=True)
)
_DOUBT = sql_types_and_statements.BulkStatement(
    update(bindings)
    .where(_HERE, bindings.c.key_hash == bindparam("doubted"))
    .values(record_fp=None, step="import", payload={}, etag=None, changed_at=None)
)
_FIXED = ("run_id", "updated_at", "deleted_at")
_PUT = sql_types_and_statements.upsert_statement(bindings, (*_SCOPE, *_COLUMNS, *_FIXED), ready=("payload",))


class Bindings:
    def __init__(self, connection: Connection, stamps: KeyIndexStamps) -> None:
        self._connection, self._stamps = connection, stamps
        self._untrimmed = UntrimmedKeys(connection)

    def get(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, Binding]:
        """Return the live bindings among *key_hashes*, by key hash. An unverified binding has only its id."""
        found = {row[0]: Binding(*row) for row in _GET.rows(self._connection, scope.columns, key_hashes)}
        for binding in found.values():
            if binding.unverified:
                binding.forget_content_at_target()
        return found

    def target_id_by_key_hash(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, str]:
        return dict(_IDS.rows(self._connection, scope.columns, key_hashes))

    def has_any(self, scope: Scope) -> bool:
        query = select(literal(1)).where(scope_condition(bindings, scope), _IS_LIVE).limit(1)
        return self._connection.execute(query).first() is not None

    def live_key_hashes(self, scope: Scope) -> Iterator[int]:
        """Yield the key hash of each record of *scope* that the target has."""
        query = select(bindings.c.key_hash).where(scope_condition(bindings, scope), _IS_LIVE)
        yield from self._connection.execute(query.execution_options(yield_per=10_000)).scalars()

    def namespaces_of_resource(self, scope: Scope) -> set[str]:
        """Return the namespaces in which the target of *scope* has records of its resource, each by its first row."""
        of_resource = bindings.c.target == scope.target, bindings.c.resource == scope.resource
        first, found, last = select(func.min(bindings.c.namespace)).where(*of_resource), set[str](), ""
        while (namespace := self._connection.execute(first.where(bindings.c.namespace > last)).scalar()) is not None:
            found.add(namespace)
            last = namespace
        return {each for each in found if CONTRIBUTION not in each}

    def targets_and_resources_of_namespace(self, namespace: str) -> set[tuple[str, str]]:
        """Return the targets that have records of *namespace*, and of which resource, each by its first row."""
        place = bindings.c.target, bindings.c.resource
        first, found, last = select(*place).order_by(*place).limit(1), set[tuple[str, str]](), ("", "")
        while (row := self._connection.execute(first.where(tuple_(*place) > last)).first()) is not None:
            last = row.target, row.resource
            if self.has_any(Scope(*last, namespace)):
                found.add(last)
        return found

    def unverified_imports_among(self, scope: Scope, key_hashes: Sequence[int]) -> set[int]:
        """Return those of *key_hashes* that an import has bound, and no comparison has found at the target."""
        return {key_hash for (key_hash,) in _NOT_FOUND.rows(self._connection, scope.columns, key_hashes)}

    def records_of_target_ids(self, target: str, resource: str, target_ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield target id, namespace, key hash and key of the whole records bound to *target_ids*, in any order."""
        return _OF_ID.rows(self._connection, {"target": target, "resource": resource}, target_ids)

    def bindings_of_target_ids(
        self, target: str, resource: str, target_ids: Sequence[str]
    ) -> Iterator[tuple[Scope, Binding]]:
        """Yield all live bindings to *target_ids*, including those of contributions, in any order."""
        for namespace, *fields in _BOUND.rows(self._connection, {"target": target, "resource": resource}, target_ids):
            yield Scope(target, resource, namespace), Binding(*fields)

    def page_of_resource_bindings(
        self,
        target: str,
        resource: str,
        *,
        after: tuple[str, int] | None,
        limit: int,
        contributions: bool = False,
    ) -> list[ScopedBinding]:
        """Return the next *limit* live bindings *after* one, by namespace and key hash."""
        query = select(bindings.c.namespace, *_FIELDS).where(*_OF_RESOURCE, _IS_LIVE)
        if not contributions:
            query = query.where(_IS_WHOLE)
        return self._page(query, target, resource, after, limit)

    def _page(
        self, query: Select[Any], target: str, resource: str, after: tuple[str, int] | None, limit: int
    ) -> list[ScopedBinding]:
        place = bindings.c.namespace, bindings.c.key_hash
        if after is not None:
            query = query.where(tuple_(*place) > after)  # with OR, SQLite would read the pages before it again
        rows = self._connection.execute(query.order_by(*place).limit(limit), {"target": target, "resource": resource})
        return [(Scope(target, resource, namespace), Binding(*fields)) for namespace, *fields in rows]

    def put(self, scope: Scope, items: Sequence[Binding], *, run_id: int, at: datetime) -> None:
        """Write bindings of one scope. An unverified binding stays unverified."""
        if not items:
            return
        self._stamps.renew_stamp_and_record_changes(scope, [_key_index_change(item) for item in items])
        columns = sql_types_and_statements.attributes_as_columns(items, **_COLUMNS)
        columns["payload"] = [exact_json.dumps(payload).decode() for payload in columns["payload"]]
        fixed = {**scope.columns, "run_id": run_id, "updated_at": at, "deleted_at": None}
        _PUT.run(self._connection, columns, fixed)
        self._untrimmed.add_if_untrimmed(scope, [(item.key_hash, item.key) for item in items])

    def put_accepted(self, items: Sequence[AcceptedBinding], *, run_id: int, at: datetime) -> None:
        """Write what the target accepted. An unverified binding stays unverified."""
        if not items:
            return
        scopes: dict[Scope, list[KeyIndexChange]] = defaultdict(list)
        for item in items:
            scopes[item.scope].append(_key_index_change(item))
        for scope, changes in scopes.items():
            self._stamps.renew_stamp_and_record_changes(scope, changes)
        columns = sql_types_and_statements.attributes_as_columns(items, **_SCOPE, **_COLUMNS)
        _PUT.run(self._connection, columns, {"run_id": run_id, "updated_at": at, "deleted_at": None})
        for item in items:
            self._untrimmed.add_if_untrimmed(item.scope, [(item.key_hash, item.key)])

    def mark_deleted(self, scope: Scope, key_hashes: Sequence[int], *, at: datetime) -> None:
        """Mark records that the target no longer has as deleted. Their counters are kept."""
        if key_hashes:
            self._stamps.renew_stamp_and_record_changes(
                scope, [KeyIndexChange(key_hash, None, None, is_live=False) for key_hash in key_hashes]
            )
        _BURY.run(self._connection, {"gone": key_hashes}, {**scope.columns, "at": at})

    def clear_contribution_fingerprints(self, scope: Scope, key_hashes: Sequence[int]) -> None:
        """Make streams contribute again to these records: their rows would count as unchanged for ever."""
        for each in self._stamps.contribution_scopes(scope):
            self._clear_fingerprints(each, key_hashes)

    def clear_fingerprints_of_referring_records(self, target: str, resource: str, ids: Sequence[str]) -> int:
        """Make streams map the records of *resource* again that refer to *ids*, as soon as they read them.

        Return their number.
        """
        found: dict[Scope, list[int]] = defaultdict(list)
        for scope, key_hash, *_ in self.records_referring_to(target, resource, ids):
            found[scope].append(key_hash)
        for scope, key_hashes in found.items():
            self._clear_fingerprints(scope, key_hashes)
        return sum(map(len, found.values()))

    def _clear_fingerprints(self, scope: Scope, key_hashes: Sequence[int]) -> None:
        self._stamps.renew_stamp_and_record_changes(
            scope, self._key_index_changes_clearing_fingerprints(scope, key_hashes)
        )
        _MAP_AGAIN.run(self._connection, {"created": key_hashes}, scope.columns)

    def former_target_ids(self, scope: Scope, key_hashes: Sequence[int]) -> list[str]:
        """Return the ids that those of *key_hashes* had whose records were deleted since."""
        return [target_id for _, target_id in _FORMER.rows(self._connection, scope.columns, key_hashes)]

    def contributions_to_recreated_records(self, scope: Scope) -> list[Binding]:
        """Return the contributions of *scope* to records that were deleted and created again."""
        of = {**scope.columns, "of": scope.whole_record_scope.namespace}
        found = [Binding(*row) for row in self._connection.execute(_CREATED_AGAIN, of)]
        return [binding for binding in found if not binding.unverified]

    def _key_index_changes_clearing_fingerprints(self, scope: Scope, key_hashes: Sequence[int]) -> list[KeyIndexChange]:
        return [KeyIndexChange(key_hash, None, each.position) for key_hash, each in self.get(scope, key_hashes).items()]

    def mark_unverified(self, scope: Scope, items: Sequence[Binding | AcceptedBinding]) -> None:
        self._stamps.renew_stamp_and_record_changes(
            scope, [KeyIndexChange(item.key_hash, None, item.position) for item in items]
        )
        _DISTRUST.run(self._connection, {"doubted": [item.key_hash for item in items]}, scope.columns)

    def mark_all_of_resource_unverified(self, target: str, resource: str) -> None:
        whole = bindings.c.target == target, bindings.c.resource == resource, _IS_LIVE
        self._connection.execute(update(bindings).where(*whole).values(unverified=True))
        self._stamps.renew_stamps_of_resource(target, resource)

    def mark_verified(self, scope: Scope, items: Sequence[Binding | AcceptedBinding]) -> None:
        if items:
            self._stamps.renew_stamp_and_record_changes(scope, [_key_index_change(item) for item in items])
            _VERIFY.run(self._connection, {"verified": [item.key_hash for item in items]}, scope.columns)

    def page_of_unverified_bindings(
        self, target: str, resource: str, *, after: tuple[str, int] | None, limit: int
    ) -> list[ScopedBinding]:
        """Do the same as `page_of_resource_bindings` for unverified bindings, including contributions."""
        query = select(bindings.c.namespace, *_FIELDS).where(*_OF_RESOURCE, bindings.c.unverified.is_(True))
        return self._page(query, target, resource, after, limit)

    def clear_payloads_by_key_prefix(self, target: str, resource: str, beginning: str) -> None:
        """Clear the payloads of records whose keys have this prefix: something else has changed them at the target."""
        names = tuple(bindings.c[name] for name in Scope.__struct_fields__)
        begins = bindings.c.key.startswith(beginning, autoescape=True)
        query = select(*names, bindings.c.key_hash).where(begins, bindings.c.step != "import", _IS_LIVE)
        query = query.where(bindings.c.target == target, bindings.c.resource == resource)
        found: dict[Scope, list[int]] = defaultdict(list)
        for *columns, key_hash in self._connection.execute(query):
            found[Scope(*columns)].append(key_hash)
        for scope, key_hashes in found.items():
            self._stamps.renew_stamp_and_record_changes(
                scope, [KeyIndexChange(key_hash, None, None) for key_hash in key_hashes]
            )
            _DOUBT.run(self._connection, {"doubted": key_hashes}, scope.columns)

    def contributed_payloads(self, target: str, resource: str, target_ids: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield target id and last payload of each contribution to the target's records *target_ids*, in any order."""
        return _CONTRIBUTED.rows(self._connection, {"target": target, "resource": resource}, target_ids)

    def store_record_versions(self, items: Sequence[AcceptedBinding]) -> None:
        """Write the versions that the target's records have after these contributions."""
        columns: dict[str, Sequence[Any]] = {
            "of_target": [item.scope.target for item in items],
            "of_resource": [item.scope.resource for item in items],
            "of_id": [item.target_id for item in items],
            "renewed": [item.etag for item in items],
            "then": [item.changed_at for item in items],
        }
        _RENEW.run(self._connection, columns)

    def clear_change_times(self, records: Sequence[tuple[str, str, str]]) -> None:
        """Clear the change times of records (target, resource, id), which others have changed since."""
        names = ("of_target", "of_resource", "of_id")
        columns: dict[str, Sequence[Any]] = {name: [each[n] for each in records] for n, name in enumerate(names)}
        _DOUBT_CHANGE.run(self._connection, columns)

    def records_referring_to(
        self, target: str, resource: str, ids: Sequence[str]
    ) -> Iterator[tuple[Scope, int, str, dict[str, Any]]]:
        """Yield scope, key hash, key and payload of the live bindings whose payload has one of the texts *ids*."""
        import polars as pl  # noqa: PLC0415  its import takes 0.2 s of CPU, and few transactions search

        wanted = [exact_json.dumps(each).decode() for each in ids]
        names = (
            bindings.c.namespace,
            bindings.c.key_hash,
            bindings.c.key,
            type_coerce(bindings.c.payload, Text).label("text"),
        )
        query = select(*names).where(*_OF_RESOURCE, _IS_LIVE).execution_options(yield_per=SEARCHED_AT_ONCE)
        found = self._connection.execute(query, {"target": target, "resource": resource})
        for rows in found.partitions():
            has_one = pl.Series([row.text for row in rows], dtype=pl.String).str.contains_any(wanted)
            for place in has_one.arg_true():
                namespace, key_hash, key, text = rows[place]
                yield Scope(target, resource, namespace), key_hash, key, exact_json.loads_trusted_canonical(text)

    def idempotency_counters(self, scope: Scope, key_hashes: Sequence[int]) -> dict[int, int]:
        return dict(_COUNTERS.rows(self._connection, scope.columns, key_hashes))

    def newest_change_time_at_target(self, target: str) -> datetime | None:
        """Return when *target* last changed a record, by its own clock and its answers; None if unknown."""
        newest = select(func.max(bindings.c.changed_at)).where(bindings.c.target == target)
        text: str | None = self._connection.execute(newest).scalar()
        try:
            return None if text is None else datetime.fromisoformat(text)
        except ValueError:
            return None

    def listed(self) -> Iterator[tuple[Scope, str, str, int | None]]:
        """Yield scope, key, target id and fingerprint of every live binding, sorted by scope and key.

        Unverified bindings have no fingerprint.
        """
        names = (bindings.c.target, bindings.c.resource, bindings.c.namespace, bindings.c.key)
        query = select(*names, bindings.c.target_id, bindings.c.record_fp, bindings.c.unverified)
        query = query.where(_IS_LIVE, _IS_WHOLE).order_by(*names)
        for *scope, key, target_id, found, is_unverified in self._connection.execute(
            query.execution_options(yield_per=10_000)
        ):
            yield Scope(*scope), key, target_id, None if is_unverified else found

    def counts_by_resource(self) -> dict[str, int]:
        query = select(bindings.c.resource, func.count()).where(_IS_LIVE, _IS_WHOLE).group_by(bindings.c.resource)
        return {resource: number for resource, number in self._connection.execute(query)}


def _key_index_change(item: Binding | AcceptedBinding) -> KeyIndexChange:
    """Return the change of one key. What an import has bound is mapped, since its payload is unknown."""
    return KeyIndexChange(item.key_hash, None if item.step == "import" else item.fingerprint, item.position)


_RESOURCE, _STREAM = "resource", "stream"
_IS_UNVERIFIED = bindings.c.unverified.is_(True)
_SCOPE_COLUMNS = tuple(bindings.c[name] for name in Scope.__struct_fields__)


class UnverifiedRecord(NamedTuple):
    scope: Scope
    key: str
    target_id: str
    is_unused_import: bool


class UnverifiedParts:
    """Unverified resources of targets, unverified streams, and unverified bindings.

    A resource is unverified until the target's records were compared with the bindings, since it may have records that
    the state has forgotten. A stream is unverified until the state has forgotten its last snapshot.
    """

    def __init__(self, connection: Connection, of_bindings: Bindings) -> None:
        self._connection, self._bindings = connection, of_bindings

    def mark_resources_and_streams(self, resources: Sequence[tuple[str, str]]) -> None:
        """Mark *resources* (target and resource) with their bindings, and all streams."""
        for target, resource in resources:
            self.mark_resource(target, resource)
            self._bindings.mark_all_of_resource_unverified(target, resource)
        names = union(select(taken_files.c.stream), select(snapshots.c.stream)).subquery()
        found = [name for (name,) in self._connection.execute(select(names.c.stream))]
        sql_types_and_statements.upsert_rows(
            self._connection, unverified, [{"kind": _STREAM, "name": name} for name in found]
        )

    def mark_resource(self, target: str, resource: str) -> None:
        """Require a comparison of the records of a resource, as far as their bindings are unverified."""
        sql_types_and_statements.upsert_rows(
            self._connection, unverified, [{"kind": _RESOURCE, "name": f"{target}/{resource}"}]
        )

    def mark_bindings_and_resource(self, scope: Scope, items: Sequence[Binding | AcceptedBinding]) -> None:
        self.mark_resource(scope.target, scope.resource)
        self._bindings.mark_unverified(scope, items)

    def resources_with_unverified_bindings(self, target: str) -> set[str]:
        query = select(bindings.c.resource).where(_IS_UNVERIFIED, bindings.c.target == target).distinct()
        return {resource for (resource,) in self._connection.execute(query)}

    def marked_resources(self, target: str) -> set[str]:
        prefix = f"{target}/"
        query = select(unverified.c.name).where(
            unverified.c.kind == _RESOURCE, unverified.c.name.startswith(prefix, autoescape=True)
        )
        return {name.removeprefix(prefix) for (name,) in self._connection.execute(query)}

    def clear_mark_of_resource(self, target: str, resource: str) -> None:
        name = f"{target}/{resource}"
        self._connection.execute(delete(unverified).where(unverified.c.kind == _RESOURCE, unverified.c.name == name))

    def streams(self) -> set[str]:
        query = select(unverified.c.name).where(unverified.c.kind == _STREAM)
        return {name for (name,) in self._connection.execute(query)}

    def clear_all(self) -> None:
        """Clear all marks after a complete run that found nothing unverified."""
        self._connection.execute(delete(unverified))

    def has_unverified_bindings(self) -> bool:
        return self._connection.execute(select(literal(1)).where(_IS_UNVERIFIED).limit(1)).first() is not None

    def forget_last_snapshot_was_read(self, stream: str) -> None:
        """Make *stream* read its last snapshot again without a comparison. It stays known: older ones are not read."""
        gone = delete(unverified).where(unverified.c.kind == _STREAM, unverified.c.name == stream)
        if not self._connection.execute(gone).rowcount:
            return
        done = taken_files.c.stream == stream, taken_files.c.status == "done"
        last = select(func.max(taken_files.c.accepted_at)).where(*done).scalar_subquery()
        self._connection.execute(
            update(taken_files).where(*done, taken_files.c.accepted_at == last).values(status=READ_AGAIN)
        )
        latest = select(func.max(snapshots.c.finished_at)).where(snapshots.c.stream == stream).scalar_subquery()
        was_last = snapshots.c.stream == stream, snapshots.c.finished_at == latest
        self._connection.execute(
            update(snapshots)
            .where(*was_last)
            .values(content=func.substr(literal("restored-").concat(snapshots.c.content), 1, 64))
        )

    def unverified_binding_counts_by_scope(self) -> Iterator[tuple[Scope, int]]:
        query = select(*_SCOPE_COLUMNS, func.count()).where(_IS_UNVERIFIED).group_by(*_SCOPE_COLUMNS)
        for *scope, number in self._connection.execute(query):
            yield Scope(*scope), number

    def count_unverified_records(self, scopes: Collection[Scope], key_hash: int | None) -> int:
        if key_hash is None:
            return sum(number for scope, number in self.unverified_binding_counts_by_scope() if scope in scopes)
        return len(self.unverified_records(scopes, key_hash, limit=len(scopes)))

    def unverified_records(
        self, scopes: Collection[Scope], key_hash: int | None, *, limit: int
    ) -> list[UnverifiedRecord]:
        """Return at most *limit* unverified records of *scopes*, all or those with one key, by scope and key."""
        query = select(*_SCOPE_COLUMNS, bindings.c.key, bindings.c.target_id, IS_UNUSED_IMPORT).where(_IS_UNVERIFIED)
        query = query.order_by(*_SCOPE_COLUMNS, bindings.c.key)
        places = [true()] if key_hash is None else [scope_condition(bindings, each) for each in _sorted_scopes(scopes)]
        if key_hash is not None:
            query = query.where(bindings.c.key_hash == key_hash)
        rows = chain.from_iterable(self._connection.execute(query.where(place)) for place in places)
        found = (UnverifiedRecord(Scope(*scope), name, target_id, unused) for *scope, name, target_id, unused in rows)
        return list(islice((each for each in found if each.scope in scopes), limit))

    def page_of_unverified_records(
        self, scopes: Collection[Scope], *, after: tuple[Scope, int] | None, limit: int
    ) -> list[tuple[UnverifiedRecord, int]]:
        """Return at most *limit* unverified records of *scopes* with their key hashes, *after* one of them."""
        found = list[tuple[UnverifiedRecord, int]]()
        for scope in _sorted_scopes(scopes):
            if after is not None and tuple(scope.columns.values()) < tuple(after[0].columns.values()):
                continue
            query = select(bindings.c.key, bindings.c.target_id, IS_UNUSED_IMPORT, bindings.c.key_hash)
            query = query.where(_IS_UNVERIFIED, scope_condition(bindings, scope)).order_by(bindings.c.key_hash)
            if after is not None and scope == after[0]:
                query = query.where(bindings.c.key_hash > after[1])
            rows = self._connection.execute(query.limit(limit - len(found)))
            found += [(UnverifiedRecord(scope, *facts), key_hash) for *facts, key_hash in rows]
            if len(found) == limit:
                break
        return found


def _sorted_scopes(scopes: Collection[Scope]) -> list[Scope]:
    return sorted(scopes, key=lambda each: tuple(each.columns.values()))
