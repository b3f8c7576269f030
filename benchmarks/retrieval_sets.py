"""Questions with the documents that answer them: the samples' own, and public sets as pages."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from app.analytics.evaluation.dataset import EvaluationQuestion, read_questions
from app.analytics.evaluation.documents import DocumentIndex
from benchmarks.corpus import PLATFORM
from ingestion.chunking import chunk_document
from ingestion.platform_config import read_platform
from ingestion.sources.registry import read_source
from schemas.document import SourceDocument
from schemas.settings import SAMPLE_PLATFORM
from schemas.source import SourceLimits

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_QUESTIONS = ROOT / "tests" / "data" / "retrieval_samples.jsonl"

PUBLIC = ("cmrc2018_dev_zh", "xquad_zh", "xquad_en", "aws_docs_qa_en", "stabletoolbench_en")
"""Folders of a corpus.jsonl and a queries.jsonl each."""

MOST = 300
"""Questions that are asked of a set at most."""

SEED = 1

_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class RetrievalSet:
    """Documents, by the platform.toml that names them, and questions about them."""

    name: str
    platform: Path
    questions: tuple[EvaluationQuestion, ...]
    held: int
    """How many questions the set has; those above were chosen of them."""

    def documents(self, chunk_tokens: int) -> DocumentIndex:
        """Every document, with its chunks, as the ingestion job reads and cuts it.

        Raises QuestionError when a question's gold is none of them.
        """
        found = DocumentIndex()
        for source in read_platform(self.platform).sources:
            for document in read_source(source, SourceLimits()):
                assert isinstance(document, SourceDocument), document
                found.add(list(chunk_document(document, chunk_tokens)))
        found.check_gold(self.questions)
        return found


def sample_set() -> RetrievalSet:
    """The sample platform, and the questions about it of somebody who had not seen the code."""
    questions = tuple(read_questions(SAMPLE_QUESTIONS))
    return RetrievalSet("samples", SAMPLE_PLATFORM, questions, len(questions))


def missing_sets(data: Path) -> list[str]:
    """The public sets that do not lie in the folder `data`."""
    return [name for name in PUBLIC if not (data / name).is_dir()]


def public_sets(data: Path, folder: Path) -> Iterator[RetrievalSet]:
    """The public sets that lie in `data`, as Markdown pages in `folder`."""
    for name in PUBLIC:
        if (data / name).is_dir():
            yield public_set(data / name, folder / name)


def public_set(given: Path, folder: Path, most: int = MOST) -> RetrievalSet:
    """The set in the folder `given` as Markdown pages in `folder`, with at most `most` of its questions.

    A page is called by its number, since ids are no file names, and its title has no HTML.
    """
    pages = folder / "pages"
    pages.mkdir(parents=True)
    names: dict[str, str] = {}
    for number, document in enumerate(_lines(given / "corpus.jsonl")):
        names[document["id"]] = name = f"{number:06}"
        title = yaml.safe_dump({"title": _TAG.sub("", document["title"]).strip()}, width=10_000)
        (pages / f"{name}.md").write_text(
            f"---\n{title}---\n{document['text']}\n", encoding="utf-8"
        )
    platform = folder / "platform.toml"
    platform.write_text(PLATFORM, encoding="utf-8")
    queries = list(_lines(given / "queries.jsonl"))
    chosen = random.Random(SEED).sample(queries, most) if len(queries) > most else queries
    questions = tuple(
        EvaluationQuestion(question=query["query"], gold=tuple(names[id] for id in query["gold"]))
        for query in chosen
    )
    return RetrievalSet(given.name, platform, questions, len(queries))


def _lines(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
