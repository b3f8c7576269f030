"""Computes retrieval metrics, most of them between 0 and 1 (higher is better), and other statistics.

A ranking is a list of documents, best first. Gold is a list of sets of documents, one set per name in
the question's `gold`. Any document in a set is correct, because a name can refer to several.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from schemas.question import QuestionType

RankedDocuments = Sequence[str]
GoldDocuments = Sequence[frozenset[str]]

NORMAL_95 = 1.96
"""The 97.5th percentile of the standard normal distribution, for two-sided 95% intervals."""


def distinct(documents: Iterable[str]) -> list[str]:
    """Return the documents of ranked chunks in the same order, each at its first occurrence only."""
    return list(dict.fromkeys(documents))


def hit_at(k: int, ranking: RankedDocuments, gold: GoldDocuments) -> float:
    """Return 1 if a gold document is among the first `k`, and 0 otherwise.

    Also called success@k, and top-k accuracy by Karpukhin et al., Dense Passage Retrieval, EMNLP 2020.
    """
    return float(recall_at(k, ranking, gold) > 0)


def recall_at(k: int, ranking: RankedDocuments, gold: GoldDocuments) -> float:
    """Return the share of `gold` items that are among the first `k` documents.

    Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, sections 8.3 and 8.4.
    """
    top = set(ranking[:k])
    return fmean(not top.isdisjoint(documents) for documents in gold)


def first_rank(ranking: RankedDocuments, gold: GoldDocuments) -> int | None:
    """Return the rank of the first gold document, from 1; None if no gold document was retrieved."""
    relevant = frozenset[str]().union(*gold)
    return next((rank for rank, document in enumerate(ranking, 1) if document in relevant), None)


def reciprocal_rank(ranking: RankedDocuments, gold: GoldDocuments) -> float:
    """Return 1 / `first_rank`, or 0 if no gold document was retrieved. The mean over questions is the MRR.

    Voorhees, The TREC-8 Question Answering Track Report, 1999.
    """
    rank = first_rank(ranking, gold)
    return 1 / rank if rank else 0.0


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """Return the 95% confidence interval (Wilson score) of the mean `share` of `count` values from 0 to 1.

    Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927. The interval is
    meant for values of 0 or 1, and slightly too wide for values in between, such as recall.
    """
    z2 = NORMAL_95**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    half = NORMAL_95 * spread / (1 + z2 / count)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of `values` for `share`, a number from 0 to 1.

    At least this share of the values are less than or equal to the result.

    Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996, type 1.
    """
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def confusion_matrix(
    pairs: Iterable[tuple[QuestionType, QuestionType]],
) -> dict[QuestionType, dict[QuestionType, int]]:
    """Return the number of `pairs` of a label (outer key) and a predicted type (inner key).

    Manning, Raghavan and Schütze, 2008, section 13.6.
    """
    types: tuple[QuestionType, ...] = ("api_call", "general", "unknown")
    counts = Counter(pairs)
    return {label: {type_: counts[label, type_] for type_ in types} for label in types}
