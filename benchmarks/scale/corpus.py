"""Generates documentation of any size whose vocabulary grows with it, and questions about it.

Words are drawn from the word lists of wordfreq by Zipf's law. The most frequent words are those of
everyday English and Chinese; the ranks of all others are shuffled, because the documentation of a platform
has subjects of its own. A page has a topic: words and identifiers that make up a share of its text. Page
`n` is the same in corpora of all sizes, so the same questions can be asked about each corpus.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, count, islice
from pathlib import Path

from benchmarks.corpus import PLATFORM
from ingestion.text.language import listed_words
from schemas.choices import Language

LISTED_WORDS = 60_000
"""Number of words per language, most frequent first."""

EVERYDAY_WORDS = 150
"""Number of the most frequent words, whose ranks are not shuffled."""

TOPIC_RANKS = slice(300, 20_000)
"""Ranks of the words that topics consist of."""

IDENTIFIER_RANKS = slice(100, 2_000)
"""Ranks of the frequent words that identifiers contain in addition to a word of the topic."""

TOPIC_WORDS, TOPIC_IDENTIFIERS = 24, 10
TOPIC_SHARE = 0.25
"""Share of a page's words that belong to its topic."""

MIN_SECTIONS, MAX_SECTIONS = 4, 22
"""Range of the number of sections of a page. Most sections become one chunk."""

API_SHARE = 0.3
"""Share of the pages that describe an API operation."""

_TEMPLATES: dict[Language, tuple[str, ...]] = {
    "en": (
        "How do I set the {0} {1} for {2}?",
        "What is the {0} limit of {1} {2}?",
        "Why does {0} {1} fail after {2}?",
        "What does `{3}` mean for {0}?",
    ),
    "zh": (
        "如何设置{0}{1}的{2}？",
        "{0}{1}有什么{2}限制？",
        "为什么{0}以后{1}{2}会失败？",
        "{0}里的 {3} 是什么意思？",
    ),
}


@dataclass(frozen=True)
class Topic:
    """The subject of a page."""

    language: Language
    words: tuple[str, ...]
    identifiers: tuple[str, ...]
    is_api: bool


@dataclass(frozen=True)
class _WordList:
    words: tuple[str, ...]
    cumulative_weights: tuple[float, ...]

    def draw(self, chance: random.Random, size: int) -> list[str]:
        return chance.choices(self.words, cum_weights=self.cumulative_weights, k=size)


def write_documentation(folder: Path, chunks: int) -> Path:
    """Write pages of about `chunks` chunks to `folder`; return the path of their platform.toml."""
    pages = folder / "pages"
    pages.mkdir(parents=True)
    sections = 0
    for number in count():
        if sections >= chunks:
            break
        text = page(number)
        sections += 1 + text.count("\n## ")
        page_path(folder, number).write_text(text, encoding="utf-8")
    platform = folder / "platform.toml"
    platform.write_text(PLATFORM, encoding="utf-8")
    return platform


def page_path(folder: Path, number: int) -> Path:
    """Return the path of page `number` of the documentation in `folder`."""
    return folder / "pages" / f"{number:06}.md"


def change_page(folder: Path, number: int) -> None:
    """Append a sentence to the last section of page `number`."""
    path, chance = page_path(folder, number), random.Random(f"change {number}")
    sentence = _sentence(chance, topic(number))
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{sentence}\n", encoding="utf-8")


def page(number: int) -> str:
    """Return the Markdown of page `number`."""
    chance, about = random.Random(f"page {number}"), topic(number)
    sections = chance.randint(MIN_SECTIONS, MAX_SECTIONS)
    parts = [f"# {_title(about.words[:3], about.language)}", _paragraph(chance, about)]
    if about.is_api:
        parts.append(_operation(chance, about))
    for _ in range(sections):
        heading = _title(chance.sample(about.words, 3), about.language)
        parts += [f"## {heading}", *_section(chance, about)]
    return "\n\n".join(parts) + "\n"


def topic(number: int) -> Topic:
    """Return the topic of page `number`."""
    chance = random.Random(f"topic {number}")
    language: Language = chance.choice(("en", "zh"))
    words = chance.sample(_words(language).words[TOPIC_RANKS], TOPIC_WORDS)
    english = words if language == "en" else chance.sample(_words("en").words[TOPIC_RANKS], 8)
    identifiers = [_identifier(chance, english) for _ in range(TOPIC_IDENTIFIERS)]
    return Topic(language, tuple(words), tuple(identifiers), chance.random() < API_SHARE)


