"""Text, HTML, PDF and Word files: headings are preserved, and hostile files are refused."""

import io
import os
import random
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from pypdf import PdfReader, PdfWriter
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    PageTemplate,
    Paragraph,
    Preformatted,
    Table,
)

from ingestion.platform_config import read_platform
from ingestion.sources.registry import EmptyFile, FileResult, count_files, read_source
from schemas.document import SourceDocument
from schemas.errors import ConfigurationError, SourceError
from schemas.platform import FilesSourceConfig, SourceLimits

LIMITS = SourceLimits(file_bytes=5_000_000, unpacked_bytes=20_000_000)
SECONDS = 60
"""A guard against hanging, not a performance requirement."""
"""Time limit for reading any file."""

SIGNING = (
    "Every request is signed with the secret of the harbour, and the lighthouse refuses whatever "
    "is older than ten minutes or was signed with a secret that has been withdrawn meanwhile. "
)
CHINESE = "船舶靠港之前要先申请泊位，申请要带上签名，签名由港口的密钥算出来，超过十分钟就会被拒绝。"
ERRORS = [
    " ".join(random.Random(seed).choices(SIGNING.removesuffix(". ").split(), k=250)) + "."
    for seed in range(9)
]


def read_results(folder: Path, limits: SourceLimits = LIMITS, **fields: object) -> list[FileResult]:
    source = FilesSourceConfig.model_validate(
        {"name": "s", "kind": "files", "path": folder} | fields
    )
    return list(read_source(source, limits))


def read(folder: Path, name: str, data: bytes | str, **fields: object) -> SourceDocument:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    (document,) = read_results(folder, LIMITS, **fields)
    assert isinstance(document, SourceDocument), document
    return document


def refusal(folder: Path, name: str, data: bytes, limits: SourceLimits = LIMITS) -> str:
    (folder / name).write_bytes(data)
    began = time.monotonic()
    (refused,) = read_results(folder, limits)
    assert time.monotonic() - began < SECONDS
    assert isinstance(refused, SourceError), refused
    assert "\n" not in str(refused)
    return str(refused)


def outline(document: SourceDocument) -> list[str]:
    return [" > ".join(section.heading) for section in document.sections]


def text_of(document: SourceDocument) -> str:
    return "\n\n".join(section.body for section in document.sections)


# --- samples


def make_docx() -> bytes:
    document = Document()
    document.core_properties.title = "Harbour guide"
    document.core_properties.author = "Lin Qiao"
    document.add_heading("Harbour guide", 0)
    document.add_paragraph("What a ship has to know.")
    document.add_heading("靠港", 1)
    document.add_paragraph(CHINESE)
    for item in ("berth", "pilot"):
        document.add_paragraph(item, style="List Bullet")
    document.add_heading("Parameters", 2)
    table = document.add_table(rows=2, cols=2)
    for row, cells in enumerate([("Name", "说明"), ("berth_id", "a | b")]):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    heading = document.styles.add_style("章", WD_STYLE_TYPE.PARAGRAPH)
    heading.base_style = document.styles["Heading 1"]
    document.add_paragraph("离港", style="章")
    document.add_paragraph("先付费。")
    return saved(document)


def saved(document: object) -> bytes:
    file = io.BytesIO()
    document.save(file)  # type: ignore[attr-defined]
    return file.getvalue()


def make_pdf(title: str = "Harbour API", columns: int = 1) -> bytes:
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    styles = getSampleStyleSheet()
    body = ParagraphStyle("body", parent=styles["Normal"], leading=13, spaceAfter=8)
    chinese = ParagraphStyle("zh", parent=body, fontName="STSong-Light", wordWrap="CJK")
    large = ParagraphStyle("zh-heading", parent=chinese, fontSize=14, leading=18)

    def furniture(canvas: Canvas, document: BaseDocTemplate) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(60, 815, "The harbour's own manual")
        canvas.drawRightString(540, 25, f"Page {document.page} of many")

    file = io.BytesIO()
    document = BaseDocTemplate(file, title=title, author="Lin Qiao")
    width = 480 / columns - 10
    frames = [Frame(60 + i * 480 / columns, 60, width, 700) for i in range(columns)]
    document.addPageTemplates(PageTemplate(frames=frames, onPage=furniture))
    document.build([
        Paragraph("Harbour API", styles["Title"]),
        Paragraph("1 Signing", styles["Heading1"]),
        Paragraph(SIGNING * 3, body),
        Paragraph("1.1 Parameters", styles["Heading2"]),
        Table([["Name", "Type"], ["berth_id", "string"], ["sign", "string"]]),
        Paragraph("An appli-<br/>cation signs.", body),
        Preformatted("for ship in port:\n    sign(ship)", styles["Code"]),
        Paragraph("泊位申请", large),
        Paragraph(CHINESE * 3, chinese),
        Paragraph("2 Errors", styles["Heading1"]),
        *[Paragraph(words, body) for words in ERRORS],
    ])  # fmt: skip
    return file.getvalue()


