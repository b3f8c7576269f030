"""Reads the tags of MDX components: their attributes, and the API operation that they name.

The value of an attribute can be a JavaScript object literal, which may contain JSX.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

MAX_OBJECT_CHARS = 5_000
"""Maximum length of an object that is parsed, in characters; longer objects are usually examples."""

_QUOTED = r"\"[^\"]*\"|'[^']*'"


def _braces(depth: int) -> str:
    """Return the pattern of an expression in braces with up to `depth` levels of braces inside it."""
    inner = "" if depth == 0 else f"|{_braces(depth - 1)}"
    return rf"\{{(?:\"(?:[^\"\\]|\\.)*+\"|[^{{}}\"]{inner})*+\}}"


_BRACES = _braces(6)
ATTRIBUTES = rf"(?:\s+[\w:@.-]+(?:\s*=\s*(?:{_QUOTED}|{_BRACES}|[^\s\"'>{{]+))?)*"
"""Pattern of the attributes of a tag. A value may be an expression with up to seven levels of braces."""

_ATTRIBUTE = re.compile(
    rf"(?P<name>[\w:@.-]+)(?:\s*=\s*(?:(?P<quoted>{_QUOTED})|(?P<braces>{_BRACES})|(?P<bare>[^\s\"'>{{]+)))?"
)
_NO_TEXT = re.compile(r"[{<\[]|(?:true|false|null|undefined)$")
METHOD = re.compile("get|post|put|patch|delete|head|options", re.IGNORECASE)
_SERVER = re.compile(r"base[\w-]*|host|server\w*|origin", re.IGNORECASE)
"""Names of attributes that contain the address of a server."""
_SCOPES = re.compile(
    r"(?:required|needed|oauth2?)?[_-]?(?:scopes?|permissions?|privileges?)", re.IGNORECASE
)
_SCOPES_OR_NAMES = re.compile(rf"{_SCOPES.pattern}|names?|values?|ids?|items|list", re.IGNORECASE)
_SCOPE_NAME = re.compile(r"[\w.:*/-]+")
_TARGET = re.compile(r"(?:https?://|/)[^\s\"'`]*")
_NAME_IN_CODE = re.compile(r"(?P<bracket>[\[{<:]?)`(?P<name>[\w.-]+)`")
"""A placeholder in a URL, with its name in backticks: "/boats/$`id`" or "/boats/[`ids`]"."""


def attributes_of(text: str) -> dict[str, str]:
    """Return the attributes of a tag by name.

    An attribute without a value gets the value `true`. A value in braces is returned without the outer
    braces and, if it is a string, without its quotation marks.
    """
    return {match["name"]: _value(match) for match in _ATTRIBUTE.finditer(text)}


def _value(match: re.Match[str]) -> str:
    if match["quoted"]:
        return match["quoted"][1:-1].strip()
    if match["braces"]:
        inner = match["braces"][1:-1].strip()
        is_text = len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "\"'`"
        return inner[1:-1].strip() if is_text else inner
    return match["bare"] or "true"


def parse_object_literal(text: str) -> dict[str, Any]:
    """Parse an object literal in JSON or JavaScript, such as `{ name: 'id', required: true }`, as YAML.

    Returns an empty dict if `text` is not an object, is too long, or cannot be parsed, for example because
    it contains a function.
    """
    if not text.startswith("{") or len(text) > MAX_OBJECT_CHARS:
        return {}
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    return {str(key): value for key, value in found.items()} if isinstance(found, dict) else {}


def call_in(values: Mapping[str, object]) -> str:
    """Return the method and the URL or path in `values`, such as `POST /v1/x`; empty if either is missing.

    If there is a server address under a name such as `baseUrl`, it precedes the path. A name in backticks
    becomes a placeholder: "/boats/`id`" becomes `/boats/{id}`.
    """
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    method = next(filter(METHOD.fullmatch, texts.values()), "")
    servers = {name: value for name, value in texts.items() if _SERVER.fullmatch(name)}
    targets = [
        _NAME_IN_CODE.sub(_placeholder, value)
        for name, value in texts.items()
        if name not in servers
    ]
    target = next(filter(_TARGET.fullmatch, targets), "")
    server = next(filter(_TARGET.fullmatch, servers.values()), "")
    url = server.rstrip("/") + target if target.startswith("/") else target or server
    return f"{method.upper()} {url}" if method and url else ""


def _placeholder(match: re.Match[str]) -> str:
    return f"{match['bracket']}{match['name']}" if match["bracket"] else f"{{{match['name']}}}"


def scopes_of(values: Mapping[str, str], *, is_scope: bool = False) -> str:
    """Return the permissions in an attribute such as `scope` as code spans; empty if there are none.

    `is_scope` says whether the component itself stands for permissions, as `<Scope name="read">` does. Then
    the permissions may also be in an attribute such as `name`.
    """
    pattern = _SCOPES_OR_NAMES if is_scope else _SCOPES
    named = next((value for name, value in values.items() if pattern.fullmatch(name)), "")
    return ", ".join(f"`{name}`" for name in _SCOPE_NAME.findall(named))


def title_of(values: Mapping[str, str], names: Iterable[str]) -> str:
    """Return the value of the first attribute in `names` that is text; empty if there is none.

    Objects, lists, elements and constants such as `true` are not text.
    """
    texts = (values.get(name, "") for name in names)
    return next((text for text in texts if text and not _NO_TEXT.match(text)), "")


# --- object literals ------------------------------------------------------------------------------

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
    """Return the name of each property of an object literal with the source text of the property's value.

    Returns an empty dict if `text` is not in braces. Text that is not a property, such as the spread
    `...defaults`, is left out.
    """
    text = text.strip()
    if not (text.startswith("{") and text.endswith("}")):
        return {}
    found: dict[str, str] = {}
    name, parts = "", list[str]()
    for token, is_outer in _tokens(text[1:-1]):
        if is_outer and token == ",":
            if name:
                found[name] = "".join(parts).strip()
            name, parts = "", []
        elif is_outer and token == ":" and not name:
            name, parts = "".join(parts).strip().strip("'\"`"), []
        else:
            parts.append(token)
    return found


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the tokens of an object or list literal, without comments, each with a flag.

    `text` is the literal without its outer brackets. The flag says whether the token is outside all inner
    brackets. A comma is added at the end, so that a comma follows every element.
    """
    depth = 0
    for token in (*_TOKEN.findall(text), ","):
        if not token.startswith(_COMMENT):
            depth += (token in "([{") - (token in ")]}")
            yield token, depth == 0


