"""docs/reference/settings.md lists exactly the settings that there are."""

from pathlib import Path

from schemas.settings import PREFIX, Settings

DOCS = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"


def table() -> list[str]:
    return [
        f"| `{PREFIX}{name.upper()}` | {_default(field.default)} | {field.description} |".replace(
            "\n", " "
        )
        for name, field in Settings.model_fields.items()
    ]


def _default(value: object) -> str:
    if value is None or value == ():
        return ""
    return "the samples" if isinstance(value, Path) else f"`{value}`"


def test_every_setting_is_listed_with_its_docstring() -> None:
    rows = [
        line
        for line in DOCS.read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{PREFIX}")
    ]
    assert rows == table()