HTML = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<title>Signing requests | Harbour docs</title><meta name="description" content="How to sign">
<link rel="canonical" href="https://docs.example/signing"><style>p {}</style></head><body>
<header><nav><a href="/">Home</a></nav>Harbour</header>
<main><nav>Docs / Signing</nav><h1>Signing requests<a class="headerlink" href="#s">¶</a></h1>
<p>Send <code>berth_id</code>, see <a href="../keys">keys</a> or <a href="https://rfc.example/1">the RFC</a>.
<p># no heading<h2>Steps <a href="#steps" aria-hidden="true">#</a></h2>
<ol><li>Sort<li>Join<ul><li>with &amp;</ul><li>Hash</ol>
<div class="highlight-python"><pre><code>import hmac<br>  # a comment
```</code></pre></div>
<h2>Fields</h2><table><thead><tr><th>Name<th>Type<th>Text</thead>
<tr><td rowspan="2">berth_id<td>string<td>a | b<p>c<tr><td>long<td><pre>{
}</pre><tr><td colspan="3">end</table>
<h3>List&lt;Ship&gt; of __init__</h3><dl><dt><code>get()</code><dd><p>gets<p>more</dl>
<aside><a href="/ad">advertisement</a></aside><aside class="note">Mind the tide.</aside><script>var a = "<!--";</script>
<div hidden>secret</div><form><input>search</form></main><footer>imprint</footer></body></html>"""


# --- content


def test_html_page_has_sections_and_metadata(tmp_path: Path) -> None:
    wanted = {"about": "description", "lang": "lang"}
    document = read(
        tmp_path, "p.html", HTML, metadata=wanted, page_url=["{nothing}", "{canonical}"]
    )
    assert document.title == "Signing requests"
    assert document.metadata == {"about": "How to sign", "lang": "en"}
    assert document.page_url == "https://docs.example/signing"
    assert outline(document) == ["", "Steps", "Fields", "Fields > List<Ship> of __init__"]
    assert [section.body for section in document.sections] == [
        "Send `berth_id`, see keys or [the RFC](https://rfc.example/1).\n\n\\# no heading",
        "1. Sort\n2. Join\n   - with &\n3. Hash\n\n````python\nimport hmac\n  # a comment\n```\n````",
        "| Name | Type | Text |\n| --- | --- | --- |\n| berth_id | string | a \\| b c |\n"
        "| berth_id | long | `{ }` |\n| end |  |  |",
        "- `get()`\n  gets\n\n  more\n\nMind the tide.",
    ]


@pytest.mark.parametrize(
    ("html", "body"),
    [
        ("<body><header>head</header><h1>T</h1>text<footer>foot</footer>", "text"),
        ("<body>menu<article><header><h1>T</h1></header>text</article>", "text"),
        ("<body>menu<div role=main><h1>T</h1>text</div>", "text"),
        ("<form><h1>T</h1>text<button>Send</button></form>", "text"),
        ("<h1>T</h1><table><tr><td><h2>in</h2>text</table>", "text"),
        ("<h1>T</h1><pre class='lang-js'>a\n  b</pre>", "```js\na\n  b\n```"),
        ("<h1>T</h1><div role=tabpanel hidden>text</div>", "text"),
        ("<h1>T</h1>text<div style=x><p>more", "text\n\nmore"),
        ("<h1>T</h1><!-- a > b --><p>text<!-- never closed <p>x", "text"),
        ("<h1>T</h1>a &lt; b", "a < b"),
        ("<h1>T</h1>a < b", "a < b"),
    ],
)
def test_html_boilerplate_is_removed(tmp_path: Path, html: str, body: str) -> None:
    document = read(tmp_path, "p.htm", html)
    assert (document.title, document.sections[0].body) == ("T", body)


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        ("gbk", "<meta charset=gb2312>"),
        ("gb18030", ""),
        ("big5", '<meta http-equiv=x content="text/html; charset=Big5">'),
        ("utf-16", ""),
        ("utf-8", "<meta charset=punycode>"),
    ],
)
def test_html_encoding_is_detected(tmp_path: Path, encoding: str, head: str) -> None:
    text = "船舶靠港之前要先申請泊位" if encoding == "big5" else CHINESE
    document = read(tmp_path, "p.html", f"{head}<h1>港</h1><p>{text}".encode(encoding))
    assert (document.title, document.sections[0].body) == ("港", text)


