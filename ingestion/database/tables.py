"""All tables of the database.

| table                  | used by                          |
| ---------------------- | -------------------------------- |
| `ingestion_runs_table` | `ingestion.runs`                 |
| `turns_table`          | `app.service.session_store`      |
| `questions_table`      | `app.service.records`            |
| `cached_answers_table` | `app.service.answer_cache`       |
| `api_keys_table`       | `app.security.api_keys`          |

A test checks that the migrations in `ingestion.database.migrations` create exactly these tables.
"""

from datetime import UTC, datetime

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.engine import Dialect

BIG_ID = BigInteger().with_variant(Integer, "sqlite")
"""Type of an autoincremented id. SQLite increments only columns of type INTEGER."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time with a time zone. SQLite does not store time zones, so values are converted to UTC."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a parameter to UTC."""
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Add UTC to a result without a time zone."""
        return value and (value if value.tzinfo else value.replace(tzinfo=UTC))


metadata = MetaData()

ingestion_runs_table = Table(
    "ingestion_runs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("collection", Text, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False, index=True),
    Column("report", Text, nullable=False),
)
"""`report` is an `IngestionRun` as JSON."""

turns_table = Table(
    "turns",
    metadata,
    Column("id", BIG_ID, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("asked_at", UtcDateTime, nullable=False, index=True),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
    Column("api_name", Text),
    Column("api_url", Text),
    Index("turns_of_a_session", "owner", "session", "asked_at"),
)
"""Turns of conversations. `owner` is the id of a caller; empty if no API key is required."""

questions_table = Table(
    "questions",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("owner", Text, nullable=False),
    Column("asked_at", UtcDateTime, nullable=False, index=True),
    Column("record", Text, nullable=False),
    Column("score", SmallInteger),
    Column("comment", Text),
)
"""`record` is a `QuestionRecord` as JSON. `score` and `comment` are the feedback about the answer."""

cached_answers_table = Table(
    "cached_answers",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("made_at", UtcDateTime, nullable=False, index=True),
    Column("answer", Text, nullable=False),
    Column("documents", Text, nullable=False),
)
"""`documents` are digests of the cited documents, as JSON. They show whether a document has changed."""

api_keys_table = Table(
    "api_keys",
    metadata,
    Column("id", String(12), primary_key=True),
    Column("name", Text, nullable=False),
    Column("scopes", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime),
    Column("revoked_at", UtcDateTime),
    Column("last_used_at", UtcDateTime),
)
"""`digest` is the SHA-256 of the secret, in hexadecimal. `scopes` are separated by spaces."""
