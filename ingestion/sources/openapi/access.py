"""What a call has to prove: permissions, and the headers or parameters that carry the proof."""

from collections.abc import Iterator
from dataclasses import dataclass

from prompts.user_text import SectionLabels
from ingestion.sources.openapi.operations import Operation
from ingestion.sources.openapi.references import Node
from schemas.api_document import Parameter, PermissionPackage

MAX_REQUIREMENTS = 50
"""Alternatives of one operation, and schemes of one alternative."""

_URL_KEYS = ("authorizationUrl", "tokenUrl", "openIdConnectUrl")
_TOKEN_PARAMETERS = {"authorization", "token", "accesstoken", "bearertoken"}


@dataclass(frozen=True)
class _SchemeRequirement:
    """A scheme that a call has to satisfy, and the scopes it takes."""

    name: str
    scheme: Node
    scopes: tuple[str, ...]


def _alternatives(operation: Operation) -> Iterator[list[_SchemeRequirement]]:
    for number, requirement in enumerate(operation.security.elements()):
        if number < MAX_REQUIREMENTS:
            fields = list(requirement.fields())[:MAX_REQUIREMENTS]
            yield [_scheme_requirement(operation, name, scopes) for name, scopes in fields if name]


def _scheme_requirement(operation: Operation, name: str, scopes: Node) -> _SchemeRequirement:
    named = (scope.value for scope in scopes.elements())
    scheme = operation.schemes[name].followed()
    return _SchemeRequirement(name, scheme, tuple(s for s in named if isinstance(s, str) and s))


def permission_packages(operation: Operation, labels: SectionLabels) -> tuple[PermissionPackage, ...]:
    """A package a scope, or a scheme without scopes; alternatives are said to be such.

    Raises SourceError.
    """
    alternatives = list(_alternatives(operation))
    packages: dict[str, str] = {}
    for needs in alternatives:
        is_one_of_several = len(alternatives) > 1 and needs
        for need in needs:
            for name, text in _packages(need):
                note = f"{labels.any_of} {_names(alternatives)}" if is_one_of_several else ""
                packages.setdefault(name[:200], " ".join(filter(None, (text, note))))
    if packages and [] in alternatives:
        last = list(packages)[-1]
        packages[last] = f"{packages[last]} ({labels.without_credentials})"
    return tuple(PermissionPackage(name=n, description=d) for n, d in packages.items())


def _names(alternatives: list[list[_SchemeRequirement]]) -> str:
    named = (" + ".join(n for need in a for n in need.scopes or (need.name,)) for a in alternatives)
    return " / ".join(filter(None, named))


def _packages(need: _SchemeRequirement) -> Iterator[tuple[str, str]]:
    kind = _scheme_label(need.scheme)
    if not need.scopes:
        yield need.name, ". ".join(filter(None, (kind, need.scheme.text("description"))))
    for scope in need.scopes:
        text = _scope_text(need.scheme, scope)
        by = f"{need.name}, {kind}" if kind else need.name
        yield scope, f"{text} ({by})" if text and text != scope else by


def _scope_text(scheme: Node, scope: str) -> str:
    holders = [scheme, *(flow for _, flow in scheme["flows"].fields())]
    return next(filter(None, (holder["scopes"].text(scope) for holder in holders)), "")


def _scheme_label(scheme: Node) -> str:
    """The scheme in words: `HTTP bearer`, `apiKey in header X-Key`, `oauth2, https://…`."""
    kind = scheme.text("type")
    if kind == "apiKey":
        return f"apiKey: {scheme.text('in')} `{scheme.text('name')}`"
    if kind in ("http", "basic"):
        return f"HTTP {scheme.text('scheme') or kind}"
    flows = [scheme, *(flow for _, flow in scheme["flows"].fields())]
    urls = dict.fromkeys(filter(None, (flow.text(key) for flow in flows for key in _URL_KEYS)))
    return ", ".join(filter(None, (kind, *urls)))


def credential_parameters(operation: Operation) -> tuple[Parameter, ...]:
    """The parameters that carry credentials, where the operation does not declare them itself.

    Raises SourceError.
    """
    declared = {field.name.lower() for field in operation.fields}
    alternatives = list(_alternatives(operation))
    found: dict[str, Parameter] = {}
    for need in (need for needs in alternatives for need in needs):
        parameter = _credential_parameter(need, required=len(alternatives) == 1)
        if parameter is not None and not _is_declared(parameter, need, declared):
            found.setdefault(parameter.name.lower(), parameter)
    return tuple(found.values())


def _is_declared(parameter: Parameter, need: _SchemeRequirement, declared: set[str]) -> bool:
    if need.scheme.text("type") == "oauth2":
        return bool({name.replace("_", "").replace("-", "") for name in declared} & _TOKEN_PARAMETERS)
    return parameter.name.lower() in declared


def _credential_parameter(need: _SchemeRequirement, required: bool) -> Parameter | None:
    scheme = need.scheme
    kind, said = scheme.text("type"), scheme.text("description")
    if kind == "apiKey" and scheme.text("name"):
        name, location, example = scheme.text("name")[:200], scheme.text("in"), ""
    elif kind in ("http", "basic", "oauth2", "openIdConnect"):
        word = (scheme.text("scheme") or ("basic" if kind == "basic" else "bearer")).capitalize()
        token = scheme.text("bearerFormat") or ("credentials" if word == "Basic" else "token")
        name, location, example = "Authorization", "header", f"{word} <{token}>"
    else:
        return None
    return Parameter(
        name=name,
        required=required,
        description=said or need.name,
        example=example[:200],
        location=location or "header",
    )
