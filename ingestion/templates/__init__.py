"""Templates that turn documents into Markdown."""

import json
import re
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def cell(value: object) -> str:
    """`value` as the text of one Markdown table cell."""
    return " ".join(str(value).split()).replace("|", "\\|")


def pretty(value: object) -> str:
    """`value` as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def fenced(value: object) -> str:
    """`value` as a block of code: JSON, or text as it stands."""
    if not isinstance(value, str):
        return f"```json\n{pretty(value)}\n```"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", value)), default=0))
    return f"{fence}\n{value.strip()}\n{fence}"


@lru_cache
def load_section_template(name: str) -> Template:
    """The template `name`.md.j2 of this folder."""
    environment = Environment(
        loader=PackageLoader("ingestion"),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=False,
        keep_trailing_newline=False,
    )
    environment.filters.update(cell=cell, pretty=pretty, fenced=fenced)
    return environment.get_template(f"{name}.md.j2")
