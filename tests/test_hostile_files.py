"""Hostile, damaged and oversized files are refused in one line, and in time."""

import io
import os
import random
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestion.sources.markdown import read_content
from ingestion.sources.pages import parse_page
from ingestion.sources.registry import EmptyFile
from schemas.document import SourceDocument
from schemas.errors import SourceError
from schemas.platform import MarkdownSourceConfig, SourceLimits
from tests.document_files import (
    COURSE,
    HTML,
    LIMITS,
    encrypted,
    make_docx,
    make_pdf,
    pages,
    pdf,
    plain_pdf,
    read_results,
    word,
    word_xml,
)

SECONDS = 60
"""Time limit for reading any file: a guard against hanging, not a performance requirement."""


def refusal(folder: Path, name: str, data: bytes, limits: SourceLimits = LIMITS) -> str:
    (folder / name).write_bytes(data)
    began = time.monotonic()
    (refused,) = read_results(folder, limits)
    assert time.monotonic() - began < SECONDS
    assert isinstance(refused, SourceError), refused
    assert "\n" not in str(refused)
    return str(refused)


def zip_bomb(name: str, lies: bool = False) -> bytes:
    """A hundred megabytes of spaces in half a megabyte; `lies` declares a size of ten bytes."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as package,
        package.open(name, "w") as entry,
    ):
        for _ in range(100):
            entry.write(b" " * 1_000_000)
    data = bytearray(file.getvalue())
    if lies:
        directory = data.rindex(b"PK\x01\x02")
        data[22:26] = data[directory + 24 : directory + 28] = struct.pack("<I", 10)
    return bytes(data)


ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "lollollollol">'
    + "".join(
        f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "]>"
)

HOSTILE: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "zip bomb": ("a.docx", lambda: zip_bomb("word/media/x.bin"), "unpacks to more than 20 MB"),
    "zip bomb in XML": ("a.docx", lambda: zip_bomb("word/document.xml"), "a.docx: "),
    "zip bomb that lies": ("a.docx", lambda: zip_bomb("word/media/x.bin", lies=True), "not a Word document"),
    "zip of nothing": ("a.docx", lambda: word({"x.xml": "<a/>"}), "not a Word document"),
    "not a zip": ("a.docx", lambda: b"PK\x03\x04" + b"x" * 100, "not a Word document"),
    "truncated docx": ("a.docx", lambda: make_docx()[:9_000], "not a Word document"),
    "encrypted docx": ("a.docx", lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 512, "encrypted"),
    "entities": ("a.docx", lambda: word({"word/document.xml": word_xml("<w:p>&i;</w:p>", prologue=ENTITIES)}), "document type"),
    "entities in UTF-16": ("a.docx", lambda: word({"word/styles.xml": word_xml("&i;", "styles", ENTITIES).encode("utf-16")}), "document type"),
    "deep docx": ("a.docx", lambda: word({"word/document.xml": word_xml("<w:p>" * 100_000)}), "elements deep"),
    "large docx": ("a.docx", lambda: word({"word/document.xml": word_xml("<w:p/>" * 300_000)}), "elements"),
    "encrypted pdf": ("a.pdf", lambda: encrypted("secret"), "needs a password"),
    "truncated pdf": ("a.pdf", lambda: make_pdf()[:3_000], "not a readable PDF"),
    "inflating pdf": ("a.pdf", lambda: pages(b" " * 60_000_000), "extracting the text takes too much work"),
    "many streams": ("a.pdf", lambda: pages(b"% " + b" " * 900_000, 500), "APIDESK_MAX_UNPACKED|too much"),
    "many operators": ("a.pdf", lambda: pages(b"BT /F 9 Tf " + b"(x) Tj " * 50_000, 900), "too much"),
    "scanned": ("a.pdf", lambda: pages(b"0 0 9 9 re f"), "contains no text"),
    "pages in a circle": ("a.pdf", lambda: pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[2 0 R 2 0 R]>>"), "not a readable PDF"),
    "deep pdf": ("a.pdf", lambda: pdf(b"<</Type/Catalog/Pages " + b"[" * 100_000), "not a readable PDF"),
    "deep html": ("a.html", lambda: b"<div>" * 100_000 + b"x", "nests more than 100 elements deep"),
    "deep inline": ("a.htm", lambda: b"<p><b>" * 100_000 + b"x", "nests more than 100 elements deep"),
    "large html": ("a.html", lambda: b"<p>x" * 300_000, "tags and text nodes"),
    "spanning cells": ("a.html", lambda: b"<table>" + b"<tr><td colspan=999 rowspan=999>x" * 999, "its tables span more"),
    "endless tag": ("a.html", lambda: b"<a " * 900_000 + b">x", "a tag has too many attributes"),
    "endless number": ("a.html", lambda: b"<p>&#" + b"1" * 9_000 + b";<p>", "not a readable HTML page"),
    "binary txt": ("a.txt", lambda: bytes(range(256)) * 99, "not text"),
    "binary csv": ("a.csv", lambda: bytes(range(256)) * 99, "not text"),
    "cell of a whole csv": ("a.csv", lambda: b'a,"' + b"x" * 400_000, "field larger than field limit"),
    "wide csv": ("a.csv", lambda: b"," * 900_000 + b"a", "more than 5 million characters"),
}  # fmt: skip

SLOWLY_REFUSED = ("many operators", "many streams", "large html")
"""Files of which several seconds' worth is read before a limit is reached."""


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.acceptance if name in SLOWLY_REFUSED else ())
        for name in HOSTILE
    ],
)
def test_hostile_file_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    file, make, problem = HOSTILE[name]
    said = refusal(tmp_path, file, make())
    assert said.startswith(file + ": ")
    assert any(part in said for part in problem.split("|")), said


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("file", "html"),
    [
        ("comments", b"<!--" * 500_000),
        ("declarations", b"<!" * 900_000),
        ("line breaks", b"<br>" * 20_000 + b"</p>" * 20_000),
        ("items", b"<ol>" + b"<li>x" * 20_000),
        ("rows", b"<table><thead>" + b"<tr><th>x" * 10_000),
        ("less than", b"<" * 900_000 + b">"),
        ("shares", b"<h1>T</h1>x<div>" + b"<div class=share></div>" * 9_000 + b"</div>"),
    ],
)
def test_html_parsing_is_not_quadratic(tmp_path: Path, file: str, html: bytes) -> None:
    (tmp_path / f"{file}.html").write_bytes(html)
    began = time.monotonic()
    read_results(tmp_path)
    assert time.monotonic() - began < SECONDS


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "text",
    {
        "spaces after codes": ("Errors: `a`" + " " * 900 + "x\n\n") * 40,
        "open tags": "{% a" * 20_000,
        "open components": '{% swagger-parameter in="query" name="y" %}\n' * 2_000,
    }.values(),
    ids=["spaces after codes", "open tags", "open components"],
)
def test_markdown_reading_is_not_quadratic(tmp_path: Path, text: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Boats\n\n`GET /boats`\n\n{text} x\n", encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    began = time.monotonic()
    parse_page(source, page, read_content(source, SourceLimits(), page))
    assert time.monotonic() - began < SECONDS / 6


@pytest.mark.parametrize("suffix", [".txt", ".html", ".htm", ".pdf", ".docx", ".csv"])
def test_empty_and_random_files_are_skipped_or_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"empty{suffix}").write_bytes(b"")
    (empty,) = read_results(tmp_path)
    assert isinstance(empty, EmptyFile)
    assert empty.name.startswith("empty")
    (tmp_path / f"empty{suffix}").unlink()
    refusal(tmp_path, f"junk{suffix}", random.Random(7).randbytes(9_000))


