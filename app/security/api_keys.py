"""API keys, kept in the database: made, listed, revoked."""

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import Column, MetaData, Row, String, Table, Text, select
from sqlalchemy.engine import Engine

from ingestion.database.engine import UtcDateTime, database_errors, open_engine
from schemas.base import ApiModel
from schemas.choices import SCOPES, Scope
from schemas.settings import Settings

SECRET_BYTES = 32

_KEY = re.compile(r"apidesk_([0-9a-f]{12})_([A-Za-z0-9_-]+)")

metadata = MetaData()

keys_table = Table(
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


class ApiKey(ApiModel):
    """What is known of a key; its secret is not."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    digest: str = Field(exclude=True, repr=False)
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    @property
    def state(self) -> Literal["valid", "revoked", "expired"]:
        """Whether the key opens anything now."""
        if self.revoked_at:
            return "revoked"
        if self.expires_at and self.expires_at <= datetime.now(UTC):
            return "expired"
        return "valid"


class ApiKeyStore:
    """The keys of one database. Every method blocks; call them in a worker thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, settings: Settings) -> "ApiKeyStore":
        """The keys in the database of Settings.

        Raises ConfigurationError for a url that is none, StoreUnavailable for a database that does
        not answer.
        """
        return cls(open_engine(settings))

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def add(self, name: str, scopes: tuple[Scope, ...], days: int | None) -> tuple[ApiKey, str]:
        """A new key, good for `days`, and its text, which nobody can tell again.

        Raises StoreUnavailable.
        """
        now = datetime.now(UTC)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        key = ApiKey(
            id=secrets.token_hex(6),
            name=name,
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            digest=digest_of(secret),
            created_at=now,
            expires_at=now + timedelta(days=days) if days else None,
        )
        row = {column.name: getattr(key, column.name) for column in keys_table.c}
        with database_errors(), self._engine.begin() as connection:
            connection.execute(keys_table.insert().values(row | {"scopes": " ".join(key.scopes)}))
        return key, f"apidesk_{key.id}_{secret}"

    def all(self) -> list[ApiKey]:
        """Every key there ever was, oldest first. Raises StoreUnavailable."""
        query = select(keys_table).order_by(keys_table.c.created_at, keys_table.c.id)
        with database_errors(), self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(query)]

    def revoke(self, key_id: str) -> bool:
        """Let the key open nothing from now on; whether there is one. Raises StoreUnavailable."""
        return self._update(key_id, {"revoked_at": datetime.now(UTC)})

    def note_uses(self, used: Mapping[str, datetime]) -> None:
        """Remember when each key was used last. Raises StoreUnavailable."""
        for key_id, moment in used.items():
            self._update(key_id, {"last_used_at": moment})

    def _update(self, key_id: str, values: Mapping[str, datetime]) -> bool:
        mine = keys_table.c.id == key_id
        with database_errors(), self._engine.begin() as connection:
            done = connection.execute(keys_table.update().where(mine).values(**values))
            return done.rowcount > 0


def digest_of(secret: str) -> str:
    """What is stored of a secret.

    A slow hash protects what people think up; nobody can try 256 random bits, however fast.
    """
    return sha256(secret.encode()).hexdigest()


def split_key(text: str) -> tuple[str, str]:
    """The id and the secret of a key; both empty for what is none."""
    found = _KEY.fullmatch(text)
    return (found[1], found[2]) if found else ("", "")


def _key(row: Row[Any]) -> ApiKey:
    values = row._asdict()
    return ApiKey(**values | {"scopes": tuple(values["scopes"].split())})
