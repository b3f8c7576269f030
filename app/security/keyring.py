"""Authentication by API key, from a snapshot of the table: requests do not wait for the database."""

import asyncio
import hmac
import logging
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import SecretStr

from app.security.api_keys import ApiKey, ApiKeyStore, hash_secret, parse_key
from schemas.choices import SCOPES, Scope
from schemas.errors import StoreUnavailable
from schemas.settings import Settings

REFRESH_INTERVAL_S = 2.0
"""The snapshot is refreshed this often: revoked and new keys take effect after this time."""

RETRY_INTERVAL_S = 10.0
"""The refresh interval while the database does not answer; the last snapshot stays in use."""

LAST_USE_INTERVAL_S = 60.0
"""The times of last use are written this often."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """The authenticated sender of a request."""

    id: str
    """The owner of stored sessions and records; empty if no key is required."""
    name: str
    scopes: tuple[Scope, ...]
    account: str
    """The account that requests and tokens are counted under."""

    def has_scope(self, scope: Scope) -> bool:
        """Return whether the caller has the scope; `admin` includes every scope."""
        return scope in self.scopes or "admin" in self.scopes


ADMIN = Caller("environment", "APIDESK_ADMIN_KEY", SCOPES, "environment")

LOCAL = Caller("local", "a command on this machine", SCOPES, "local")
"""A process that can read the address file of the server, next to the embedded store."""


def anonymous(account: str) -> Caller:
    """Return the caller of a request without a key, counted under `account`."""
    return Caller("", "anonymous", SCOPES, account)


class Keyring:
    """The API keys of the database, the admin key of the environment, and the key of local commands."""

    def __init__(
        self, keys: ApiKeyStore, admin_key: SecretStr | None, local_key: str | None
    ) -> None:
        self._store = keys
        self._keys_by_id = _by_id(keys)
        self._last_uses: dict[str, datetime] = {}
        self._next_write_at = time.monotonic() + LAST_USE_INTERVAL_S
        self._admin_digest = hash_secret(admin_key.get_secret_value()) if admin_key else None
        self._local_digest = hash_secret(local_key) if local_key else None
        self._no_digest = hash_secret(secrets.token_urlsafe())

    @classmethod
    def open(cls, settings: Settings, local_key: str | None = None) -> "Keyring":
        """Open the configured keyring. Blocks.

        Raises ConfigurationError, and StoreUnavailable if the database does not answer.
        """
        return cls(ApiKeyStore.open(settings), settings.admin_key, local_key)

    @property
    def required(self) -> bool:
        """Whether a key is required: from the first key on, even after it is revoked."""
        return self._admin_digest is not None or bool(self._keys_by_id)

    def caller_of(self, text: str) -> Caller | None:
        """Return the caller with this key, or None. Takes the same time for every text."""
        digest = hash_secret(text)
        is_admin = hmac.compare_digest(digest, self._admin_digest or self._no_digest)
        is_local = hmac.compare_digest(digest, self._local_digest or self._no_digest)
        key_id, secret = parse_key(text)
        key = self._keys_by_id.get(key_id)
        is_key = hmac.compare_digest(hash_secret(secret), key.digest if key else self._no_digest)
        if is_admin or is_local:
            return ADMIN if is_admin else LOCAL
        if key is None or not is_key or key.state != "valid":
            return None
        self._last_uses[key.id] = datetime.now(UTC)
        return Caller(key.id, key.name, key.scopes, key.id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Refresh the snapshot within the block, and close the keyring at its end."""
        refreshing = asyncio.create_task(self._refresh_periodically())
        try:
            yield
        finally:
            refreshing.cancel()
            with suppress(StoreUnavailable):
                await asyncio.to_thread(self._write_last_uses)
            self.close()

    def close(self) -> None:
        """Close every connection to the database."""
        self._store.close()

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
        self._keys_by_id = _by_id(self._store)
        if time.monotonic() >= self._next_write_at:
            self._write_last_uses()

    def _write_last_uses(self) -> None:
        last_uses, self._last_uses = self._last_uses, {}
        self._store.record_last_uses(dict(last_uses))  # copied: a request may still add to it
        self._next_write_at = time.monotonic() + LAST_USE_INTERVAL_S


def _by_id(keys: ApiKeyStore) -> dict[str, ApiKey]:
    return {key.id: key for key in keys.all()}
