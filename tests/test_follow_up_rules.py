"""Rules insert what a follow-up omits."""

import json

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.service.answer_service import AnswerService
from runnables.classification.classify import classify_by_rules
from runnables.conversation.follow_up import make_standalone
from runnables.conversation.small_talk import is_small_talk
from runnables.question.extract_details import extract_details
from runnables.question.query_analysis import Glossary
from schemas.question import Turn
from tests.conftest import SHARED_DATA, needs_shared_data
from tests.follow_ups import HOOKS, PRICE, SHIP, SHIPMENT, SIGN, found_by, read, turn
from tests.model_replies import ask

CODE = turn("41021 是什么错误", "订单状态不允许发货。 [1]", "订单发货")

REFUND = turn("申请退款需要哪些参数", "见 [轨迹推送](t.md)，传商户订单号。 [1]", "申请退款")
REFUND_LIMIT = turn(
    "申请退款的限流是多少", "| 申请退款 | 20 |\n| 创建运单 | 50 |\n\n[1]", "申请退款"
)
CREATE = turn("Which parameters does Create Refund need?", "An amount. [1]", "Create Refund")
LONG_ANSWER = turn(
    "how do i cancel a booking",
    "| currency | supported currencies |\n| delay | payout delay |\n| keys | who can create keys |\n| events | sent |",
    "Cancel a booking",
)
ORDER = turn("怎么创建订单？", "", "创建订单")
SIGN_ERROR = turn("SIGN_ERROR 怎么解决")


def answered(client: TestClient[Litestar], question: str) -> tuple[Turn, bool]:
    """Return the turn stored for `question`, and whether the question was on topic."""
    answer = ask(client, question)
    said = "\n".join(answer["answer"])
    return turn(question, said, answer["structured"]["apiName"]), answer["type"] != "unknown"


