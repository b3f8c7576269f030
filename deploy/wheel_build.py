"""Builds the wheel, in which all packages are parts of the package `apidesk`.

The repository has the packages `app`, `runnables`, `ingestion`, `prompts` and `schemas` at its top level.
Other distributions install packages with such names too. Therefore they are called `apidesk.app` and so on
in the wheel, and imports are changed accordingly. An editable installation uses the repository as it is.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT_PACKAGE = "apidesk"

PACKAGES = ("app", "runnables", "ingestion", "prompts", "schemas")

_IMPORT = re.compile(rf"^(\s*from )({'|'.join(PACKAGES)})(?=[. ])", re.MULTILINE)


def rename_imports(source: str) -> str:
    """Return the source code of a module with imports of PACKAGES from ROOT_PACKAGE.

    Only `from ... import` is changed; the repository does not import these packages with `import ...`.
    """
    return _IMPORT.sub(rf"\1{ROOT_PACKAGE}.\2", source)


class OnePackage(BuildHookInterface[Any]):
    """A build hook that puts the packages and the samples below one package."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Copy the files with changed imports, and add them to the wheel."""
        if version == "editable":
            return
        self._temporary = TemporaryDirectory()
        built = Path(self._temporary.name)
        root = Path(self.root)
        for folder, target in {
            ROOT_PACKAGE: built,
            **{name: built / name for name in (*PACKAGES, "samples")},
        }.items():
            for path in sorted((root / folder).rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    _copy(path, target / path.relative_to(root / folder))
        build_data["force_include"][str(built)] = ROOT_PACKAGE

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary files."""
        if version != "editable":
            self._temporary.cleanup()


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".py":
        target.write_text(rename_imports(path.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        target.write_bytes(path.read_bytes())
