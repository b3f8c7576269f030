"""The Compose file."""

import re
from ipaddress import ip_network
from typing import Any

import pytest

from app.service.ingestion_service import STOP_TIMEOUT_S
from app.serving.server import graceful_timeout_s
from schemas.settings import PREFIX, Settings, read_settings
from tests.deployment.deployment_files import (
    COMPOSE,
    KUBERNETES,
    OURS,
    PODS,
    ROOT,
    SERVICES,
    commands,
    dockerfile,
    image_environment,
    load,
    plain,
    text,
)

SERVICE_KEYS = {
    "build", "cap_add", "cap_drop", "command", "depends_on", "deploy", "entrypoint",
    "env_file", "environment", "healthcheck", "image", "init", "network_mode", "networks",
    "ports", "profiles", "read_only", "restart", "security_opt", "stop_grace_period",
    "stop_signal", "tmpfs", "user", "volumes",
}  # fmt: skip
"""The keys of the Compose specification that are in use."""

CONDITIONS = {"service_healthy", "service_completed_successfully"}


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Source and whether it is writable, by path in the container."""
    found = {}
    for volume in service.get("volumes", []):
        source, target, *mode = plain(volume).split(":")
        found[target] = (source, mode != ["ro"])
    return found | dict.fromkeys(service.get("tmpfs", []), ("tmpfs", True))


@pytest.mark.parametrize("name", SERVICES)
def test_service_uses_known_keys(name: str) -> None:
    service = SERVICES[name]
    assert set(service) <= SERVICE_KEYS
    assert set(service.get("networks", [])) <= set(COMPOSE["networks"])
    assert ("networks" in service) != (service.get("network_mode") == "none")
    assert re.fullmatch(r"\d+[MG]", service["deploy"]["resources"]["limits"]["memory"])
    assert "no-new-privileges:true" in service["security_opt"] or name == "milvus"


def test_compose_file_uses_known_keys() -> None:
    assert set(COMPOSE) == {"name", "x-apidesk", "services", "networks", "volumes"}
    named = {m[0] for s in SERVICES.values() for m in mounts(s).values() if m[0].isidentifier()}
    assert named - {"tmpfs"} == set(COMPOSE["volumes"])


@pytest.mark.parametrize("name", SERVICES)
def test_dependencies_can_reach_their_condition(name: str) -> None:
    mine = set(SERVICES[name].get("profiles", []))
    for other, how in SERVICES[name].get("depends_on", {}).items():
        service = SERVICES[other]
        assert how["condition"] in CONDITIONS
        assert set(service.get("profiles", [])) <= mine
        ends = service["restart"] == "no"
        assert ends == (how["condition"] == "service_completed_successfully")
        tested = (
            "healthcheck" in service or "build" in service
        )  # the image of apidesk has a health check
        assert ends or tested


@pytest.mark.parametrize("name", SERVICES)
def test_long_running_service_has_a_health_check(name: str) -> None:
    service = SERVICES[name]
    check = service.get("healthcheck", {})
    if name in OURS:
        serves = service["command"][:1] == ["serve"]
        assert check == ({} if serves else {"disable": True}), "the image asks the port of a server"
    elif service["restart"] != "no":
        assert {"test", "interval", "timeout", "retries"} <= set(check)


def test_secrets_are_required() -> None:
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if re.search("PASSWORD|SECRET|TOKEN|DATABASE_URL|ADMIN_KEY", name):
                assert re.search(r"\$\{\w+:\?[^}]+\}", value), name
    assert not re.search(r"(?<!\$)\$(?![{$])", text("docker-compose.yml")), "neither $$ nor ${NAME}"
    given = re.findall(r"^#?(\w+)=(.*)", text("deploy/env.example"), re.MULTILINE)
    asked = set(re.findall(r"\$\{(\w+)", text("docker-compose.yml")))
    required = set(re.findall(r"\$\{(\w+):\?", text("docker-compose.yml")))
    assert asked <= {name for name, _ in given}
    assert {name for name, value in given if not value} == required
    profiles = {profile for service in SERVICES.values() for profile in service.get("profiles", [])}
    assert set(dict(given)["COMPOSE_PROFILES"].split(",")) == profiles


def test_only_the_proxy_is_published_on_localhost() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]
    host, _, inside = plain(SERVICES["proxy"]["ports"][0]).split(":")
    assert host == "127.0.0.1"
    caddyfile = text("deploy/Caddyfile")
    assert re.search(rf"^:{inside} \{{", caddyfile, re.MULTILINE)
    upstream = dict(re.findall(r"^\s+(name|port) (\w+)$", caddyfile, re.MULTILINE))
    assert upstream["name"] == "api"
    assert [upstream["port"]] == dockerfile("EXPOSE")
    assert caddyfile.count("{") == caddyfile.count("}")


def test_proxy_health_check_uses_an_existing_route(paths: set[str]) -> None:
    url = SERVICES["proxy"]["healthcheck"]["test"][-1]
    assert re.fullmatch(r"http://127\.0\.0\.1:8080(/\S+)", url)[1] in paths  # type: ignore[index]


def test_api_trusts_only_its_proxy() -> None:
    """Trusted proxies are Docker networks; the API shares one with the proxy only."""
    environment = SERVICES["api"]["environment"]
    networks = [ip_network(n) for n in environment["APIDESK_TRUSTED_PROXIES"].split(",")]
    assert all(network.is_private and not network.is_loopback for network in networks)
    shared = set(SERVICES["api"]["networks"]) & set(SERVICES["proxy"]["networks"])
    others = {
        name
        for name, service in SERVICES.items()
        if shared & set(service.get("networks", [])) and name not in (*OURS, "proxy")
    }
    assert others == {"ollama"}


def test_public_server_requires_a_key() -> None:
    """A service that listens on all addresses requires a key to start."""
    serving = [where for where, arguments in commands() if "0.0.0.0" in arguments]
    assert sorted(serving) == ["Dockerfile", "api", "deployment.yaml:api"]
    assert SERVICES["api"]["environment"]["APIDESK_ADMIN_KEY"].startswith("${ADMIN_KEY:?")
    assert "APIDESK_ADMIN_KEY" in load(KUBERNETES / "secret.example.yaml")["stringData"]
    (run,) = re.findall(r"^docker run .*", text("docs/how-to/operate.md"), re.MULTILINE)
    assert "-e APIDESK_ADMIN_KEY" in run


def test_redis_is_reachable_only_by_the_api() -> None:
    (network,) = SERVICES["redis"]["networks"]
    assert COMPOSE["networks"][network] == {"internal": True}
    users = {name for name, s in SERVICES.items() if network in s.get("networks", [])}
    assert users == {"redis", *OURS}
    assert "volumes" not in SERVICES["redis"]


def test_etcd_and_minio_are_reachable_only_by_milvus() -> None:
    internal = {
        name for name, network in COMPOSE["networks"].items() if (network or {}).get("internal")
    }
    for name in ("etcd", "minio", "milvus", "postgres"):
        assert set(SERVICES[name]["networks"]) <= internal
    for below in ("etcd", "minio"):
        (network,) = SERVICES[below]["networks"]
        users = {name for name, s in SERVICES.items() if network in s.get("networks", [])}
        assert users == {"etcd", "minio", "milvus"}


@pytest.mark.parametrize("name", [*OURS, "proxy", "redis", "milvus-volume"])
def test_read_only_service_has_writable_mounts(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    sources = {source for source, _ in mounts(service).values()}
    assert all((ROOT / source).exists() for source in sources if source.startswith("."))
    assert not any(w for source, w in mounts(service).values() if source.startswith("."))


@pytest.mark.parametrize("name", OURS)
def test_our_services_write_to_mounted_paths(name: str) -> None:
    service = SERVICES[name]
    mounted = mounts(service)
    environment = image_environment() | service["environment"]
    written = [environment["HOME"], environment["TMPDIR"]]
    given = {n.removeprefix(PREFIX).lower(): plain(v) for n, v in service["environment"].items()}
    settings = read_settings(**{n: v for n, v in given.items() if n in Settings.model_fields})
    assert not settings.embedded
    assert settings.database_url.startswith("postgresql://")
    assert [path for path in written if not mounted.get(path, ("", False))[1]] == []
    folder = str(settings.platform.parent)
    assert mounted[folder] == ("./samples", False)
    assert (ROOT / "samples" / settings.platform.name).exists()
    # The lock of a run and the outbox are shared volumes, whose owner is set by the image.
    for folder in (environment["TMPDIR"], str(settings.spool)):
        assert mounted[folder][0] in COMPOSE["volumes"]
        assert folder in next(run for run in dockerfile("RUN") if "install --directory" in run)


def test_service_urls_name_existing_services() -> None:
    environment = SERVICES["api"]["environment"]
    addresses = [
        plain(environment["APIDESK_MILVUS_URI"]).split("//")[1],
        plain(environment["APIDESK_DATABASE_URL"]).split("@")[1].split("/")[0],
        plain(environment["APIDESK_REDIS_URL"]).split("//")[1],
        SERVICES["milvus"]["environment"]["ETCD_ENDPOINTS"],
        SERVICES["milvus"]["environment"]["MINIO_ADDRESS"],
    ]
    assert [address.partition(":")[0] for address in addresses] == [
        "milvus",
        "postgres",
        "redis",
        "etcd",
        "minio",
    ]
    database = SERVICES["postgres"]["environment"]
    user = plain(environment["APIDESK_DATABASE_URL"])
    assert user.startswith(f"postgresql://{database['POSTGRES_USER']}:")
    assert user.endswith(f"/{database['POSTGRES_DB']}")
    ours, theirs = SERVICES["milvus"]["environment"], SERVICES["minio"]["environment"]
    assert ours["MINIO_ACCESS_KEY_ID"] == theirs["MINIO_ROOT_USER"]
    assert ours["MINIO_SECRET_ACCESS_KEY"] == theirs["MINIO_ROOT_PASSWORD"]
    root = plain(environment["APIDESK_MILVUS_TOKEN"])
    assert root == f"root:{plain(ours['COMMON_SECURITY_DEFAULTROOTPASSWORD'])}"


def test_grace_period_covers_the_shutdown_timeout() -> None:
    longest = graceful_timeout_s(read_settings()) + STOP_TIMEOUT_S
    assert int(SERVICES["api"]["stop_grace_period"].removesuffix("s")) > longest
    spec = PODS["deployment.yaml"]["spec"]
    wait = spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    assert wait[0] == "sleep"
    assert spec["terminationGracePeriodSeconds"] > longest + int(wait[1])
