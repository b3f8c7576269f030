"""The platforms in examples/ are served by their configuration alone, without a model."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from litestar import Litestar
from litestar.testing import TestClient

from app.cli.main import main
from app.main import create_app
from app.service.answer_service import AnswerService
from ingestion.platform_config import read_platform
from schemas.choices import LANGUAGES, Language
from schemas.ingestion import IngestionRun
from schemas.platform import PlatformInfo
from tests.conftest import ServiceFactory
from tests.http_client import http_client

pytestmark = pytest.mark.acceptance

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

DOCUMENTS = {
    "papers": {"papers": 5},
    "blog": {"blog": 8},
    "course": {"courses-en": 1, "courses-zh": 1},
}
"""Number of documents by example and source."""

PAPER = "https://papers.example/pdf/"
BLOG = "https://mending.example/"
COURSE = "https://courses.example/"

TIDE = {"course": "Reading the Tide", "instructor": "Maren Holt"}
CLOUDS = {"course": "看云识天气", "instructor": "周砚秋"}


def platform_of(example: str) -> Path:
    return EXAMPLES / example / "platform.toml"


@dataclass(frozen=True)
class Served:
    """An example's answer service, and an HTTP client for it."""

    answer_service: AnswerService
    client: TestClient[Litestar]

    @property
    def platform_info(self) -> PlatformInfo:
        return self.answer_service.platform.platform

    def ask(self, question: str) -> dict[str, Any]:
        response = self.client.post("/ask", json={"question": question})
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        assert answer["introduction"].startswith(
            self.platform_info.greeting.in_language(answer["language"])
        )
        return answer


@pytest.fixture(scope="module")
def served(make_service: ServiceFactory) -> Iterator[Mapping[str, Served]]:
    with ExitStack() as stack:
        services = {example: make_service(platform=platform_of(example)) for example in DOCUMENTS}
        yield {
            example: Served(
                answer_service, stack.enter_context(http_client(create_app(answer_service)))
            )
            for example, answer_service in services.items()
        }


@pytest.mark.parametrize("example", DOCUMENTS)
def test_example_is_indexed_by_one_command(example: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        main,
        ["ingest", "--json", "--platform", str(platform_of(example))],
        env={
            "APIDESK_MILVUS_URI": str(tmp_path / "milvus.db"),
            "APIDESK_DATABASE_URL": f"sqlite:///{tmp_path / 'runs.db'}",
        },
    )
    assert result.exit_code == 0, result.stderr
    run = IngestionRun.model_validate_json(result.stdout)
    assert {source.name: source.documents for source in run.sources} == DOCUMENTS[example]
    assert not run.refused


@pytest.mark.parametrize("example", DOCUMENTS)
def test_example_contains_only_configuration_and_documents(example: str) -> None:
    platform_info = read_platform(platform_of(example)).platform
    for sentences in (platform_info.greeting, platform_info.refusal):
        assert sentences.root.keys() == set(LANGUAGES)
        assert len(set(sentences.root.values())) == len(LANGUAGES)
    suffixes = {path.suffix for path in (EXAMPLES / example).rglob("*") if path.is_file()}
    assert suffixes <= {".toml", ".pdf", ".md", ".txt"}


