"""Stores API keys in the database, and authenticates requests with them.

Authentication uses a snapshot of the keys, so that requests do not wait for the database.
"""

import asyncio
import hmac
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal

from pydantic import Field, SecretStr
from sqlalchemy import Row, select
from sqlalchemy.engine import Engine

from ingestion.database.engine import database_errors, open_engine
from ingestion.database.tables import api_keys_table
from schemas.base import ApiModel
from schemas.choices import SCOPES, Scope
from schemas.errors import StoreUnavailable
from schemas.settings import Settings

SECRET_BYTES = 32
"""Length of the random part of a key, in bytes."""

REFRESH_INTERVAL_S = 2.0
"""Seconds between refreshes of the snapshot. New keys and revocations take effect at the next refresh."""

RETRY_INTERVAL_S = 10.0
"""Seconds until the next refresh after a failed one. Until then, the last snapshot stays in use."""

LAST_USE_INTERVAL_S = 60.0
"""Minimum seconds between two writes of `last_used_at`. A stopping server writes at once."""

log = logging.getLogger(__name__)

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
        """The state of the key at this moment."""
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

        Raises ConfigurationError for an invalid URL, and StoreUnavailable if the database cannot be used.
        """
        return cls(open_engine(settings))

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def add(self, name: str, scopes: tuple[Scope, ...], days: int | None) -> tuple[ApiKey, str]:
        """Create a key that is valid for `days` days; None means that it does not expire.

        Returns the key and its text, which is what callers send. The text is not stored. Raises
        StoreUnavailable.
        """
        now = datetime.now(UTC)
        secret = secrets.token_urlsafe(SECRET_BYTES)
        key = ApiKey(
            id=secrets.token_hex(6),
            name=name,
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            digest=hash_secret(secret),
            created_at=now,
            expires_at=now + timedelta(days=days) if days is not None else None,
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
            return [_parse_row(row) for row in connection.execute(query)]

    def revoke(self, key_id: str) -> bool:
        """Revoke a key; return whether it exists. Raises StoreUnavailable."""
        return self._update(key_id, {"revoked_at": datetime.now(UTC)})

    def record_last_uses(self, last_uses: Mapping[str, datetime]) -> None:
        """Store when each key was last used. Raises StoreUnavailable."""
        for key_id, used_at in last_uses.items():
            self._update(key_id, {"last_used_at": used_at})

    def _update(self, key_id: str, values: Mapping[str, datetime]) -> bool:
        with database_errors(), self._engine.begin() as connection:
            result = connection.execute(
                api_keys_table.update().where(api_keys_table.c.id == key_id).values(**values)
            )
            return result.rowcount > 0


def hash_secret(secret: str) -> str:
    """Return the SHA-256 digest of `secret`. The database contains only the digests of secrets.

    A fast hash is sufficient, because a secret of 256 random bits, unlike a password, cannot be guessed.
    """
    return sha256(secret.encode()).hexdigest()


def parse_key(text: str) -> tuple[str, str]:
    """Return the id and the secret in the text of an API key; both are empty if the text is invalid."""
    match = _KEY.fullmatch(text)
    return (match[1], match[2]) if match else ("", "")


def _parse_row(row: Row[Any]) -> ApiKey:
    values = row._asdict()
    return ApiKey(**values | {"scopes": tuple(values["scopes"].split())})


@dataclass(frozen=True)
class Caller:
    """The sender of a request: authenticated, or anonymous while no API key is configured."""

    id: str
    """The owner id of the caller's sessions and records; empty for a request without a key."""
    name: str
    scopes: tuple[Scope, ...]
    account: str
    """The account under which requests and tokens are counted.

    This is the id of the caller, or the address of the client if no key is required.
    """

    def has_scope(self, scope: Scope) -> bool:
        """Return whether the caller has the scope; `admin` includes every scope."""
        return scope in self.scopes or "admin" in self.scopes


