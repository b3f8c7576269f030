"""The Markdown dialects of documentation generators become plain Markdown."""

import re
import time
from pathlib import Path

import pytest

from ingestion.chunking import chunk_document
from ingestion.sources.registry import read_source
from ingestion.text.clean_markdown import clean_text, to_plain_markdown
from schemas.document import SourceDocument
from schemas.platform import MarkdownSourceConfig, SourceLimits


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (":::note Watch out\nBody\n:::", "**Watch out**\n\nBody"),
        ("> [!NOTE]\n> Body", "> **Note**\n>\n> Body"),
        (":::danger\n严禁代开。\n:::", "**危险**\n\n严禁代开。"),
        (":::info\n`a` 接口上限为 5。\n:::", "`a` 接口上限为 5。"),
        ("> [!WARNING]\n> 正文", "> **警告**\n>\n> 正文"),
        ("!!! caution\n    正文", "**注意**\n\n正文"),
        ('<Callout type="warning">正文</Callout>', "**警告**\n\n正文"),
        (
            '<callout emoji="bulb">\nA\n</callout>\n<grid cols="2">\n<column>\n<text color="red">B</text>\n'
            "</column>\n<column>\nC\n</column>\n</grid>",
            "A\n\nB\n\nC",
        ),
        ('<callout type="warning">\nA\n</callout>', "**Warning**\n\nA"),
        (
            "`<token>` is `</key>`: <token>, <key> and List<String>",
            "`<token>` is `</key>`: <token>, <key> and List<String>",
        ),
        ("a\n\n    <context>\n    b\n    </context>", "a\n\n    <context>\n    b\n    </context>"),
        ("See it.<sup>[1]</sup> x<sup>2</sup>", "See it. x2"),
        ("See<sup><a href='#f'>[2]</a></sup> [1]", "See [1]"),
        ('!!! tip "Hi"\n    inside\n\nafter', "**Hi**\n\ninside\n\nafter"),
        (
            '!!! tip "A"\n    a\n\n    !!! note "B"\n        b\n\n    c\n\nd\n\n    code',
            "**A**\n\na\n\n**B**\n\nb\n\nc\n\nd\n\n    code",
        ),
        (
            '!!! tip "A"\n    !!! note "B"\n        b\n\nc\n\n    code',
            "**A**\n\n**B**\n\nb\n\nc\n\n    code",
        ),
        ("<Note>Careful</Note>", "**Note**\n\nCareful"),
        ('```ts title="client.ts" {2,3}\na\n```', "```ts\na\n```"),
        ("```http GET /v1/orders\n```", "```http GET /v1/orders\n```"),
        ("```bash cURL\na\n```", "```bash\na\n```"),
        ("```curl cURL\na\n```", "```curl\na\n```"),
        ("```sh curl example\na\n```", "```sh\na\n```"),
        ("```curl -X POST\n```", "```curl -X POST\n```"),
        ("```sh curl https://a.example\n```", "```sh curl https://a.example\n```"),
        ("::: note\n::: title\nNote\n:::\n\nBody\n:::", "**Note**\n\nBody"),
        (":::: tip\n::: title\nMind this\n:::\n\nBody\n::::", "**Mind this**\n\nBody"),
        (".. note::\n\n   Body\n\nAfter", "**Note**\n\nBody\n\nAfter"),
        (".. deprecated:: 3.0\n   Use `b`.", "**Deprecated**\n\n3.0\nUse `b`."),
        ("```\n.. note::\n```\n\n.. toctree::", "```\n.. note::\n```\n\n.. toctree::"),
        ("See :ref:`Paging <paging>` and :py:class:`Api`.", "See `Paging` and `Api`."),
        ("In a:b:`c` and `:ref:`", "In a:b:`c` and `:ref:`"),
        ("``` { .yaml .annotate }\na\n```", "```yaml\na\n```"),
        ("  ```{code-block} c++ \n  a\n  ```", "  ```c++\n  a\n  ```"),
        ("```{1,2}\na\n```", "```\na\n```"),
        ('```{"a": 1}\n```', '```{"a": 1}\n```'),
        ("```POST /v1/keys\n```", "```POST /v1/keys\n```"),
        (
            "<details><summary>Keys <b>of</b> <code>a</code></summary>\nb</details>",
            "**Keys of `a`**\n\nb",
        ),
        (
            "- a\n  <details>\n  <summary>B</summary>\n  c\n  </details>",
            "- a\n  \n\n  \n\n  **B**\n\n  \n  c\n  ",
        ),
        ("<details><summary><h3>A</h3></summary>\nb", "### A\n\nb"),
        ("a\n<br/>\n## Keys", "a\n\n## Keys"),
        ("a\n</br>\n## Keys", "a\n\n## Keys"),
        ("# [#](#keys) Keys [¶](#keys)", "# Keys "),
        ('# <a name="a"></a>Keys<a href="#a">¶</a>', "# Keys"),
        (r"## Keys ((#\_keys))", "## Keys {#_keys}"),
        (r"- `key` ((#key, #\_key)) - Opens. `((#a))`", "- `key` - Opens. `((#a))`"),
        ("a\n\n[此处为语雀卡片，点击链接查看](https://a.example/b#c)\n\nb", "a\n\nb"),
        ('<page-anchor el="h2">\nKeys\n</page-anchor> of <your-app>', "Keys\n of <your-app>"),
        (
            '=== "JSON"\n\n    ```json\n    {\n      "a": 1\n    }\n    ```\n\n    Below.\n\nAfter.',
            '**JSON**\n\n```json\n{\n  "a": 1\n}\n```\n\nBelow.\n\nAfter.',
        ),
        ('!!! tip "Keys"\n\n        Keep them.', "**Keys**\n\nKeep them."),
        (
            "??? note\n\n    A.\n\n    !!! tip\n\n        B.\n\n    C.",
            "**Note**\n\nA.\n\n**Tip**\n\nB.\n\nC.",
        ),
        ("#Errors\n##Codes\n```\n#no\n##no\n```", "# Errors\n## Codes\n```\n#no\n##no\n```"),
        ("##**支持**\n#1 and #2", "## **支持**\n# 1 and #2"),
        ("#channel is a tag\n\n## Codes", "#channel is a tag\n\n## Codes"),
        ('<Callout type="warning">Careful</Callout>', "**Warning**\n\nCareful"),
        ('<Callout emoji="⚠️">Careful</Callout>', "Careful"),
        ('<Callout type="tip" title="Keys">Careful</Callout>', "**Keys**\n\nCareful"),
        ('<CodeBlock file="login" title="app.js" />\n\nRun it.', "Run it."),
        ('<Accordion title="Why `x`?">Because</Accordion>', "**Why `x`?**\n\nBecause"),
        ("Do <em>not</em> <b> stop </b>", "Do *not* **stop**"),
        ("import X from 'y'\n\ntext {/* hidden */}<!-- too -->", "text "),
        (
            "a\n\n<!-- old\n```\nx\n``` -->\n\n# b\n\n```\n<!-- kept\n```",
            "a\n\n# b\n\n```\n<!-- kept\n```",
        ),
        ("![A chart](a.png) and <img alt='B'>", "A chart and B"),
        ("a\n\n![settings_page](s.png)\n\n<Frame><img alt='P976945'></Frame>\n\nb", "a\n\nb"),
        ("a\n\n![The settings page](a.png)", "a\n\nThe settings page"),
        ("a\n\n![设置API页面](a.png)\n\n![登录流程图](b.png)\n\nb", "a\n\nb"),
        ("a\n\n![缆绳最多9根](a.png)", "a\n\n缆绳最多9根"),
        ("a\n\n![设置页面，打开时显示](a.png)", "a\n\n设置页面，打开时显示"),
        ("点击 ![保存](a.png)", "点击 保存"),
        ("1. Open it.\n   ![Settings](s.png)\n2. Save.", "1. Open it.\n   \n2. Save."),
        ("a\n\n![image.png](https://x.example/1)\n\n<img alt='/images/b.svg'>\n\nb", "a\n\nb"),
        ("\u3000\u3000name | string", "&emsp;&emsp;name | string"),
        ("Use <your_token> and `<b>`", "Use <your_token> and `<b>`"),
        ("```html\n<b>&gt;</b>\n```", "```html\n<b>&gt;</b>\n```"),
        ("a\n\n{{fragments/code.md}}\n\nb", "a\n\nb"),
        ('a\n\n{{< include "x.md" >}}\n\nb', "a\n\nb"),
        ("{{% notice tip %}}\nBody\n{{% /notice %}}", "Body"),
        ("a\n\n{% include 'x.md' %}\n\nb", "a\n\nb"),
        ("a\n\n{%- include x.md %}\n\nb", "a\n\nb"),
        ("a\n\n{%include x.md%}\n\nb", "a\n\nb"),
        ("{% tabs %}\n\na\n\n{% endtabs %}", "{% tabs %}\n\na\n\n{% endtabs %}"),
        ('a\n\n--8<-- "x.md"\n\nb', "a\n\nb"),
        ("a\n\n<<< @/snippets/a.js\n\nb", "a\n\nb"),
        ("Hello {{ user.name }}\n\n{{ user.name }}", "Hello {{ user.name }}\n\n{{ user.name }}"),
        ("```\n{{fragments/code.md}}\n```", "```\n{{fragments/code.md}}\n```"),
    ],
)
def test_markup_is_converted(written: str, plain: str) -> None:
    assert to_plain_markdown(written) == plain


