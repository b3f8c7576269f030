"""Reads the security requirements of an operation: its permissions and its credential parameters."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from ingestion.sources.openapi.operations import Operation
from ingestion.sources.openapi.references import Node
from prompts.user_text import SectionLabels
from schemas.api_document import Parameter, PermissionPackage

MAX_REQUIREMENTS = 50
"""Maximum number of alternative requirements of an operation, and of security schemes in each."""

_URL_KEYS = ("authorizationUrl", "tokenUrl", "openIdConnectUrl")
_TOKEN_PARAMETERS = {"authorization", "token", "accesstoken", "bearertoken"}


@dataclass(frozen=True)
class _SchemeRequirement:
    """A security scheme that a request must use, with the required scopes."""

    name: str
    scheme: Node
    scopes: tuple[str, ...]


def _alternatives(operation: Operation) -> Iterator[list[_SchemeRequirement]]:
    """Yield the alternative requirements, of which a request must satisfy one."""
    for number, requirement in enumerate(operation.security.elements()):
        if number < MAX_REQUIREMENTS:
            fields = list(requirement.items())[:MAX_REQUIREMENTS]
            yield [_scheme_requirement(operation, name, scopes) for name, scopes in fields if name]


def _scheme_requirement(operation: Operation, name: str, scopes: Node) -> _SchemeRequirement:
    values = (scope.value for scope in scopes.elements())
    names = tuple(value for value in values if isinstance(value, str) and value)
    return _SchemeRequirement(name, operation.schemes[name].resolve(), names)


def permission_packages(
    operation: Operation, labels: SectionLabels
) -> tuple[PermissionPackage, ...]:
    """Return a package for each required scope, and for each required scheme without scopes.

    If there are alternatives, every description lists them. Raises SourceError.
    """
    alternatives = list(_alternatives(operation))
    note = f"{labels.any_of} {_join_names(alternatives)}" if len(alternatives) > 1 else ""
    packages: dict[str, str] = {}
    for requirement in chain.from_iterable(alternatives):
        for name, text in _packages(requirement):
            packages.setdefault(name[:200], " ".join(filter(None, (text, note))))
    if packages and [] in alternatives:
        last = list(packages)[-1]
        packages[last] = f"{packages[last]} ({labels.without_credentials})"
    return tuple(
        PermissionPackage(name=name, description=description)
        for name, description in packages.items()
    )


def _join_names(alternatives: list[list[_SchemeRequirement]]) -> str:
    """Return the scopes or schemes of the alternatives, such as `read + write / admin`."""
    joined = (
        " + ".join(
            name
            for requirement in alternative
            for name in requirement.scopes or (requirement.name,)
        )
        for alternative in alternatives
    )
    return " / ".join(filter(None, joined))


def _packages(requirement: _SchemeRequirement) -> Iterator[tuple[str, str]]:
    """Yield the name and the description of each package."""
    kind = _scheme_label(requirement.scheme)
    if not requirement.scopes:
        yield (
            requirement.name,
            ". ".join(filter(None, (kind, requirement.scheme.text("description")))),
        )
    for scope in requirement.scopes:
        text = _scope_text(requirement.scheme, scope)
        granted_by = f"{requirement.name}, {kind}" if kind else requirement.name
        yield scope, f"{text} ({granted_by})" if text and text != scope else granted_by


def _scope_text(scheme: Node, scope: str) -> str:
    holders = [scheme, *(flow for _, flow in scheme["flows"].items())]
    return next(filter(None, (holder["scopes"].text(scope) for holder in holders)), "")


def _scheme_label(scheme: Node) -> str:
    """Return the type of a scheme, such as `HTTP bearer`, ``apiKey: header `X-Key` `` or `oauth2, https://…`."""
    kind = scheme.text("type")
    if kind == "apiKey":
        return f"apiKey: {scheme.text('in')} `{scheme.text('name')}`"
    if kind in ("http", "basic"):
        return f"HTTP {scheme.text('scheme') or kind}"
    flows = [scheme, *(flow for _, flow in scheme["flows"].items())]
    urls = dict.fromkeys(filter(None, (flow.text(key) for flow in flows for key in _URL_KEYS)))
    return ", ".join(filter(None, (kind, *urls)))


def credential_parameters(operation: Operation) -> tuple[Parameter, ...]:
    """Return the parameters that carry credentials, except those that the operation declares itself.

    Raises SourceError.
    """
    declared = {parameter.name.lower() for parameter in operation.parameters}
    alternatives = list(_alternatives(operation))
    credentials: dict[str, Parameter] = {}
    for requirement in chain.from_iterable(alternatives):
        parameter = _credential_parameter(requirement, required=len(alternatives) == 1)
        if parameter is not None and not _is_declared(parameter, requirement, declared):
            credentials.setdefault(parameter.name.lower(), parameter)
    return tuple(credentials.values())


def _is_declared(parameter: Parameter, requirement: _SchemeRequirement, declared: set[str]) -> bool:
    if requirement.scheme.text("type") == "oauth2":
        return bool(
            {name.replace("_", "").replace("-", "") for name in declared} & _TOKEN_PARAMETERS
        )
    return parameter.name.lower() in declared


def _credential_parameter(requirement: _SchemeRequirement, required: bool) -> Parameter | None:
    scheme = requirement.scheme
    kind, text = scheme.text("type"), scheme.text("description")
    if kind == "apiKey" and scheme.text("name"):
        name, location, example = scheme.text("name")[:200], scheme.text("in"), ""
    elif kind in ("http", "basic", "oauth2", "openIdConnect"):
        auth_scheme = (
            scheme.text("scheme") or ("basic" if kind == "basic" else "bearer")
        ).capitalize()
        token = scheme.text("bearerFormat") or (
            "credentials" if auth_scheme == "Basic" else "token"
        )
        name, location, example = "Authorization", "header", f"{auth_scheme} <{token}>"
    else:
        return None
    return Parameter(
        name=name,
        required=required,
        description=text or requirement.name,
        example=example[:200],
        location=location or "header",
    )
