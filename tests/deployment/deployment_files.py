"""The deployment files, parsed: Dockerfile, Compose file and Kubernetes manifests."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml

ROOT = Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

TEMPLATES = {"kustomization.yaml", "secret.example.yaml"}
"""Files next to the manifests that are not applied."""

OURS = ("api", "ingest", "scheduler")


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
