"""Reads the tags of MDX components: their attributes, and the operation of an API that they name."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

MAX_OBJECT_CHARS = 5_000
"""Maximum length of an object that is parsed, in characters; longer ones are usually examples."""

_QUOTED = r"\"[^\"]*\"|'[^']*'"


def _braces(depth: int) -> str:
    inner = "" if depth == 0 else f"|{_braces(depth - 1)}"
    return rf"\{{(?:\"(?:[^\"\\]|\\.)*+\"|[^{{}}\"]{inner})*+\}}"


_BRACES = _braces(6)
ATTRIBUTES = rf"(?:\s+[\w:@.-]+(?:\s*=\s*(?:{_QUOTED}|{_BRACES}|[^\s\"'>{{]+))?)*"
"""Pattern of the attributes of a tag. A value may be an expression in braces, nested up to seven deep."""

_ATTRIBUTE = re.compile(
    rf"(?P<name>[\w:@.-]+)(?:\s*=\s*(?:(?P<quoted>{_QUOTED})|(?P<braces>{_BRACES})|(?P<bare>[^\s\"'>{{]+)))?"
)
_NO_TEXT = re.compile(r"[{<\[]|(?:true|false|null|undefined)$")
METHOD = re.compile("get|post|put|patch|delete|head|options", re.IGNORECASE)
_SERVER = re.compile(r"base[\w-]*|host|server\w*|origin", re.IGNORECASE)
"""Names of attributes with the address of a server."""
_SCOPES = re.compile(
    r"(?:required|needed|oauth2?)?[_-]?(?:scopes?|permissions?|privileges?)", re.IGNORECASE
)
_SCOPES_OR_NAMES = re.compile(rf"{_SCOPES.pattern}|names?|values?|ids?|items|list", re.IGNORECASE)
_SCOPE_NAME = re.compile(r"[\w.:*/-]+")
_TARGET = re.compile(r"(?:https?://|/)[^\s\"'`]*")


def attributes_of(text: str) -> dict[str, str]:
    """Return the attributes of a tag by name.

    An attribute without a value is `true`. A value in braces is returned without the outer braces and, if
    it is a string, without its quotation marks.
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


def object_of(text: str) -> dict[str, Any]:
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
    """Return the call in `values`, such as `POST /v1/x`; empty unless it has a method, and a URL or path.

    If `values` also contain the server's address, under a name such as `baseUrl`, it precedes the path.
    """
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    method = next(filter(METHOD.fullmatch, texts.values()), "")
    servers = {name: value for name, value in texts.items() if _SERVER.fullmatch(name)}
    targets = [value for name, value in texts.items() if name not in servers]
    target = next(filter(_TARGET.fullmatch, targets), "")
    server = next(filter(_TARGET.fullmatch, servers.values()), "")
    url = server.rstrip("/") + target if target.startswith("/") else target or server
    return f"{method.upper()} {url}" if method and url else ""


def scopes_of(values: Mapping[str, str], *, is_scope: bool = False) -> str:
    """Return the permissions in an attribute such as `scope` as code spans; empty if there are none.

    If the component itself is a permission (`is_scope`), an attribute such as `name` contains them, too.
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
