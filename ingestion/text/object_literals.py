"""Reads object literals of JavaScript that may contain JSX, as in the attributes of MDX components."""

import re

_TOKEN = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|`(?:[^`\\]|\\.)*+`|\\."
    r"|<>[^<]*+(?:<(?!/?>)[^<]*+)*+</>|(?<=\s)//[^\n]*|/\*\*?[^*]*+\*/|.",
    re.DOTALL,
)
"""A string, an escape, a fragment of JSX, a comment, or any other character."""
_COMMENT = ("//", "/*")
_QUOTES = ("'", '"', "`")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_FRAGMENT = re.compile(r"</?>")
_JSX_STRING = re.compile(r"\{\s*(?P<quote>['\"`])([^'\"`{}]*)(?P=quote)\s*\}")


def properties_of(text: str) -> dict[str, str]:
    """Return the source text of each property of an object literal, by name.

    Returns an empty dict if `text` is not in braces. Text that is not a property, such as a spread, is
    left out.
    """
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return {}
    found: dict[str, str] = {}
    name, parts, depth = "", list[str](), 0
    for token in (*_TOKEN.findall(text[1:-1]), ","):
        if token.startswith(_COMMENT):
            continue
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and token == ",":
            if name:
                found[name] = "".join(parts).strip()
            name, parts = "", []
        elif depth == 0 and token == ":" and not name:
            name, parts = "".join(parts).strip().strip("'\"`"), []
        else:
            parts.append(token)
    return found


def text_of_expression(expression: str) -> str:
    """Return the text of a string, of strings joined by `+`, or of JSX.

    Parentheses around the expression and the tags of JSX fragments (`<>`) are removed. Other tags are kept,
    and other expressions are returned as they are.
    """
    if expression.startswith(_QUOTES):
        strings = (token for token in _TOKEN.findall(expression) if token.startswith(_QUOTES))
        return _ESCAPE.sub(r"\1", "".join(string[1:-1] for string in strings))
    if expression.startswith("(") and expression.endswith(")"):
        expression = expression[1:-1].strip()
    if not expression.startswith("<"):
        return expression
    return _FRAGMENT.sub("", _JSX_STRING.sub(r"\2", expression)).strip()


def objects_of(text: str) -> list[dict[str, str]]:
    """Return the properties of each object in a list of objects; empty for anything else."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return []
    found = [properties_of(element) for element in _elements(text[1:-1])]
    return found if all(found) else []


def _elements(text: str) -> list[str]:
    """Return the elements of a list literal without its brackets. A comma may follow the last one."""
    found: list[str] = []
    parts: list[str] = []
    depth = 0
    for token in (*_TOKEN.findall(text), ","):
        if token.startswith(_COMMENT):
            continue
        depth += (token in "([{") - (token in ")]}")
        if depth == 0 and token == ",":
            found.append("".join(parts).strip())
            parts = []
        else:
            parts.append(token)
    return [element for element in found if element]
