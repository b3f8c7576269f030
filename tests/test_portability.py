"""What the product imports: declared dependencies, and nothing that only POSIX systems have."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tests.product_modules import MODULES, PACKAGES, ROOT, imported_names

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]

POSIX_ONLY = ("fcntl", "grp", "pwd", "resource", "syslog", "termios")
"""Modules of the standard library that Windows does not have."""

LOADED_BY_NAME = {
    "atlassian-python-api",
    "httptools",
    "langchain-openai",
    "langchain-anthropic",
    "langchain-deepseek",
    "langchain-ollama",
    "psycopg",
    "tavily-python",
    "tzdata",
    "uvloop",
    "wordfreq",
}
"""Dependencies that no module imports: LangChain, SQLAlchemy, uvicorn and zoneinfo load them, or we load
them by name or read their files.
"""


def imported_packages() -> Iterator[tuple[str, str]]:
    """Yield each top-level package that a module imports, with the module's path."""
    for path in MODULES:
        for name in imported_names(path):
            yield name.partition(".")[0], path.relative_to(ROOT).as_posix()


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    """The distributions that the project requires, with those of its extras."""
    extras = PROJECT["optional-dependencies"].values()
    requirements = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    return {normalized(re.split(r"[\[<>=~; ]", line, maxsplit=1)[0]) for line in requirements}


@pytest.fixture(scope="module")
def distributions() -> Mapping[str, Sequence[str]]:
    """The installed distributions by the top-level packages that they provide."""
    return packages_distributions()


@pytest.mark.acceptance
def test_every_imported_distribution_is_declared(
    distributions: Mapping[str, Sequence[str]],
) -> None:
    undeclared: dict[str, str] = {}
    for package, path in imported_packages():
        if package in sys.stdlib_module_names or package in PACKAGES:
            continue
        providers = {normalized(name) for name in distributions[package]}
        if not providers & declared():
            undeclared[package] = path
    assert undeclared == {}


@pytest.mark.acceptance
def test_every_declared_distribution_is_used(distributions: Mapping[str, Sequence[str]]) -> None:
    used = {
        normalized(name)
        for package, _ in imported_packages()
        for name in distributions.get(package, ())
    }
    assert declared() - used - LOADED_BY_NAME == set()


@pytest.mark.acceptance
def test_every_module_is_imported_without_posix_modules() -> None:
    names = [
        path.relative_to(ROOT)
        .with_suffix("")
        .as_posix()
        .replace("/", ".")
        .removesuffix(".__init__")
        for path in MODULES
        if "migrations" not in path.parts  # run by Alembic
    ]
    code = f"""
import builtins, importlib
import_module = builtins.__import__

def guarded(name, globals=None, *args, **options):
    # Libraries import such modules after a look at sys.platform.
    importer = (globals or {{}}).get("__name__", "").partition(".")[0]
    if name in {POSIX_ONLY!r} and importer in {PACKAGES!r}:
        raise ModuleNotFoundError(f"{{importer}} imports {{name}}")
    return import_module(name, globals, *args, **options)

builtins.__import__ = guarded
for name in {names!r}:
    importlib.import_module(name)
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
