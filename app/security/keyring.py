"""Whose key it is: known from a snapshot of the table, so that no request waits for the database."""

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

from app.security.api_keys import ApiKey, ApiKeyStore, digest_of, split_key
from schemas.choices import SCOPES, Scope
from schemas.errors import StoreUnavailable
from schemas.settings import Settings

REFRESH_SECONDS = 2.0
"""How long a revoked key may still be taken, and a new one not yet."""

RETRY_SECONDS = 10.0
"""Where the database does not answer; meanwhile the last snapshot goes on."""

NOTE_SECONDS = 60.0
"""How often the last uses are written down."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    id: str
    """The owner of what is kept for them; "" where no key is needed."""
    name: str
    scopes: tuple[Scope, ...]
    account: str
    """What their use is counted under."""

    def may(self, scope: Scope) -> bool:
        """Whether the caller has the scope; `admin` has every one."""
        return scope in self.scopes or "admin" in self.scopes


ADMIN = Caller("environment", "APIDESK_ADMIN_KEY", SCOPES, "environment")

LOCAL = Caller("local", "a command on this machine", SCOPES, "local")
"""Whoever could read the file that the server leaves beside the embedded store."""


def anonymous(account: str) -> Caller:
    """Whoever asks where no key is needed, counted under `account`."""
    return Caller("", "nobody in particular", SCOPES, account)


class Keyring:
    """The keys of the database, the one of the environment, and the one for local commands."""

    def __init__(
        self, keys: ApiKeyStore, admin_key: SecretStr | None, local_key: str | None
    ) -> None:
        self._keys = keys
        self._known = _by_id(keys)
        self._used: dict[str, datetime] = {}
        self._note_at = time.monotonic() + NOTE_SECONDS
        self._admin = digest_of(admin_key.get_secret_value()) if admin_key else None
        self._local = digest_of(local_key) if local_key else None
        self._nobody = digest_of(secrets.token_urlsafe())

    @classmethod
    def open(cls, settings: Settings, local_key: str | None = None) -> "Keyring":
        """The keyring of Settings. It blocks.

        Raises ConfigurationError, and StoreUnavailable for a database that does not answer.
        """
        return cls(ApiKeyStore.open(settings), settings.admin_key, local_key)

    @property
    def required(self) -> bool:
        """Whether callers need a key: once one was made they do, even if it is revoked by now."""
        return self._admin is not None or bool(self._known)

    def caller_of(self, text: str) -> Caller | None:
        """Whose key `text` is. What is compared, and how long it takes, is the same for every text."""
        whole = digest_of(text)
        is_admin = hmac.compare_digest(whole, self._admin or self._nobody)
        is_local = hmac.compare_digest(whole, self._local or self._nobody)
        key_id, secret = split_key(text)
        key = self._known.get(key_id)
        is_key = hmac.compare_digest(digest_of(secret), key.digest if key else self._nobody)
        if is_admin or is_local:
            return ADMIN if is_admin else LOCAL
        if key is None or not is_key or key.state != "valid":
            return None
        self._used[key.id] = datetime.now(UTC)
        return Caller(key.id, key.name, key.scopes, key.id)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Within the block the snapshot is kept fresh; after it the keyring is closed."""
        following = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            following.cancel()
            with suppress(StoreUnavailable):
                await asyncio.to_thread(self._note)
            self.close()

    def close(self) -> None:
        """Close every connection to the database."""
        self._keys.close()

    async def _follow(self) -> None:
        pause = REFRESH_SECONDS
        while True:
            await asyncio.sleep(pause)
            try:
                await asyncio.to_thread(self._refresh)
                pause = REFRESH_SECONDS
            except StoreUnavailable:  # and logged
                pause = RETRY_SECONDS
            except Exception:  # else revoked keys would go on for good
                log.exception("the API keys could not be read")
                pause = RETRY_SECONDS

    def _refresh(self) -> None:
        self._known = _by_id(self._keys)
        if time.monotonic() >= self._note_at:
            self._note()

    def _note(self) -> None:
        used, self._used = self._used, {}
        self._keys.note_uses(dict(used))  # a request may still be writing into it
        self._note_at = time.monotonic() + NOTE_SECONDS


def _by_id(keys: ApiKeyStore) -> dict[str, ApiKey]:
    return {key.id: key for key in keys.all()}
