"""The layout of the product code: imports, unique type names, and modules of a useful size."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from tests.product_modules import MODULES, PACKAGES, ROOT, imported_names, syntax_tree

ALLOWED = {
    "apidesk": {"apidesk", "app", "runnables", "ingestion", "prompts", "schemas"},
    "app": {"app", "runnables", "ingestion", "prompts", "schemas"},
    "runnables": {"runnables", "ingestion", "prompts", "schemas"},
    "ingestion": {"ingestion", "prompts", "schemas"},
    "prompts": {"prompts", "schemas"},
    "schemas": {"schemas"},
}
"""Imports point downwards only: apidesk -> app -> runnables -> ingestion -> prompts -> schemas."""

MIN_LINES = 40
REASON = ("because", "so that", "must", "stays")
"""Words with which the docstring of a short module states why it is separate."""


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def type_names(path: Path) -> Iterator[str]:
    """Yield the public classes and type aliases that a module defines."""
    for node in syntax_tree(path).body:
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        else:
            continue
        yield from (name for name in names if name[0].isupper() and not name.isupper())


def test_no_two_modules_define_the_same_public_type() -> None:
    modules: dict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for name in type_names(path):
            modules[name].append(name_of(path))
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def lacks_reason(path: Path) -> bool:
    """Whether the module is short, and its docstring does not say why it is separate."""
    if path.name == "__init__.py" or "migrations" in path.parts:
        return False  # package markers, and the file per revision that Alembic requires
    lines = path.read_text(encoding="utf-8").splitlines()
    docstring = ast.get_docstring(syntax_tree(path)) or ""
    return len(lines) < MIN_LINES and not any(word in docstring for word in REASON)


def test_short_modules_state_their_reason() -> None:
    assert [name_of(path) for path in MODULES if lacks_reason(path)] == []


def imported_layers(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported_names(path)} & {*PACKAGES, "tests"}


def test_layers_import_only_lower_layers() -> None:
    forbidden: dict[str, set[str]] = {}
    for path in MODULES:
        name = path.relative_to(ROOT)
        imported = imported_layers(path)
        if upper := imported - ALLOWED[name.parts[0]]:
            forbidden[name.as_posix()] = upper
    assert len(MODULES) > 200
    assert forbidden == {}


def package_of(name: str) -> str:
    """The first two parts of a module's name, such as `runnables.answer`."""
    return ".".join(name.split(".")[:2])


def test_no_two_packages_import_each_other() -> None:
    imports: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        own = package_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        imports[own] |= {package_of(name) for name in imported_names(path)} - {own}
    order = TopologicalSorter({name: used & imports.keys() for name, used in imports.items()})
    order.prepare()  # raises CycleError, whose message contains the packages


def test_only_the_command_line_imports_its_modules() -> None:
    users = {path for path in MODULES if "from app.cli" in path.read_text(encoding="utf-8")}
    users.remove(ROOT / "apidesk" / "__main__.py")  # starts it
    assert all(path.is_relative_to(ROOT / "app" / "cli") for path in users)


def test_only_the_store_imports_milvus() -> None:
    users = {path for path in MODULES if "pymilvus" in path.read_text(encoding="utf-8")}
    assert {path.relative_to(ROOT).as_posix() for path in users} == {
        f"ingestion/store/{module}.py"
        for module in (
            "catalogue",
            "client",
            "collection",
            "lite_copy",
            "milvus_collection",
            "milvus_writers",
            "manifest",
            "schema",
        )
    }


def test_only_settings_reads_the_environment() -> None:
    access = re.compile(r"\bos\.(?:environ|getenv)\b|\bfrom os import\b.*\b(?:environ|getenv)\b")
    users = {path for path in MODULES if access.search(path.read_text(encoding="utf-8"))}
    assert {path.name for path in users} == {"settings.py"}
