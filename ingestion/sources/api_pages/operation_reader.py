"""Reads what the headings, tables, lists, paragraphs and JSON examples of one API operation describe.

A table or list from which parameters, error codes or permissions were read is removed, together with its
label: the short text that announces it. All other blocks stay prose.
"""

import re
from collections.abc import Iterable, Sequence

from ingestion.sources.api_pages.builder import OperationBuilder, table_name
from ingestion.sources.api_pages.calls import MAX_CAPTION_CHARS, is_json_example
from ingestion.sources.api_pages.code_comments import commented_parameters
from ingestion.sources.api_pages.columns import Columns, is_identifier, text_of
from ingestion.sources.api_pages.errors import (
    are_status_items,
    errors_of_sentences,
    labelled_errors,
    listed_errors,
    titled_error,
)
from ingestion.sources.api_pages.labels import labelled_pairs, states_call
from ingestion.sources.api_pages.operation import PARAMETER_ROLES, PageOperation, Role
from ingestion.sources.api_pages.parameters import (
    LIST_ITEM,
    are_marked_fields,
    are_typed_fields,
    enumerated_parameters,
    listed_parameters,
)
from ingestion.sources.api_pages.permissions import (
    MAX_SENTENCE_CHARS,
    is_scope_label,
    scopes_in,
    scopes_of_facts,
    scopes_of_sentences,
    scopes_of_value,
)
from ingestion.sources.api_pages.roles import MAX_TITLE_CHARS, location_of, role_of_title
from ingestion.sources.api_pages.structures import ParameterTable, caption_of
from ingestion.sources.api_pages.tables import TableReader
from ingestion.text.markdown_blocks import MarkdownBlock, parse_list_items, parse_table

_BOLD_TITLE = re.compile(r"\*\*([^*\n]{1,80})\*\*(?=\s|$)")
_CODE_TITLE = re.compile(r"(`[^`\s]{1,80}`)")
_LABELLED_NAMES = re.compile(r"(?:(?P<label>[^`:：\n]{1,24})[:：]\s*)?(?P<names>`.*)", re.DOTALL)
"""Names in code, possibly after a label such as "Query:"."""
_ANNOUNCED_CODES = re.compile(
    r"\b(?:one of|following|these)\b[^.]{0,40}\b(?:values|codes|errors|reasons|strings)\b",
    re.IGNORECASE,
)
"""The end of a sentence that announces codes: "... the `error` field has one of these values:"."""
_NO_REQUEST = re.compile(
    r"\b(?:objects?|attributes?|models?|resources?|options?|environment|config\w*|variables?|settings?"
    r"|events?|payload)\b|对象|实体|属性|配置|环境|选项|变量|事件",
    re.IGNORECASE,
)
"""A text that announces the fields of something other than a request."""
_LIST_ITEM = re.compile(r"(?P<indent>\s*)[-*+]\s+(?=\S)")
_LABEL_AT_END = re.compile(r"(?:^|\n)[ \t]*[-*+][ \t]+\*\*[^*\n]{1,40}\*\*[:：]?\s*\Z")
"""The last item of a list, if the item is only a bold label."""
_STATEMENT = re.compile(r"[:：]\s*\S|[.。!！]$")
"""Matches an item that states something. Such an item does not announce the next block."""
_DEFINITION = re.compile(r"^: +(?=[`*])", re.MULTILINE)
"""The start of a definition, in Markdown dialects with definition lists."""


