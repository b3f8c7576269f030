"""Reads folders of Markdown pages (.md, .mdx), with or without front matter.

Relative links become links to the URLs of the linked pages. Components of MDX pages that describe a field
of a request or response, such as `<ParamField>`, become rows of tables. The rows of fields that are
nested in a field follow its row, with indented names.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import frontmatter
import yaml
from frontmatter.default_handlers import BaseHandler

from ingestion.sources.api_docs import mark_deprecated
from ingestion.sources.folder import (
    MARKDOWN_SUFFIXES,
    PageValues,
    page_url,
    path_values,
    read_text,
)
from ingestion.sources.mdx_imports import included_files, insert_imports, without_partials
from ingestion.sources.page_components import convert_lists_to_tables, replace_gitbook_tags
from ingestion.sources.pages import PageContent, PageFolderReader, PagePart
from ingestion.sources.readme_blocks import replace_magic_blocks
from ingestion.text.clean_markdown import inline_links, to_plain_markdown
from ingestion.text.components import (
    ATTRIBUTES,
    attributes_of,
    parse_object_literal,
    properties_of,
    text_of_expression,
)
from ingestion.text.language import detect_language
from ingestion.text.markdown_blocks import cell_text, escape_borders, markdown_table, nesting_indent
from prompts.user_text import user_text
from schemas.errors import SourceError
from schemas.platform import MarkdownSourceConfig, PageFolderConfig, SourceLimits

MAX_NESTING = 20
"""Maximum depth of a field's indentation. Tags that are never closed would indent fields without limit."""

_LINK = re.compile(
    r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]"
    r"\(\s*<?((?<=<)[^<>\n]+(?=>)|(?:[^()\s>]|\([^()\s]*\))+)>?(?:\s+[\"'][^)]*)?\)"
)
"""A Markdown link, with its label and its target.

Only a target in angle brackets may contain spaces. Parentheses in a target must be in pairs.
"""
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
"""Matches the start of a link's target that is not a relative path: a scheme, `//` or `#`."""
_NAMED_TARGET = re.compile(
    r"(?!.*\.(?:png|jpe?g|gif|svg|webp|bmp)$)(?:https?://\S+|[\w./:-]*\w)", re.IGNORECASE
)
"""A target that can be shown as the text of a link without a label.

It is a URL, a path, or a name such as `py:list`, but not the URL or path of an image.
"""
_PERMALINK = re.compile(r"[#¶§\u200b]?")
"""The label of a link from a heading to itself. Such links are removed later."""
_LINK_ENDINGS = (".md", ".mdx", "/index.md", "/index.mdx", "/README.md", "/_index.md")
"""Ends of file paths that the target of a link may leave out."""
_CONTENTS_NAME = "summary"
"""Name of the file with the table of contents of GitBook, mdBook and HonKit."""
_CONTENTS_LINE = re.compile(
    r"\s*+(?:#{1,6}\s.*|(?:(?:[-*+]|\d+[.)])\s+)?\[.*\]\(.*\)\s*|-{3,}\s*)?"
)
"""A line of a table of contents: blank, a heading, a link, an item that is a link, or a thematic break."""
_PLACEHOLDER = re.compile(r"\{(\w+)")
_PATH_PLACEHOLDERS = {"path", "page_path", "folder", "stem", "suffix", "anchor"}
"""Placeholders of `page_url` templates whose values do not come from front matter."""
_COMPONENT = re.compile(
    rf"<(?P<closing>/?)(?P<tag>[A-Z][\w.]*)(?P<attributes>{ATTRIBUTES})\s*(?P<empty>/?)>"
)
"""A tag of a component in a page: `<Name ...>`, `<Name ... />` or `</Name>`."""
_FIELD_TAG = re.compile(r"(?:\w*[a-z])?(?:Field|Param|Parameter|Prop|Property|Attribute)")
"""The name of a component that always describes a field, such as `ParamField`."""
_TYPE_NAMES = ("type", "schemaName", "dataType", "datatype", "format", "schema")
"""Attributes that may contain the type of a field."""
_FIELD_ATTRIBUTES = ("name=", "param=", "path=", "query=", "body=", "header=", "={{")
"""A page without any of these texts is not searched for components that describe fields."""
_COLLAPSED = re.compile(
    rf"<(?P<tag>[A-Z][\w.]*){ATTRIBUTES}\s*>\s*<details{ATTRIBUTES}\s*>\s*"
    r"<summary>(?P<summary>(?:(?!</summary>).){1,1000})</summary>",
    re.DOTALL,
)
"""The start of a component with a `<details>` element, whose summary may describe a field."""
_ELEMENT_TEXT = re.compile(r">\s*([^<>]+?)\s*<")
"""The text between two tags in a summary."""
_FIELD_NAME = re.compile(r"[A-Za-z_$@][\w.$@\[\]-]*")
_GROUP_TAGS = ("Expandable", "Properties")
"""Components that only contain the fields of an object. Their tags are removed."""
_TAG = re.compile(r"</?[a-z][\w.]*\s*/?>|</[A-Z][\w.]*\s*>")
"""An HTML tag without attributes, or the closing tag of a component."""
_CODE = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
"""A fenced code block, or a code span."""
_LOCATIONS = ("path", "query", "body", "header")
"""Attributes such as `query="limit"`, which contain the name of a field and say where it is sent."""
_UNOPENED = re.compile(
    r"(?=(?:\S.*\n){0,20}title:)(?:[A-Za-z][\w-]*:.*\n|[ \t]+\S.*\n|- .*\n)+-{3,}[ \t]*\n"
)
"""Front matter without a line of hyphens above it, as Hexo allows. It must contain a `title`."""


