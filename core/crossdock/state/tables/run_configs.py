"""The effective configs of runs, each stored once however many runs had it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, exists, select, update

from crossdock.state.db import sql_statements
from crossdock.state.db.schema import configs, runs
from crossdock.values import exact_json


class RunConfig(NamedTuple):
    run_id: int
    content: Mapping[str, Any]


class RunConfigs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def store(self, run_id: int, content: Mapping[str, Any]) -> None:
        """Store what the run has as its effective config, which contains references to secrets and no secret."""
        digest = hashlib.sha256(exact_json.dumps(content)).hexdigest()
        if self._connection.execute(select(configs.c.digest).where(configs.c.digest == digest)).first() is None:
            sql_statements.upsert(self._connection, configs, [{"digest": digest, "content": content}])
        self._connection.execute(update(runs).where(runs.c.id == run_id).values(config=digest))

    def last(self) -> RunConfig | None:
        """Return the config of the last run that has one."""
        query = select(runs.c.id, configs.c.content).join(configs, configs.c.digest == runs.c.config)
        row = self._connection.execute(query.order_by(runs.c.id.desc()).limit(1)).first()
        return None if row is None else RunConfig(*row)

    def remove_unused(self) -> None:
        """Remove the configs of which no run is left."""
        self._connection.execute(delete(configs).where(~exists().where(runs.c.config == configs.c.digest)))