class OperationReader:
    """Reads the blocks of an operation.

    `read` returns the tables of parameters. It adds error codes, permissions and prose to the operation.
    """

    def __init__(self, operation: PageOperation) -> None:
        self._builder = OperationBuilder(operation)
        self._above = self._builder.above
        self._table_reader = TableReader(self._builder)
        self._is_after_parameter = False
        """Whether a paragraph has described a parameter since the last heading or label."""
        self._sample = ""
        """The block right above the current one if it is a JSON example; otherwise empty."""
        self._commented: dict[Role, ParameterTable] = {}
        """The fields of the first JSON example with comments, by role."""

    @property
    def read_positions(self) -> list[int]:
        """Indexes on the page of the blocks from which parameters or error codes were read."""
        return self._builder.read_positions

    def read(self, blocks: Sequence[MarkdownBlock], first: int) -> list[ParameterTable]:
        """Read `blocks`, and return their parameters as tables.

        `first` is the index of `blocks[0]` on the page.
        """
        for position, block in enumerate(blocks, first):
            self._builder.position = position
            above = blocks[position - first - 1 : position - first]
            self._sample = above[0].text if any(map(is_json_example, above)) else ""
            if block.kind == "heading":
                self._above.note_heading(block.level, block.title)
                self._is_after_parameter = False
                self._builder.note_status(None)
                self._add_titled_error(block.title)
            elif self._add_table_or_list(block):
                self._above.end_announcement()
                if position > first:
                    self._drop_label(blocks[position - first - 1])
                continue
            elif self._add_described_error(block):
                pass  # the label above this block also announces the next error
            elif block.kind == "paragraph" and self._add_paragraph(block):
                self._above.end_announcement()
            elif block.kind != "table":
                self._read_text(block)
            self._builder.operation.prose.append(block)
        self._builder.operation.prose = _without_empty_titles(self._builder.operation.prose)
        self._add_commented_examples()
        return self._builder.tables

    def _drop_label(self, block: MarkdownBlock) -> None:
        """Remove from the prose the label of the table or list that was just read.

        `block` is the block before the table or list. If `block` is a list itself, its last item may be the
        label.
        """
        prose = self._builder.operation.prose
        if is_title(block):
            del prose[-1:]
        elif block.kind == "list" and prose[-1:] == [block]:
            text = _LABEL_AT_END.sub("", block.text).rstrip()
            prose[-1:] = [MarkdownBlock("list", text)] if text else []

    def _note_commented_example(self, block: MarkdownBlock) -> None:
        """Remember the fields of a JSON example with comments. The example stays prose."""
        role = self._above.role()
        if role not in ("request", "response") or role in self._commented:
            return
        location = self._above.location(role) or ("body" if role == "request" else "")
        if found := commented_parameters(block.text, location):
            texts, position = tuple(self._above.texts()), self._builder.position
            self._commented[role] = ParameterTable(found, role, texts, True, position)

    def _add_commented_examples(self) -> None:
        """Add the fields of examples with comments, unless a table or list of the same role was read."""
        described = {table.role or "request" for table in self._builder.tables}
        for role, table in self._commented.items():
            if role not in described:
                self._builder.add_table(table, "example with comments")

    def _read_text(self, block: MarkdownBlock) -> None:
        """Add the permissions and errors that a block names. Note the block if it labels the next block.

        In a code block, only the fields of a JSON example with comments are read.
        """
        if block.kind == "fence":
            self._note_commented_example(block)
            return
        text = text_of(block.text)
        is_about_permissions = self._above.role() == "permissions"
        is_sentence = text.endswith((".", "。", "!", "！")) or re.search(r"[:：]\s*\S", text)
        stated = scopes_of_sentences(block.text)
        is_short = block.kind == "paragraph" and len(text) <= _max_label_chars(text)
        pairs = labelled_pairs(block)
        labelled = [(k, v) for k, v in pairs if is_scope_label(k)]
        errors = [e for k, v in pairs if role_of_title(k) == "errors" for e in labelled_errors(v)]
        is_about_errors = self._above.role() == "errors"
        errors += errors_of_sentences(block.text, is_about_errors=is_about_errors)
        self._builder.add_errors(errors, "text")
        # A paragraph such as "Scope `a:b`" states a permission and does not announce the next block.
        states_something = is_sentence or stated or labelled
        can_be_label = is_title(block) or not self._is_after_parameter
        is_label = is_short and can_be_label and not states_something
        self._is_after_parameter &= not is_label
        self._above.note_label(text if is_label else "")
        for label in _final_labels(block) if block.kind == "list" else ():
            self._above.note_label(label)
        if labelled:
            self._builder.add_permissions(
                [scope for _, v in labelled for scope in scopes_of_value(v)]
            )
        elif is_about_permissions:
            named = scopes_of_value(block.text)
            if is_sentence and not self._above.is_label_of_permissions():
                # Below "Check the permissions of a repository", it may be about something else.
                named = stated or [scope for scope in named if ":" in scope.name]
            self._builder.add_permissions(named)
        elif self._above.is_about_login():
            self._builder.add_permissions(scopes_of_facts("", block.text) or stated)
        else:
            self._builder.add_permissions(stated)

    def _add_table_or_list(self, block: MarkdownBlock) -> bool:
        """Read a table or list. Return False if it stays prose, or if the block is something else."""
        if block.kind == "list":
            return self._add_list(block)
        rows = parse_table(block.text) if block.kind == "table" else []
        is_read = bool(rows) and not self._above.is_about_notifications()
        is_added = is_read and self._table_reader.read(rows[0], rows[1:])
        if rows and not is_added:
            self._builder.add_evidence(table_name(rows[0]), "stays prose")
        return is_added

    def _add_titled_error(self, title: str, about: str = "") -> bool:
        """Add the error in a heading, or in a title in bold or code, such as "404 — order_not_found".

        `about` is the text after a bold title. Returns False if the title contains no error.
        """
        role = self._above.role()
        is_status = role in ("response", "") and are_status_items([title])
        text = f"{title} – {about}" if about else title
        found = titled_error(text) if role == "errors" or is_status else None
        code = found.code if found else text_of(title)
        is_code = found or (is_identifier(code) and code[0].islower() and not role_of_title(code))
        if role == "errors" and not about and is_code:
            self._builder.note_error_title(code)
        if found is None:
            return False
        self._builder.note_status(None)
        self._builder.add_errors([found], "title")
        self._builder.note_status(None if about else found)
        return True

    def _add_described_error(self, block: MarkdownBlock) -> bool:
        """Add the error in a paragraph such as "**404 — order_not_found** No such order.".

        Returns False if the paragraph describes no error.
        """
        title = _BOLD_TITLE.match(block.text) if block.kind == "paragraph" else None
        if title is None or not (about := text_of(block.text[title.end() :])):
            return False
        if are_status_items([title[1]]) and self._builder.describe_error(
            listed_errors([block.text])
        ):
            return True
        return self._add_titled_error(title[1], about)

    def _add_paragraph(self, block: MarkdownBlock) -> bool:
        """Add what a paragraph describes. The paragraph stays prose.

        A paragraph can describe:

        - An error.
        - A parameter: "**name** string Required".
        - Several parameters: lines such as ": `name` string" below a paragraph such as "Body".
        - Parameters without a description: "Query: `limit`, `cursor`."

        Returns False if the paragraph may be a label for the next block, such as the title of an error.
        """
        if title := _BOLD_TITLE.match(block.text) or _CODE_TITLE.fullmatch(block.text):
            self._add_titled_error(title[1])
        elif self._above.role() in ("errors", "response") and are_status_items([block.text]):
            errors = listed_errors([block.text])
            is_described = self._builder.describe_error(errors)
            return is_described or self._builder.add_errors(errors, "paragraph")
        if match := _LABELLED_NAMES.match(block.text):
            location = (
                location_of(match["label"]) if match["label"] else self._above.announced_location()
            )
            if location and (found := enumerated_parameters(match["names"], location)):
                return self._builder.add_parameters(found, "request", Columns({}), "paragraph")
        role, location = self._above.role_and_location()
        text, count = _DEFINITION.subn("- ", block.text)
        is_list = count > 0 and text.startswith("- ")
        if role not in PARAMETER_ROLES or not (is_list or text.startswith(("**", "`"))):
            return False
        items = text if is_list else f"- {block.text}"
        found = listed_parameters(items, location, is_required=self._above.says_required())
        self._is_after_parameter |= bool(found)
        return self._builder.add_parameters(found, role, Columns({}), "paragraph")

    def _add_list(self, block: MarkdownBlock) -> bool:
        """Add what a list states. Usually, the text above the list announces its content.

        Returns False if the list stays prose. A list of the method and the URL contains no parameters.
        """
        role, items = self._above.role(), parse_list_items(block.text)
        if states_call(block) and not any(are_typed_fields([item]) for item in items):
            return False
        if role == "permissions":
            return self._builder.add_permissions(scopes_in(block.text))
        if role == "errors" and self._names_fields_of_sample(items):
            return False  # the fields of an error response
        if role == "errors" or (role in ("response", "") and are_status_items(items)):
            errors = () if are_typed_fields(items) else listed_errors(items)
            return self._builder.add_errors(errors, "list")
        text = next(iter(self._above.texts()), "")
        if not role and are_marked_fields(items) and not _NO_REQUEST.search(text):
            role = "request"
        if not role:
            return False
        is_announced = self._above.is_announced() or self._is_after_parameter
        found = listed_parameters(
            block.text,
            self._above.location(role),
            is_announced=is_announced,
            is_named=self._above.names_parameters(),
            is_required=None if self._is_after_parameter else self._above.says_required(),
        )
        if self._is_after_parameter and self._builder.add_children(found):
            return True
        return self._builder.add_parameters(found, role, Columns({}), "list")

    def _names_fields_of_sample(self, items: Sequence[str]) -> bool:
        """Return whether each item begins with the name of a field in the JSON example above the list."""
        names = [text_of(match["name"]) for match in map(LIST_ITEM.match, items) if match]
        return (
            bool(names)
            and len(names) == len(items)
            and all(re.search(rf'"{re.escape(name)}"\s*:', self._sample) for name in names)
        )


