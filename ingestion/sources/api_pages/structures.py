"""Nests structures below the parameters that refer to them.

A structure is a table of its own that describes the fields of an object. Its caption contains the name of
the structure ("Address object"), the name of the parameter ("表 4 address 字段数据结构说明") or a number
("Table 4"). A parameter refers to a structure by its type ("Array of Address objects"), in its description
("see Table 4") or by its own name.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ingestion.sources.api_pages.operation import PageOperation, Role
from ingestion.sources.api_pages.parameters import SIMPLE_TYPE, dimensions_of, is_simple_type
from schemas.document import Parameter

_NUMBER = re.compile(r"(?:表|\btable)\s*(\d+(?:[-.]\d+)*)", re.IGNORECASE)
_SECTION_NUMBER = re.compile(r"^\d+(?:\.\d+)*[.、)）]?\s")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*(?:(?:\[\w*\])?\.[A-Za-z_$][\w$-]*)*", re.ASCII)
_NO_NAME = re.compile(
    r"an?|and|are|below|these|those|its|contains?|each|following|for|has|have|in|includes?|is|of|the|with|where"
    r"|requests?|responses?|returns?|body|query|path|ur[li]|headers?|inputs?|outputs?|errors?|json|form"
    r"|(?:(?:sub|child|nested|inner)-?)?(?:param(?:eter)?|field|attribute|propert(?:y|ie)|object)s?"
    r"|sub|child|children|nested|inner|(?:structure|struct|schema|model|definition)s?"
    r"|descriptions?|details?|tables?|common|public",
    re.IGNORECASE,
)
"""Words in a caption that are not the name of a structure."""
_COMMON_WORD = re.compile(
    r"(?:object|array|list|type|item|element|entr(?:y|ie)|map|data|info|value|member)s?",
    re.IGNORECASE,
)
"""Words that name a structure only if no other word in its caption can be a name.

In the type of a parameter, such as `array of objects`, they refer to no structure.
"""
_STRUCTURE_WORD = re.compile(
    r"结构|对象|类型|模型|\b(?:structures?|structs?|objects?|types?|schemas?|models?|definitions?|resources?)\b",
    re.IGNORECASE,
)
_SEE = re.compile(
    r"(?:参见|参考|参阅|参照|详见|请见|见|(?<![a-z])(?:see|refer to|described in|defined in))"
    r"([^。；;]{1,60})",
    re.IGNORECASE,
)
_LINK_TARGET = re.compile(r"\]\([^()\s]*\)")


def normal_name(name: str) -> str:
    """Return a name in lower case, without indexes and separators: `userid` for `userId` and `user_id`."""
    return re.sub(r"\[\w*\]|[_$-]", "", name).casefold()


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


@dataclass(frozen=True)
class Caption:
    """What the text above a table says about the structure in it."""

    name: str
    """Name of the structure or of the parameter, as `normal_name` returns it; empty if there is none."""
    number: str
    """Number of the table, such as `4` or `2-1`; may be empty."""


def caption_of(text: str) -> Caption:
    """Return the caption in a heading or label. The name is empty if the text has several candidates."""
    number = _NUMBER.search(text)
    rest = _SECTION_NUMBER.sub("", _NUMBER.sub(" ", text))
    names = [w for w in _words(rest) if not (_NO_NAME.fullmatch(w) or SIMPLE_TYPE.fullmatch(w))]
    specific = [word for word in names if not _COMMON_WORD.fullmatch(word)]
    distinct = {normal_name(word) for word in specific or names}
    return Caption(distinct.pop() if len(distinct) == 1 else "", number[1] if number else "")


@dataclass(frozen=True, eq=False)
class ParameterTable:
    """The parameters of a table or list, with the texts that announce it."""

    parameters: tuple[Parameter, ...]
    role: Role
    texts: tuple[str, ...]
    """Label and headings above the table, the nearest first."""
    has_types: bool
    """Whether the table states the types of its parameters."""
    position: int
    """Index of the table's block on the page."""

    @cached_property
    def caption(self) -> Caption:
        """The caption in the nearest text above the table."""
        return caption_of(self.texts[0]) if self.texts else Caption("", "")

    @cached_property
    def is_structure(self) -> bool:
        """Whether a text above the table says that the table describes a structure."""
        return any(map(_STRUCTURE_WORD.search, self.texts))


def assign_parameters(
    operations: Sequence[tuple[PageOperation, Sequence[ParameterTable]]],
    others: Sequence[ParameterTable],
) -> None:
    """Add the parameters of tables to their operations, with structures below the parameters.

    A structure is added below each parameter that refers to it. A table to which no parameter refers is
    added to its operation's lists of parameters. `others` are tables of the page that belong to no
    operation; they are used only as structures.
    """
    page = [*others, *(table for _, tables in operations for table in tables)]
    nested = [_OperationTables(tables, page) for _, tables in operations]
    used = {table for tables in nested for table in tables.used}
    for (operation, _), tables in zip(operations, nested, strict=True):
        for table, parameters in tables.roots:
            if table not in used:
                operation.parameters_of(table.role).extend(parameters)


