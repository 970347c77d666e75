"""Column types that return exactly what was stored on both databases, and columns that several tables share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Dialect, LargeBinary, String, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

from crossdock.values import exact_json


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time. On SQLite, which has no time zones, it is ISO text in UTC, which sorts by time."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(DateTime(timezone=True) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time in the state needs a time zone")
        instant = value.astimezone(UTC)
        return instant if dialect.name == "postgresql" else instant.isoformat(timespec="microseconds")

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ARG002  SQLAlchemy's signature
        if value is None or isinstance(value, datetime):
            return None if value is None else value.astimezone(UTC)
        return datetime.fromisoformat(value)


class ExactJson(TypeDecorator[Any]):
    """JSON as canonical text: numbers are read as the `Decimal` or `int` that was stored."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else exact_json.dumps(value).decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else exact_json.loads_trusted_canonical(value)


class Hash(TypeDecorator[int]):
    """An unsigned hash of up to 128 bits, stored as 16 bytes, most significant first."""

    impl = LargeBinary(16)
    cache_ok = True

    def process_bind_param(self, value: int | None, dialect: Dialect) -> bytes | None:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else value.to_bytes(16, "big")

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> int | None:  # noqa: ARG002  SQLAlchemy's signature
        return None if value is None else int.from_bytes(value, "big")


def scope_columns() -> list[Column[object]]:
    return [
        Column("target", String(64), primary_key=True),
        Column("resource", String(32), primary_key=True),
        Column("namespace", String(128), primary_key=True),
    ]


def record_data_and_place_columns() -> list[Column[object]]:
    return [
        Column("key", Text, nullable=False),
        Column("record_fp", Hash),
        Column("position", Text),
        Column("raw", ExactJson, nullable=False),
        Column("source", Text, nullable=False),
        Column("line", BigInteger, nullable=False),
    ]


def stream_and_key_columns() -> list[Column[object]]:
    return [Column("stream", String(192), primary_key=True), Column("key_hash", Hash, primary_key=True)]
