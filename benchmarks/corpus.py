"""Generates a corpus of pages from sentences of the samples; the same seed gives the same pages."""

import random
import re
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "samples" / "guides"
SECTIONS_PER_PAGE = 10

PLATFORM = """
[platform]
name = "Benchmark"
description = "Pages of words."
audience = "developers"
tone = "plain"
greeting = "Hello."
refusal = "Not about this."

[[sources]]
name = "pages"
kind = "markdown"
path = "pages"
"""


def write_corpus(folder: Path, sections: int, seed: int = 1) -> Path:
    """Write pages with `sections` sections to `folder`; return the path of their platform.toml.

    About a third of the sections become two chunks, all others one. Only full pages of
    `SECTIONS_PER_PAGE` sections are written.
    """
    chance = random.Random(seed)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SAMPLES.glob("*.md")))
    sentences = [s for s in re.split(r"(?<=[。.!?！？])\s*|\n+", text) if 10 < len(s) < 300]
    pages = folder / "pages"
    pages.mkdir(parents=True)
    for number in range(sections // SECTIONS_PER_PAGE):
        texts = (
            f"## Section {number}.{part}\n\n" + "\n\n".join(chance.choices(sentences, k=12))
            for part in range(SECTIONS_PER_PAGE)
        )
        body = "\n\n".join([f"# Page {number}", *texts])
        (pages / f"{number:06}.md").write_text(body, encoding="utf-8")
    platform = folder / "platform.toml"
    platform.write_text(PLATFORM, encoding="utf-8")
    return platform