def test_word_document_has_sections_and_properties(tmp_path: Path) -> None:
    document = read(tmp_path, "guide.docx", make_docx(), metadata={"by": "author"})
    assert (document.title, document.language) == ("Harbour guide", "zh")
    assert document.metadata == {"by": "Lin Qiao"}
    assert [(section.heading, section.body) for section in document.sections] == [
        ((), "What a ship has to know."),
        (("靠港",), f"{CHINESE}\n\n- berth\n- pilot"),
        (("靠港", "Parameters"), "| Name | 说明 |\n| --- | --- |\n| berth_id | a \\| b |"),
        (("离港",), "先付费。"),
    ]


@pytest.mark.parametrize("name", ["heading 1", "标题 1", "Heading 1", "标题"])
def test_chinese_word_heading_styles_are_headings(tmp_path: Path, name: str) -> None:
    styles = f'<w:style w:type="paragraph" w:styleId="7"><w:name w:val="{name}"/></w:style>'
    body = '<w:p><w:pPr><w:pStyle w:val="7"/></w:pPr><w:r><w:t>靠港</w:t></w:r></w:p>' + WORDS
    data = word(
        {"word/document.xml": word_xml(body), "word/styles.xml": word_xml(styles, "styles")}
    )
    document = read(tmp_path, "a.docx", data)
    assert (document.title, document.sections[0].body) == ("靠港", "words")


@pytest.mark.parametrize("columns", [1, 2])
def test_pdf_has_sections_and_properties(tmp_path: Path, columns: int) -> None:
    document = read(
        tmp_path, "2401.00001v2.pdf", make_pdf(columns=columns),
        file_name=r"(?P<id>\d{4}\.\d{5})", metadata={"id": "id", "page": "page"},
        page_url=["https://papers.example/pdf/{id}.pdf#page={page}", "https://papers.example/pdf/{id}.pdf"],
    )  # fmt: skip
    assert document.title == "Harbour API"
    assert document.metadata == {"id": "2401.00001"}
    assert document.page_url == "https://papers.example/pdf/2401.00001.pdf"
    assert outline(document) == [
        "1 Signing",
        "1 Signing > 1.1 Parameters",
        "1 Signing > 泊位申请",
        "2 Errors",
    ]
    signing, parameters, chinese, errors = document.sections
    assert signing.body == (SIGNING * 3).strip()
    assert parameters.body.split("\n\n") == [
        "| Name | Type |\n| --- | --- |\n| berth_id | string |\n| sign | string |",
        "An application signs.",
        "```\nfor ship in port:\n    sign(ship)\n```",
    ]
    assert chinese.body == CHINESE * 3
    assert errors.body.replace("\n\n", " ") == " ".join(ERRORS)
    assert {section.metadata["page"] for section in document.sections} == {"1"}
    assert signing.page_url == "https://papers.example/pdf/2401.00001.pdf#page=1"
    assert not any(word in text_of(document) for word in ("own manual", "of many"))


@pytest.mark.parametrize("title", ["manual.pdf", "Microsoft Word - manual.doc", "untitled", ""])
def test_file_name_in_pdf_title_is_ignored(tmp_path: Path, title: str) -> None:
    assert read(tmp_path, "a.pdf", make_pdf(title)).title == "Harbour API"


def plain_pdf(*pages: str, bookmarks: bool = False) -> bytes:
    """A PDF whose text has one size."""
    file = io.BytesIO()
    canvas = Canvas(file)
    for number, page in enumerate(pages):
        canvas.setFont("Helvetica", 10)
        for i, line in enumerate(page.split("\n")):
            canvas.drawString(60, 780 - 14 * i, line)
            if bookmarks and i == 0:
                canvas.bookmarkPage(str(number))
                canvas.addOutlineEntry(line, str(number), 0)
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def test_bookmarks_are_headings_when_all_text_has_one_size(tmp_path: Path) -> None:
    lines = SIGNING.replace("refuses ", "refuses\n")
    pages = [f"Part {name}\n{lines}" for name in ("one", "two")]
    document = read(tmp_path, "a.pdf", plain_pdf(*pages, bookmarks=True), metadata={"p": "page"})
    assert [(s.heading, s.body, s.metadata) for s in document.sections] == [
        ((), SIGNING.strip(), {"p": "1"}),
        (("Part two",), SIGNING.strip(), {"p": "2"}),
    ]
    assert document.title == "Part one"


