"""API keys: managed on the command line and picked up by a running server."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pydantic import SecretStr
from sqlalchemy import update

from app.cli.main import main
from app.security import api_keys as keyring_module
from app.security.api_keys import ADMIN, LOCAL, ApiKeyStore, Keyring
from ingestion.database.tables import api_keys_table
from schemas.errors import ConfigurationError
from schemas.settings import Settings, read_settings

KEY = re.compile(r"apidesk_([0-9a-f]{12})_[A-Za-z0-9_-]{43}")

ADMIN_KEY = "a" * 40


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return read_settings(database_url=f"sqlite:///{tmp_path / 'apidesk.db'}")


@pytest.fixture
def keys(settings: Settings) -> Iterator[ApiKeyStore]:
    with closing(ApiKeyStore.open(settings)) as opened:
        yield opened


def apidesk(settings: Settings, *arguments: str) -> Result:
    environment = {"APIDESK_DATABASE_URL": settings.database_url}
    return CliRunner().invoke(main, ["keys", *arguments], env=environment)


def test_new_key_is_printed_and_its_secret_is_not_stored(
    settings: Settings, tmp_path: Path
) -> None:
    added = apidesk(settings, "add", "the shop", "--scope", "ingest", "--scope", "ask")
    assert added.exit_code == 0, added.output
    key = added.stdout.removesuffix("\n")
    match = KEY.fullmatch(key)
    assert match
    assert f"key {match[1]} (the shop): ask, ingest, valid until it is revoked" in added.stderr
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert match[1].encode() in stored
    secret = key.partition(f"{match[1]}_")[2]  # may contain `_` itself
    assert len(secret) > 20
    assert secret.encode() not in stored


def test_list_does_not_cut_off_ids_and_names(settings: Settings) -> None:
    name = "the widget of the shop for partners in all regions"
    scopes = [word for scope in ("ask", "ingest", "admin") for word in ("--scope", scope)]
    made = json.loads(apidesk(settings, "add", name, *scopes, "--json").stdout)
    apidesk(settings, "revoke", made["id"])
    _, row = apidesk(settings, "list").stdout.splitlines()
    assert row.split("  ")[:2] == [made["id"], name]


def test_key_is_added_listed_and_revoked(settings: Settings) -> None:
    assert apidesk(settings, "list").stdout == "there are no keys yet\n"
    made = json.loads(
        apidesk(settings, "add", "n", "--scope", "ask", "--days", "2", "--json").stdout
    )
    assert made["scopes"] == ["ask"]
    left = datetime.fromisoformat(made["expiresAt"]) - datetime.now(UTC)
    assert timedelta(days=1) < left < timedelta(days=2)

    (listed,) = json.loads(apidesk(settings, "list", "--json").stdout)
    assert (listed["id"], listed["state"], listed["lastUsedAt"]) == (made["id"], "valid", None)
    assert "digest" not in listed

    revoked = apidesk(settings, "revoke", made["id"])
    assert (revoked.exit_code, revoked.stderr) == (0, f"key {made['id']} is revoked\n")
    assert re.search(rf"{made['id']} +n +ask +revoked ", apidesk(settings, "list").stdout)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add", "n"], "Missing option '--scope'"),
        (["add", "n", "--scope", "all"], "'all' is not one of 'ask', 'ingest', 'admin'"),
        (["add", " ", "--scope", "ask"], "NAME: must be 1 to 100 printable characters, not only"),
        (["add", "a\nb", "--scope", "ask"], "NAME: must be 1 to 100 printable characters"),
        (["add", "n", "--scope", "ask", "--days", "0"], "0 is not in the range"),
        (["revoke", "nope"], "there is no key nope: see `apidesk keys list`"),
    ],
)
def test_invalid_command_returns_an_error(
    settings: Settings, arguments: list[str], sentence: str
) -> None:
    result = apidesk(settings, *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("value", ["short", "a" * 31, "with a space " * 4, "ü" * 40])
def test_weak_admin_key_is_rejected(value: str) -> None:
    with pytest.raises(
        ConfigurationError, match="APIDESK_ADMIN_KEY: must have at least 32"
    ) as caught:
        read_settings(admin_key=value)
    assert value not in str(caught.value)


@contextmanager
def opened(settings: Settings, **options: Any) -> Iterator[Keyring]:
    with closing(ApiKeyStore.open(settings)) as store:
        yield Keyring(store, settings.admin_key, **options)


def test_keyring_identifies_callers(settings: Settings, keys: ApiKeyStore) -> None:
    key, text = keys.add("n", ("ask",), None)
    revoked, revoked_text = keys.add("n", ("ask",), None)
    keys.revoke(revoked.id)
    expired, expired_text = keys.add("n", ("ask",), 1)
    past = datetime.now(UTC) - timedelta(seconds=1)
    with keys._engine.begin() as connection:
        gone = update(api_keys_table).where(api_keys_table.c.id == expired.id)
        connection.execute(gone.values(expires_at=past))
    with_admin = settings.model_copy(update={"admin_key": SecretStr(ADMIN_KEY)})
    with opened(with_admin, local_key="b" * 40) as ring:
        caller = ring.caller_of(text)
        assert caller
        assert (caller.id, caller.scopes) == (key.id, ("ask",))
        assert caller.has_scope("ask")
        assert not caller.has_scope("ingest")
        assert ring.caller_of(ADMIN_KEY) is ADMIN
        assert ring.caller_of("b" * 40) is LOCAL
        assert all(
            known.has_scope(scope) for known in (ADMIN, LOCAL) for scope in ("ask", "ingest")
        )
        other_id = f"apidesk_{'0' * 12}_{text.split('_', 2)[2]}"
        wrong = ["", "apidesk_", key.id, key.digest, text + "x", text[:-1], text.upper(), other_id]
        assert [ring.caller_of(t) for t in [*wrong, revoked_text, expired_text]] == [None] * 10


def test_without_an_admin_key_no_text_matches(settings: Settings) -> None:
    with opened(settings) as ring:
        assert [ring.caller_of(text) for text in ("", "None", "a" * 40)] == [None] * 3


def test_keys_stay_required_after_the_first_one_is_revoked(
    settings: Settings, keys: ApiKeyStore
) -> None:
    with opened(settings) as ring:
        assert not ring.is_key_required
    with opened(settings.model_copy(update={"admin_key": SecretStr(ADMIN_KEY)})) as ring:
        assert ring.is_key_required
    keys.revoke(keys.add("n", ("ask",), None)[0].id)
    with opened(settings) as ring:
        assert ring.is_key_required


async def happens(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while True:
            if what():
                return
            await asyncio.sleep(0.01)


def follow(ring: Keyring, scenario: Callable[[], Awaitable[None]]) -> None:
    """Run `story` while the keyring refreshes its snapshot."""

    async def run() -> None:
        async with ring.running():
            await scenario()

    asyncio.run(run())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REFRESH_INTERVAL_S", "RETRY_INTERVAL_S", "LAST_USE_INTERVAL_S"):
        monkeypatch.setattr(keyring_module, name, 0.01)


@pytest.mark.usefixtures("impatient")
def test_running_server_picks_up_new_and_revoked_keys(
    settings: Settings, keys: ApiKeyStore
) -> None:
    ring = Keyring(keys, settings.admin_key)

    async def scenario() -> None:
        key, text = await asyncio.to_thread(keys.add, "n", ("ask",), None)
        await happens(lambda: ring.caller_of(text) is not None)
        await happens(lambda: keys.all()[0].last_used_at is not None)
        await asyncio.to_thread(keys.revoke, key.id)
        await happens(lambda: ring.caller_of(text) is None)

    follow(ring, scenario)


@pytest.mark.usefixtures("impatient")
def test_last_snapshot_is_used_while_the_database_is_down(
    settings: Settings, keys: ApiKeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    text = keys.add("n", ("ask",), None)[1]
    ring = Keyring(keys, settings.admin_key)

    async def scenario() -> None:
        with keys._engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE api_keys RENAME TO elsewhere")
        await happens(lambda: "the database failed" in caplog.text)
        assert ring.caller_of(text)
        with keys._engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO api_keys")
            connection.exec_driver_sql("UPDATE api_keys SET revoked_at = created_at")
        await happens(lambda: ring.caller_of(text) is None)

    follow(ring, scenario)


@pytest.mark.usefixtures("impatient")
def test_last_use_is_stored_after_the_database_is_back(
    settings: Settings, keys: ApiKeyStore, caplog: pytest.LogCaptureFixture
) -> None:
    text = keys.add("n", ("ask",), None)[1]
    ring = Keyring(keys, settings.admin_key)
    refuse_updates = "BEGIN SELECT RAISE(ABORT, 'read-only'); END"

    async def scenario() -> None:
        with keys._engine.begin() as connection:
            connection.exec_driver_sql(
                f"CREATE TRIGGER refuse BEFORE UPDATE ON api_keys {refuse_updates}"
            )
        assert ring.caller_of(text)
        await happens(lambda: "the database failed" in caplog.text)
        with keys._engine.begin() as connection:
            connection.exec_driver_sql("DROP TRIGGER refuse")
        await happens(lambda: keys.all()[0].last_used_at is not None)

    follow(ring, scenario)
