"""Imports point downwards only: apidesk -> app -> runnables -> ingestion -> prompts -> schemas."""

from pathlib import Path

from tests.product_modules import MODULES, PACKAGES, ROOT, imported_names

ALLOWED = {
    "apidesk": {"apidesk", "app", "runnables", "ingestion", "prompts", "schemas"},
    "app": {"app", "runnables", "ingestion", "prompts", "schemas"},
    "runnables": {"runnables", "ingestion", "prompts", "schemas"},
    "ingestion": {"ingestion", "prompts", "schemas"},
    "prompts": {"prompts", "schemas"},
    "schemas": {"schemas"},
}


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
            "lite_record",
            "milvus_collection",
            "milvus_writers",
            "manifest",
            "schema",
        )
    }


def test_only_settings_reads_the_environment() -> None:
    users = {path for path in MODULES if "os.environ" in path.read_text(encoding="utf-8")}
    assert {path.name for path in users} == {"settings.py"}