@pytest.mark.parametrize(
    ("example", "question", "language", "page_url", "section", "metadata", "says"),
    [
        ("papers", "how much stores does an insulated lid save?", "en", PAPER + "2611.00042.pdf#page=1",
         "Abstract", {"id": "2611.00042", "page": "1", "author": "A. Lindqvist, P. Moreau"}, "2.6 kg"),
        ("papers", "Which licence is the mite data under?", "en", PAPER + "2612.00108.pdf#page=2",
         "4 Data and code", {"id": "2612.00108", "page": "2"}, "CC BY 4.0"),
        ("papers", "why are the positions of the scales rounded?", "en", PAPER + "2612.00233.pdf#page=1",
         "3 Privacy", {"id": "2612.00233", "page": "1"}, "2 km"),
        ("papers", "what does 2612.00108 say about pollen?", "en", PAPER + "2612.00108.pdf#page=1",
         "2 Training", {"id": "2612.00108", "page": "1"}, "3.1 percent"),
        ("papers", "失王的蜂群声音有什么特征", "zh", PAPER + "2701.00009.pdf#page=1",
         "2 失王的声音特征", {"id": "2701.00009", "page": "1", "author": "沈若溪，高远，梁田"}, "五百赫兹"),
        ("papers", "中华蜜蜂的声音和意大利蜂有什么不同", "zh", PAPER + "2701.00009.pdf#page=2",
         "4 讨论", {"id": "2701.00009", "page": "2"}, "高约四十赫兹"),
        ("blog", "how do I replace a brake cable?", "en", BLOG + "posts/bicycle-brake-cable/",
         "How to replace it", {"tags": "bicycle", "date": "2026-03-14"}, "6 Nm"),
        ("blog", "how do I descale a kettle?", "en", BLOG + "posts/descaling-a-kettle/",
         "How to descale it", {"tags": "kitchen, kettle", "date": "2026-02-07"}, "60 degrees"),
        ("blog", "which colour is the earth wire?", "en", BLOG + "posts/rewiring-a-lamp/",
         "Colours of the wires", {"tags": "electrics, lamp"}, "green and yellow"),
        ("blog", "what are your opening hours?", "en", BLOG + "visit/",
         "Opening hours", {"tags": "visiting"}, "10:00 to 15:00"),
        ("blog", "怎么更换限温器", "zh", BLOG + "posts/rice-cooker/",
         "更换限温器的步骤", {"tags": "厨房, 电饭煲"}, "逆时针"),
        ("blog", "伞骨断了用什么接", "zh", BLOG + "posts/mending-an-umbrella/",
         "", {"tags": "雨伞"}, "铜管"),
        ("course", "what is the rule of twelfths?", "en", COURSE + "tide/2", "Lesson 2: The rule of twelfths",
         TIDE | {"lesson": "2", "lesson_title": "The rule of twelfths", "link": COURSE + "tide/2"}, "one twelfth"),
        ("course", "when do spring tides come?", "en", COURSE + "tide/1",
         "Lesson 1: Why there are two tides a day", TIDE | {"lesson": "1"}, "full moon"),
        ("course", "what clearance do I need to cross a sandbank?", "en", COURSE + "tide",
         "Lesson 3: Crossing a sandbank", TIDE | {"lesson": "3"}, "0.5 metres"),
        ("course", "钩卷云出现以后多久会下雨", "zh", COURSE + "clouds/2", "第 2 课：钩卷云和冷锋",
         CLOUDS | {"lesson": "2", "lesson_title": "钩卷云和冷锋", "link": COURSE + "clouds/2"}, "十二到二十四小时"),
        ("course", "怎么申请结业证书", "zh", COURSE + "clouds/0",
         "第 0 课：课程介绍", CLOUDS | {"lesson": "0"}, "连续记录二十天"),
        ("course", "怎么估计雷暴的距离", "zh", COURSE + "clouds",
         "第 3 课：积雨云和雷暴", CLOUDS | {"lesson": "3"}, "每三秒大约一公里"),
    ],
)  # fmt: skip
def test_section_with_the_answer_is_cited(
    served: Mapping[str, Served],
    example: str,
    question: str,
    language: Language,
    page_url: str,
    section: str,
    metadata: dict[str, str],
    says: str,
) -> None:
    answer = served[example].ask(question)

    assert answer["language"] == language
    cited = {(each["pageUrl"], each["section"]): each["metadata"] for each in answer["sources"]}
    assert cited[page_url, section].items() >= metadata.items()
    assert page_url in answer["relatedUrl"]
    assert any(says in step for step in answer["answer"])


@pytest.mark.parametrize("question", ["when should mites be treated?", "失王后多久可以检测到"])
def test_sources_name_the_paper_and_link_to_the_page(
    served: Mapping[str, Served], question: str
) -> None:
    sources = served["papers"].ask(question)["sources"]
    assert sources
    for source in sources:
        paper = source["metadata"]
        assert source["pageUrl"] == f"{PAPER}{paper['id']}.pdf#page={paper['page']}"


@pytest.mark.parametrize(
    ("example", "question", "language"),
    [
        ("papers", "what is the capital of France?", "en"),
        ("papers", "今天股市怎么样", "zh"),
        ("blog", "who won the football match yesterday?", "en"),
        ("blog", "明天天气怎么样", "zh"),
        ("blog", "what's the capital of Peru?", "en"),
        ("blog", "how do I time a sewing machine?", "en"),
        ("course", "how do I cook rice?", "en"),
        ("course", "怎么炒股", "zh"),
    ],
)
def test_off_topic_questions_are_refused(
    served: Mapping[str, Served], example: str, question: str, language: Language
) -> None:
    answer = served[example].ask(question)
    platform_info = served[example].platform_info
    assert answer["language"] == language
    assert answer["answer"] == [platform_info.refusal.in_language(language)]
    assert not answer["sources"]


PERMALINKS = {
    "_index": "",
    "about": "visit/",
    "posts/_index": "posts/",
    "posts/brake-cable": "posts/bicycle-brake-cable/",
    "posts/descaling-a-kettle": "posts/descaling-a-kettle/",
    "posts/rewiring-a-lamp/index": "posts/rewiring-a-lamp/",
    "posts/rice-cooker": "posts/rice-cooker/",
    "posts/umbrella": "posts/mending-an-umbrella/",
}
"""Every page of the blog that is not a draft."""


@pytest.mark.parametrize(("document", "link"), PERMALINKS.items())
def test_blog_pages_have_their_permalinks(
    served: Mapping[str, Served], document: str, link: str
) -> None:
    chunks = served["blog"].answer_service.collection.chunks_of_document(document, "blog")
    assert {chunk.page_url for chunk in chunks} == {BLOG + link}


def test_drafts_are_not_indexed(served: Mapping[str, Served]) -> None:
    content = EXAMPLES / "blog" / "content"
    pages = {p.relative_to(content).with_suffix("").as_posix() for p in content.rglob("*.md")}
    drafts = pages - PERMALINKS.keys()
    assert drafts == {"posts/toaster", "posts/sewing-machine"}
    collection = served["blog"].answer_service.collection
    assert not any(collection.chunks_of_document(draft, "blog") for draft in drafts)