@pytest.mark.parametrize(
    ("written", "clean"),
    [
        ("us\\-east\\-2, user\\_id", "us-east-2, user_id"),
        ("a &gt; b&nbsp;&amp; c", "a > b & c"),
        ("limit ==5 QPS==", "limit 5 QPS"),
        ("call &lt;token&gt;", "call `<token>`"),
        ("two  spaces", "two spaces"),
        ("** 注 ** 不超过** 5 兆 **，", "**注** 不超过**5 兆**，"),
        ("**a** 中文 **b**, 2 ** 3 ** 4", "**a** 中文 **b**, 2 ** 3 ** 4"),
        ("**粗体 ** 中文 ** 粗体**", "**粗体 ** 中文 ** 粗体**"),
        ("2 ** 3 中 ** 4", "2 ** 3 中 ** 4"),
        ("`a  b`  after  `c`", "`a  b` after `c`"),
        ("`a\\_b &gt;`", "`a\\_b &gt;`"),
        ("a → b<br/>c → `d`<br>", "a → b  \nc → `d`"),
        ("第一行。<br />\n第二行<br><br>1. 三", "第一行。  \n第二行  \n1. 三"),
        ("1. Open<br/>Save\n> - a <br> b", "1. Open  \n   Save\n> - a  \n> b"),
        ("a<br>--- <br># b `<br>`", "a --- # b `<br>`"),
        (
            "| 名<br>称 | 值 |\n| --- | --- |\n| 类型：<br>`A` 甲<br/>`B`<br>（乙） | <br>a<br>b. <br> c<br> |",
            "| 名 称 | 值 |\n| --- | --- |\n| 类型：`A` 甲；`B` （乙） | a; b. c |",
        ),
        (
            "| a |\n| --- |\n| x<br>y `<br>`<br>- z |",
            "| a |\n| --- |\n| x; y `<br>` - z |",
        ),
        (
            "| 值 |\n| --- |\n| 枚举：<br>- `a`<br>- b（默认） |\n| - 甲<br>- 乙<br>完 |\n| - 甲：1<br>- 乙 |",
            "| 值 |\n| --- |\n| 枚举：`a`、b（默认） |\n| 甲、乙；完 |\n| - 甲：1 - 乙 |",
        ),
        (
            "| 说明 |\n| --- |\n| 归还时是否检查船只<br/>还有没有油 |\n| 机动船<br>帆船 |\n| 返回船只的编号列表<br>无船时为 `[]` |",
            "| 说明 |\n| --- |\n| 归还时是否检查船只 还有没有油 |\n| 机动船；帆船 |\n| 返回船只的编号列表；无船时为 `[]` |",
        ),
        (
            "| a |\n| --- |\n| A<br>- cat<br>- dog<br>B<br>- cow<br>- pig |\n| One of<br>- cat<br>&nbsp;- dog |\n| Is - or:<br>- cat. Meows<br>- dog |",
            "| a |\n| --- |\n| A: cat, dog; B: cow, pig |\n| One of: cat, dog |\n| Is - or: - cat. Meows - dog |",
        ),
    ],
)
def test_text_is_cleaned(written: str, clean: str) -> None:
    assert clean_text(written) == clean


