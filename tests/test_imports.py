"""Imports point downwards only: apidesk -> app -> runnables -> ingestion -> prompts -> schemas."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("apidesk", "app", "runnables", "ingestion", "prompts", "schemas")
ALLOWED = {
    "apidesk": {"apidesk", "app", "runnables", "ingestion", "prompts", "schemas"},
    "app": {"app", "runnables", "ingestion", "prompts", "schemas"},
    "runnables": {"runnables", "ingestion", "prompts", "schemas"},
    "ingestion": {"ingestion", "prompts", "schemas"},
    "prompts": {"prompts", "schemas"},
    "schemas": {"schemas"},
}
FILES = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]


def imported_layers(source: str) -> set[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports must be absolute"
            names.append(node.module or "")
    return {name.partition(".")[0] for name in names} & {*LAYERS, "tests"}


def test_layers_import_only_lower_layers() -> None:
    forbidden: dict[str, set[str]] = {}
    for path in FILES:
        name = path.relative_to(ROOT)
        imported = imported_layers(path.read_text(encoding="utf-8"))
        if upper := imported - ALLOWED[name.parts[0]]:
            forbidden[name.as_posix()] = upper
    assert len(FILES) > 200
    assert forbidden == {}


def test_only_the_command_line_imports_its_modules() -> None:
    users = {path for path in FILES if "from app.cli" in path.read_text(encoding="utf-8")}
    users.remove(ROOT / "apidesk" / "__main__.py")  # starts it
    assert all(path.is_relative_to(ROOT / "app" / "cli") for path in users)


def test_only_the_store_imports_milvus() -> None:
    users = {path for path in FILES if "pymilvus" in path.read_text(encoding="utf-8")}
    assert {path.relative_to(ROOT).as_posix() for path in users} == {
        f"ingestion/store/{module}.py"
        for module in (
            "catalogue",
            "client",
            "collection",
            "lite_record",
            "milvus_collection",
            "milvus_writers",
            "manifest",
            "schema",
        )
    }


def test_only_settings_reads_the_environment() -> None:
    users = {path for path in FILES if "os.environ" in path.read_text(encoding="utf-8")}
    assert {path.name for path in users} == {"settings.py"}