@pytest.mark.parametrize(
    ("text", "history", "expected"),
    [
        ("那错误码呢", [SHIP], "订单发货的错误码"),
        ("权限包呢？", [SHIP], "订单发货的权限包"),
        ("它需要什么权限", [SHIP], "订单发货需要什么权限"),
        ("这个接口怎么调用", [SHIP], "订单发货接口怎么调用"),
        ("谢谢，那错误码呢", [SHIP], "订单发货的错误码"),
        ("那超时了怎么办", [SHIP], "订单发货：超时了怎么办"),
        ("in Python?", [SHIP], "订单发货: in Python?"),
        ("and the error codes?", [PRICE], "Update SKU Price: the error codes?"),
        ("and how do I cancel it?", [PRICE], "Update SKU Price: how do I cancel it?"),
        ("and delete?", [SHIPMENT], "How do I delete a shipment?"),
        ("delete?", [turn("how to clone a staff key", "", "Clone a key")], "how to delete a staff key"),
        ("and the error codes?", [SHIP, PRICE], "Update SKU Price: the error codes?"),
        ("有 Python 的例子吗", [SIGN], "签名：有 Python 的例子吗"),
        ("有 Python 的例子吗", [SHIP, SIGN], "签名：有 Python 的例子吗"),
        ("ok, and in Java?", [HOOKS], "verify webhook signatures: in Java?"),
        ("in Java?", [HOOKS], "verify webhook signatures: in Java?"),
        ("in Java?", [HOOKS, turn("verify webhook signatures: in Python?")], "verify webhook signatures: in Java?"),
        ('那这样传对吗 {"order_no": "1"}', [SHIP], '订单发货：这样传对吗 {"order_no": "1"}'),
        ("那怎么解决", [CODE], "订单发货 41021 怎么解决"),
        ("什么原因导致的", [CODE], "订单发货 41021：什么原因导致的"),
        ("需要哪些参数", [CODE], "订单发货：需要哪些参数"),
        ("那怎么解决", [SHIP, turn("isv.invalid-sign 是什么意思")], "isv.invalid-sign 怎么解决"),
        ("and how do I fix it?", [turn("What does SIGN_ERROR mean?")], "SIGN_ERROR: how do I fix it?"),
        ("how do I fix it?", [turn("Why do my webhooks arrive twice?", "", "Subscribe")], "Subscribe my webhooks arrive twice: how do I fix it?"),
        ("怎么解决", [CODE, SHIP], "订单发货怎么解决"),
        ("那超时了怎么解决", [CODE], "订单发货：超时了怎么解决"),
        ("那 41022 呢", [SHIP], "那 41022 呢"),
        ("那 /dop/api/v1/order/search 呢", [SHIP], "那 /dop/api/v1/order/search 呢"),
        ("那订单发货的参数呢", [SHIP], "那订单发货的参数呢"),
        ("那退款呢", [SHIP], "退款接口是哪个"),
        ("那今天天气怎么样", [SHIP], "那今天天气怎么样"),
        ("what about the weather?", [PRICE], "what about the weather?"),
        ("怎么申请电子发票", [SHIP], "怎么申请电子发票"),
        ("那错误码呢", [turn("怎么办")], "那错误码呢"),
        ("那 T+1 呢", [SHIP], "那 T+1 呢"),
        ("那创建运单呢", [REFUND], "创建运单需要哪些参数"),
        ("换成创建运单呢？", [REFUND], "创建运单需要哪些参数"),
        ("那创建运单呢", [REFUND, turn("谢谢")], "创建运单需要哪些参数"),
        ("那轨迹推送呢", [REFUND], "轨迹推送需要哪些参数"),
        ("创建运单呢", [REFUND_LIMIT], "创建运单的限流是多少"),
        ("那轨迹推送呢", [turn("电子面单多少钱", "", "电子面单打印")], "轨迹推送多少钱"),
        ("那申请退款呢", [REFUND, turn("创建运单需要哪些参数", "", "创建运单")], "申请退款需要哪些参数"),
        ("and for create shipment?", [CREATE], "Which parameters does create shipment need?"),
        ("what about shipments?", [CREATE], "Which parameters does shipments need?"),
        ("and for cancel shipment?", [SHIPMENT], "How do I cancel shipment?"),
        ("and for refunds?", [turn("Does rush ordering list fees?", "", "Rush order")], "Does rush ordering list fees: for refunds?"),
        ("and for cancel shipment?", [turn("How do I create shipment?", "", "Create a shipment")], "How do I cancel shipment?"),
        ("and for create shipment?", [turn("how do I cancel a booking", "", "Cancel a booking")], "how do I create shipment"),
        ("what about create shipment?", [turn("Which scopes do I need to cancel a booking?", "", "Cancel a booking")], "Which scopes do I need to create shipment?"),
        ("and for refunds?", [turn("how do I cancel a booking", "", "Cancel a booking")], "how do I cancel a booking: for refunds?"),
        ("那取消运单呢？", [ORDER], "怎么取消运单？"),
        ("iOS 呢？", [ORDER], "怎么创建订单：iOS 呢？"),
        ("那测试环境呢？", [ORDER], "怎么创建订单：测试环境呢？"),
        ("海外呢？", [ORDER], "怎么创建订单：海外呢？"),
        ("still doesn't work", [SHIPMENT], "Create shipment: still doesn't work"),
        ("那错误码呢", [REFUND], "申请退款的错误码"),
        ("那商户订单号呢", [REFUND], "申请退款需要哪些参数：商户订单号呢"),
        ("那创建运单的错误码呢", [REFUND], "那创建运单的错误码呢"),
        ("那天气呢", [REFUND], "那天气呢"),
        ("what about a joke?", [CREATE], "what about a joke?"),
        ("what about the limits of Create Shipment?", [CREATE], "what about the limits of Create Shipment?"),
        ("create shipment?", [CREATE], "create shipment?"),
        ("and the error codes?", [CREATE], "Create Refund: the error codes?"),
        ("还是不行", [SHIP, SIGN_ERROR], "SIGN_ERROR：还是不行"),
        ("试了，还是报错，怎么办", [SIGN_ERROR], "SIGN_ERROR：试了，还是报错，怎么办"),
        ("还是不行", [SIGN_ERROR, turn("SIGN_ERROR：还是不行"), turn("谢谢")], "SIGN_ERROR：还是不行"),
        ("还是不行", [turn('{"code": "SUCCESS", "err_code": "ORDERPAID"}')], "ORDERPAID：还是不行"),
        ("I tried that, but it still doesn’t work", [SIGN_ERROR], "SIGN_ERROR: I tried that, but it still doesn’t work"),
        ("still the same error", [CODE], "订单发货 41021: still the same error"),
        ("还是不行", [turn("你好")], "还是不行"),
        ("多久能到账", [REFUND, turn("过期了怎么办")], "申请退款：多久能到账"),
        ("多久能到账", [turn("过期了怎么办")], "多久能到账"),
        ("怎么解决", [turn("超时了怎么办")], "超时了怎么解决"),
        ("需要哪些参数", [REFUND, turn("订单丢了怎么办")], "订单丢了：需要哪些参数"),
        ("what is the payout delay", [LONG_ANSWER], "what is the payout delay"),
        ("who can create keys", [LONG_ANSWER], "who can create keys"),
        ("can recipients opt out", [turn("how do reminders work", "Recipients can opt out.")], "can recipients opt out"),
        ("which events are there", [LONG_ANSWER], "which events are there"),
        ("and which currencies are supported", [LONG_ANSWER], "and which currencies are supported"),
        ("支持哪些币种", [turn("怎么取消预约", "退款币种与支付币种相同。", "取消预约")], "支持哪些币种"),
        ("does it send a payout", [LONG_ANSWER], "Cancel a booking: does it send a payout"),
        ("which parameters are required", [turn("which events exist")], "events: which parameters are required"),
        ("？", [SHIP], "？"),
        ("", [SHIP], ""),
    ],
)  # fmt: skip
def test_omitted_subject_is_inserted(text: str, history: list[Turn], expected: str) -> None:
    assert make_standalone(text, history) == expected


