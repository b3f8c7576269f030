"""The embedded store and Milvus rank the same chunks alike."""

import random
from collections.abc import Iterator

import pytest

from benchmarks.store_ranking import both_stores, overlaps
from ingestion.store.collection import Collection
from schemas.document import Chunk
from tests.chunks import page

pytestmark = pytest.mark.acceptance

CHINESE = [
    "订单",
    "发货",
    "签名",
    "接口",
    "参数",
    "错误码",
    "退款",
    "库存",
    "商品",
    "店铺",
    "授权",
    "令牌",
    "回调",
    "消息",
    "推送",
    "物流",
    "运单",
    "面单",
    "揽收",
    "取消",
    "查询",
    "分页",
    "时间",
    "格式",
    "字段",
    "必填",
    "返回",
    "请求",
    "响应",
    "超时",
    "重试",
    "限流",
    "频率",
    "权限",
    "应用",
    "密钥",
    "证书",
    "加密",
    "解密",
    "测试",
    "沙箱",
    "环境",
    "上线",
    "审核",
    "版本",
    "升级",
    "废弃",
    "文档",
    "示例",
    "说明",
    "支付",
    "结算",
    "账单",
    "对账",
    "发票",
    "优惠",
    "活动",
    "会员",
    "积分",
    "评价",
    "售后",
    "换货",
    "仓库",
    "配送",
    "地址",
    "手机号",
    "用户",
    "开发者",
    "服务商",
    "平台",
]
ENGLISH = [
    "order",
    "shipment",
    "signature",
    "endpoint",
    "parameter",
    "error",
    "refund",
    "inventory",
    "product",
    "store",
    "authorization",
    "token",
    "callback",
    "message",
    "webhook",
    "logistics",
    "waybill",
    "label",
    "pickup",
    "cancel",
    "query",
    "pagination",
    "timestamp",
    "format",
    "field",
    "required",
    "response",
    "request",
    "timeout",
    "retry",
    "limit",
    "rate",
    "permission",
    "application",
    "secret",
    "certificate",
    "encrypt",
    "decrypt",
    "sandbox",
    "environment",
    "release",
    "review",
    "version",
    "upgrade",
    "deprecated",
    "example",
    "payment",
    "settlement",
    "invoice",
    "discount",
    "campaign",
    "member",
    "points",
    "rating",
    "return",
    "warehouse",
    "delivery",
    "address",
    "phone",
    "developer",
    "platform",
    "getWaybillNo",
    "cancel_pick_up",
    "isv.invalid-signature",
    "/api/v1/order/search",
    "UserId",
    "access_token",
    "40001",
    "HmacSHA256",
]


def sentences(chance: random.Random, words: list[str], joint: str, count: int) -> str:
    """Text with few frequent and many rare words, as in real documents."""
    weights = [1 / (rank + 1) ** 0.8 for rank in range(len(words))]
    return "\n\n".join(
        joint.join(chance.choices(words, weights, k=chance.randint(4, 24))) for _ in range(count)
    )


def varied_chunks(chance: random.Random) -> list[Chunk]:
    """About 400 chunks of 5 to 300 words, in Chinese, English and both."""
    chunks: list[Chunk] = []
    for number in range(140):
        chinese, english = chance.sample(CHINESE, 45), chance.sample(ENGLISH, 45)
        bodies = [
            sentences(chance, *chance.choice([(chinese, ""), (english, " "), (chinese + english, " ")]),
                      chance.choice([1, 1, 2, 4, 12]))
            for _ in range(3)
        ]  # fmt: skip
        chunks += page(f"{number} {chance.choice(chinese)} {chance.choice(english)}", *bodies)
    return chunks


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Collection, Collection]]:
    with both_stores(tmp_path_factory.mktemp("stores"), varied_chunks(random.Random(3))) as stores:
        yield stores


def questions() -> list[str]:
    chance = random.Random(5)
    return [
        " ".join(chance.sample(chance.choice([CHINESE, ENGLISH, CHINESE + ENGLISH]), size))
        for size in (2, 3, 5, 8)
        for _ in range(15)
    ]


def test_both_stores_rank_alike(stores: tuple[Collection, Collection]) -> None:
    shares = overlaps(*stores, questions())
    assert len(shares) == 60
    assert sum(shares) / len(shares) >= 0.95


def test_both_stores_give_the_same_scores(stores: tuple[Collection, Collection]) -> None:
    """Up to a factor, which differs between versions of BM25."""
    embedded, milvus = stores
    for question in questions()[::6]:
        ours, theirs = (store.search_hits(question, 10) for store in (embedded, milvus))
        shared = ours.keys() & theirs.keys()
        factors = [theirs[hit] / ours[hit] for hit in shared]
        assert max(factors) == pytest.approx(min(factors), rel=0.03)


def test_comparison_notices_different_rankings(stores: tuple[Collection, Collection]) -> None:
    embedded, _ = stores
    other = [*questions()[1:], questions()[0]]
    pairs = zip(questions(), other, strict=True)
    found = [
        len(set(embedded.search_hits(a, 10)) & set(embedded.search_hits(b, 10))) for a, b in pairs
    ]
    assert sum(found) / len(found) < 5
