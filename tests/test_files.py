"""Text, HTML, PDF, Word and CSV files: headings, tables, metadata and boilerplate."""

import io
from pathlib import Path

import pytest
from docx import Document
from reportlab.pdfgen.canvas import Canvas

from ingestion.chunking import chunk_document
from ingestion.platform_config import read_platform
from ingestion.sources.formats.pdf_lines import LineCollector, PdfLine
from ingestion.sources.formats.pdf_sections import split_sections
from ingestion.sources.registry import count_files, read_source
from ingestion.text.markdown_blocks import parse_table, plain_text
from schemas.document import SourceDocument
from schemas.errors import ConfigurationError
from tests.document_files import (
    CHINESE,
    COURSE,
    ERRORS,
    HTML,
    LIMITS,
    SIGNING,
    encrypted,
    make_docx,
    make_pdf,
    plain_pdf,
    read_results,
    saved,
    word,
    word_xml,
)


def read(folder: Path, name: str, data: bytes | str, **fields: object) -> SourceDocument:
    (folder / name).write_bytes(data.encode() if isinstance(data, str) else data)
    (document,) = read_results(folder, LIMITS, **fields)
    assert isinstance(document, SourceDocument), document
    return document


def outline(document: SourceDocument) -> list[str]:
    return [" > ".join(section.heading) for section in document.sections]


def text_of(document: SourceDocument) -> str:
    return "\n\n".join(section.body for section in document.sections)


def test_hidden_and_generated_folders_are_not_read(tmp_path: Path) -> None:
    for folder in (".git", "node_modules", "guide/_static", "_templates", "guide/_partials"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "page.txt").write_text(f"Text in {folder}.")
    documents = read_results(tmp_path, LIMITS)
    assert [d.id for d in documents if isinstance(d, SourceDocument)] == ["guide/_partials/page"]


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
        (
            "<div class='top navbar'><a href=/>Acme</a> <a href=/b>Blog</a></div><h1>T</h1>text",
            "text",
        ),
        ("<ul id=toc><li><a href=#a>A</a></ul><h1>T</h1>text", "text"),
        (
            "<div class=with-sidebar><ul class=sidebar><li><a href=/a>Another page</a></ul><h1>T</h1>text</div>",
            "text",
        ),
        ("<h1>T</h1><div class=sidebar>text with a <a href=/b>link</a></div>", "text with a link"),
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
    ("before", "after"),
    [
        ("<div class=header><a>Acme</a> <a>Log in</a> 400-1</div>", ""),
        ("", "<section class=site-footer>About us | ICP 1</section>"),
        ("", "<div class='footer-wrapper'><div><div class=footer>About us</div></div></div>"),
        ("", "<div><div class=Footer_container__a8S>About us</div></div>"),
        ("<div class=breadcrumb><a>Help</a> &gt; T</div>", ""),
        ("<div class='row doc-byline'><div>changed: 2031-02-03</div></div>", ""),
        ("", "<div class=last-updated>最后更新于：2031年2月3日 12:30</div>"),
        (
            "",
            "<div class=updated><b>Last updated</b><i>Tuesday, March 4th, 2031</i> by Ada Reed</div>",
        ),
        ("", "<div class=updated>Updated on <time>2031-02-03T10:00:00Z</time></div>"),
        ("", "<div class=feedback>Was this helpful?<button>Yes</button></div>"),
        ("", "<div class=cookieConsent>Cookies?<button>Accept all</button></div>"),
        (
            "",
            "<ul class='share-buttons'><li><a>X</a></ul><div class=related>See <a>Views</a></div>",
        ),
    ],
)
def test_elements_of_the_site_around_the_content_are_removed(
    tmp_path: Path, before: str, after: str
) -> None:
    document = read(tmp_path, "p.html", f"<body>{before}<div><h1>T</h1>text{after}</div>{after}")
    assert [section.body for section in document.sections] == ["text"]