RESUME = turn("断线多久内可以resume")
PORT = turn("1883端口是干嘛的")
CLOSE_CODE = turn("what does close code 4008 mean?")
FREEZE = turn("冻结商户账户", "参数 `mode`", "冻结商户账户")
PROVIDER = turn("how does setTokenProvider work")


@pytest.mark.parametrize(
    ("text", "history", "expected"),
    [
        ("那rtl_subscribe呢", [turn("rtl_connect返回值有哪些")], "rtl_subscribe返回值有哪些"),
        ("那 joinRoom 呢", [turn("createRoom 支持哪些类型")], "joinRoom 支持哪些类型"),
        ("ProductKey呢", [turn("DeviceName可以修改吗")], "ProductKey可以修改吗"),
        ("6207呢", [turn("6204是什么错误")], "6207是什么错误"),
        ("6208呢", [turn("6204：怎么解决")], "6208：怎么解决"),
        ("and 4029?", [CLOSE_CODE], "what does close code 4029 mean?"),
        ("E2015呢", [turn("E2011 是什么意思")], "E2015 是什么意思"),
        ("0x8E呢", [turn("reasonCode 0x8B 是什么")], "reasonCode 0x8E 是什么"),
        ("那3.6.0呢", [turn("android sdk 3.5.2 修了什么")], "android sdk 3.6.0 修了什么"),
        ("那 TOKEN_EXPIRED 呢", [turn("rtl_connect 返回 SIGN_ERROR 怎么办")], "rtl_connect 返回 TOKEN_EXPIRED 怎么办"),
        ("and tile_format?", [turn("can map_type and tile_size be combined?")], "can map_type and tile_format be combined?"),
        ("那8883呢", [PORT], "8883端口是干嘛的"),
        ("那443端口呢", [PORT], "443端口是干嘛的"),
        ("websocket呢", [PORT], "1883端口是干嘛的：websocket呢"),
        ("what about UPS?", [turn("can I track a parcel with DHL?")], "can I track a parcel with UPS?"),
        ("what about macOS?", [turn("what is the limit of createRoom?")], "what is the limit of createRoom: macOS?"),
        ("what about Google Pay?", [turn("does Apple Pay support refunds?")], "does Google Pay support refunds?"),
        ("and a download URL?", [turn("how long is the upload URL valid?")], "how long is the download URL valid?"),
        ("那单聊呢", [turn("群聊最多多少人")], "单聊最多多少人"),
        ("第二个呢", [turn("群聊最多多少人")], "第二个呢"),
        ("should I go hiking?", [CLOSE_CODE], "should I go hiking?"),
        ("怎么取消预约", [turn("怎么创建预约", "", "创建预约")], "怎么取消预约"),
        ("is it possible to pay?", [PROVIDER], "is it possible to pay?"),
        ("is that limit per user?", [PROVIDER], "setTokenProvider: is that limit per user?"),
        ("is it safe to retry?", [PROVIDER], "setTokenProvider: is it safe to retry?"),
        ("那静态呢", [turn("动态升级是什么")], "静态升级是什么"),
        ("那转派呢", [turn("驳回的话还要传什么", "", "审核订单")], "转派的话还要传什么"),
        ("那沙箱呢", [turn("驳回的话还要传什么", "", "审核订单")], "驳回的话还要传什么：沙箱呢"),
        ("会员的呢", [FREEZE, turn("冻结商户账户：mode 默认值是什么", "", "冻结商户账户")], "会员：mode 默认值是什么"),
        ("那消息大小呢", [turn("撤回消息的时限是多久")], "撤回消息的时限是多久：消息大小呢"),
        ("what about iOS?", [SHIPMENT], "How do I create a shipment: iOS?"),
        ("and Android?", [SHIPMENT, turn("How do I create a shipment: iOS?", "", "Create shipment")], "How do I create a shipment: Android?"),
        ("安卓呢", [RESUME], "断线多久内可以resume：安卓呢"),
        ("安卓也一样吗", [RESUME], "断线多久内可以resume：安卓也一样吗"),
        ("超过5分钟呢", [RESUME], "断线多久内可以resume：超过5分钟呢"),
        ("超过了怎么办", [RESUME], "断线多久内可以resume：超过了怎么办"),
        ("which version added it?", [PROVIDER], "setTokenProvider: which version added it?"),
        ("when was it added?", [PROVIDER], "setTokenProvider: when was it added?"),
        ("is it available on iOS?", [PROVIDER], "setTokenProvider: is it available on iOS?"),
        ("should I reconnect?", [CLOSE_CODE], "close code 4008: should I reconnect?"),
        ("版本号冲突会怎样", [turn("设备影子怎么清除")], "设备影子：版本号冲突会怎样"),
        ("它最多几个连接", [turn("小程序接入")], "小程序接入最多几个连接"),
        ("is it possible to share a booking?", [PROVIDER], "is it possible to share a booking?"),
        ("is it going to rain?", [PROVIDER], "is it going to rain?"),
        ("and what does kickUser return?", [PROVIDER], "and what does kickUser return?"),
        ("should I verify webhook signatures?", [CLOSE_CODE], "should I verify webhook signatures?"),
        ("what does rtl_yield do, and when do I call it?", [PROVIDER], "what does rtl_yield do, and when do I call it?"),
        ("E4402是什么错误", [RESUME], "E4402是什么错误"),
        ("0x8E", [RESUME], "0x8E"),
        ("支持qos2吗", [RESUME], "支持qos2吗"),
        ("2025-09-18 更新了什么", [RESUME], "2025-09-18 更新了什么"),
        ("那 3.6.0 呢", [turn("那" * 300 + " 3.5.2")], "那 3.6.0 呢"),
    ],
)  # fmt: skip
def test_question_is_repeated_about_something_of_the_same_kind(
    text: str, history: list[Turn], expected: str
) -> None:
    assert make_standalone(text, history) == expected