class _TomlHandler(BaseHandler):
    """TOML between lines of `+++`, as in Hugo. The handler of `frontmatter` needs another package."""

    FM_BOUNDARY = re.compile(r"^\+{3,}\s*$", re.MULTILINE)

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        return tomllib.loads(fm)


_HANDLERS = [*frontmatter.handlers, _TomlHandler()]


def _convert_table(html: str) -> str:
    # Imported here: most sources have no HTML tables, and the parser takes half a second to load.
    from ingestion.sources.formats.html_markdown import table_to_markdown

    return table_to_markdown(html)


def read_content(source: MarkdownSourceConfig, _limits: SourceLimits, path: Path) -> PageContent:
    """Return the front matter and the plain Markdown of a page.

    If the page is a table of contents, the `parts` of the result are empty. Otherwise, the text of the
    Markdown files that the page imports is inserted.

    Raises SourceError if the file is unreadable, its front matter is malformed, or it contains HTML that
    exceeds a limit.
    """
    values, body = _split_front_matter(read_text(path))
    if path.stem.lower() == _CONTENTS_NAME and _is_contents(body):
        return PageContent(values, [], "markdown")
    links = LinkResolver(source, _front_matter)

    def read_body(file: Path) -> str:
        text = body if file == path else _split_front_matter(read_text(file))[1]
        return links.resolve(inline_links(replace_magic_blocks(text)), file, path)

    return _content(values, insert_imports(path, source.path, read_body))


def _is_contents(body: str) -> bool:
    """Return whether a page contains only headings and links."""
    return all(map(_CONTENTS_LINE.fullmatch, body.split("\n")))


def markdown_content(text: str) -> PageContent:
    """Return the front matter and the plain Markdown of a downloaded or converted page.

    A relative link to another page is replaced by its label. Raises SourceError if the front matter is
    malformed or the page contains HTML that exceeds a limit.
    """
    values, body = _split_front_matter(text)
    body = inline_links(replace_magic_blocks(body))
    body = _LINK.sub(_without_relative_link, body)
    return _content(values, body)


def _content(values: PageValues, body: str) -> PageContent:
    plain = to_plain_markdown(
        convert_fields_to_tables(convert_lists_to_tables(replace_gitbook_tags(body))),
        _convert_table,
    )
    return PageContent(_normalised(values), [PagePart(plain)], "markdown")


def _front_matter(path: Path) -> PageValues:
    return _normalised(_split_front_matter(read_text(path))[0])


def _normalised(values: PageValues) -> PageValues:
    """Return `values` without the outer slashes of `slug`, because URL templates contain the slashes.

    The home page has a `slug` of only slashes, which becomes "/".
    """
    slug = values.get("slug")
    if not isinstance(slug, str):
        return values
    return {**values, "slug": slug.strip("/") or slug[:1]}