@pytest.mark.parametrize(
    "html",
    [
        "<h1>T</h1><div class=api-header>text</div>",
        "<h1>T</h1><div class='table-header'>text</div>",
        "<h1>T</h1><div class=section-header>text</div>",
        "<h1>T</h1><div class=share-price>text</div>",
        "<h1>T</h1><div class=header>text</div>",
        "<h1>T</h1><div class=card><p>text</p><div class=footer>more</div></div>",
        "<h1>T</h1><h2>Cookies</h2><div class=cookies>text</div>",
        "<h1>T</h1><section id=feedback><h3>Feedback</h3>text</section>",
        "<h1>T</h1><div class=related><table><tr><td>text</table></div>",
        "<div class=header><h1>T</h1>text</div>",
        "<body class=page-footer><h1>T</h1>text",
        "<div class=header>text</div><h2>T</h2>more",
        "<div class=page-header><p>The text above the title</div><h1>T</h1>more",
        "<main><h1>T</h1><div class=cookies><p>The text about a cookie</div></main>",
        "<h1>T</h1><section id=footer>text</section>",
        "<h1>T</h1><ul id=share><li><a>text</a></ul>",
        "<h1>T</h1><div class=toolbar><b>Save</b> stores the text</div>",
        "<h1>T</h1><div class=related><dl><dt><a>text</a><dd></dl></div>",
        "<h1>T</h1><div class=footer><code>text</code></div>",
        "<h1>T</h1><div class=updated>The text of the fields is new.</div>",
        "<h1>T</h1><div class=updated>From 2031 on, a text has 90 characters.</div>",
        "<h1>T</h1><div class=updated>更新：2031年3月起，text 必填。</div>",
        "<h1>T</h1><div class=license>A licence covers 3 text boxes. <a>Order</a></div>",
    ],
)
def test_content_with_a_name_like_that_of_the_site_is_kept(tmp_path: Path, html: str) -> None:
    assert "text" in text_of(read(tmp_path, "p.html", html))


@pytest.mark.parametrize("title", ["分组_控制台_帮助中心", "帮助中心-分组", "分组｜控制台"])
def test_chinese_html_title_ends_before_the_name_of_the_site(tmp_path: Path, title: str) -> None:
    html = f"<title>{title}</title><h1>分组</h1>甲<h2>告警</h2>乙"
    document = read(tmp_path, "p.html", html)
    assert (document.title, outline(document)) == ("分组", ["", "告警"])


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Views | Acme", "Views"),
        ("1 - Views - Acme", "1 - Views"),
        ("Views - Reference", "Views - Reference"),
        ("Acme Docs: Class-based views", "Class-based views"),
    ],
)
def test_html_title_ends_before_the_name_of_the_site(
    tmp_path: Path, title: str, expected: str
) -> None:
    html = f"<title>{title}</title><nav><a href=/>Acme</a></nav><h1>Class-based views</h1>text"
    assert read(tmp_path, "p.html", html).title == expected


