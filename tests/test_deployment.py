"""Deployment files are consistent with the program. No container engine is needed."""

import ast
import re
import shlex
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from ipaddress import ip_network
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import create_autospec

import click
import pytest
import yaml

from app.cli.main import main
from app.main import create_app
from app.service.answer_service import AnswerService
from app.service.ingestion_service import STOP_TIMEOUT_S
from app.serving.server import graceful_timeout_s
from app.telemetry.metrics import Metrics
from deploy.wheel_build import PACKAGES, ROOT_PACKAGE
from ingestion.database.engine import open_engine
from ingestion.platform_config import read_platform
from ingestion.store.collection import Collection
from schemas.errors import StoreUnavailable
from schemas.settings import PREFIX, SAMPLE_PLATFORM, Settings, read_settings

ROOT = Path(__file__).resolve().parents[1]
KUBERNETES = ROOT / "deploy" / "kubernetes"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

FILES = [
    ROOT / "Dockerfile",
    ROOT / "docker-compose.yml",
    ROOT / "docs" / "how-to" / "operate.md",
    *sorted(path for path in (ROOT / "deploy").rglob("*") if path.is_file()),
]

TEMPLATES = {"kustomization.yaml", "secret.example.yaml"}
"""Files next to the manifests that are not applied."""

OURS = ("api", "ingest", "scheduler")

SERVICE_KEYS = {
    "build", "cap_add", "cap_drop", "command", "depends_on", "deploy", "entrypoint",
    "env_file", "environment", "healthcheck", "image", "init", "network_mode", "networks",
    "ports", "profiles", "read_only", "restart", "security_opt", "stop_grace_period",
    "stop_signal", "tmpfs", "user", "volumes",
}  # fmt: skip
"""The keys of the Compose specification that are in use."""

CONDITIONS = {"service_healthy", "service_completed_successfully"}


class UniqueKeys(yaml.SafeLoader):
    """Rejects duplicate keys, as Compose and Kubernetes do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"{node.start_mark}: a key stands twice in {keys}"
        return super().construct_mapping(node, deep)


def load(path: Path) -> dict[str, Any]:
    return cast(dict[str, Any], yaml.load(path.read_text(encoding="utf-8"), UniqueKeys))


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


# Contents of the files.

COMPOSE = load(ROOT / "docker-compose.yml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
KUSTOMIZATION = load(KUBERNETES / "kustomization.yaml")
MANIFESTS = {
    path.name: load(path)
    for path in sorted(KUBERNETES.glob("*.yaml"))
    if path.name not in TEMPLATES
}


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    """The pod template of a Deployment or a CronJob."""
    spec = manifest["spec"]
    return cast(dict[str, Any], spec.get("jobTemplate", {"spec": spec})["spec"]["template"])


PODS = {name: pod(m) for name, m in MANIFESTS.items() if m["kind"] in ("Deployment", "CronJob")}

CONTAINERS = {
    f"{name}:{container['name']}": container
    for name, template in PODS.items()
    for container in template["spec"]["containers"] + template["spec"].get("initContainers", [])
}


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, without comments and with continued lines joined."""
    lines = [line for line in text("Dockerfile").splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = [line.strip().partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name, rest.strip()) for name, _, rest in found]


def dockerfile(name: str) -> list[str]:
    return [rest for instruction, rest in instructions() if instruction == name]


def exec_form(name: str) -> list[str]:
    """The arguments of an instruction in exec form."""
    line = dockerfile(name)[-1]
    return cast(list[str], yaml.safe_load(line[line.index("[") :]))


def image_environment() -> dict[str, str]:
    return dict(word.partition("=")[::2] for line in dockerfile("ENV") for word in line.split())


def plain(value: object) -> str:
    """The value after Compose has substituted the defaults of variables."""
    return re.sub(r"\$\{\w+(?::-([^}]*)|:\?[^}]*)?\}", lambda m: m[1] or "secret" * 6, str(value))


