"""Counts of the records that the state knows of a stream, whichever run read them."""

from __future__ import annotations

from sqlalchemy import Connection, exists, func, select, union

from crossdock.state.db.schema import bindings, dead_letters, intents, waiting_records
from crossdock.state.tables.intents import UNSETTLED
from crossdock.state.tables.scope import Scope, within


class KnownRecords:
    """The counts. They read an index entry of each record, which takes about a second for a million."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def delivered(self, scope: Scope) -> int:
        """Count the records that the target has: those of live bindings."""
        query = select(func.count()).select_from(bindings)
        return int(self._connection.execute(query.where(within(bindings, scope), _IS_LIVE)).scalar_one())

    def not_delivered(self, stream: str, scope: Scope) -> int:
        """Count the open records that the target does not have. One that is open in several states counts once."""
        rejected = select(dead_letters.c.key_hash).where(
            dead_letters.c.stream == stream, dead_letters.c.status == "rejected"
        )
        waiting = select(waiting_records.c.key_hash).where(waiting_records.c.stream == stream)
        unsettled = select(intents.c.key_hash).where(within(intents, scope), intents.c.status.in_(UNSETTLED))
        keys = union(rejected, waiting, unsettled).subquery()
        has = exists().where(within(bindings, scope), _IS_LIVE, bindings.c.key_hash == keys.c.key_hash)
        return int(self._connection.execute(select(func.count()).select_from(keys).where(~has)).scalar_one())


_IS_LIVE = bindings.c.deleted_at.is_(None)