WIFI = turn("Wi-Fi 配网怎么做")
REFUND_CALL = turn("退款接口怎么调用", "", "申请退款")
V2 = turn("how do I list orders in v2?")
GROWTH = turn("what is the rate limit on the Growth plan?")


@pytest.mark.parametrize(
    ("text", "history", "expected"),
    [
        ("怎么配置它", REFUND_CALL, "申请退款怎么配置它"),
        ("它们有什么区别", REFUND_CALL, "申请退款有什么区别"),
        ("这个怎么用", REFUND_CALL, "申请退款怎么用"),
        ("这个收费吗", REFUND_CALL, "申请退款：这个收费吗"),
        ("can I schedule it for midnight", PRICE, "Update SKU Price: can I schedule it for midnight"),
        ("and 15?", turn("SDK 3.5.2 on iPhone 12?"), "SDK 3.5.2 on iPhone 15?"),
        ("and 12?", turn("order 2023-11-05"), "order 2023-11-05: 12?"),
        ("and 83?", turn("does port 1883 close after 30 seconds?"), "does port 1883 close after 83 seconds?"),
        ("can I pay?", turn("How do I book?", "Paying is possible later.", "Book"), "Book: can I pay?"),
        ("should I wait?", CLOSE_CODE, "close code 4008: should I wait?"),
        ("Web端呢", turn("怎么创建群组", "", "创建群组"), "怎么创建群组：Web端呢"),
        ("那小程序端呢", REFUND, "申请退款需要哪些参数：小程序端呢"),
        ("那Web端呢", turn("App端支持吗"), "Web端支持吗"),
        ("那 BLE 配网呢", WIFI, "Wi-Fi 配网怎么做：BLE 配网呢"),
        ("and the refresh token?", turn("how long is an access token valid?"), "how long is the refresh token valid?"),
        ("and in v1?", V2, "how do I list orders in v1?"),
        ("and v1?", V2, "how do I list orders in v1?"),
        ("and on Scale?", V2, "how do I list orders in v2: on Scale?"),
        ("and on Scale?", CREATE, "Which parameters does Create Refund need: on Scale?"),
        ("and on the Scale plan?", GROWTH, "what is the rate limit on the Scale plan?"),
        ("and node?", turn("what's the default timeout in the python sdk"), "what's the default timeout in the node sdk"),
        ("and node?", turn("do you have a python sdk"), "do you have the node sdk"),
    ],
)  # fmt: skip
def test_follow_up_is_rewritten_with_what_it_refers_to(
    text: str, history: Turn, expected: str
) -> None:
    assert make_standalone(text, [history]) == expected


