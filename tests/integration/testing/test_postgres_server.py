from __future__ import annotations

import psycopg
import pytest
from tests.servers import require

from crossdock.testing.postgres_server import PostgresServer


@pytest.mark.postgres
def test_each_database_is_new() -> None:
    """Each database is new and encoded in UTF-8; the server has stopped afterwards."""
    require(PostgresServer.available(), "PostgreSQL")
    with PostgresServer() as server:
        urls = [server.create_database() for _ in range(2)]
        for url in urls:
            assert url.startswith("postgresql+psycopg://")
            with psycopg.connect(url.replace("+psycopg", "")) as connection:
                connection.execute("CREATE TABLE only_here (name text)")
                connection.execute("INSERT INTO only_here VALUES ('ü')")
                assert connection.execute("SELECT name FROM only_here").fetchall() == [("ü",)]
        port = server.port
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=port, user="crossdock", dbname="postgres", connect_timeout=2)
