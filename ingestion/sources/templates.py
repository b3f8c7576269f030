"""Loads the Jinja2 templates that render sections and chunks as Markdown, and defines their filters.

The reader of API documents and `chunking.py` use the templates.
"""

import json
import re
from functools import lru_cache

from jinja2 import Environment, PackageLoader, StrictUndefined, Template


def cell(value: object) -> str:
    """Return `value` as the text of a Markdown table cell."""
    return " ".join(str(value).split()).replace("|", "\\|")


def pretty(value: object) -> str:
    """Return `value` as indented JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def fenced(value: object) -> str:
    """Return `value` as a fenced code block. A string is stripped; other values become JSON."""
    if not isinstance(value, str):
        return f"```json\n{pretty(value)}\n```"
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", value)), default=0))
    return f"{fence}\n{value.strip()}\n{fence}"


@lru_cache
def load_template(name: str) -> Template:
    """Return the template `templates/<name>.md.j2`."""
    environment = Environment(
        loader=PackageLoader(__package__),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=False,
        keep_trailing_newline=False,
    )
    environment.filters.update(cell=cell, pretty=pretty, fenced=fenced)
    return environment.get_template(f"{name}.md.j2")