@pytest.mark.parametrize("history", [PRICE, REFUND_CALL], ids=["en", "zh"])
@pytest.mark.parametrize(
    "text",
    [
        "when a refund fails, does it get retried?",
        "how do I cancel an order before it ships",
        "do buyers see their invoices",
        "I get an error when I create an order. How do I fix it?",
        "Can I delete a webhook if they fail?",
        "如何配置这个回调地址",
        "这个平台支持哪些语言",
        "这个月的账单怎么导出",
        "那个人是谁",
        "它山之石",
        "can I pay?",
        "can I login?",
        "can we talk",
        "can I fly?",
        "should I drink?",
    ],
)
def test_complete_question_is_not_rewritten(text: str, history: Turn) -> None:
    assert make_standalone(text, [history]) == text


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "name",
    ["conversations", pytest.param("conversations_held_out", marks=pytest.mark.acceptance)],
)
def test_rules_retrieve_the_page(
    client: TestClient[Litestar], sample_service: AnswerService, name: str
) -> None:
    """Each conversation uses the service's own answers and history, without a model."""
    conversations, wrong = read(name), list[str]()
    for conversation in conversations:
        history: list[Turn] = []
        problems: list[str] = []
        for said in conversation["turns"]:
            text = make_standalone(said["question"], history)
            remembered, let_through = answered(client, text)
            if not let_through or not found_by(client, sample_service, text) & set(said["gold"]):
                problems.append(text)
            history.append(remembered)
        if problems:
            wrong.append(", ".join(problems))
    assert len(wrong) <= 1, "\n".join(wrong)


