"""Urls and paths that a text names, with the HTTP method that stands with each."""

import re

from runnables.grounding.mention import Mention, in_code_span
from runnables.grounding.standard_names import METHODS

URL = r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%{}-]+"
"""In ASCII alone, for Chinese goes on behind it without a blank; and with placeholders in braces."""

PATH = r"(?<![A-Za-z0-9_/.:<*-])/[A-Za-z0-9{<:$][\w.{}<>:$*~-]*(?:/[\w.{}<>:$*~-]+)*/?"
"""For patterns with `re.ASCII`. It begins within no word, url or tag: `and/or`, `</b>`."""

_GAP = (
    r"[\s`'\"*,，:：]{0,4}(?:(?:requests?|calls?|to|on|against|at|the|endpoint|path|url|"
    r"方法|方式|请求|接口|调用|到|提交|发送|访问|地址|为|是)[\s`'\"*:：]{0,3}){0,4}"
)
"""What may stand between a method and its target: "a GET request to the endpoint `/a`"."""

_TARGET = re.compile(
    rf"(?:(?<![A-Za-z_])(?P<before>{METHODS})(?![A-Za-z_]){_GAP})?(?P<target>{URL}|{PATH})"
    rf"(?P<query>\?[\w.=&%{{}}<>-]*)?"
    rf"(?:[`'\"\s]{{0,3}}(?:[（(]|with|using|via|by|用|以|采用|使用)\s?(?:HTTP|an?)?[\s`]{{0,2}}"
    rf"(?P<after>{METHODS})(?![A-Za-z_]))?",
    re.ASCII,
)
_FOLDERS = {"etc", "usr", "var", "tmp", "home", "opt", "dev", "root", "mnt", "proc", "path"}
_OWN_HOSTS = ("localhost", "127.0.0.1", "0.0.0.0", "your", "my-", "<", "{")


def take_targets(text: str) -> tuple[str, list[Mention]]:
    """`text` without urls and paths, of the same length and with their queries; and these."""
    found: list[Mention] = []

    def take(match: re.Match[str]) -> str:
        mention = _mention(text, match)
        if mention is None:
            return match[0]
        found.append(mention)
        query = match[0].find("?")
        kept = match[0][query:] if query >= 0 else ""
        return " " * (len(match[0]) - len(kept)) + kept

    return _TARGET.sub(take, text), found


def _mention(text: str, match: re.Match[str]) -> Mention | None:
    """What `match` names; None for one part alone, such as `/s`, unless a method or a code span says so."""
    target = match["target"].rstrip(".,;:!?*-")
    start, end = match.start("target"), match.start("target") + len(target)
    method = match["before"] or match["after"] or ""
    if target.count("/") == 1 and not (method or in_code_span(text, start, end)):
        return None
    first = match.start() if match["before"] else start
    last = match.end() if match["after"] else end
    return Mention("target", text[first:last], first, target, method, foreign=_is_own(target))


def _is_own(target: str) -> bool:
    """Whether it is on the reader's own machine: a loopback or made-up host, a path of the file system."""
    host = target.partition("://")[2]
    return host.startswith(_OWN_HOSTS) if host else target.split("/")[1] in _FOLDERS