def text_of_expression(expression: str) -> str:
    """Return the text of a string, of strings joined by `+`, or of JSX.

    The tags of JSX fragments (`<>`) are removed, and all other tags stay. An expression of any other kind,
    such as a variable, only loses the parentheses around it.
    """
    if expression.startswith("(") and expression.endswith(")"):
        expression = expression[1:-1].strip()
    if expression.startswith(_QUOTES):
        strings = (token for token in _TOKEN.findall(expression) if token.startswith(_QUOTES))
        return _ESCAPE.sub(r"\1", "".join(string[1:-1] for string in strings))
    if not expression.startswith("<"):
        return expression
    return _FRAGMENT.sub("", _JSX_STRING.sub(r"\2", expression)).strip()


def objects_of(text: str) -> list[dict[str, str]]:
    """Return the properties of each object in a list literal of objects; empty for anything else."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return []
    found = [properties_of(element) for element in _elements(text[1:-1])]
    return found if all(found) else []


def _elements(text: str) -> list[str]:
    """Return the elements of a list literal. `text` is the list without its brackets."""
    found: list[str] = []
    parts: list[str] = []
    for token, is_outer in _tokens(text):
        if is_outer and token == ",":
            found.append("".join(parts).strip())
            parts = []
        else:
            parts.append(token)
    return [element for element in found if element]
