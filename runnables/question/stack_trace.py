"""Removal of the frames of stack traces from a question, because they are about the caller's own code."""

import re

_MAX = "{1,300}"
"""Bounds the length of a name, a path or a line, so that searches stay linear."""

_LOCATION = rf"[^()\s]{_MAX}?[A-Za-z_>][^()\s:]{{0,100}}:\d+(?::\d+)?"
"""A file and a line, such as `node:internal/errors:720:14` or `Bar.java:12`."""

_FRAMES = re.compile(
    rf"""
    # Python, with the indented lines of source code below, or in one line up to the next frame
    Traceback\ \(most\ recent\ call\ last\):?
    | File\ "[^"\n]{_MAX}",\ line\ \d+(?:,\ in\ [^\s:]{_MAX})?
      (?:(?:\n[ \t]+(?!File\ ")[^\n]*)+|[^\n]{{0,300}}?(?=\sFile\ "))?
    # JavaScript and Java
    | \bat\s(?:(?:async|new)\s)?[\w.$<>/@\[\]-]{_MAX}(?:\s\[as\s\w+\])?\s?
      \((?:{_LOCATION}|[Nn]ative(?:\ Method)?|Unknown\ Source|<anonymous>)\)(?:\s~?\[[^\]\n]{_MAX}\])?
    | (?:\bat\s(?:async\s)?|(?<!\S)[\w.$<>/]{{0,100}}@)[^\s()]{_MAX}?[/.][^\s():]{{0,100}}:\d+:\d+
    | \.\.\.\ \d+\ (?:more|common\ frames\ omitted)
    # .NET
    | \bat\s[\w.`<>+\[\],]{_MAX}\([^()\n]{{0,300}}\)(?:\sin\s[^\n]{_MAX}?:line\s\d+|[ \t]*$)
    # Go, where the line of the function comes before the line of the file
    | goroutine\s\d+\s\[[^\]\n]{_MAX}\]:?
    | ^created\ by\ [^\n]*$
    | (?:^[^\s(][^\n]{{0,300}}\)\n[ \t]+)?(?<!\S)\S{_MAX}?\.go:\d+(?:\s\+0x[0-9a-f]+)?
    # Ruby and PHP
    | (?<!\S)(?:from\s)?[^\s:]{_MAX}:\d+:in\s[`'][^'`\n]{_MAX}['`]:?
    | (?<!\S)\#\d+\s(?:\S{_MAX}?\(\d+\):\s[^\n#]{_MAX}|\{{main\}})
    """,
    re.MULTILINE | re.VERBOSE,
)

_HINT = re.compile(
    r":\d|[ :]line\s\d|\(\d+\):\s|\{main\}|goroutine\s\d|Traceback \(|frames omitted"
    r"|\((?:[Nn]ative|Unknown Source|<anonymous>)|^[ \t]*at\s[^\s(]{1,300}\(",
    re.MULTILINE,
)
"""Matches in texts with frames; much faster than `_FRAMES`.

It does not match frames that may be prose: `... 12 more`, a line `created by the server`, and
`at orders.create()` at the end of a line. They are removed only if the text has another frame.
"""

_SYSTEM_ERROR = re.compile(
    r"errno: (?:-?\d+|'\w+'),\s*(code: '\w+'),\s*syscall: '\w+'"
    r"(?:,\s*(?:address|port|hostname|path|dest|fd): [^\s,}]{1,300})*"
)
"""The properties of a Node.js error: `errno: -111, code: 'ECONNREFUSED', syscall: 'connect'`."""

_QUALIFIED_CLASS = re.compile(r"(?<![\w./])(?:[a-z_]\w{0,60}\.){1,8}(?=[A-Z]\w*: )")
"""The package of an exception, such as `java.net.` in `java.net.ConnectException: refused`.

Documents name only the class.
"""


def remove_frames(text: str) -> str:
    """Return `text` without the frames of stack traces: files, lines, functions and addresses.

    The names and messages of errors stay, but exceptions lose their package. Of the properties of a Node.js
    error, only `code` stays. A text of only frames is returned unchanged.
    """
    kept = _FRAMES.sub(" ", text) if _HINT.search(text) else text
    kept = _SYSTEM_ERROR.sub(r"\1", kept)
    return _QUALIFIED_CLASS.sub("", kept) if kept.strip() else text