def test_links_lead_to_the_pages_they_name(tmp_path: Path) -> None:
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "a.md").write_text(
        "See [B](../b.md#x), [C](c.md), [W](https://w.x), [D](#d).[¶](#e)"
    )
    (tmp_path / "b.md").write_text("---\nslug: /bee\n---\nBody")
    source = MarkdownSourceConfig(
        kind="markdown",
        name="docs",
        path=tmp_path,
        page_url=("https://x.y/{slug}", "https://x.y/{path}"),
    )
    (page,) = [
        document
        for document in read_source(source, SourceLimits())
        if isinstance(document, SourceDocument) and document.id == "guides/a"
    ]
    assert page.sections[0].body == (
        "See [B](https://x.y/bee#x), C, [W](https://w.x), [D](https://x.y/guides/a#d)."
    )


def test_links_without_labels_show_their_targets(tmp_path: Path) -> None:
    (tmp_path / "pears.md").write_text("Ripe.")
    (tmp_path / "a.md").write_text(
        "Set [](Basket.size) and [](py:pick), see [](pears.md) and [](https://a.example/?b=1).\n\n"
        "[](a.png)[](#b)[](javascript:;)"
    )
    source = MarkdownSourceConfig(
        kind="markdown", name="docs", path=tmp_path, page_url=("https://x.y/{path}",)
    )
    page, _ = read_source(source, SourceLimits())
    assert isinstance(page, SourceDocument)
    assert page.sections[0].body.split("\n\n")[0] == (
        "Set `Basket.size` and `py:pick`, see [`pears.md`](https://x.y/pears) and https://a.example/?b=1."
    )
    assert ".png" not in page.sections[0].body