def _split_front_matter(text: str) -> tuple[PageValues, str]:
    """Return the front matter and the body of a page.

    If the page begins with a thematic break but has no front matter, the whole page is the body. Raises
    SourceError if the front matter is malformed.
    """
    original, text = text, text.strip()
    if _UNOPENED.match(text):
        text = f"---\n{text}"
    handler = frontmatter.detect_format(text, _HANDLERS)
    if handler is None:
        return {}, text
    try:
        head, body = handler.split(text)
    except ValueError:  # the front matter is never closed
        return {}, text
    try:
        values = handler.load(head) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = getattr(error, "problem", None) or str(error)
        if mark := getattr(error, "problem_mark", None):
            problem = f"{problem} (line {_first_line(original, head) + mark.line})"
        raise SourceError(f"front matter: {problem}") from None
    return (values, body.strip()) if isinstance(values, dict) else ({}, text)


def _first_line(text: str, head: str) -> int:
    """Return the number of the line in `text` on which the front matter `head` begins."""
    content = head.strip()
    before = head.count("\n", 0, head.find(content))
    return 1 + text.count("\n", 0, text.find(content)) - before


def _without_relative_link(link: re.Match[str]) -> str:
    """Return an absolute link or a link to a section unchanged, and a relative link as its label.

    A link without a label is replaced by its visible target (see `_visible_target`). If it has none, a
    relative link is removed, and any other link is unchanged.
    """
    text = link[1] or _visible_target(link[2])
    return link[0] if _SCHEME.match(link[2]) and (link[1] or not text) else text


def _visible_target(target: str) -> str:
    """Return the text of a link without a label, such as `[](paging)` in MyST: its target.

    The result is empty if the target is an image, a section of the page, or a script.
    """
    if not _NAMED_TARGET.fullmatch(target):
        return ""
    return target if "://" in target else f"`{target}`"


class LinkResolver:
    """Resolves links within one source. `front_matter` returns the values of a page's front matter."""

    def __init__(
        self, source: PageFolderConfig, front_matter: Callable[[Path], PageValues]
    ) -> None:
        self._source = source
        self._front_matter = front_matter
        self._folder = f"{source.path}{os.sep}"
        names = {name for template in source.page_url for name in _PLACEHOLDER.findall(template)}
        self._needs_front_matter = not names <= _PATH_PLACEHOLDERS
        self._urls: dict[Path, str] = {}
        """Cache of the URLs of linked pages, because pages often have many links to one page."""

    def resolve(self, markdown: str, path: Path, page: Path) -> str:
        """Return `markdown` with relative links to pages replaced by links to the URLs of the pages.

        `markdown` is the text of the file at `path`, which is `page` or a file that `page` imports. Links
        such as `#setup` lead to `page`. A relative link to a page that does not exist or has no URL is
        replaced by its label. Absolute links are unchanged.
        """
        if "](" not in markdown:
            return markdown
        return _LINK.sub(lambda match: self._link(match, path, page), markdown)

    def _link(self, match: re.Match[str], path: Path, page: Path) -> str:
        label, target = match[1] or _visible_target(match[2]), match[2]
        leads_to_section = target.startswith("#") and not _PERMALINK.fullmatch(label)
        if _SCHEME.match(target) and not leads_to_section:
            return _without_relative_link(match)
        url = self._url(target, path, page)
        return f"[{label}]({url})" if url else label

    def _url(self, target: str, path: Path, page: Path) -> str:
        address, hash_mark, fragment = target.partition("#")
        address = re.sub(r"\.html?$", "", address.partition("?")[0])
        linked = self._page(address, path) if address else page
        if linked is None:
            return ""
        if linked not in self._urls:
            self._urls[linked] = self._page_url(linked)
        url = self._urls[linked]
        return f"{url}{hash_mark}{fragment}" if url else ""

    def _page_url(self, page: Path) -> str:
        """Return the URL of a page; empty if it has none."""
        try:
            front_matter = self._front_matter(page) if self._needs_front_matter else {}
        except SourceError:
            return ""
        values = {**front_matter, **path_values(page, self._source.path)}
        return page_url(self._source.page_url, values)

    def _page(self, address: str, path: Path) -> Path | None:
        """Return the file that `address` names, relative to the page at `path`; None if there is none.

        An address may be percent-encoded. If it begins with `/`, it is relative to the source's folder.
        """
        base = self._source.path if address.startswith("/") else path.parent
        target = os.path.normpath(base / unquote(address).strip("/"))
        if not target.startswith(self._folder):
            return None
        ends = ("",) if target.endswith((".md", ".mdx")) else _LINK_ENDINGS
        files = (target + end for end in ends)
        found = next(filter(os.path.isfile, files), None)
        return Path(found) if found else None