@pytest.mark.parametrize(
    ("encoding", "head"),
    [
        ("gbk", "<meta charset=gb2312>"),
        ("gb18030", ""),
        ("big5", '<meta http-equiv=x content="text/html; charset=Big5">'),
        ("utf-16", ""),
        ("utf-8", "<meta charset=punycode>"),
        ("utf-8", "<meta charset=iso-8859-12>"),
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


def test_indented_cells_of_a_word_table_have_no_entities(tmp_path: Path) -> None:
    document = Document()
    table = document.add_table(rows=2, cols=1)
    table.cell(0, 0).text, table.cell(1, 0).text = "ship", "\u3000\u3000name"
    (section,) = read(tmp_path, "guide.docx", saved(document)).sections
    assert section.body == "| ship |\n| --- |\n| name |"


@pytest.mark.parametrize("name", ["heading 1", "标题 1", "Heading 1", "标题"])
def test_chinese_word_heading_styles_are_headings(tmp_path: Path, name: str) -> None:
    styles = f'<w:style w:type="paragraph" w:styleId="7"><w:name w:val="{name}"/></w:style>'
    body = '<w:p><w:pPr><w:pStyle w:val="7"/></w:pPr><w:r><w:t>靠港</w:t></w:r></w:p>' + WORDS
    data = word(
        {"word/document.xml": word_xml(body), "word/styles.xml": word_xml(styles, "styles")}
    )
    document = read(tmp_path, "a.docx", data)
    assert (document.title, document.sections[0].body) == ("靠港", "words")


@pytest.mark.parametrize(
    "code",
    [
        '<pre class="language-java"><code>x</code></pre>',
        '<pre class="highlight"><code data-lang="java">x</code></pre>',
        '<pre data-language="java">x</pre>',
        '<pre data-syntaxhighlighter-params="brush: java; gutter: false">x</pre>',
        '<div class="highlight-java"><div><pre>x</pre></div></div>',
    ],
)
def test_code_in_html_keeps_its_language(tmp_path: Path, code: str) -> None:
    assert "```java\nx\n```" in text_of(read(tmp_path, "a.html", f"<h1>T</h1>{code}"))


def test_lexer_that_sphinx_names_default_is_no_language(tmp_path: Path) -> None:
    code = '<div class="highlight-default"><div><pre>x</pre></div></div>'
    assert "```\nx\n```" in text_of(read(tmp_path, "a.html", f"<h1>T</h1>{code}"))


def test_title_of_an_admonition_is_bold_in_html(tmp_path: Path) -> None:
    note = (
        '<div class="admonition note"><p class="admonition-title">Note</p><p>Moor first.</p></div>'
    )
    assert "**Note**\n\nMoor first." in text_of(read(tmp_path, "a.html", f"<h1>T</h1>{note}"))


def test_indexes_of_sphinx_are_not_read(tmp_path: Path) -> None:
    for name in ("boats", "genindex", "py-modindex"):
        (tmp_path / f"{name}.html").write_text("<h1>Boats</h1><p>Moor first.</p>")
    (document,) = read_results(tmp_path, LIMITS)
    assert isinstance(document, SourceDocument)
    assert document.id == "boats"


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


def test_bookmarks_are_headings_when_all_text_has_one_size(tmp_path: Path) -> None:
    lines = SIGNING.replace("refuses ", "refuses\n")
    pages = [f"Part {name}\n{lines}" for name in ("one", "two")]
    document = read(tmp_path, "a.pdf", plain_pdf(*pages, bookmarks=True), metadata={"p": "page"})
    assert [(s.heading, s.body, s.metadata) for s in document.sections] == [
        ((), SIGNING.strip(), {"p": "1"}),
        (("Part two",), SIGNING.strip(), {"p": "2"}),
    ]
    assert document.title == "Part one"


def test_bookmarks_of_the_same_title_are_headings_on_each_of_their_pages(tmp_path: Path) -> None:
    titles = ["Ships", "Errors", "Berths", "Errors"]
    pages = [f"{title}\n{words[:80]}" for title, words in zip(titles, ERRORS, strict=False)]
    document = read(tmp_path, "a.pdf", plain_pdf(*pages, bookmarks=True))
    assert outline(document) == ["", "Errors", "Berths", "Errors"]


def test_heading_at_the_end_of_a_pdf_is_kept() -> None:
    texts = [("Ships", 20), ("They sail.", 10), ("They sail fast.", 10), ("Errors", 20)]
    lines = [PdfLine(text, 1, 60, 700 - 30 * i, size) for i, (text, size) in enumerate(texts)]
    assert [section.markdown for section in split_sections(lines, {})] == [
        "# Ships\n\nThey sail.\n\nThey sail fast.",
        "# Errors",
    ]


def test_bold_section_numbers_are_headings_without_larger_text_and_bookmarks(
    tmp_path: Path,
) -> None:
    file = io.BytesIO()
    canvas = Canvas(file)
    canvas.setTitle("Harbour")
    lines = ["1 Signing", SIGNING[:80], "1.1 Keys", "3 keys exist.", "2 Errors", "Tide is out."]
    for i, line in enumerate(lines):
        canvas.setFont("Helvetica-Bold" if i % 2 == 0 else "Helvetica", 10)
        canvas.drawString(60, 780 - 20 * i, line)
    canvas.save()
    headings = outline(read(tmp_path, "a.pdf", file.getvalue()))
    assert headings == ["1 Signing", "1 Signing > 1.1 Keys", "2 Errors"]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("应⽤的⻚⾯，⻅下⽂", "应用的页面，见下文"),
        ("⽤⼾", "用户"),
        ("字⺟", "字母"),
        ("⻳", "龟"),
    ],
)
def test_radicals_in_pdf_become_ideographs(written: str, text: str) -> None:
    """Chrome writes the radicals that look like these characters into PDFs."""
    lines = LineCollector(1)
    lines.add(written, [1, 0, 0, 1, 0, 0], [1, 0, 0, 1, 60, 700], "/F", 10)
    assert [line.text for line in lines.finish()] == [text]


def test_pdf_encrypted_with_an_empty_password_is_read(tmp_path: Path) -> None:
    assert outline(read(tmp_path, "a.pdf", encrypted(""))) == [""]


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
    assert (document.title, outline(document)) == ("Note", [""])
    assert document.sections[0].body == body


