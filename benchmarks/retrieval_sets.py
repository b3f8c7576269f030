"""Questions with the documents that answer them: about the samples, and from public sets."""

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from app.analytics.evaluation.dataset import DocumentIndex, EvaluationQuestion, read_questions
from benchmarks.corpus import PLATFORM
from ingestion.chunking import chunk_document
from ingestion.platform_config import read_platform
from ingestion.sources.registry import read_source
from schemas.document import SourceDocument
from schemas.platform import SourceLimits
from schemas.settings import SAMPLE_PLATFORM

ROOT = Path(__file__).resolve().parents[1]
SAMPLE_QUESTIONS = ROOT / "tests" / "data" / "retrieval_samples.jsonl"

PUBLIC = ("cmrc2018_dev_zh", "xquad_zh", "xquad_en", "aws_docs_qa_en", "stabletoolbench_en")
"""Names of folders that contain a corpus.jsonl and a queries.jsonl."""

MAX_QUESTIONS = 300
"""Maximum number of questions per set."""

SEED = 1

_TAG = re.compile(r"<[^<>]*>")


@dataclass(frozen=True)
class RetrievalSet:
    """A platform.toml with its documents, and questions about them."""

    name: str
    platform: Path
    questions: tuple[EvaluationQuestion, ...]
    held: int
    """Number of questions in the set, from which `questions` were sampled."""

    def documents(self, chunk_tokens: int) -> DocumentIndex:
        """Return every document with its chunks, as in the ingestion job.

        Raises QuestionError if a question's gold document does not exist.
        """
        found = DocumentIndex()
        for source in read_platform(self.platform).sources:
            for document in read_source(source, SourceLimits()):
                assert isinstance(document, SourceDocument), document
                found.add(list(chunk_document(document, chunk_tokens)))
        found.check_gold(self.questions)
        return found


def sample_set() -> RetrievalSet:
    """Return the sample platform with questions by an author who had not seen the code."""
    questions = tuple(read_questions(SAMPLE_QUESTIONS))
    return RetrievalSet("samples", SAMPLE_PLATFORM, questions, len(questions))


def missing_sets(data: Path) -> list[str]:
    """Return the names of the public sets that are missing in the folder `data`."""
    return [name for name in PUBLIC if not (data / name).is_dir()]


def public_sets(data: Path, folder: Path) -> Iterator[RetrievalSet]:
    """Yield the public sets in `data`, with their documents converted to Markdown pages in `folder`."""
    for name in PUBLIC:
        if (data / name).is_dir():
            yield public_set(data / name, folder / name)


def public_set(given: Path, folder: Path, most: int = MAX_QUESTIONS) -> RetrievalSet:
    """Convert the set in the folder `given` to Markdown pages in `folder`, with at most `most` questions.

    File names are numbers, because ids may be invalid as file names. HTML is removed from titles.
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