def test_links_may_contain_parentheses(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("See [mine](./b_(1).md) now, and [that](c_(2).md).")
    (tmp_path / "b_(1).md").write_text("Body")
    source = MarkdownSourceConfig(
        kind="markdown", name="docs", path=tmp_path, page_url=("https://x.y/{path}",)
    )
    documents = read_source(source, SourceLimits())
    page = next(each for each in documents if isinstance(each, SourceDocument) and each.id == "a")
    assert page.sections[0].body == "See [mine](https://x.y/b_%281%29) now, and that."


@pytest.mark.parametrize("target", ["My%20Page.md", "<My Page.md>", '<My Page.md> "Title"'])
def test_links_may_name_pages_with_spaces(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.md").write_text(f"See [mine]({target}).")
    (tmp_path / "My Page.md").write_text("Body")
    source = MarkdownSourceConfig(
        kind="markdown", name="docs", path=tmp_path, page_url=("https://x.y/{path}",)
    )
    (page,) = [
        document
        for document in read_source(source, SourceLimits())
        if isinstance(document, SourceDocument) and document.id == "a"
    ]
    assert page.sections[0].body == "See [mine](https://x.y/My%20Page)."


DIRTY_PAGE = """# Topic {n}

:::note Mind
Limit &gt; {n}&nbsp;QPS, region us\\-east\\-{n}, ==important==.
:::

> [!WARNING]
> The field user\\_id{n}  is   <b>required</b>&nbsp;here.

!!! tip "Hint {n}"
    Use <Tooltip tip="x">the console</Tooltip> <!-- hidden -->.

<Tabs>
<Tab title="Python">Install&#160;it.</Tab>
</Tabs>

| Name | Text |
| --- | --- |
| a\\_{n} | one<br/>two <ul><li>x&nbsp;y</li></ul> |

<table><tr><th>Key</th><th>Value</th></tr><tr><td>k{n}</td><td><p>a &lt; b</p></td></tr></table>
"""
LEAKS = re.compile(
    r"&(?:nbsp|gt|lt|#160);|\\[-_]|:::|\[!|!!!|==|</?[a-zA-Z][^>`]*>|(?<=[^\s|])[ \t\u00a0]{2,}(?=[^\s|])"
)


@pytest.mark.acceptance
def test_no_markup_leaks_into_the_text_of_300_pages(tmp_path: Path) -> None:
    for n in range(300):
        page = DIRTY_PAGE.replace("{n}", str(n))
        (tmp_path / f"{n}.mdx").write_text(page, encoding="utf-8")
    source = MarkdownSourceConfig(kind="markdown", name="docs", path=tmp_path)
    documents = [d for d in read_source(source, SourceLimits()) if isinstance(d, SourceDocument)]
    chunks = [chunk for document in documents for chunk in chunk_document(document, 400)]
    assert len(documents) == 300
    assert [found[0] for chunk in chunks if (found := LEAKS.search(chunk.body))] == []


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (
            "```{admonition} **Ripe fruit**\n:class: warning\n:name: x\n\nPick it.\n```\n\nAfter",
            "**Ripe fruit**\n\nPick it.\n\nAfter",
        ),
        ("```{note}\n- A\n- B\n```\nAfter", "**Note**\n\n- A\n- B\n\nAfter"),
        (":::{seealso}\n{doc}`Baskets </baskets>`\n:::", "**See also**\n\nBaskets"),
        (":::{admonition} The `ripe` flag\nBody\n:::", "**The `ripe` flag**\n\nBody"),
        ("```{Caution}\nSour.\n```", "**Caution**\n\nSour."),
        ("```{versionadded} 2.1\nPears.\n```", "**Version added**\n\n2.1\nPears."),
        ("- A\n  ```{tip}\n  B\n  ```", "- A\n\n  **Tip**\n\n  B"),
        (
            "````{warning}\n```sh\n:a: b\n```\n````\n```{code-block} python\n:linenos:\nx\n```",
            "**Warning**\n\n```sh\n:a: b\n```\n\n```python\nx\n```",
        ),
        ("```{parsed-literal}\nGET /pears\n```", "```\nGET /pears\n```"),
        ("::::{tab-set}\n:::{tab-item} Pears\nA\n:::\n::::", "**Pears**\n\nA"),
        (":::{figure-md} pears\nRipe pears\n:::", "Ripe pears"),
        (
            "A\n\n```{toctree}\n:maxdepth: 2\npears\n```\n\n```{eval-rst}\n.. autoclass:: Pear\n```\n\n"
            "```{literalinclude} pears.py\n```\n\n:::{figure} a.png\n:alt: x\n\nPears\n:::\n\nB",
            "A\n\nPears\n\nB",
        ),
        ("(ripe-pears)=\n\n# Pears\n\nf(x)=\n(see above)", "# Pears\n\nf(x)=\n(see above)"),
        ("{ref}`picking` by {py:class}`~.Picker`", "`picking` by `Picker`"),
        (
            "(ripe)=\n(soft)=\n\n## Ripe *pears*\n\nSee {ref}`soft`, {ref}`b <soft>` and `[][ripe]`, [][ripe].",
            "## Ripe *pears*\n\nSee Ripe *pears*, b and `[][ripe]`, Ripe *pears*.",
        ),
        ("# How to: pick\n\nSee [](#how-to-pick).", "# How to: pick\n\nSee [How to: pick](#how-to-pick)."),
        ("`/a/{id}` or `b`, /a/{id}`c`", "`/a/{id}` or `b`, /a/{id}`c`"),
        ("```{note}\nA\n```\n\n% old\n% older\n\nB\n% of pears", "**Note**\n\nA\n\nB\n% of pears"),
        ("A\n\n% of pears", "A\n\n% of pears"),
        ("```{r}\nx\n```\n\n```{=mdx}\ny\n```", "```r\nx\n```\n\n```\ny\n```"),
    ],
)  # fmt: skip
def test_myst_directives_contain_prose(written: str, plain: str) -> None:
    lines = (line.rstrip() for line in to_plain_markdown(written).split("\n"))
    assert re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() == plain