@dataclass
class _Field:
    tag: str
    values: Mapping[str, str]
    """Properties of the field, such as `type`, from the component's attributes and the objects in them."""
    location: str
    """Where the field is sent, such as `query`; empty if it is unknown."""
    depth: int
    """Number of fields that contain this one."""
    text: list[str] = field(default_factory=list)
    """The text inside the component, in parts."""

    @property
    def name(self) -> str:
        return self.values.get("name") or self.values.get(self.location, "")

    @property
    def column_title(self) -> str:
        """The title of the column with the field's name, such as `Header` or `Request parameter`."""
        if self.location == "header":
            return "Header"
        if self.tag.startswith("Response"):
            return "Response field"
        is_request = bool(self.location) or self.tag.startswith(("Param", "Request"))
        return "Request parameter" if is_request else "Name"


def convert_fields_to_tables(text: str) -> str:
    """Return `text` with tables instead of the components that describe fields.

    Consecutive components become one table per kind of field, such as headers or response fields. The text
    in a component describes the component's field. The text outside the components is unchanged.
    """
    may_have_fields = any(name in text for name in _FIELD_ATTRIBUTES)
    if not may_have_fields or not _COMPONENT.search(text):
        return text
    return _FieldReplacer(_COLLAPSED.sub(_expanded, text)).replace()


def _expanded(match: re.Match[str]) -> str:
    """Return the replacement for a match of `_COLLAPSED`: an opening tag with the field in its summary.

    For `<SchemaItem><details><summary><strong>id</strong><span>string</span></summary>`, the result is
    `<SchemaItem name="id" type="string">`. Docusaurus OpenAPI, a documentation generator, describes fields
    in such summaries. If the summary is only a title, the match is returned unchanged.
    """
    name, *others = _ELEMENT_TEXT.findall(f">{match['summary']}<") or [""]
    if not others or not _FIELD_NAME.fullmatch(name):
        return match[0]
    kind = next((text for text in others if text != "required"), "object")
    required = " required={true}" if "required" in others else ""
    return f'<{match["tag"]} name="{name}" type="{kind}"{required}>'