def test_pdf_encrypted_with_an_empty_password_is_read(tmp_path: Path) -> None:
    assert outline(read(tmp_path, "a.pdf", encrypted(""))) == [""]


def encrypted(password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(plain_pdf("words"))))
    writer.encrypt(password, owner_password="owner", algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()


COURSE = """Course Title: Building with APIs
Course Link: https://course.example/building
Course Instructor: Lin Qiao

Welcome aboard.

Lesson 0: Introduction
Lesson Link: https://course.example/building/0
First words.

# not a heading
Lesson 1: Signing requests
Second words.
"""
COURSE_PROFILE = r"""
[platform]
name = "Harbour"
description = "Ships."
audience = "captains"
tone = "plain"
greeting = "Hello."
refusal = "No."

[[sources]]
name = "courses"
kind = "files"
path = "courses"
suffixes = [".txt"]
header = 'Course Title: (?P<course_title>.+)\n(Course Link: (?P<course_link>.+)\n)?(Course Instructor: (?P<by>.+))?'
section = '^Lesson (?P<lesson_number>\d+): (?P<heading>.+)\n(Lesson Link: (?P<lesson_link>.+))?'
title = "course_title"
page_url = ["{lesson_link}", "{course_link}"]
metadata = {course = "course_title", lesson = "lesson_number", link = "lesson_link"}
"""


def test_text_file_is_split_by_header_and_section_patterns(tmp_path: Path) -> None:
    (tmp_path / "courses").mkdir()
    (tmp_path / "courses" / "1.txt").write_bytes(COURSE.replace("\n", "\r\n").encode())
    profile = tmp_path / "platform.toml"
    profile.write_text(COURSE_PROFILE, encoding="utf-8")
    (source,) = read_platform(profile).sources
    (document,) = read_source(source, LIMITS)
    assert isinstance(document, SourceDocument)
    assert document.title == "Building with APIs"
    assert document.page_url == "https://course.example/building"
    assert document.metadata == {"course": "Building with APIs"}
    lesson = {"lesson": "0", "link": "https://course.example/building/0"}
    assert [(s.heading, s.body, s.metadata, s.page_url) for s in document.sections] == [
        ((), "Welcome aboard.", {}, ""),
        (("Introduction",), "First words.\n\n\\# not a heading", lesson, lesson["link"]),
        (("Signing requests",), "Second words.", {"lesson": "1"}, ""),
    ]
    assert count_files(source) == 1


@pytest.mark.parametrize("key", ["header", "section", "file_name"])
def test_invalid_pattern_is_reported(tmp_path: Path, key: str) -> None:
    profile = tmp_path / "platform.toml"
    profile.write_text(COURSE_PROFILE.partition("suffixes")[0] + f'{key} = "(a"', encoding="utf-8")
    with pytest.raises(ConfigurationError, match=rf"{key} - .*regular expression") as caught:
        read_platform(profile)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (CHINESE.encode("gbk"), CHINESE),
        (CHINESE.encode("gb18030"), CHINESE),
        (CHINESE.encode("utf-16"), CHINESE),
        (b"\xef\xbb\xbfwords", "words"),
        ("un café, une clé privée et une forêt".encode("latin-1"), "un café, une clé privée et une forêt"),
        (b"a\r\nb\rc", "a\nb\nc"),
        (b"# comment\n## more", "\\# comment\n\\## more"),
        (b"Title\n=====\ntext", "Title\n\n=====\ntext"),
        (b"a\n---\nb", "a\n\n---\n\nb"),
        (b"run:\n\n    # indented\n    x = 1", "run:\n\n    # indented\n    x = 1"),
        (b"```sh\n# a\n```\nb", "```sh\n# a\n```\n\nb"),
        (b"```\nnever closed\n\n# x", "\\```\nnever closed\n\n\\# x"),
        (b"- one\n- two", "- one\n- two"),
    ],
)  # fmt: skip
def test_plain_text_is_not_interpreted_as_markdown(tmp_path: Path, data: bytes, body: str) -> None:
    document = read(tmp_path, "note.txt", data)
    assert (document.title, outline(document)) == ("note", [""])
    assert document.sections[0].body == body


