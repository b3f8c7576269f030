"""Permissions that a text names, and whether documents know them: 标签打印权限包, Parcel Read Package."""

import re
from collections.abc import Iterator

from ingestion.text.words import dictionary_words
from runnables.grounding.mention import Mention

_PERMISSION = re.compile(
    r"权限[包组]|(?<=[A-Za-z0-9] )(?:[Pp]ermission )?Package\b|(?<=[A-Za-z0-9] )permission package\b"
)
"""What the names of permissions end with."""

_TITLE_WORDS = re.compile(r"(?:\b[A-Z][A-Za-z0-9-]*\s)+$")
_HAN = re.compile(r"[\u4e00-\u9fff]+$")
_LONGEST_TITLE, _LONGEST_HAN = 60, 14
"""Characters before that end which are looked at, so that a long text costs no more than its length."""

_NO_PART_OF_A_NAME = {
    *"的了个各该此这那哪某一二两三四五六七八九十几多每有无没缺需须用归属是为和与或及先再还要在由对给把被将其新旧",
    *"种类只仅即就通过等都也不未到上下从向能可会应则若但而且所本它",
    "哪个", "这个", "那个", "一个", "某个", "各个", "没有", "缺少", "缺失", "需要", "必需", "所需",
    "申请", "开通", "获得", "获取", "取得", "具备", "具有", "拥有", "属于", "对应", "相应", "相关",
    "必要", "其他", "其它", "所有", "全部", "任何", "任意", "通过", "查看", "选择", "勾选", "添加",
    "应用", "接口", "平台", "敏感", "只有", "包含",
    "The", "A", "An", "This", "That", "Each", "Your", "No", "Permission", "If", "Without", "With", "Add",
    "Apply", "Request", "Get", "For",
}  # fmt: skip


class PermissionIndex:
    """Names of permissions, ready to be looked up."""

    def __init__(self) -> None:
        self._names: set[tuple[str, ...]] = set()
        self._endings: set[tuple[str, ...]] = set()

    def read(self, text: str) -> None:
        """Adds what `text` names."""
        for mention in permissions(text):
            name = _name(mention)
            self._names.add(name)
            self._endings.update(_endings(name))

    def holds(self, mention: Mention) -> bool:
        """Whether a name's last words are those of a known one, up to where either of them begins.

        A name in a language that no known one is in, while others are known, cannot be looked up and is
        let pass: it may be the translation of one.
        """
        name = _name(mention)
        if name[:1] not in self._endings:
            return bool(self._names)
        return name in self._endings or any(ending in self._names for ending in _endings(name))


def _name(mention: Mention) -> tuple[str, ...]:
    """Its words, the last one first, which only says the language: 权限包 is as good as 权限组."""
    noun, *words = mention.words
    return ("en" if noun.isascii() else "zh", *words)


def _endings(name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The name's last word, its last two, and so on."""
    return (name[:end] for end in range(1, len(name) + 1))


def permissions(text: str) -> Iterator[Mention]:
    """What stands before 权限包 or Package and names it; "this package" does not."""
    for match in _PERMISSION.finditer(text):
        words = list(_name_words(text, match.start()))
        if words:
            blank = text[match.start() - 1] == " "
            start = match.start() - sum(len(word) + blank for word in words)
            said = (match[0].lower(), *(word.lower() for word in words))
            yield Mention("permission", text[start : match.end()], start, words=said)


def _name_words(text: str, end: int) -> Iterator[str]:
    """The words before `end` that may belong to a name which ends there, the last one first."""
    for word in reversed(_words_before(text, end)):
        if word in _NO_PART_OF_A_NAME:
            return
        yield word


def _words_before(text: str, end: int) -> tuple[str, ...]:
    """Capitalised words, or Chinese ones, as far as nothing else stands between them and `end`."""
    if text[end - 1 : end] == " ":
        title = _TITLE_WORDS.search(text[max(0, end - _LONGEST_TITLE) : end])
        return tuple(title[0].split()) if title else ()
    han = _HAN.search(text[max(0, end - _LONGEST_HAN) : end])
    return dictionary_words(han[0]) if han else ()
