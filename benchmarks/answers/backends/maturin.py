"""Stands in for the build backend maturin while pip downloads a source package.

pip asks the backend for the metadata of the package, and maturin would need Rust and the sources of all
crates. The file PKG-INFO in the package contains the metadata.
"""

import shutil
from email import message_from_string
from pathlib import Path


def prepare_metadata_for_build_wheel(folder: str, config_settings: object = None) -> str:
    """Write the metadata of the package in the current folder to a new folder below `folder`."""
    package = message_from_string(Path("PKG-INFO").read_text(encoding="utf-8"))
    metadata = Path(folder, f"{package['Name'].replace('-', '_')}-{package['Version']}.dist-info")
    metadata.mkdir()
    shutil.copy("PKG-INFO", metadata / "METADATA")
    return metadata.name
