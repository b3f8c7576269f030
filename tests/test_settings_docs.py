"""docs/reference/settings.md lists exactly the fields of Settings."""

from pathlib import Path

from pydantic_core import PydanticUndefined

from schemas.settings import PREFIX, Settings

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"


def expected_rows() -> list[str]:
    return [
        f"| `{PREFIX}{name.upper()}` | {_format_default(field.default)} | {field.description} |".replace(
            "\n", " "
        )
        for name, field in Settings.model_fields.items()
    ]


def _format_default(value: object) -> str:
    if value is None or value == ():
        return ""
    if value is PydanticUndefined:
        return ""  # computed; the description states it
    return f"`./{value.as_posix()}`" if isinstance(value, Path) else f"`{value}`"


def test_document_lists_every_setting_with_its_docstring() -> None:
    rows = [
        line
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{PREFIX}")
    ]
    assert rows == expected_rows()