def test_only_configured_suffixes_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "b.html").write_text("text")
    assert [getattr(item, "id", "") for item in read_results(tmp_path)] == ["a", "b"]
    assert [
        getattr(item, "id", "") for item in read_results(tmp_path, LIMITS, suffixes=[".html"])
    ] == ["b"]


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("a.csv", "code,text\n1,a\n2,b\n", [["code", "text"], ["1", "a"], ["2", "b"]]),
        ("a.csv", "code;text\n1;a, b\n2;c, d, e\n", [["code", "text"], ["1", "a, b"], ["2", "c, d, e"]]),
        ("a.csv", "code\ttext\n1\ta,b\n", [["code", "text"], ["1", "a,b"]]),
        ("a.tsv", "code\ttext, more\n1\ta\n", [["code", "text, more"], ["1", "a"]]),
        ("a.CSV", "code\n1\n\n2\n", [["code"], ["1"], ["2"]]),
        ("a.csv", "code,text\n", [["code", "text"]]),
        ("a.csv", 'code,text\n1,"two\nlines, ""quoted"""\n', [["code", "text"], ["1", 'two lines, "quoted"']]),
        ("a.csv", "code,text\n1,a,b\n2,c\n3\n", [["code", "text"], ["1", "a,b"], ["2", "c"], ["3", ""]]),
        ("a.csv", "Errors\ncode,text\n1,a\n", [["code", "text"], ["1", "a"]]),
        ("a.csv", "code,text\n,,\n1,a|b\n", [["code", "text"], ["1", "a|b"]]),
        ("a.csv", 'code,text\n1,"never closed\n2,b\n', [["code", "text"], ["1", "never closed 2,b"]]),
        ("a.csv", 'code,text\n1,"never closed\n' + "2,b\n" * 25, [["code", "text"], ["1", '"never closed'], *[["2", "b"]] * 25]),
        ("a.csv", 'code,text\n1,"' + "a\n" * 25 + '"\n', [["code", "text"], ["1", "a " * 24 + "a"]]),
        ("a.csv", 'code, "text"\n1, "a, b"\n', [["code", "text"], ["1", "a, b"]]),
        ("a.csv", "sep=;\ncode;text, more\n1;a,b\n", [["code", "text, more"], ["1", "a,b"]]),
        ("a.csv", "code;text, more\n1;a,b\n", [["code", "text, more"], ["1", "a,b"]]),
        ("a.csv", "text\nOne, two\nThree, four\n", [["text"], ["One, two"], ["Three, four"]]),
        ("a.csv", "Errors, version 2\n\ncode,text,note\n1,a,b\n2,,\n3,a,b\n", [["code", "text", "note"], ["1", "a", "b"], ["2", "", ""], ["3", "a", "b"]]),
        ("a.csv", "a,b,c\n1,2\n3,4\n", [["a", "b", "c"], ["1", "2", ""], ["3", "4", ""]]),
        ("a.csv", "错误码,说明\n1,错".encode("gbk"), [["错误码", "说明"], ["1", "错"]]),
        ("a.csv", "code,text\r\n1,a\r\n".encode("utf-16"), [["code", "text"], ["1", "a"]]),
    ],
)  # fmt: skip
def test_csv_file_is_one_table(
    tmp_path: Path, name: str, data: bytes | str, rows: list[list[str]]
) -> None:
    document = read(tmp_path, name, data)
    assert (document.title, outline(document)) == ("A", [""])
    assert parse_table(document.sections[0].body) == rows


def test_lines_above_the_header_of_a_csv_file_are_text(tmp_path: Path) -> None:
    data = "Errors, version 2\n\ncode,text,note\n1,a,b\n"
    body = read(tmp_path, "a.csv", data).sections[0].body
    assert body.startswith("Errors, version 2\n\n| code | text | note |")


@pytest.mark.parametrize(
    "cell",
    ["a <token> b", "*a* b*c", "_a_ b_c __init__", r"C:\new\_x \*", "[a](b)", "a ` b", "a | b", "1 < 2 > 1"],
)  # fmt: skip
def test_csv_cells_are_not_interpreted_as_markdown(tmp_path: Path, cell: str) -> None:
    body = read(tmp_path, "a.csv", f"code,text\n1,{cell}\n").sections[0].body
    assert plain_text(parse_table(body)[1][1]) == cell


def test_long_csv_file_is_split_between_rows(tmp_path: Path) -> None:
    rows = [f"{number},message of error {number}" for number in range(1000, 1500)]
    document = read(tmp_path, "error_codes.csv", "\n".join(["code,message", *rows]))
    chunks = list(chunk_document(document, 400))
    assert document.title == "Error codes"
    assert len(chunks) > 2
    tables = [parse_table(chunk.body) for chunk in chunks]
    assert {tuple(header) for header, *_ in tables} == {("code", "message")}
    assert [",".join(row) for _, *others in tables for row in others] == rows


WORDS = "<w:p><w:r><w:t>words</w:t></w:r></w:p>"