ADMIN = Caller("environment", "APIDESK_ADMIN_KEY", SCOPES, "environment")
"""The caller that sends the key in APIDESK_ADMIN_KEY."""

LOCAL = Caller("local", "a command on this machine", SCOPES, "local")
"""A command on this machine. It sends the temporary key that the server stores in a file for commands."""


def anonymous(account: str) -> Caller:
    """Return the caller of a request without a key, counted under `account`.

    The caller has all scopes, because only requests from localhost are accepted while no API key is
    configured.
    """
    return Caller("", "anonymous", SCOPES, account)


class Keyring:
    """The API keys of the database, the admin key of the environment, and the key of local commands."""

    def __init__(
        self, keys: ApiKeyStore, admin_key: SecretStr | None, local_key: str | None = None
    ) -> None:
        self._store = keys
        self._keys_by_id = _read_keys(keys)
        self._last_uses: dict[str, datetime] = {}
        self._stored_last_uses: dict[str, datetime] = {}
        self._next_write_at = time.monotonic() + LAST_USE_INTERVAL_S
        self._admin_digest = hash_secret(admin_key.get_secret_value()) if admin_key else None
        self._local_digest = hash_secret(local_key) if local_key else None
        # Compared in place of a missing digest, so that every check of a key takes the same time.
        self._dummy_digest = hash_secret(secrets.token_urlsafe())

    @property
    def is_key_required(self) -> bool:
        """Whether a key is required: true if the admin key is set or any key exists, even a revoked one."""
        return self._admin_digest is not None or bool(self._keys_by_id)

    def caller_of(self, text: str) -> Caller | None:
        """Return the caller whose key is `text`, or None if `text` is not a valid key.

        The same number of digests is compared for every text, each in constant time. The duration therefore
        does not show which keys exist.
        """
        digest = hash_secret(text)
        is_admin = hmac.compare_digest(digest, self._admin_digest or self._dummy_digest)
        is_local = hmac.compare_digest(digest, self._local_digest or self._dummy_digest)
        key_id, secret = parse_key(text)
        key = self._keys_by_id.get(key_id)
        key_digest = key.digest if key else self._dummy_digest
        is_secret_correct = hmac.compare_digest(hash_secret(secret), key_digest)
        if is_admin or is_local:
            return ADMIN if is_admin else LOCAL
        if key is None or not is_secret_correct or key.state != "valid":
            return None
        self._last_uses[key.id] = datetime.now(UTC)
        return Caller(key.id, key.name, key.scopes, key.id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Refresh the snapshot periodically until the block ends, then store when keys were last used."""
        refresh_task = asyncio.create_task(self._refresh_periodically())
        try:
            yield
        finally:
            refresh_task.cancel()
            with suppress(StoreUnavailable):
                await asyncio.to_thread(self._write_last_uses)

    async def _refresh_periodically(self) -> None:
        interval = REFRESH_INTERVAL_S
        while True:
            await asyncio.sleep(interval)
            try:
                await asyncio.to_thread(self._refresh)
                interval = REFRESH_INTERVAL_S
            except StoreUnavailable:  # logged where it is raised
                interval = RETRY_INTERVAL_S
            except Exception:  # keep refreshing: otherwise revoked keys would stay valid
                log.exception("API keys could not be refreshed")
                interval = RETRY_INTERVAL_S

    def _refresh(self) -> None:
        self._keys_by_id = _read_keys(self._store)
        if time.monotonic() >= self._next_write_at:
            self._write_last_uses()

    def _write_last_uses(self) -> None:
        last_uses = dict(self._last_uses)  # copied, because a concurrent request may add to it
        self._store.record_last_uses(dict(last_uses.items() - self._stored_last_uses.items()))
        self._stored_last_uses = last_uses
        self._next_write_at = time.monotonic() + LAST_USE_INTERVAL_S


def _read_keys(store: ApiKeyStore) -> dict[str, ApiKey]:
    return {key.id: key for key in store.all()}
