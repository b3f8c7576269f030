"""The documents of the soak test: a page per topic with unique numbers."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Aspect = Literal["limit", "timeout"]

LANGUAGES = ("en", "zh")
KINDS = {"en": ("queue", "bucket", "gateway"), "zh": ("队列", "仓库", "网关")}
NAMES = {
    "en": ("Falcon", "Otter", "Badger", "Heron", "Lynx", "Marten", "Osprey", "Puffin"),
    "zh": ("苍鹰", "水獭", "白鹭", "山猫", "紫貂", "海雀", "麋鹿", "云豹"),
}
SENTENCES: dict[tuple[str, Aspect], str] = {
    ("en", "limit"): "The {name} holds at most {number} messages",
    ("en", "timeout"): "A call to the {name} times out after {number} milliseconds",
    ("zh", "limit"): "{name}最多保存{number}条消息",
    ("zh", "timeout"): "调用{name}超过{number}毫秒即超时",
}
PAGES = {
    "en": "# {name}\n\nWhat a developer has to know of the {name}.\n\n"
    "## Capacity\n\n{limit}. Older ones are dropped.\n\n"
    "## Timeouts\n\n{timeout}. Ask again after a pause.\n",
    "zh": "# {name}\n\n开发者需要了解的{name}用法。\n\n"
    "## 容量\n\n{limit}。较早的会被丢弃。\n\n"
    "## 超时\n\n{timeout}。请稍后重试。\n",
}
PLATFORM = """
[platform]
name = "Acme Cloud"
description = "An API for queues, buckets and gateways; 队列、仓库与网关接口。"
audience = "Developers."
tone = "Brief."
language = "en"
greeting = "Hello."
refusal = "That is not about Acme Cloud."

[[sources]]
name = "guides"
kind = "markdown"
path = "guides"
page_url = "https://acme.example/docs/{stem}"
"""


@dataclass
class Topic:
    """A page and its versions."""

    number: int
    language: str
    name: str
    versions: list[tuple[float, int]] = field(default_factory=list)
    """Earliest time of indexing (`time.monotonic`) and number of each version."""
    settled: float = 0.0
    """Time (`time.monotonic`) since which only the last version is indexed; 0 before."""

    @property
    def url(self) -> str:
        """The URL of the page."""
        return f"https://acme.example/docs/topic-{self.number}"

    def sentence(self, aspect: Aspect, version: int) -> str:
        """Return the sentence about `aspect` in this version of the page. It contains a unique number."""
        number = version * 10_000 + self.number * 100 + (7 if aspect == "limit" else 9)
        return SENTENCES[self.language, aspect].format(name=self.name, number=number)

    def sentences(self, aspect: Aspect, since: float, slack: float) -> list[str]:
        """Return the sentences that may be right for a question asked at `since`.

        The last version is right. The two versions before it may also be right, unless only the last
        version had been indexed for more than `slack` seconds when the question was asked.
        """
        known = [version for _, version in self.versions]
        recent = known[-1:] if self.settled and since > self.settled + slack else known[-3:]
        return [self.sentence(aspect, version) for version in recent]


class Documents:
    """The pages in a folder."""

    def __init__(self, folder: Path) -> None:
        self.platform = folder / "platform.toml"
        self.topics = list(_topics())
        self._guides = folder / "guides"
        self._guides.mkdir()
        self.platform.write_text(PLATFORM, encoding="utf-8")
        self.change(self.topics)

    def change(self, topics: Sequence[Topic]) -> None:
        """Write new versions of some pages."""
        for topic in topics:
            version = len(topic.versions) + 1
            topic.versions.append((time.monotonic(), version))
            topic.settled = 0.0
            sentences = {a: topic.sentence(a, version) for a in ("limit", "timeout")}
            text = PAGES[topic.language].format(name=topic.name, **sentences)
            path = self._guides / f"topic-{topic.number}.md"
            path.with_suffix(".new").write_text(text, encoding="utf-8")
            path.with_suffix(".new").replace(path)

    def settle(self) -> None:
        """Record that an ingestion run after the last change has succeeded."""
        for topic in self.topics:
            topic.settled = topic.settled or time.monotonic()


def _topics() -> "list[Topic]":
    names = [
        (language, f"{name} {kind}" if language == "en" else f"{name}{kind}")
        for language in LANGUAGES
        for name in NAMES[language]
        for kind in KINDS[language]
    ]
    return [Topic(number, language, name) for number, (language, name) in enumerate(names)]