class _OperationTables:
    """The tables of one operation, with structures of the page below their parameters."""

    def __init__(self, tables: Sequence[ParameterTable], page: Sequence[ParameterTable]) -> None:
        self._tables = tables
        self._structures = [table for table in page if table.caption != Caption("", "")]
        self.used: set[ParameterTable] = set()
        """Tables that have been added below a parameter."""
        self.roots: list[tuple[ParameterTable, tuple[Parameter, ...]]] = []
        """Tables in page order, with their nested parameters; some may also be in `used`."""
        # Tables whose captions have a name come last, because parameters of other tables may refer to them.
        for table in sorted(tables, key=lambda table: bool(table.caption.name)):
            if table not in self.used:
                self.roots.append((table, self._filled(table.parameters, table, (table,), "")))
        self.roots.sort(key=lambda root: root[0].position)

    def _filled(
        self,
        parameters: Sequence[Parameter],
        table: ParameterTable,
        above: tuple[ParameterTable, ...],
        parent: str,
    ) -> tuple[Parameter, ...]:
        """Return `parameters` of `table`, with the structures to which they refer as their children.

        `above` contains the tables from the root to `table`. They are not nested again, so that a structure
        does not contain itself. `parent` is the full name of the parameter above `parameters`, or empty.
        """
        filled: list[Parameter] = []
        for parameter in parameters:
            path = f"{parent}.{parameter.name}" if parent else parameter.name
            if parameter.children:
                children = self._filled(parameter.children, table, above, path)
                parameter = parameter.model_copy(update={"children": children})
            elif found := self._structure(parameter, path, table, above):
                self.used.add(found)
                children = self._filled(found.parameters, found, (*above, found), path)
                parameter = _with_children(parameter, children)
            filled.append(parameter)
        return tuple(filled)

    def _structure(
        self,
        parameter: Parameter,
        path: str,
        table: ParameterTable,
        above: tuple[ParameterTable, ...],
    ) -> ParameterTable | None:
        """Return the structure to which a parameter refers; None if there is none.

        A parameter with a simple type, such as `string`, refers to no structure.
        """
        if table.has_types and is_simple_type(parameter.type):
            return None
        candidates = [
            structure
            for structure in self._structures
            if structure not in above and self._is_possible(structure, above[0])
        ]
        # Prefer tables of this operation, of the same role, after `table`, and near it, in this order.
        return min(
            _clearest_references(parameter, path, above[0], candidates),
            key=lambda structure: (
                structure not in self._tables,
                structure.role != above[0].role,
                structure.position < table.position,
                abs(structure.position - table.position),
            ),
            default=None,
        )

    def _is_possible(self, structure: ParameterTable, root: ParameterTable) -> bool:
        """Return whether a table may be nested below a parameter of `root`.

        A table before `root` or of another operation must be announced as a structure, because a heading
        such as "User" may name the resource instead of a structure.
        """
        is_after = structure in self._tables and structure.position > root.position
        return is_after or structure.is_structure


def _clearest_references(
    parameter: Parameter,
    path: str,
    root: ParameterTable,
    candidates: Sequence[ParameterTable],
) -> list[ParameterTable]:
    """Return the tables to which a parameter refers most clearly.

    The type of the parameter is the clearest reference, followed by the number of a table, a name in the
    description, and the parameter's own name.
    """
    type_words = {
        normal_name(word) for word in _words(parameter.type) if not _COMMON_WORD.fullmatch(word)
    }
    pointers = _SEE.findall(_LINK_TARGET.sub("", parameter.description))
    numbers = {n for text in (*pointers, parameter.type) for n in _NUMBER.findall(text)}
    names = {normal_name(word) for text in pointers for word in _words(text)}
    normal_path = "." + normal_name(path)
    by_type = [table for table in candidates if table.caption.name in type_words]
    by_number = [table for table in candidates if table.caption.number in numbers]
    by_text = [table for table in candidates if table.caption.name in names]
    by_name = [
        table
        for table in candidates
        if table.caption.name
        and normal_path.endswith(f".{table.caption.name}")
        and table.role == root.role
    ]
    return by_type or by_number or by_text or by_name


def _relative(name: str, parent: str) -> str:
    """Return a dotted name relative to its parent: `city` for `address.city` and the parent `address`."""
    head, _, tail = name.partition(".")
    return tail if tail and normal_name(head) == normal_name(parent) else name


def _with_children(parameter: Parameter, children: Sequence[Parameter]) -> Parameter:
    """Return a parameter with the fields of a structure as children, which get the parameter's location."""
    placed = [
        child.model_copy(
            update={"name": _relative(child.name, parameter.name), "location": parameter.location}
        )
        for child in children
    ]
    return parameter.model_copy(
        update={"children": tuple(placed), "dimensions": dimensions_of(parameter.type)}
    )
