"""Downloads the documentation that packages contain, for the question sets about it.

    python -m benchmarks.answers.packages

Needs pip, npm, and apt-get with dpkg-deb. A package that cannot be downloaded is reported, and the set
about it is skipped.
"""

import gzip
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from benchmarks.answers.sets import PACKAGES

PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
NPM = ("npm", "pack", "--silent")
APT = ("apt-get", "download", "--quiet")

BACKENDS = Path(__file__).with_name("backends")
"""Folder with stand-ins for build backends."""


@dataclass(frozen=True)
class Package:
    """A package that contains documentation."""

    name: str
    """The folder below `PACKAGES` that the documents are copied to."""
    download: tuple[str, ...]
    """The command that downloads the package into the current folder."""
    documents: tuple[str, ...]
    """The files and folders of the package that are copied."""
    left_out: tuple[str, ...] = ()
    """Files and folders that are not copied: paths below the folder that the documents are copied to."""


TUSHARE = Package("tushare", (*PIP, "tushare-docs-mcp==0.2.0"), ("tushare_docs_mcp/docs",))
BLOCKFROST = Package("blockfrost", (*NPM, "@blockfrost/openapi@0.1.93"), ("package/openapi.yaml",))
ICINGA = Package("icinga", (*APT, "icinga2-doc"), ("usr/share/doc/icinga2/markdown",))
DRF = Package(
    "drf",
    (*APT, "python-djangorestframework-doc"),
    tuple(
        f"usr/share/doc/python3-djangorestframework/html/{folder}"
        for folder in ("api-guide", "coreapi", "topics", "tutorial")
    ),
)

MEETING = Package(
    "meeting",
    (*PIP, "huaweicloud-mcp-server==0.3.1"),
    ("huaweicloud_services_server/mcp_server_meeting/src/mcp_server_meeting/config/meeting.json",),
)
PHONEPE = Package(
    "phonepe",
    (*PIP, "phonepe-pg-docs-mcp==1.0.2"),
    ("phonepe_docs_mcp/knowledge/doc_index.db",),
)
GITHUB = Package(
    "github", (*NPM, "@octokit/openapi@23.0.2"), ("package/generated/api.github.com.json",)
)
CLOUDBASE = Package("cloudbase", (*NPM, "tcb-admin-node@1.23.0"), ("package/docs",))
SHIPENGINE = Package("shipengine", (*NPM, "shipengine-openapi@1.4.0"), ("package/openapi.yaml",))
WECOM = Package(
    "wecom",
    (*NPM, "@wecom/wecom-openclaw-plugin@2026.7.2"),
    ("package/skills", "package/README.md"),
)
SYNAPSE = Package(
    "synapse",
    (
        "env", f"PYTHONPATH={BACKENDS}", *PIP, "--no-build-isolation",
        "--no-binary", "matrix-synapse", "matrix-synapse==1.163.2",
    ),
    ("matrix_synapse-1.163.2/docs",),
    tuple(
        f"docs/{path}"
        for path in (
            "README.md", "ancient_architecture_notes.md", "auth_chain_difference_algorithm.md",
            "changelogs", "code_style.md", "deprecation_policy.md", "development",
            "log_contexts.md", "replication.md", "tcp_replication.md", "website_files",
        )
    ),
)  # fmt: skip
OPENVIKING = Package(
    "openviking",
    (*PIP, "--no-binary", "openviking", "openviking==0.5.2"),
    ("openviking-0.5.2/docs/zh",),
    ("zh/about", "zh/api/99-api-doc-writing-guide.md"),
)


def main() -> None:
    """Download and unpack all packages."""
    for package in (
        TUSHARE, BLOCKFROST, ICINGA, DRF, MEETING, PHONEPE, GITHUB, CLOUDBASE, SHIPENGINE, WECOM,
        SYNAPSE, OPENVIKING,
    ):  # fmt: skip
        try:
            copy_documents(package, PACKAGES / package.name)
        except (OSError, subprocess.CalledProcessError, shutil.ReadError) as error:
            sys.stderr.write(f"{package.name}: {error}\n")


def copy_documents(package: Package, target: Path) -> None:
    """Replace the folder `target` by the documents of `package`, decompressed.

    Raises OSError, CalledProcessError, and shutil.ReadError for an archive that cannot be read.
    """
    with tempfile.TemporaryDirectory() as folder:
        content = Path(folder, "content")
        content.mkdir()
        subprocess.run(package.download, cwd=folder, check=True)
        for archive in [path for path in Path(folder).iterdir() if path.is_file()]:
            _unpack(archive, content)
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in package.documents:
            _copy(content / path, target / Path(path).name)
    for path in package.left_out:
        _remove(target / path)
    for compressed in list(target.rglob("*.gz")):
        compressed.with_suffix("").write_bytes(gzip.decompress(compressed.read_bytes()))
        compressed.unlink()
    for database in list(target.rglob("*.db")):
        _write_pages(database)
        database.unlink()


def _write_pages(database: Path) -> None:
    """Write the pages in the SQLite database of phonepe-pg-docs-mcp as Markdown files beside it."""
    with closing(sqlite3.connect(database)) as connection:
        for name, text in connection.execute("SELECT section_key, content FROM doc_sections"):
            page = database.parent / f"{name}.md"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".deb":
        subprocess.run(("dpkg-deb", "--extract", archive, folder), check=True)
    else:
        shutil.unpack_archive(archive, folder, "zip" if archive.suffix == ".whl" else None)


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


if __name__ == "__main__":
    main()
