"""Reads word lists. This is a separate module because rules in several packages use word lists.

The lists of a module are in a TOML file next to it, which has the same name. A list is a string of words,
with `_` for a space within a phrase.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path


def read_word_lists(module_file: str) -> Mapping[str, frozenset[str]]:
    """Return the word lists, by name, of the module whose `__file__` is `module_file`."""
    text = Path(module_file).with_suffix(".toml").read_text(encoding="utf-8")
    return {
        name: frozenset(word.replace("_", " ") for word in words.split())
        for name, words in tomllib.loads(text).items()
    }
