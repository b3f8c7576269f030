"""Column types that mean the same in SQLite and in PostgreSQL."""

from datetime import UTC, datetime

from sqlalchemy import BigInteger, DateTime, Integer, TypeDecorator
from sqlalchemy.engine import Dialect

BIG_ID = BigInteger().with_variant(Integer, "sqlite")
"""Numbers that a database gives its rows; SQLite does so for INTEGER alone."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment with its zone; SQLite knows no zones, so there it lies in UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """To the database."""
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """From the database."""
        return value and (value if value.tzinfo else value.replace(tzinfo=UTC))
