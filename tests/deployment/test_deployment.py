"""Deployment files are consistent with the program. No container engine is needed."""

import re
from pathlib import Path
from unittest.mock import create_autospec

import click
import pytest

from app.cli.main import main
from deploy.wheel_build import ROOT_PACKAGE, rename_imports
from ingestion.store.collection import Collection
from schemas.errors import StoreUnavailable
from schemas.settings import PREFIX, Settings
from tests.deployment.deployment_files import (
    CONTAINERS,
    PROJECT,
    ROOT,
    SERVICES,
    commands,
    dockerfile,
    images,
    text,
)

FILES = [
    ROOT / "Dockerfile",
    ROOT / "docker-compose.yml",
    ROOT / "docs" / "how-to" / "operate.md",
    *sorted(
        path for path in (ROOT / "deploy").rglob("*") if path.is_file() and path.suffix != ".pyc"
    ),
]


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
    script = wait["args"][0]
    in_repository = script.replace(f"from {ROOT_PACKAGE}.", "from ")
    assert rename_imports(in_repository) == script, "the image contains the wheel"
    exec(in_repository, {})
    assert capsys.readouterr().out.splitlines() == ["out of reach", "nothing has been indexed yet"]