HISTORIES = [
    ["发货接口是哪个"],
    ["签名怎么算"],
    ["怎么把盘点出来的库存推到平台", "库存同步的错误码"],
    ["How do I change the price of a SKU?"],
    ["How do I subscribe to webhook events?"],
]


@pytest.mark.parametrize("questions", HISTORIES, ids=lambda questions: questions[0])
def test_standalone_questions_stay_unchanged(
    client: TestClient[Litestar], questions: list[str]
) -> None:
    history = [answered(client, question)[0] for question in questions]
    complete = [line["question"] for line in read("retrieval_samples")]
    assert len(complete) == 60
    changed = [question for question in complete if make_standalone(question, history) != question]
    # 商品改完还在审 has a pronoun and, after an answer that lists many fields, no word of its own.
    assert len(changed) <= 1


OFF_TOPIC = """
那今天天气怎么样
那你喜欢吃什么
还有，明天会下雨吗
然后给我讲个笑话
那它是什么颜色的猫
这个电影好看吗
那北京到上海的高铁多少钱
帮我写一首诗呢
那股票今天涨了吗
它的作者是谁
and what's the weather like?
what about a joke?
and who won the match last night?
is it going to rain tomorrow?
can you sing it for me?
then tell me a story
what about the capital of France?
how do I cook it?
and how old are you?
also book me a flight to Paris
"""


@pytest.mark.acceptance
@needs_shared_data
@pytest.mark.parametrize("questions", HISTORIES, ids=lambda questions: questions[0])
def test_history_does_not_make_questions_on_topic(
    client: TestClient[Litestar], sample_service: AnswerService, questions: list[str]
) -> None:
    history = [answered(client, question)[0] for question in questions]
    lines = (SHARED_DATA / "offtopic.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line)["query"] for line in lines[:: len(lines) // 40][:40]]
    asked += OFF_TOPIC.strip().splitlines()
    assert len(asked) == 60
    condensed = {question: make_standalone(question, history) for question in asked}
    other = [
        text
        for question, text in condensed.items()
        if text != question
        and is_off_topic(sample_service, question) != is_off_topic(sample_service, text)
    ]
    assert len(other) <= 0.05 * len(asked), other


@pytest.mark.parametrize(
    ("first", "follow_ups", "expected"),
    [
        ("what does error 44203 mean?", ["how do I fix it?"] * 4, "Update SKU Price error 44203: how do I fix it?"),
        ("what does error 44203 mean?", ["how do I fix it?", "怎么解决"], "Update SKU Price error 44203 怎么解决"),
        ("怎么修改价格", ["为什么", "那怎么解决", "为什么", "那怎么解决"], "Update SKU Price 修改价格怎么解决"),
    ],
)  # fmt: skip
def test_follow_ups_about_a_problem_do_not_add_to_each_other(
    first: str, follow_ups: list[str], expected: str
) -> None:
    history = [turn(first, "", "Update SKU Price")]
    for text in follow_ups:
        history.append(turn(make_standalone(text, history), "", "Update SKU Price"))
    assert history[-1].question == expected


def is_off_topic(answer_service: AnswerService, question: str) -> bool:
    glossary = Glossary(answer_service.platform.glossary)
    return (
        classify_by_rules(
            extract_details(question), answer_service.collection, glossary
        ).structured.type
        == "unknown"
    )


@pytest.mark.parametrize("text", ["那" * 20_000, "and " * 5_000, "{" * 20_000, "a_" * 10_000, " -" * 9_000, "谢谢" * 9_000, "都" * 20_000, "which " * 5_000, "are " * 5_000, "1.1-" * 5_000, "that " * 5_000])  # fmt: skip
def test_long_texts_are_not_follow_ups(text: str) -> None:
    assert make_standalone(text, [SHIP, turn(text)]) == text
    assert not is_small_talk(text)