def test_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.touch()
    os.truncate(path, 1_000_000_000)
    (refused,) = read_results(tmp_path)
    assert "larger than 5 MB (APIDESK_MAX_FILE_BYTES)" in str(refused)


def test_symbolic_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.txt").symlink_to(tmp_path / "secret.txt")
    (refused,) = read_results(folder)
    assert "points outside" in str(refused)


GOOD: dict[str, Callable[[], bytes]] = {
    ".txt": lambda: COURSE.encode(),
    ".csv": lambda: b'code;text\n1;"a\nb"\n2;c, d\n' * 30,
    ".html": lambda: HTML.encode(),
    ".docx": make_docx,
    ".pdf": lambda: plain_pdf("Part one\nwords", "Part two\nmore", bookmarks=True),
}


@pytest.mark.acceptance
@pytest.mark.parametrize("suffix", GOOD)
def test_damaged_files_are_read_or_refused(tmp_path: Path, suffix: str) -> None:
    chance = random.Random(suffix)
    good = GOOD[suffix]()
    for number in range(100):
        damaged = bytearray(good)
        for _ in range(chance.randint(1, 30)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        (tmp_path / f"{number}{suffix}").write_bytes(
            damaged[: chance.choice([None, len(good) // 2])]
        )
    for item in read_results(tmp_path):
        assert isinstance(item, SourceDocument) or "\n" not in str(item)
