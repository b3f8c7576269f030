"""Generates plain questions about the APIs of a collection, such as the meaning of an error code.

The sets contain few such questions, because their writers looked for less obvious ones. Users ask them
often.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from app.analytics.evaluation.dataset import EvaluationQuestion
from ingestion.store.collection import Collection
from ingestion.text.markdown_blocks import parse_blocks, parse_table, plain_text
from schemas.choices import Language
from schemas.document import Chunk, SectionKind

SAMPLE = 400
"""Number of chunks from which questions are generated."""

PER_KIND = 8
"""Maximum number of questions about each kind of section."""

MAX_FACT_CHARS = 40
"""Maximum length of a fact, in characters. Longer ones are cut, because quotes are cut as well."""

TEMPLATES: Mapping[SectionKind, Mapping[Language, Sequence[str]]] = {
    "error_codes": {
        "zh": ("{code} 是什么错误", "{api}报 {code} 怎么处理"),
        "en": ("what is error {code}", "{api} returns {code}, what does it mean"),
    },
    "request_parameters": {
        "zh": ("{api}的请求参数有哪些", "{api}需要传什么参数"),
        "en": ("which parameters does {api} take", "request parameters of {api}"),
    },
    "response_parameters": {
        "zh": ("{api}返回哪些字段", "{api}的返回值是什么"),
        "en": ("what does {api} return", "which fields does {api} return"),
    },
    "permission_package": {
        "zh": ("{api}需要什么权限", "调用{api}要申请哪个权限"),
        "en": ("which permission does {api} need", "scopes of {api}"),
    },
    "request_url": {
        "zh": ("{api}的接口地址是什么", "用哪个接口{api}"),
        "en": ("what is the endpoint of {api}", "url of {api}"),
    },
}


def plain_questions(collection: Collection) -> list[EvaluationQuestion]:
    """Return questions about sampled sections, with the facts that their answers state."""
    by_kind: defaultdict[SectionKind, list[EvaluationQuestion]] = defaultdict(list)
    for chunk in collection.sample(SAMPLE):
        by_language = TEMPLATES.get(chunk.kind)
        if by_language and chunk.api_name and len(by_kind[chunk.kind]) < PER_KIND:
            templates = by_language[chunk.language]
            template = templates[len(by_kind[chunk.kind]) % len(templates)]
            for code, facts in _facts(chunk):
                text = template.format(api=chunk.api_name, code=code)
                question = EvaluationQuestion(
                    question=text, gold=(chunk.document_id,), facts=facts, kind=chunk.kind
                )
                by_kind[chunk.kind].append(question)
    return [question for questions in by_kind.values() for question in questions]


def _facts(chunk: Chunk) -> Iterator[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Yield the error code, or an empty text for other sections, with the facts that an answer must state.

    Nothing is yielded for a section without facts.
    """
    if chunk.kind == "request_url":
        yield "", ((chunk.api_url,),)
        return
    tables = (block.text for block in parse_blocks(chunk.body) if block.kind == "table")
    rows = [[plain_text(cell) for cell in row] for row in parse_table(next(tables, ""))[1:]]
    if chunk.kind == "error_codes":
        documented = [(row[0], max(row[1:], key=len)) for row in rows if len(row) > 1]
        for code, meaning in documented[:1]:
            if code and meaning:
                yield code, ((code,), (meaning[:MAX_FACT_CHARS],))
    elif names := [row[0] for row in rows if row and row[0]]:
        yield "", tuple((name,) for name in names[:2])
