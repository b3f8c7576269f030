"""The modules of the product, and their syntax trees."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("apidesk", "app", "runnables", "ingestion", "prompts", "schemas")
MODULES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of the module at `path`, which is parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_names(path: Path) -> frozenset[str]:
    """Return the dotted names of the modules that the module at `path` imports absolutely."""
    names: set[str] = set()
    for node in ast.walk(syntax_tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports must be absolute"
            names.add(node.module or "")
    return frozenset(names)