def test_content_of_an_html_container_is_not_code() -> None:
    page = '<aside class="notice">\n\tNote: it is new.\n</aside>\n\n<div>\n\n    code\n\n</div>'
    assert to_plain_markdown(page).split("\n\n") == ["Note: it is new.", "    code"]


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (
            '| a | b |\n| --- | --- |\n| 1 | 2 |\n{: class="responsive-table"}\nText',
            "| a | b |\n| --- | --- |\n| 1 | 2 |\n\nText",
        ),
        ("{:.note}\nText\n\n# Keys\n{: #keys .no_toc }\n\n{:toc}", "Text\n\n# Keys"),
        ("```\n{: .note}\n<%= x %>\n```", "```\n{: .note}\n<%= x %>\n```"),
        ("{:name => 'x'}", "{:name => 'x'}"),
        ("a\n\n<%= render 'keys', id: 1 %>\n<% if a %> <% end %>\n\nb", "a\n\nb"),
        ("{{indexmenu_n>3}}\n\n# Keys\n\n{{page>notes:keys}}\n\nUse `{{a>b}}`.", "# Keys\n\nUse `{{a>b}}`."),
        (
            "[Keys](<%= keys_url %>), [a](https://a.example/<%= a %>/b), [b](<%= b('c', :d => 1) %>)",
            "Keys, a, b",
        ),
        ("`[Keys](<%= keys_url %>)`", "`[Keys](<%= keys_url %>)`"),
    ],
)  # fmt: skip
def test_attributes_and_insertions_are_removed(written: str, plain: str) -> None:
    assert to_plain_markdown(written) == plain


@pytest.mark.parametrize(
    "text", ["** " + "中 " * 10_000, "**" + " " * 20_000 + "中", "** 中" * 7_000]
)
def test_cleaning_loose_bold_text_is_not_quadratic(text: str) -> None:
    began = time.monotonic()
    clean_text(text)
    assert time.monotonic() - began < 1
