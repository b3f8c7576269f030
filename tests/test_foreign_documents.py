"""Third-party documents are indexed and retrieved, and off-topic questions are refused."""

import json
from pathlib import Path

import frontmatter
import pytest

from app.service.answer_service import AnswerService, connect_answer_service
from runnables.classification.classify import classify_by_rules
from runnables.question.extract_details import extract_details
from runnables.question.query_analysis import Glossary
from schemas.ingestion import IngestionRun
from tests.conftest import SHARED_DATA, make_settings, needs_shared_data

pytestmark = [pytest.mark.acceptance, needs_shared_data]

PLATFORM = """
[platform]
name = "Foreign"
description = "Two products' documentation, as it was published."
audience = "developers"
tone = "plain"
greeting = "Hello."
refusal = "Not about these products."
language = "zh"

[[sources]]
name = "dify"
kind = "markdown"
path = "{data}/markdown/dify_zh"
page_url = "https://dify.example/{{path}}"

[[sources]]
name = "milvus"
kind = "markdown"
path = "{data}/markdown/milvus_en/site/en"
page_url = "https://milvus.example/{{path}}"

[sources.metadata]
summary = "summary"
"""

QUESTIONS = [
    ("用 docker compose 怎么把 dify 部署起来", "self-host/deploy/quick-start/docker-compose"),
    ("接口返回 too_many_requests 是什么意思，要不要重试", "api-reference/guides/errors"),
    ("怎么把工作流发布成 MCP 服务", "cloud/use-dify/publish/publish-mcp"),
    (
        "插件里怎么保存持久化数据",
        "develop-plugin/features-and-specs/plugin-types/persistent-storage-kv",
    ),
    ("difyctl 怎么登录认证", "cli/reference/auth-and-contexts"),
    ("how do I back up data and restore it later", "userGuide/tools/milvus_backup_overview"),
    ("which index should I use for binary vectors", "reference/index"),
    (
        "how to install milvus on kubernetes with helm",
        "getstarted/run-milvus-k8s/install_cluster-helm",
    ),
    ("how can I set TTL so old entities expire", "userGuide/manage-collections"),
    ("combine BM25 with dense vectors in one search", "tutorials/hybrid_search_with_milvus"),
]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> tuple[AnswerService, IngestionRun]:
    profile = tmp_path_factory.mktemp("foreign") / "platform.toml"
    profile.write_text(PLATFORM.format(data=SHARED_DATA), encoding="utf-8")
    answer_service = connect_answer_service(make_settings(tmp_path_factory, platform=profile))
    return answer_service, answer_service.job.run(answer_service.job.new_run("start"))


@pytest.fixture(scope="module")
def foreign_desk(indexed: tuple[AnswerService, IngestionRun]) -> AnswerService:
    return indexed[0]


def has_text(path: Path) -> bool:
    """Whether a page is published and has text under its headings."""
    page = frontmatter.load(str(path))
    lines = page.content.splitlines()
    return not page.get("hidden") and any(
        line.strip() and not line.startswith("#") for line in lines
    )


def test_every_page_with_a_body_is_indexed(indexed: tuple[AnswerService, IngestionRun]) -> None:
    pages = [
        path
        for folder in ("markdown/dify_zh", "markdown/milvus_en/site/en")
        for path in (SHARED_DATA / folder).rglob("*")
        if path.suffix in {".md", ".mdx"} and has_text(path)
    ]
    assert sum(source.documents for source in indexed[1].sources) == len(pages)


@pytest.mark.parametrize(("question", "page"), QUESTIONS, ids=[q for q, _ in QUESTIONS])
def test_expected_page_is_among_the_first_five(
    foreign_desk: AnswerService, question: str, page: str
) -> None:
    found = foreign_desk.collection.search(question, 5)
    assert page in [retrieved.chunk.document_id for retrieved in found]


def test_off_topic_questions_are_refused(foreign_desk: AnswerService) -> None:
    def is_refused(question: str) -> bool:
        found = classify_by_rules(
            extract_details(question),
            foreign_desk.collection,
            Glossary(foreign_desk.platform.glossary),
        )
        return found.structured.type == "unknown"

    lines = (SHARED_DATA / "offtopic.jsonl").read_text(encoding="utf-8").splitlines()
    off_topic = [json.loads(line)["query"] for line in lines]
    passed = [question for question in off_topic if not is_refused(question)]
    assert len(passed) / len(off_topic) <= 0.2, passed
    assert not [question for question, _ in QUESTIONS if is_refused(question)]