def test_only_configured_suffixes_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.html").write_text("text")
    assert [getattr(item, "id", "") for item in read_results(tmp_path)] == ["a", "b"]
    assert [
        getattr(item, "id", "") for item in read_results(tmp_path, LIMITS, suffixes=[".html"])
    ] == ["b"]


# --- refused files


WORDS = "<w:p><w:r><w:t>words</w:t></w:r></w:p>"
RELATIONSHIPS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    '<Relationship Id="r" Target="word/document.xml" Type="http://schemas.openxmlformats.org/'
    'officeDocument/2006/relationships/officeDocument"/></Relationships>'
)


def word_xml(body: str, root: str = "document", prologue: str = "") -> str:
    names = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    inner = f"<w:body>{body}</w:body>" if root == "document" else body
    return f"{prologue}<w:{root} {names}>{inner}</w:{root}>"


def word(parts: dict[str, str | bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as package:
        for name, part in ({"_rels/.rels": RELATIONSHIPS} | parts).items():
            package.writestr(name, part)
    return file.getvalue()


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


def pdf(*objects: bytes) -> bytes:
    """A PDF of `objects`; the first one is the catalogue."""
    data = b"%PDF-1.7\n"
    places: list[int] = []
    for number, item in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, item)
    rows = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer<</Root 1 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, len(data))
    return data + head + rows + tail


def stream(data: bytes, head: bytes = b"") -> bytes:
    packed = zlib.compress(data)
    return b"<<%b/Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (head, len(packed), packed)


def pages(content: bytes, count: int = 1) -> bytes:
    return pdf(
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (count, b"3 0 R " * count),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        stream(content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
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
    "encrypted pdf": ("a.pdf", lambda: encrypted("secret"), "encrypted"),
    "truncated pdf": ("a.pdf", lambda: make_pdf()[:3_000], "not a readable PDF"),
    "inflating pdf": ("a.pdf", lambda: pages(b" " * 60_000_000), "text extraction costs too much"),
    "many streams": ("a.pdf", lambda: pages(b"% " + b" " * 900_000, 500), "APIDESK_MAX_UNPACKED|too much"),
    "many operators": ("a.pdf", lambda: pages(b"BT /F 9 Tf " + b"(x) Tj " * 50_000, 900), "too much"),
    "scanned": ("a.pdf", lambda: pages(b"0 0 9 9 re f"), "contains no text"),
    "pages in a circle": ("a.pdf", lambda: pdf(b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[2 0 R 2 0 R]>>"), "not a readable PDF"),
    "deep pdf": ("a.pdf", lambda: pdf(b"<</Type/Catalog/Pages " + b"[" * 100_000), "not a readable PDF"),
    "deep html": ("a.html", lambda: b"<div>" * 100_000 + b"x", "nests more than 100 elements deep"),
    "deep inline": ("a.htm", lambda: b"<p><b>" * 100_000 + b"x", "nests more than 100 elements deep"),
    "large html": ("a.html", lambda: b"<p>x" * 300_000, "tags and text nodes"),
    "spanning cells": ("a.html", lambda: b"<table>" + b"<tr><td colspan=999 rowspan=999>x" * 999, "cells span more"),
    "endless tag": ("a.html", lambda: b"<a " * 900_000 + b">x", "too large for an HTML page"),
    "endless number": ("a.html", lambda: b"<p>&#" + b"1" * 9_000 + b";<p>", "not a readable HTML page"),
    "binary txt": ("a.txt", lambda: bytes(range(256)) * 99, "not text"),
}  # fmt: skip


SLOWLY_REFUSED = ("many operators", "many streams", "large html")
"""Files of which several seconds' worth is read before a limit is reached."""


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
    ],
)
def test_html_parsing_is_not_quadratic(tmp_path: Path, file: str, html: bytes) -> None:
    (tmp_path / f"{file}.html").write_bytes(html)
    began = time.monotonic()
    read_results(tmp_path)
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize("suffix", [".txt", ".html", ".htm", ".pdf", ".docx"])
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
    ".html": lambda: HTML.encode(),
    ".docx": make_docx,
    ".pdf": lambda: plain_pdf("Part one\nwords", "Part two\nmore", bookmarks=True),
}


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