def questions(pages: int) -> Iterator[str]:
    """Yield distinct questions about the first `pages` pages endlessly."""
    chance, asked = random.Random("questions"), set[str]()
    while True:
        about = topic(chance.randrange(pages))
        template = chance.choice(_TEMPLATES[about.language])
        words = chance.sample(about.words, 3)
        question = template.format(*words, chance.choice(about.identifiers))
        if question not in asked:
            asked.add(question)
            yield question


@lru_cache
def _words(language: Language) -> _WordList:
    listed = (
        (word, 10**zipf)
        for word, zipf in listed_words(language)
        if word.isalpha() and word.isascii() == (language == "en")
    )
    words, weights = zip(*islice(listed, LISTED_WORDS), strict=True)
    others = random.Random("ranks").sample(words[EVERYDAY_WORDS:], LISTED_WORDS - EVERYDAY_WORDS)
    return _WordList((*words[:EVERYDAY_WORDS], *others), tuple(accumulate(weights)))


def _identifier(chance: random.Random, words: Sequence[str]) -> str:
    """Return a word of the topic and one or two frequent words as an identifier in a usual notation."""
    frequent = _words("en").words[IDENTIFIER_RANKS]
    parts = [chance.choice(words), *chance.sample(frequent, chance.randint(1, 2))]
    match chance.randrange(4):
        case 0:
            return parts[0] + "".join(map(str.capitalize, parts[1:]))
        case 1:
            return ".".join(parts)
        case 2:
            return f"{'_'.join(parts).upper()}_{chance.randint(100, 999)}"
        case _:
            return "_".join(parts)


def _title(words: Sequence[str], language: Language) -> str:
    return _capitalize(" ".join(words)) if language == "en" else "".join(words)


def _capitalize(text: str) -> str:
    """Return `text` with its first character in upper case; identifiers in it stay as they are."""
    return text[:1].upper() + text[1:]


def _sentence(chance: random.Random, about: Topic) -> str:
    words = _words(about.language).draw(chance, chance.randint(7, 22))
    for index in range(len(words)):
        if chance.random() < TOPIC_SHARE:
            words[index] = chance.choice(about.words)
    if chance.random() < 0.2:
        words.insert(chance.randrange(len(words)), f"`{chance.choice(about.identifiers)}`")
    if about.language == "zh":
        return "".join(words) + "。"
    return _capitalize(" ".join(words)) + "."


def _paragraph(chance: random.Random, about: Topic) -> str:
    separator = " " if about.language == "en" else ""
    return separator.join(_sentence(chance, about) for _ in range(chance.randint(1, 5)))


def _section(chance: random.Random, about: Topic) -> Iterator[str]:
    """Yield the blocks of a section: paragraphs, and sometimes a list, a table or code."""
    yield from (_paragraph(chance, about) for _ in range(chance.randint(1, 3)))
    match chance.randrange(6):
        case 0:
            yield "\n".join(f"- {_sentence(chance, about)}" for _ in range(chance.randint(2, 6)))
        case 1:
            yield _table(chance, about, ("Name", "Type", "Description"))
        case 2:
            values = (f'  "{name}": {chance.randrange(1000)}' for name in about.identifiers[:4])
            yield "```json\n{\n" + ",\n".join(values) + "\n}\n```"


def _operation(chance: random.Random, about: Topic) -> str:
    """Return the call and the parameters of an API operation."""
    path = "/".join(name.replace(".", "/").lower() for name in about.identifiers[:2])
    call = f"`{chance.choice(('GET', 'POST', 'PUT', 'DELETE'))} /v1/{path}`"
    heading = "请求参数" if about.language == "zh" else "Request parameters"
    rows = _table(chance, about, ("Parameter", "Type", "Required", "Description"))
    return f"{call}\n\n## {heading}\n\n{rows}"


def _table(chance: random.Random, about: Topic, head: Sequence[str]) -> str:
    kinds = ("string", "integer", "boolean", "object")
    lines = [head, ["---"] * len(head)]
    for name in chance.sample(about.identifiers, chance.randint(3, 7)):
        middle = [chance.choice(kinds), chance.choice(("yes", "no"))][: len(head) - 2]
        lines.append([f"`{name}`", *middle, _sentence(chance, about)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
