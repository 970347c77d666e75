"""Parts of a state that are compared with their targets before they are used; after a restored backup, all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, literal, select, true, union, update

from crossdock.state.db import bulk_writes_and_key_queries
from crossdock.state.db.schema import bindings, snapshots, taken_files, unverified
from crossdock.state.tables.file_intake import READ_AGAIN
from crossdock.state.tables.record_bindings import IS_UNUSED_IMPORT, AcceptedBinding, Binding, Bindings
from crossdock.state.tables.record_identity_and_scope import Scope, in_scope

_RESOURCE, _STREAM = "resource", "stream"
_IS_UNVERIFIED = bindings.c.unverified.is_(True)
_SCOPE = tuple(bindings.c[name] for name in Scope.__struct_fields__)


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
        bulk_writes_and_key_queries.upsert_rows(
            self._connection, unverified, [{"kind": _STREAM, "name": name} for name in found]
        )

    def mark_resource(self, target: str, resource: str) -> None:
        """Require a comparison of the records of a resource, as far as their bindings are unverified."""
        bulk_writes_and_key_queries.upsert_rows(
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

    def clear_resource(self, target: str, resource: str) -> None:
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
        query = select(*_SCOPE, func.count()).where(_IS_UNVERIFIED).group_by(*_SCOPE)
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
        query = select(*_SCOPE, bindings.c.key, bindings.c.target_id, IS_UNUSED_IMPORT).where(_IS_UNVERIFIED)
        query = query.order_by(*_SCOPE, bindings.c.key)
        places = [true()] if key_hash is None else [in_scope(bindings, each) for each in _sorted_scopes(scopes)]
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
            query = query.where(_IS_UNVERIFIED, in_scope(bindings, scope)).order_by(bindings.c.key_hash)
            if after is not None and scope == after[0]:
                query = query.where(bindings.c.key_hash > after[1])
            rows = self._connection.execute(query.limit(limit - len(found)))
            found += [(UnverifiedRecord(scope, *facts), key_hash) for *facts, key_hash in rows]
            if len(found) == limit:
                break
        return found


def _sorted_scopes(scopes: Collection[Scope]) -> list[Scope]:
    return sorted(scopes, key=lambda each: tuple(each.columns.values()))
