"""The Dockerfile and .dockerignore."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

import pytest

from deploy.wheel_build import PACKAGES, ROOT_PACKAGE
from tests.deployment.deployment_files import (
    PROJECT,
    ROOT,
    SERVICES,
    dockerfile,
    exec_form,
    image_environment,
    plain,
    text,
)


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
