"""The question sets, and the documents that each set asks about."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from app.analytics.evaluation.dataset import EvaluationQuestion, read_questions
from benchmarks.retrieval_sets import ROOT
from schemas.settings import SAMPLE_PLATFORM

QUESTIONS = ROOT / "benchmarks" / "questions"

PLATFORMS = ROOT / "benchmarks" / "platforms"
"""The documentation of the invented platforms."""

PACKAGES = ROOT / "build" / "packages"
"""Documentation that `python -m benchmarks.answers.packages` copies from packages."""

Part = Literal["work", "measure"]
"""The part of a set for development, and the part that is only measured."""

PARTS: tuple[Part, ...] = get_args(Part)

PLATFORM_TEMPLATE = """
[platform]
name = {name}
description = {description}
audience = "developers"
tone = "plain"
greeting = "Hello."
refusal = "This question is not about {title}."
language = "{language}"

[[sources]]
name = "docs"
kind = "{kind}"
path = {path}
"""


@dataclass(frozen=True)
class Corpus:
    """The documentation of one platform."""

    name: str
    title: str
    description: str
    language: Literal["zh", "en"]
    kind: Literal["markdown", "openapi", "files"]
    path: str
    """Path of the documents below the folder of their origin."""
    origin: Literal["data", "invented", "package"] = "data"
    """The folder of the data, `PLATFORMS` with the invented platforms, or `PACKAGES`."""

    def documents(self, data: Path) -> Path:
        """Return the file or folder with the documents. `data` is the folder of the data."""
        folders = {"data": data, "invented": PLATFORMS, "package": PACKAGES}
        return folders[self.origin].joinpath(self.path).resolve()

    def platform_toml(self, data: Path) -> str:
        """Return the text of platform.toml. `data` is the folder of the data."""
        return PLATFORM_TEMPLATE.format(
            name=_quote(self.title),
            description=_quote(self.description),
            title=self.title,
            language=self.language,
            kind=self.kind,
            path=_quote(str(self.documents(data))),
        )


CORPORA = (
    Corpus(
        "dify_md",
        "Dify",
        "Dify：构建 AI 应用、工作流和知识库的平台，包括云服务、自托管、插件和 API",
        "zh",
        "markdown",
        "markdown/dify_zh",
    ),
    Corpus(
        "milvus_md",
        "Milvus",
        "Milvus, a vector database: installation, administration, data and search",
        "en",
        "markdown",
        "markdown/milvus_en",
    ),
    Corpus(
        "napcat",
        "NapCat",
        "NapCat：QQ 机器人的消息、好友、群和文件接口",
        "zh",
        "openapi",
        "openapi/napcat.zh.openapi31.json",
    ),
    Corpus(
        "wechatpay",
        "微信支付",
        "微信支付：下单、退款、转账、分账、账单、营销和商户接口",
        "zh",
        "openapi",
        "openapi/wechatpay.zh.swagger2.json",
    ),
    Corpus(
        "slack",
        "Slack",
        "The Slack Web API: messages, channels, users, files and administration",
        "en",
        "openapi",
        "openapi/slack.en.swagger2.json",
    ),
    Corpus(
        "dify_api",
        "Dify API",
        "The Dify API: chat, workflows, files, audio and knowledge bases",
        "en",
        "openapi",
        "openapi/dify.en.openapi30.json",
    ),
    Corpus(
        "yunli",
        "云笠开放平台",
        "云笠开放平台：连锁餐饮的会员、优惠券、门店、菜单、订单、配送、打印和结算接口",
        "zh",
        "markdown",
        "yunli",
        origin="invented",
    ),
    Corpus(
        "ferrylane",
        "Ferrylane",
        "The Ferrylane API: event ticketing, seat maps, orders, passes, check-in and payouts",
        "en",
        "markdown",
        "ferrylane",
        origin="invented",
    ),
    Corpus(
        "tushare",
        "Tushare",
        "Tushare：股票、基金、期货、债券、指数和宏观经济的数据接口",
        "zh",
        "markdown",
        "tushare/docs",
        origin="package",
    ),
    Corpus(
        "icinga",
        "Icinga 2",
        "Icinga 2: monitoring configuration, REST API, command line and distributed monitoring",
        "en",
        "markdown",
        "icinga/markdown",
        origin="package",
    ),
    Corpus(
        "blockfrost",
        "Blockfrost",
        "The Blockfrost API: accounts, blocks, transactions, assets and pools of Cardano, and IPFS",
        "en",
        "openapi",
        "blockfrost/openapi.yaml",
        origin="package",
    ),
    Corpus(
        "drf",
        "Django REST framework",
        "Django REST framework: API guide, topics and tutorial",
        "en",
        "files",
        "drf",
        origin="package",
    ),
    Corpus(
        "meeting",
        "华为云会议",
        "华为云会议：会议的预约和控制、会议室、录制、用户、部门和企业资源接口",
        "zh",
        "openapi",
        "meeting/meeting.json",
        origin="package",
    ),
    Corpus(
        "phonepe",
        "PhonePe Payment Gateway",
        "PhonePe Payment Gateway: checkout, SDKs, payment links, autopay, refunds and webhooks",
        "en",
        "markdown",
        "phonepe",
        origin="package",
    ),
    Corpus(
        "github",
        "GitHub",
        "The GitHub REST API: repositories, issues, pull requests, actions, users and organizations",
        "en",
        "openapi",
        "github/api.github.com.json",
        origin="package",
    ),
    Corpus(
        "cloudbase",
        "云开发",
        "云开发服务端 SDK：数据库、云函数、云存储、登录和日志",
        "zh",
        "markdown",
        "cloudbase/docs",
        origin="package",
    ),
    Corpus(
        "shipengine",
        "ShipEngine API",
        "The ShipEngine API: labels, rates, shipments, tracking, carriers, batches and manifests",
        "en",
        "openapi",
        "shipengine/openapi.yaml",
        origin="package",
    ),
    Corpus(
        "wecom",
        "企业微信智能机器人插件",
        "企业微信智能机器人插件：消息、日程、会议、待办、通讯录、文档和表格接口",
        "zh",
        "markdown",
        "wecom",
        origin="package",
    ),
    Corpus(
        "synapse",
        "Synapse",
        "Synapse, a Matrix homeserver: admin API, configuration, authentication, federation and modules",
        "en",
        "markdown",
        "synapse/docs",
        origin="package",
    ),
    Corpus(
        "openviking",
        "OpenViking",
        "OpenViking：AI Agent 的上下文数据库，包括资源、记忆、技能、会话、检索、部署和模型网关",
        "zh",
        "markdown",
        "openviking/zh",
        origin="package",
    ),
)

EVERYDAY = "everyday"
"""Name of the set about the samples in the repository."""

SETS = (*(corpus.name for corpus in CORPORA), EVERYDAY)


def read_set(name: str, part: Part) -> list[EvaluationQuestion]:
    """Return one part of the set `name`. Raises QuestionError."""
    return read_questions(QUESTIONS / part / f"{name}.jsonl")


def is_available(name: str, data: Path) -> bool:
    """Return whether the documents of the set `name` are available."""
    return name == EVERYDAY or _corpus(name).documents(data).exists()


def write_platform(name: str, data: Path, folder: Path) -> Path:
    """Return the path of the set's platform.toml: that of the samples, or a new file in `folder`."""
    if name == EVERYDAY:
        return SAMPLE_PLATFORM
    path = folder / "platform.toml"
    path.write_text(_corpus(name).platform_toml(data), encoding="utf-8")
    return path


def corpus_files(name: str, data: Path) -> Iterator[Path]:
    """Yield the files that the set's documents are read from, in a stable order."""
    root = SAMPLE_PLATFORM.parent if name == EVERYDAY else _corpus(name).documents(data)
    yield from [root] if root.is_file() else sorted(p for p in root.rglob("*") if p.is_file())


def off_topic_questions(part: Part, data: Path) -> dict[str, list[str]]:
    """Return the questions that are not about any platform, by the name of their set.

    `general` is our own set, of which one part is returned. `public` is in the folder of the data; it is
    only measured, and missing if its file is.
    """
    sets = {"general": _read_lines(QUESTIONS / part / "general.jsonl", "question")}
    if (public := data / "offtopic.jsonl").is_file():
        sets["public"] = _read_lines(public, "query")
    return sets


def _read_lines(path: Path, key: str) -> list[str]:
    return [json.loads(line)[key] for line in path.read_text(encoding="utf-8").splitlines()]


def _corpus(name: str) -> Corpus:
    return next(corpus for corpus in CORPORA if corpus.name == name)


def _quote(text: str) -> str:
    """Return `text` as a TOML string; JSON strings are TOML strings."""
    return json.dumps(text, ensure_ascii=False)