def _final_labels(block: MarkdownBlock) -> list[str]:
    """Return the items at the end of a list that announce the next block, the outermost first.

    Exports of GitBook put tables into nested lists. There, the last item and the items that contain it are
    labels, such as "Request" and "Body".
    """
    items: list[tuple[int, str]] = []
    for line in block.text.splitlines():
        if match := _LIST_ITEM.match(line):
            while items and items[-1][0] >= len(match["indent"]):
                items.pop()
            items.append((len(match["indent"]), text_of(line[match.end() :])))
    labels = [
        text for _, text in items if len(text) <= MAX_CAPTION_CHARS and not _STATEMENT.search(text)
    ]
    return labels if any(role_of_title(text) or caption_of(text).name for text in labels) else []


def _max_label_chars(text: str) -> int:
    """Return the number of characters up to which `text` counts as a label.

    Sentences that announce permissions or error codes may be longer than other labels.
    """
    role = role_of_title(text) if text.endswith((":", "：")) else ""
    is_long = role == "permissions" or (role == "errors" and _ANNOUNCED_CODES.search(text))
    return MAX_SENTENCE_CHARS if is_long else MAX_CAPTION_CHARS


def is_title(block: MarkdownBlock) -> bool:
    """Return whether a block is only a short bold text."""
    return _BOLD_TITLE.fullmatch(block.text.strip(" :：\n")) is not None


def _without_empty_titles(blocks: Iterable[MarkdownBlock]) -> list[MarkdownBlock]:
    """Return the blocks without the headings of empty sections, and without labels that label nothing.

    A label is a short bold title with a role, such as "Error codes".
    """
    kept: list[MarkdownBlock] = []
    for block in reversed(list(blocks)):
        is_label = is_title(block) and _is_label_with_role(text_of(block.text))
        is_above_heading = kept and kept[-1].kind == "heading"
        is_empty = not kept or (is_above_heading and (is_label or kept[-1].level <= block.level))
        if not (block.kind == "heading" or is_label) or not is_empty:
            kept.append(block)
    return kept[::-1]


def _is_label_with_role(text: str) -> bool:
    is_short = len(text) <= MAX_TITLE_CHARS and not _STATEMENT.search(text)
    return is_short and bool(role_of_title(text))
