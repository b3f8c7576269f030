"""Measures of a ranking: between 0 and 1, higher is better; percentiles are in their values' unit.

A ranking is a list of documents, best first. A question's gold is a list of sets: each stands for one
thing to find, and any document of the set is it (two documents may bear one name).
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from schemas.question import QuestionType

RankedDocuments = Sequence[str]
GoldDocuments = Sequence[frozenset[str]]

NORMAL_95 = 1.96
"""Standard errors on each side that hold the mean in 95 of 100 samples."""


def distinct(documents: Iterable[str]) -> list[str]:
    """The documents of a ranking of chunks: each counts where its first chunk stands."""
    return list(dict.fromkeys(documents))


def hit_at(k: int, ranking: RankedDocuments, gold: GoldDocuments) -> float:
    """1 when anything of `gold` is among the first `k`, else 0.

    Also success@k, and top-k accuracy in Karpukhin et al., Dense Passage Retrieval, EMNLP 2020.
    """
    return float(recall_at(k, ranking, gold) > 0)


def recall_at(k: int, ranking: RankedDocuments, gold: GoldDocuments) -> float:
    """The share of `gold` that is among the first `k`.

    Manning, Raghavan and Schütze, Introduction to Information Retrieval, 2008, sections 8.3 and 8.4.
    """
    found = set(ranking[:k])
    return fmean(not found.isdisjoint(each) for each in gold)


def first_rank(ranking: RankedDocuments, gold: GoldDocuments) -> int | None:
    """The place of the first document of `gold`, from 1; None where there is none."""
    wanted = frozenset[str]().union(*gold)
    return next((rank for rank, each in enumerate(ranking, 1) if each in wanted), None)


def reciprocal_rank(ranking: RankedDocuments, gold: GoldDocuments) -> float:
    """1 / `first_rank`, or 0; its mean over questions is MRR.

    Voorhees, The TREC-8 Question Answering Track Report, 1999.
    """
    rank = first_rank(ranking, gold)
    return 1 / rank if rank else 0.0


def interval(share: float, count: int) -> tuple[float, float]:
    """Where the true mean lies with 95 % confidence, when `count` values from 0 to 1 average `share`.

    Wilson, Probable Inference, the Law of Succession, and Statistical Inference, 1927. It is for values
    of 0 or 1; where some lie between, as recall of several documents does, it is a little too wide.
    """
    z2 = NORMAL_95**2
    centre = (share + z2 / (2 * count)) / (1 + z2 / count)
    spread = math.sqrt(share * (1 - share) / count + z2 / (4 * count**2))
    half = NORMAL_95 * spread / (1 + z2 / count)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of `values` do not exceed.

    The nearest-rank method; Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996, type 1.
    """
    return sorted(values)[max(math.ceil(share * len(values)), 1) - 1]


def confusion(
    pairs: Iterable[tuple[QuestionType, QuestionType]],
) -> dict[QuestionType, dict[QuestionType, int]]:
    """How many of each label (outer) were given each type (inner), from (label, type) pairs.

    Manning, Raghavan and Schütze, 2008, section 13.6.
    """
    types: tuple[QuestionType, ...] = ("api_call", "general", "unknown")
    counts = Counter(pairs)
    return {label: {said: counts[label, said] for said in types} for label in types}