class _FieldReplacer:
    """Puts tables in place of the components of a page that describe fields."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parts: list[str] = []
        self._pending_fields: list[_Field] = []
        """The fields of consecutive components, which are not in a table yet."""
        self._open: list[_Field] = []
        """The first field of each component whose closing tag has not been reached, outermost first."""

    def replace(self) -> str:
        done = 0
        for match in self._tags():
            depth = min(len(self._open), MAX_NESTING)
            found = [] if match["closing"] else _parse_fields(match, depth)
            is_end = bool(match["closing"] and self._open and match["tag"] == self._open[-1].tag)
            if not found and not is_end and match["tag"] not in _GROUP_TAGS:
                continue
            self._add_text(self._text[done : match.start()])
            done = match.end()
            if found:
                self._pending_fields += found
                self._open += [] if match["empty"] else found[:1]
            elif is_end:
                self._open.pop()
        return "".join([*self._parts, *_field_tables(self._pending_fields), self._text[done:]])

    def _tags(self) -> Iterator[re.Match[str]]:
        """Yield the tags of components outside code."""
        code = [match.span() for match in _CODE.finditer(self._text)]
        for match in _COMPONENT.finditer(self._text):
            if not any(start <= match.start() < end for start, end in code):
                yield match

    def _add_text(self, text: str) -> None:
        """Add the text between two components.

        Inside a field, the text becomes part of the field's description. Elsewhere, it follows a table of
        the pending fields. Text that consists only of tags is dropped, so that it does not split a table.
        """
        if self._open:
            self._open[-1].text.append(text)
        elif _TAG.sub("", text).strip():
            self._parts += [*_field_tables(self._pending_fields), text]
            self._pending_fields = []


def _parse_fields(match: re.Match[str], depth: int) -> list[_Field]:
    """Return the fields that a component describes: a single one, or those in its attributes.

    The list is empty if the component describes no field.
    """
    attributes = attributes_of(match["attributes"])
    if field_of_component := _parse_field(match["tag"], attributes, depth):
        return [field_of_component]
    return [
        _Field(match["tag"], {**values, "name": name}, "", depth)
        for attribute in attributes.values()
        for name, values in _fields_of_object(attribute).items()
    ]


def _fields_of_object(text: str) -> Mapping[str, Mapping[str, str]]:
    """Return the fields that an object literal describes: the properties of each field, by field name.

    For `{ id: { type: 'string', required: true } }`, the field is `id`. Fumadocs writes such literals in
    `<TypeTable type={...} />`. The result is empty if a field has no `type`.
    """
    fields = {name: properties_of(value) for name, value in properties_of(text).items()}
    if not all("type" in values for values in fields.values()):
        return {}
    return {
        name: {key: text_of_expression(value) for key, value in values.items()}
        for name, values in fields.items()
    }


def _parse_field(tag: str, attributes: Mapping[str, str], depth: int) -> _Field | None:
    """Return the field that a component with these attributes describes; None if it describes none.

    A component describes a field if its tag says so, such as `ParamField`, or if it has a `name` together
    with a type or `required`.
    """
    objects = [found for value in attributes.values() if (found := parse_object_literal(value))]
    values = dict(attributes)
    for found in [*objects, *(o["schema"] for o in objects if isinstance(o.get("schema"), dict))]:
        for key, value in found.items():
            if isinstance(value, str | int | float | bool):
                values.setdefault(key, str(value))
    location = next((name for name in _LOCATIONS if name in values), values.get("in", ""))
    is_typed = "required" in values or any(name in values for name in _TYPE_NAMES)
    if not _FIELD_TAG.fullmatch(tag) and not ("name" in values and is_typed):
        return None
    return _Field(tag, values, location, depth)


def _field_tables(fields: Sequence[_Field]) -> Iterator[str]:
    """Yield a table per kind of field, such as headers, request parameters and response fields."""
    groups: dict[str, list[_Field]] = {}
    title = ""
    for found in fields:
        title = found.column_title if found.depth == 0 else title
        groups.setdefault(title, []).append(found)
    for title, group in groups.items():
        states_required = title not in ("Name", "Response field") or any(
            "required" in found.values for found in group
        )
        columns = [title, "Type", *(["Required"] if states_required else [])]
        header = [*columns, "Description", "Default", "In"]
        rows = (_field_row(found, states_required) for found in group if found.name)
        yield f"\n\n{markdown_table([header, *rows])}\n\n"


def _field_row(found: _Field, states_required: bool) -> list[str]:
    values = found.values
    kind = next((values[key] for key in _TYPE_NAMES if values.get(key)), "")
    about = "".join(found.text).strip() or values.get("description", "")
    if values.get("deprecated", "").lower() == "true":
        about = mark_deprecated(about, user_text(detect_language(about)).api_document)
    required = "yes" if values.get("required", "").lower() == "true" else "no"
    cells = (
        nesting_indent(found.depth) + found.name,
        "" if kind.startswith("{") else " ".join(kind.split()),
        *((required,) if states_required else ()),
        cell_text(about),
        " ".join(values.get("default", "").split()),
        found.location,
    )
    return list(map(escape_borders, cells))


class MarkdownReader(PageFolderReader[MarkdownSourceConfig]):
    """A PageFolderReader for Markdown pages, which may import other files below the source's folder."""

    def _list_source_files(self, source: MarkdownSourceConfig) -> list[Path]:
        files = super()._list_source_files(source)
        return without_partials(files, source.path) or files

    def _included_files(self, source: MarkdownSourceConfig, path: Path) -> list[Path]:
        return included_files(path, source.path)


READER = MarkdownReader(lambda _: MARKDOWN_SUFFIXES, read_content)
