"""Fits the ranking of passages, the confidence and the topic gate, and writes their coefficients.

    python -m benchmarks.fit_answers [--cache FOLDER]

Only the working part of the question sets is read.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from benchmarks.answers.__main__ import CACHE, DATA
from benchmarks.document import around_markers, write_between_markers
from benchmarks.fit_answers.examples import Example, RankingExample, ask_corpora
from benchmarks.fit_answers.regression import cross_validate_ranking, fit_logistic, fit_ranking
from benchmarks.fit_answers.report import coefficients_text, document_text
from benchmarks.retrieval_sets import ROOT
from runnables.coefficients import PASSAGE_WEIGHTS

COEFFICIENTS = ROOT / "runnables" / "coefficients.py"
DOCUMENT = ROOT / "docs" / "explanation" / "answers.md"
MARKER = "fit"


@click.command()
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    default=DATA,
    help="Folder of the documents that the sets ask about.",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    default=CACHE,
    show_default=True,
    help="Folder for indexes.",
)
def main(data: Path, cache: Path) -> None:
    """Fit all coefficients, print them and their figures, and write both to the repository."""
    around_markers(DOCUMENT, MARKER)  # a missing marker raises now, not after minutes of work
    coefficients, figures = asyncio.run(_fit(data, cache))
    COEFFICIENTS.write_text(coefficients, encoding="utf-8")
    write_between_markers(DOCUMENT, figures, MARKER)
    click.echo(f"{coefficients}\n{figures}")


async def _fit(data: Path, cache: Path) -> tuple[str, str]:
    """Fit the coefficients; return the text of their module and the section of the document."""
    names = list(PASSAGE_WEIGHTS)
    columns = range(len(names))
    async with ask_corpora(data, cache) as corpora:
        passages: list[RankingExample] = [
            example for corpus in corpora for example in corpus.ranking_examples(names)
        ]
        weights = dict(zip(names, map(float, fit_ranking(passages, columns)), strict=True))
        answers = [example for corpus in corpora for example in corpus.answer_examples(weights)]
        topics = _balanced([each for corpus in corpora for each in corpus.topic_examples()])
    text = coefficients_text(
        weights,
        fit_logistic(answers, list(answers[0].features)),
        fit_logistic(topics, list(topics[0].features)),
        len(passages),
        cross_validate_ranking(passages, columns),
    )
    return text, document_text(names, passages, answers)


def _balanced(examples: list[Example]) -> list[Example]:
    """Return the examples, weighted so that both labels have the same total weight."""
    positive = sum(example.label for example in examples)
    ratio = (len(examples) - positive) / positive
    return [replace(each, weight=ratio) if each.label else each for each in examples]


if __name__ == "__main__":
    main()
