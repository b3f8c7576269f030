"""HTML, PDF and Word files made in memory, and functions that read them."""

import io
import random
import zipfile
import zlib
from pathlib import Path

from docx import Document
from docx.enum.style import WD_STYLE_TYPE
from pypdf import PdfReader, PdfWriter
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Frame, PageTemplate, Paragraph, Preformatted, Table

from ingestion.sources.registry import FileResult, read_source
from schemas.platform import FilesSourceConfig, SourceLimits

LIMITS = SourceLimits(file_bytes=5_000_000, unpacked_bytes=20_000_000)

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


def plain_pdf(*pages: str, bookmarks: bool = False) -> bytes:
    """Return a PDF whose text has the same size everywhere."""
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


def pdf(*objects: bytes) -> bytes:
    """Return a PDF of `objects`, of which the first is the catalogue."""
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
