"""Nests parameters by their indentation and their dotted names."""

import re
from collections.abc import Sequence

from schemas.api_document import Parameter

NAME = re.compile(r"[A-Za-z_$@\u4e00-\u9fff{][\w\-.$@\[\]:{}*\u4e00-\u9fff/]*")
"""The name of a parameter, possibly dotted, with brackets or as a placeholder."""
_BRACKETS = re.compile(r"\[[\w*]*\]")
"""Brackets after the name of a list: `[]`, `[0]`, `[*]`, `[n]`."""


def nest(flat: Sequence[tuple[int, Parameter]]) -> tuple[Parameter, ...]:
    """Return the tree of parameters that their indentation and their dotted names describe.

    `flat` contains each parameter with its indentation in columns.
    """
    parents: list[int | None] = []
    relative: list[Parameter] = []  # with names relative to their parents
    paths: dict[str, int] = {}  # index by full name without brackets
    stack: list[tuple[int, int, str]] = []  # width, index and full name of the parameters above
    for index, (width, parameter) in enumerate(flat):
        while stack and stack[-1][0] >= width:
            stack.pop()
        parent, above = (stack[-1][1], stack[-1][2]) if stack else (None, "")
        name = parameter.name
        plain = _BRACKETS.sub("", name).strip(".")
        if above and plain.startswith(f"{above}."):
            name = plain[len(above) + 1 :]  # drop the parent's repeated name
        head, _, tail = _BRACKETS.sub("", name).rpartition(".")
        full = f"{above}.{head}" if above and head else head
        if full in paths and NAME.match(tail):
            parent, above, name = paths[full], full, tail
        path = ".".join(filter(None, (above, _BRACKETS.sub("", name))))
        paths.setdefault(path, index)
        parents.append(parent)
        relative.append(parameter.model_copy(update={"name": name}))
        stack.append((width, index, path))
    return _tree(relative, parents)


def _tree(relative: Sequence[Parameter], parents: Sequence[int | None]) -> tuple[Parameter, ...]:
    """Return the parameters without a parent, with the others as their children.

    `parents` contains the index of each parameter's parent.
    """
    children: dict[int | None, list[Parameter]] = {}
    for index in reversed(range(len(relative))):
        item = relative[index]
        below = (*item.children, *children.get(index, ()))
        update = {
            "children": below,
            "type": item.type or ("object" if below else "string"),
            "dimensions": item.dimensions if below else 0,
        }
        children.setdefault(parents[index], []).insert(0, item.model_copy(update=update))
    return tuple(children.get(None, ()))