def mounts(service: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """Source and whether it is writable, by path in the container."""
    found = {}
    for volume in service.get("volumes", []):
        source, target, *mode = plain(volume).split(":")
        found[target] = (source, mode != ["ro"])
    return found | dict.fromkeys(service.get("tmpfs", []), ("tmpfs", True))


def images() -> list[tuple[str, str]]:
    """Every image, with the file that names it."""
    used = [("Dockerfile", line.split()[0]) for line in dockerfile("FROM")]
    used += [("docker-compose.yml", service["image"]) for service in SERVICES.values()]
    tags = {image["name"]: image["newTag"] for image in KUSTOMIZATION["images"]}
    names = [container["image"] for container in CONTAINERS.values()]
    used += [("kubernetes", f"{name}:{tags.get(name, '')}") for name in names]
    documents = re.findall(r"\bapidesk:[\w.]+", text("docs/how-to/operate.md"))
    return used + [("docs/how-to/operate.md", image) for image in documents]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Arguments of every apidesk command, with the file that contains it."""
    yield "Dockerfile", exec_form("CMD")
    for name in OURS:
        entrypoint = SERVICES[name].get("entrypoint")
        if entrypoint is None:
            yield name, SERVICES[name]["command"]
        else:
            yield from (
                (name, shlex.split(c)) for c in re.findall(r"apidesk ([^|&;]+)", entrypoint[-1])
            )
    for name, container in CONTAINERS.items():
        if "command" not in container:
            yield name, container["args"]
    for options in re.findall(
        r"docker compose run [-\w ]*? api ([-\w ]+)", text("docs/how-to/operate.md")
    ):
        yield "docs/how-to/operate.md", shlex.split(options)


# Commands and routes of the program.


@pytest.fixture(scope="module")
def paths() -> set[str]:
    """The paths of the application's OpenAPI document."""
    settings = read_settings(database_url="sqlite://")
    platform = read_platform(SAMPLE_PLATFORM)
    nothing = SimpleNamespace()
    answer_service = SimpleNamespace(
        settings=settings,
        engine=open_engine(settings),
        platform=platform,
        job=SimpleNamespace(embeddings=None),
        collection=nothing,
        models=None,
        metrics=Metrics(),
    )
    return set(create_app(cast(AnswerService, answer_service)).openapi_schema.paths or {})


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_setting_exists(path: Path) -> None:
    named = set(re.findall(rf"\b{PREFIX}\w+", path.read_text(encoding="utf-8")))
    assert named <= {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize(("where", "arguments"), list(commands()), ids=str)
def test_every_command_is_valid(where: str, arguments: list[str]) -> None:
    command = main.commands[arguments[0]]
    context = command.make_context(arguments[0], list(arguments[1:]))
    if arguments[0] == "serve":
        assert context.params["host"] == "0.0.0.0", "unreachable from outside the container"
        assert [str(context.params["port"])] == dockerfile("EXPOSE")


def test_invalid_command_is_detected() -> None:
    with pytest.raises(click.UsageError):
        main.commands["serve"].make_context("serve", ["--hosts", "0.0.0.0"])


@pytest.mark.parametrize(("where", "image"), images(), ids=str)
def test_every_image_has_an_exact_tag(where: str, image: str) -> None:
    name, _, tag = image.partition(":")
    numbers = r"\d+\.\d+" if name == "postgres" else r"\d+\.\d+\.\d+"
    assert re.fullmatch(rf"v?{numbers}(-[\w.-]+)?|RELEASE\.\d{{4}}-\d\d-\d\dT[\d-]+Z", tag)
    assert "." not in name, "an image's name, not a registry's"
    if name == "apidesk":
        assert tag == PROJECT["project"]["version"]


def test_milvus_version_matches_its_client() -> None:
    pinned = re.search(r"^pymilvus==(\d+\.\d+)\.", text("requirements.txt"), re.MULTILINE)
    assert pinned
    assert SERVICES["milvus"]["image"].startswith(f"milvusdb/milvus:v{pinned[1]}.")


def test_pods_wait_for_an_indexed_collection(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (wait,) = (container for container in CONTAINERS.values() if "command" in container)
    assert wait["command"] == ["python", "-c"]
    collection = create_autospec(Collection, instance=True)
    collection.exists.side_effect = [StoreUnavailable("out of reach"), False, True]
    monkeypatch.setattr(Collection, "connect", lambda settings: collection)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    exec(wait["args"][0], {})
    assert capsys.readouterr().out.splitlines() == ["out of reach", "nothing has been indexed yet"]


# Dockerfile.


def ignored(path: str) -> bool:
    """Whether .dockerignore excludes `path`; the last matching pattern wins."""
    out = False
    for line in text(".dockerignore").splitlines():
        pattern = line.strip().removeprefix("!")
        if not pattern or pattern.startswith("#"):
            continue
        parts = [path, *map(str, PurePosixPath(path).parents)][:-1]
        deep = pattern.removeprefix("**/")
        if any(
            fnmatch(p, pattern) or (deep != pattern and fnmatch(Path(p).name, deep)) for p in parts
        ):
            out = not line.strip().startswith("!")
    return out


def copied() -> list[str]:
    """Paths copied from the checkout."""
    lines = [line.split() for line in dockerfile("COPY") if not line.startswith("--from")]
    return [source for words in lines for source in words[:-1]]


def test_copied_paths_exist_and_are_not_ignored() -> None:
    assert [source for source in copied() if not (ROOT / source).exists()] == []
    assert [source for source in copied() if ignored(source)] == []
    hook = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["path"]
    assert {hook, ROOT_PACKAGE, *PACKAGES, "samples"} <= set(copied())
    assert PROJECT["project"]["readme"] in copied()


@pytest.mark.parametrize(
    "path",
    [".env", ".git/config", "data/milvus.db", "app/__pycache__/cli.pyc", "tests/conftest.py"],
)
def test_private_files_are_excluded_from_the_build(path: str) -> None:
    assert ignored(path)
    assert not ignored("app/api/ask.py")


def test_only_hashed_requirements_are_installed() -> None:
    installs = [
        command
        for run in dockerfile("RUN")
        for command in re.split(r"&&|;", run)
        if re.search(r"pip install|uv build", command)
    ]
    hashed = ("--require-hashes", "-c requirements-dev.txt", "--no-index")
    assert len(installs) == 5
    assert all(any(option in command for option in hashed) for command in installs)
    extras = re.findall(r"[\w-]+", dockerfile("ARG")[0].partition("=")[2])
    extras += plain(SERVICES["api"]["build"]["args"]["EXTRAS"]).split()
    extras += re.findall(r"#EXTRAS=(.*)", text("deploy/env.example"))[0].split()
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    assert {"postgres", "redis"} <= set(extras)


def test_image_runs_without_privileges() -> None:
    assert len({line.split()[0] for line in dockerfile("FROM")}) == 1, "a venv fits one Python"
    assert not dockerfile("ADD")
    user = dockerfile("USER")[-1]
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", user)
    environment = image_environment()
    assert environment["PYTHONDONTWRITEBYTECODE"] == "1"
    assert environment["HOME"] == environment["TMPDIR"] == "/tmp"
    made = next(run for run in dockerfile("RUN") if "useradd" in run)
    assert f"--owner={user.partition(':')[0]}" in made
    assert Path(dockerfile("WORKDIR")[-1], "data").as_posix() in made
    assert exec_form("ENTRYPOINT") == ["apidesk"]
    assert "apidesk" in PROJECT["project"]["scripts"]


def test_image_health_check_uses_the_liveness_route(paths: set[str]) -> None:
    program, flag, code = exec_form("HEALTHCHECK")
    assert (program, flag) == ("python", "-c")
    strings = [n.value for n in ast.walk(ast.parse(code)) if isinstance(n, ast.Constant)]
    assert "/health/live" in strings
    assert "/health/live" in paths
    assert int(dockerfile("EXPOSE")[0]) in strings


# Compose.


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


# Kubernetes.


def test_every_manifest_exists_and_is_applied() -> None:
    assert sorted(KUSTOMIZATION["resources"]) == sorted(MANIFESTS)
    for generated in KUSTOMIZATION["configMapGenerator"]:
        for file in generated.get("files", []) + generated.get("envs", []):
            assert (KUBERNETES / file).is_file()
    assert not any("namespace" in manifest["metadata"] for manifest in MANIFESTS.values())


@pytest.mark.parametrize("name", PODS)
def test_pod_runs_without_privileges(name: str) -> None:
    spec = PODS[name]["spec"]
    user = int(dockerfile("USER")[-1].partition(":")[0])
    context = spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert context["runAsUser"] == user
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_has_resource_limits(name: str) -> None:
    container = CONTAINERS[name]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"]["cpu"]
    assert container["image"] in {image["name"] for image in KUSTOMIZATION["images"]}


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_references_exist(name: str) -> None:
    spec = PODS[name.partition(":")[0]]["spec"]
    generated = {g["name"] for g in KUSTOMIZATION["configMapGenerator"]}
    secret = load(KUBERNETES / "secret.example.yaml")
    claims = {
        m["metadata"]["name"] for m in MANIFESTS.values() if m["kind"] == "PersistentVolumeClaim"
    }
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounted = {mount["mountPath"]: mount for mount in CONTAINERS[name]["volumeMounts"]}
    for mount in mounted.values():
        volume = volumes[mount["name"]]
        assert volume.get("configMap", {}).get("name", next(iter(generated))) in generated
        assert (
            volume.get("persistentVolumeClaim", {}).get("claimName", next(iter(claims))) in claims
        )
        assert ("emptyDir" in volume) != mount.get("readOnly", False)
    assert image_environment()["TMPDIR"] in mounted
    references = {next(iter(r.values()))["name"] for r in CONTAINERS[name]["envFrom"]}
    assert references <= generated | {secret["metadata"]["name"]}
    if "command" not in CONTAINERS[name]:
        settings = dict(line.split("=", 1) for line in lines_of(KUBERNETES / "settings.env"))
        assert str(Path(settings["APIDESK_PLATFORM"]).parent) in mounted
        assert str(Path(settings["APIDESK_SPOOL"]).parent) in mounted


def lines_of(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_api_has_probes(paths: set[str]) -> None:
    (api,) = PODS["deployment.yaml"]["spec"]["containers"]
    probed = {p: api[p]["httpGet"] for p in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe: get["path"] for probe, get in probed.items()} == {
        "startupProbe": "/health/live",
        "livenessProbe": "/health/live",
        "readinessProbe": "/health/ready",
    }
    assert {get["path"] for get in probed.values()} <= paths
    ports = {port["name"]: port["containerPort"] for port in api["ports"]}
    assert {get["port"] for get in probed.values()} <= set(ports)
    assert [str(port) for port in ports.values()] == dockerfile("EXPOSE")
    targets = [port["targetPort"] for port in MANIFESTS["service.yaml"]["spec"]["ports"]]
    targets += [p["port"] for p in MANIFESTS["network-policy.yaml"]["spec"]["ingress"][0]["ports"]]
    assert set(targets) <= set(ports)


def test_selectors_match_the_api() -> None:
    labels = PODS["deployment.yaml"]["metadata"]["labels"]
    api = MANIFESTS["deployment.yaml"]
    selectors = [
        api["spec"]["selector"]["matchLabels"],
        PODS["deployment.yaml"]["spec"]["topologySpreadConstraints"][0]["labelSelector"][
            "matchLabels"
        ],
        MANIFESTS["service.yaml"]["spec"]["selector"],
        MANIFESTS["pod-disruption-budget.yaml"]["spec"]["selector"]["matchLabels"],
        MANIFESTS["network-policy.yaml"]["spec"]["podSelector"]["matchLabels"],
    ]
    assert all(selector == labels for selector in selectors)
    assert PODS["ingest.yaml"]["metadata"]["labels"] != labels
    scaler = MANIFESTS["horizontal-pod-autoscaler.yaml"]["spec"]
    assert scaler["scaleTargetRef"]["name"] == api["metadata"]["name"]
    assert "replicas" not in api["spec"], "two would say how many there are"
    budget = MANIFESTS["pod-disruption-budget.yaml"]["spec"]["minAvailable"]
    assert budget < scaler["minReplicas"] <= scaler["maxReplicas"]


def test_ingestion_runs_do_not_overlap() -> None:
    spec = MANIFESTS["ingest.yaml"]["spec"]
    assert spec["concurrencyPolicy"] == "Forbid"
    assert spec["jobTemplate"]["spec"]["activeDeadlineSeconds"]
    rule = spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"][0]["onExitCodes"]
    assert rule["containerName"] in {c["name"] for c in PODS["ingest.yaml"]["spec"]["containers"]}
    assert PODS["deployment.yaml"]["spec"]["initContainers"], "pods that would index wait"


def test_example_secret_has_no_values() -> None:
    secret = load(KUBERNETES / "secret.example.yaml")
    assert set(secret["stringData"].values()) == {""}
    assert "secret.example.yaml" not in KUSTOMIZATION["resources"]
    assert not (KUBERNETES / "secret.yaml").exists()


def test_config_maps_are_valid() -> None:
    given = dict(line.split("=", 1) for line in lines_of(KUBERNETES / "settings.env"))
    settings = read_settings(**{n.removeprefix(PREFIX).lower(): v for n, v in given.items()})
    assert not settings.embedded
    (file,) = KUSTOMIZATION["configMapGenerator"][1]["files"]
    assert settings.platform.name == file
    platform = read_platform(KUBERNETES / file)
    folders = [source.path for source in platform.sources if source.path]
    mounted = [m["mountPath"] for m in CONTAINERS["ingest.yaml:ingest"]["volumeMounts"]]
    assert all(any(str(folder).startswith(path) for path in mounted) for folder in folders)
