"""API keys and their table in the database."""

import re
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import Row, select
from sqlalchemy.engine import Engine

from ingestion.database.engine import database_errors, open_engine
from ingestion.database.tables import api_keys_table
from schemas.base import ApiModel
from schemas.choices import SCOPES, Scope
from schemas.settings import Settings

SECRET_BYTES = 32

_KEY = re.compile(r"apidesk_([0-9a-f]{12})_([A-Za-z0-9_-]+)")


class ApiKey(ApiModel):
    """The stored data of an API key, without its secret."""

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
        """Whether the key is valid now."""
        if self.revoked_at:
            return "revoked"
        if self.expires_at and self.expires_at <= datetime.now(UTC):
            return "expired"
        return "valid"


class ApiKeyStore:
    """The API keys in one database. Every method blocks; call it in a worker thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(cls, settings: Settings) -> "ApiKeyStore":
        """Open the store in the configured database.

        Raises ConfigurationError for an invalid URL, StoreUnavailable if the database does not answer.
        """
        return cls(open_engine(settings))

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def add(self, name: str, scopes: tuple[Scope, ...], days: int | None) -> tuple[ApiKey, str]:
        """Create a key that is valid for `days` days, or without a limit.

        Returns the key and its text, which is not stored. Raises StoreUnavailable.
        """
        now = datetime.now(UTC)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        key = ApiKey(
            id=secrets.token_hex(6),
            name=name,
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            digest=hash_secret(secret),
            created_at=now,
            expires_at=now + timedelta(days=days) if days else None,
        )
        row = {column.name: getattr(key, column.name) for column in api_keys_table.c}
        with database_errors(), self._engine.begin() as connection:
            connection.execute(
                api_keys_table.insert().values(row | {"scopes": " ".join(key.scopes)})
            )
        return key, f"apidesk_{key.id}_{secret}"

    def all(self) -> list[ApiKey]:
        """Return all keys, oldest first, including revoked and expired ones. Raises StoreUnavailable."""
        query = select(api_keys_table).order_by(api_keys_table.c.created_at, api_keys_table.c.id)
        with database_errors(), self._engine.connect() as connection:
            return [_key(row) for row in connection.execute(query)]

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; return whether it exists. Raises StoreUnavailable."""
        return self._update(key_id, {"revoked_at": datetime.now(UTC)})

    def record_last_uses(self, last_uses: Mapping[str, datetime]) -> None:
        """Store when each key was last used. Raises StoreUnavailable."""
        for key_id, time in last_uses.items():
            self._update(key_id, {"last_used_at": time})

    def _update(self, key_id: str, values: Mapping[str, datetime]) -> bool:
        with database_errors(), self._engine.begin() as connection:
            result = connection.execute(
                api_keys_table.update().where(api_keys_table.c.id == key_id).values(**values)
            )
            return result.rowcount > 0


def hash_secret(secret: str) -> str:
    """Return the digest that is stored of a secret.

    A fast hash suffices: secrets are 256 random bits, not passwords that can be guessed.
    """
    return sha256(secret.encode()).hexdigest()


def parse_key(text: str) -> tuple[str, str]:
    """Return the id and the secret of an API key; both are empty if the text is not one."""
    match = _KEY.fullmatch(text)
    return (match[1], match[2]) if match else ("", "")


def _key(row: Row[Any]) -> ApiKey:
    values = row._asdict()
    return ApiKey(**values | {"scopes": tuple(values["scopes"].split())})
