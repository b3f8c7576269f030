"""Quotes for questions that name an API, an error code or a field, from pages of a whole platform."""

import json
from pathlib import Path
from typing import Any

import pytest

from runnables.answer.quoted_steps import cut_text
from tests.small_platform import PLATFORM, ask, quoted_page

Json = dict[str, Any]

REFUND = """# 申请退款

## 接口说明

支付成功后 **365 天**内可以退款。

## 请求地址

`https://api.example.com/v3/pay/refund`

## 请求方式

`POST`

## 是否需要证书

需要双向证书。

## 请求参数

| 变量名 | 必填 | 类型 | 描述 |
| --- | --- | --- | --- |
| out_trade_no | 是 | String(32) | 商户订单号 |
| refund_fee | 是 | Int | 退款金额，单位为分 |
| attach | 否 | String(127) | 原样返回的附加数据 |
| transaction_id | 二选一 | String(32) | 平台订单号 |

## 返回参数

| 变量名 | 类型 | 描述 |
| --- | --- | --- |
| refund_id | String(32) | 平台退款单号 |

## 错误码

| 名称 | 描述 | 解决方案 |
| --- | --- | --- |
| NOT_ENOUGH | 余额不足 | 充值后重试 |
| ORDER_PAID | 订单已支付，不能关闭 | 当作已支付处理，需要时退款 |
"""

PAY = """# 统一下单

商户后台调用本接口生成预支付单。

**请求地址**：`POST /v3/pay/unifiedorder`

## 请求参数

| 变量名 | 必填 | 类型 | 描述 |
| --- | --- | --- | --- |
| out_trade_no | 是 | String(32) | 商户订单号 |
| total_fee | 是 | Int | 订单金额，单位为分 |

## 错误码

| 名称 | 描述 | 解决方案 |
| --- | --- | --- |
| ORDER_PAID | 商户订单重复提交 | 不需要再次支付 |
"""

COMMON = """# 公共错误码

| 错误码 | HTTP 状态码 | 描述 | 解决方案 |
| --- | --- | --- | --- |
| SIGN_ERROR | 401 | 签名错误 | 检查密钥和排序 |
| CERT_EXPIRED | 403 | 证书已过期 | 更换证书 |

# 限流规则

| 接口 | QPS | 每日上限 |
| --- | --- | --- |
| 统一下单 | 100 | 不限 |
| 申请退款 | 20 | 50,000 |

# 本地通过，线上 SIGN_ERROR

多半是服务器的字符集不对。
"""

FAQ = """# 常见问题

## 编译失败

```
[CC] main.o
main.c:(.text+0x102): undefined reference to `clock_gettime'
collect2: error: ld returned 1 exit status
make: *** [sample] Error 1
```

**解决方法**

在 CFLAGS 中添加 -lrt。

## 订单状态

| 状态 | 说明 |
| --- | --- |
| expired | 押金没有按时支付 |
| active | 正在使用 |
"""


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("platform")
    (folder / "platform.toml").write_text(PLATFORM)
    (folder / "guides").mkdir()
    for name, page in {"refund": REFUND, "pay": PAY, "common": COMMON, "faq": FAQ}.items():
        (folder / "guides" / f"{name}.md").write_text(page)
    return folder


@pytest.mark.parametrize(
    ("question", "expected", "unexpected"),
    [
        pytest.param("申请退款返回 CERT_EXPIRED", "更换证书", "余额不足", id="common code"),
        pytest.param("/v3/pay/refund 返回 CERT_EXPIRED", "更换证书", "余额不足", id="by path"),
        pytest.param("申请退款返回 NOT_ENOUGH", "充值后重试", "更换证书", id="own code"),
        pytest.param("申请退款限流多少", "50,000", "", id="row that mentions the API"),
        pytest.param(
            "申请退款本地通过、线上服务器的字符集不对",
            "多半是服务器的字符集",
            "",
            id="word that the API lacks",
        ),
    ],
)
def test_question_about_an_api_may_be_answered_by_another_page(
    platform: Path, question: str, expected: str, unexpected: str
) -> None:
    text = "\n\n".join(ask(platform, question).answer)
    assert expected in text
    assert not unexpected or unexpected not in text


def test_definition_of_a_code_follows_a_better_passage(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    renewal = (
        "# 更换证书\n\n证书过期后，申请退款返回 `CERT_EXPIRED`。申请退款前，在控制台更换证书。\n"
    )
    for name, page in {"refund": REFUND, "common": COMMON, "keys": renewal}.items():
        (tmp_path / "guides" / f"{name}.md").write_text(page)
    text = "\n\n".join(ask(tmp_path, "申请退款返回 CERT_EXPIRED").answer)
    assert "在控制台更换证书" in text
    assert "| 证书已过期 |" in text


def test_code_of_a_named_api_is_as_certain_as_the_code_alone(platform: Path) -> None:
    assert ask(platform, "申请退款报 NOT_ENOUGH 怎么处理").confidence == "high"


def test_different_definitions_of_a_code_are_all_quoted(platform: Path) -> None:
    text = "\n\n".join(ask(platform, "ORDER_PAID 是什么意思").answer)
    assert "当作已支付处理" in text
    assert "不需要再次支付" in text


def test_row_of_a_code_precedes_a_heading_that_mentions_it(platform: Path) -> None:
    answer = ask(platform, "SIGN_ERROR").answer
    assert "检查密钥和排序" in answer[0]
    assert "字符集" in "".join(answer[1:])


def test_method_and_url_are_quoted_only_above_the_passages(platform: Path) -> None:
    answer = ask(platform, "怎么申请退款").answer
    assert answer[0].startswith("**申请退款**：`POST /v3/pay/refund`")
    assert all("api.example.com" not in step for step in answer[1:])
    assert sum("365 天" in step.replace("**", "") for step in answer) == 1


def test_prose_of_an_api_is_quoted_below_its_heading(platform: Path) -> None:
    text = "\n\n".join(ask(platform, "申请退款需要双向证书吗").answer)
    assert "**是否需要证书**\n\n需要双向证书。" in text


def test_pasted_log_is_answered_with_what_follows_it(platform: Path) -> None:
    log = (
        "main.c:(.text+0x102): undefined reference to `clock_gettime'\n"
        "collect2: error: ld returned 1 exit status"
    )
    text = "\n\n".join(ask(platform, f"编译失败：\n{log}\n怎么办").answer)
    assert "-lrt" in text
    assert "collect2" not in text


def test_values_of_a_pasted_request_are_not_codes(platform: Path) -> None:
    text = "\n\n".join(ask(platform, '{"refund_fee": "expired"} 返回CERT_EXPIRED').answer)
    assert "更换证书" in text
    assert "押金" not in text


def test_word_that_is_a_status_does_not_make_an_answer_certain(platform: Path) -> None:
    assert ask(platform, "do api keys expire").confidence != "high"


def test_field_with_a_plain_name_is_quoted(platform: Path) -> None:
    assert "原样返回的附加数据" in "\n\n".join(ask(platform, "attach 是什么").answer)


@pytest.mark.parametrize(
    ("question", "header", "row"),
    [
        (
            "申请退款的 attach 必填吗",
            "| 名称 | 类型 | 必填 | 说明 |",
            "| `attach` | String(127) | 否 |",
        ),
        (
            "transaction_id 必填吗",
            "| 名称 | 类型 | 必填 | 说明 |",
            "| String(32) | 二选一 | 平台订单号 |",
        ),
        (
            "refund_id 一定会返回吗",
            "| 名称 | 类型 | 说明 |",
            "| `refund_id` | String(32) | 平台退款单号 |",
        ),
    ],
)
def test_quoted_parameter_is_required_as_the_page_states(
    platform: Path, question: str, header: str, row: str
) -> None:
    text = "\n\n".join(ask(platform, question).answer)
    assert header in text
    assert row in text


def test_description_of_an_api_is_not_repeated(tmp_path: Path) -> None:
    page = (
        "# Void a voucher\n\n**Note:** A voucher that was voided stays void. "
        + "It cannot be used by the shop or by the guest who bought it from the shop. " * 5
        + "\n\nSupport can restore it.\n\n## Request\n\n`POST /v1/vouchers/void`\n\n"
        "| Name | Type | Required | Description |\n| --- | --- | --- | --- |\n"
        "| code | string | Yes | Code of the voucher |\n"
    )
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "void.md").write_text(page)
    text = "\n".join(ask(tmp_path, "void a voucher that a guest bought").answer)
    assert "`POST /v1/vouchers/void`" in text
    assert text.count("stays void.") == 1


def test_comparison_does_not_cut_the_best_passage(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    filler = "The run waits in the queue of the workspace until an agent is free. " * 9
    for name in ("Sync", "Async"):
        page = f"# {name} runs\n\nDifference of {name.lower()} runs. {filler}\n\nEnd of {name}.\n"
        (tmp_path / "guides" / f"{name}.md").write_text(page)
    text = "\n\n".join(ask(tmp_path, "what is the difference of sync runs and async runs?").answer)
    assert "End of Sync." in text
    assert "End of Async." in text


def test_sentence_that_contains_the_url_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    note = "调用`/v3/pay/refund`接口即可退款，重复调用不会重复扣款。"
    page = REFUND.replace("支付成功后 **365 天**内可以退款。", note)
    (tmp_path / "guides" / "refund.md").write_text(page)
    assert "重复调用不会重复扣款" in "".join(ask(tmp_path, "申请退款重复调用会重复扣款吗").answer)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "```\n| a |\n| b |\n| " + "z" * 200 + "\n```",
            "```\n| a |\n| b |\n…\n```",
            id="table in code",
        ),
        pytest.param(
            "```\n" + "z" * 200 + "\n```",
            "```\n" + "z" * 34 + " …\n```",
            id="long line of code",
        ),
        pytest.param(
            "~~~py\na = 1\n\ndef f():\n    b = 2\n    return 'x y z'\n~~~",
            "~~~py\na = 1\n\ndef f():\n    b = 2\n…\n~~~",
            id="statement cut",
        ),
        pytest.param(
            "  ```py\n  a = 1\n  b = 2\n  c = 3\n\n  def f():\n    return 0\n  ```",
            "  ```py\n  a = 1\n  b = 2\n  c = 3\n  …\n  ```",
            id="function cut in a list",
        ),
        pytest.param(
            "Run this command on every host:\n\n```sh\nrun\n```",
            "Run this command on every host:\n\n…",
            id="fence cut",
        ),
        pytest.param(
            "Rows:\n\n| a |\n| - |\n| b |\n| " + "z" * 200 + " |",
            "Rows:\n\n| a |\n| - |\n| b |\n| … |",
            id="row left out",
        ),
        pytest.param(
            "Rows:\n\n| a |\n| - |\n| zz " + "z" * 200 + " |",
            "Rows:\n\n| a |\n| - |\n| zz … |",
            id="only row cut",
        ),
    ],
)
def test_cut_text_stays_well_formed(text: str, expected: str) -> None:
    assert cut_text(text, 38) == expected


NOTE = """---
deprecated: {deprecated}
---

# {name}

`POST {url}`

{text}

## 请求头

| 变量名 | 必填 | 类型 | 描述 |
| --- | --- | --- | --- |
| X-Shop-Key | 是 | String | 店铺密钥 |

## 错误码

| 名称 | 描述 | 解决方案 |
| --- | --- | --- |
| 4711 | 密钥无效 | 重新获取密钥 |
"""


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "platform.toml").write_text(PLATFORM)
    (folder / "guides").mkdir()
    pages = (("a", True, "推送便笺"), ("b", True, "撤回便笺"), ("c", True, "转发便笺"), ("d", False, "发送便笺"))  # fmt: skip
    for letter, deprecated, name in pages:
        page = NOTE.format(
            deprecated=str(deprecated).lower(), name=name, url=f"/v1/{letter}/notes", text=f"{name}给店员。"
        )  # fmt: skip
        (folder / "guides" / f"{letter}.md").write_text(page)
    return folder


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("X-Shop-Key 怎么传", "发送便笺"),
        ("便笺怎么给店员", "发送便笺"),
        ("4711", "发送便笺"),
        ("推送便笺的请求头", "推送便笺"),
        ("/v1/a/notes 怎么调用", "推送便笺"),
        ("撤回便笺用哪个接口", "撤回便笺"),
    ],
)
def test_deprecated_api_comes_first_only_if_it_is_named(
    notes: Path, question: str, name: str
) -> None:
    assert ask(notes, question).answer[0].startswith(f"**{name}**")


@pytest.fixture(scope="module")
def parcels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a platform whose APIs share paths and words of their names."""
    folder = tmp_path_factory.mktemp("parcels")
    (folder / "platform.toml").write_text(PLATFORM)
    (folder / "guides").mkdir()
    pages = {
        "寄存": ("POST", "/v1/parcels", "把一个包裹放入柜子。"),
        "批量寄存": ("POST", "/v1/parcels/batch", "从清单读取包裹。"),
        "查询柜子": ("GET", "/v1/parcels", "列出全部格口。"),
        "删除格口": ("DELETE", "/v1/parcels/{id}", "删除一个格口。"),
    }
    for number, (name, (method, url, text)) in enumerate(pages.items()):
        fields = (
            "| 变量名 | 必填 | 类型 | 描述 |\n| --- | --- | --- | --- |\n| size | 是 | Int | 大小 |"
        )
        page = f"# {name}\n\n`{method} {url}`\n\n{text}\n\n## 请求参数\n\n{fields}\n"
        (folder / "guides" / f"{number}.md").write_text(page)
    return folder


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("批量寄存和寄存有什么区别", {"寄存", "批量寄存"}),
        ("寄存、批量寄存和查询柜子的区别", {"寄存", "批量寄存", "查询柜子"}),
        ("/v1/parcels 支持哪些方法", {"寄存", "查询柜子"}),
        ("which methods does /v1/parcels support?", {"寄存", "查询柜子"}),
        ("/v1/parcels/batch 用什么方法", {"批量寄存"}),
    ],
)
def test_every_compared_api_is_quoted(parcels: Path, question: str, names: set[str]) -> None:
    text = "\n".join(ask(parcels, question).answer)
    quoted = {
        name for name in ("寄存", "批量寄存", "查询柜子", "删除格口") if f"**{name}**" in text
    }
    assert quoted >= names
    assert quoted == names or "区别" in question


def test_path_without_the_path_of_the_server_names_the_operation(tmp_path: Path) -> None:
    def listing(summary: str, parameter: str) -> Json:
        query = {"name": parameter, "in": "query", "schema": {"type": "string"}}
        return {"get": {"summary": summary, "parameters": [query]}}

    paths = {
        "/parcels": listing("List parcels", "weight"),
        "/vans/parcels": listing("List the parcels of vans", "driver"),
    }
    description: Json = {"openapi": "3.1.0", "info": {"title": "Depot"}, "paths": paths}
    description["servers"] = [{"url": "https://example.com/depot"}]
    (tmp_path / "api.json").write_text(json.dumps(description))
    source = '\n[[sources]]\nname = "api"\nkind = "openapi"\npath = "api.json"\n'
    question = "What query parameters can I pass to GET /parcels?"
    answer = quoted_page(tmp_path, "# Vans\n\nVans carry parcels.", question, source)
    assert "`GET /depot/parcels`" in answer
    assert "`weight`" in answer
    assert "vans" not in answer


@pytest.mark.parametrize(
    "question", ["怎么拿到 boxToken", "boxToken 从哪来", "How do I get a boxToken?"]
)
def test_source_of_a_value_is_the_operation_that_returns_it(tmp_path: Path, question: str) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    table = "| 名称 | 类型 | 必填 | 说明 |\n| --- | --- | --- | --- |\n"
    needed = f"{table}| boxToken | String | 是 | 会话凭据，先登录再拿到 boxToken |\n"
    for name in ("parcels", "labels", "prices", "depots"):
        page = f"# 查询 {name}\n\n**请求地址**：`GET /v1/{name}`\n\n## 请求参数\n\n{needed}"
        (tmp_path / "guides" / f"{name}.md").write_text(page)
    login = (
        f"# 登录\n\n**请求地址**：`POST /v1/login`\n\n## 请求参数\n\n{table}"
        "| user | String | 是 | 用户名 |\n\n## 返回参数\n\n| 名称 | 类型 | 说明 |\n| --- | --- | --- |\n"
        "| boxToken | String | 会话凭据 |\n| expires | Number | 有效时间，单位为秒 |\n"
    )
    (tmp_path / "guides" / "login.md").write_text(login)
    assert "/v1/login" in ask(tmp_path, question).answer[0]


def sections_of_operation(name: str, count: int) -> str:
    """Return a page of an operation with `count` sections besides its address and its parameters."""
    others = "".join(
        f"## 说明 {i}\n\n{name}的第 {i} 项说明：房间的主持人收到通知。\n\n" for i in range(count)
    )
    return (
        f"# {name}\n\n## 接口\n\n`PUT /v2/rooms/{{room_id}}/mute`\n\n{others}"
        "## 参数\n\n| 字段 | 类型 | 必填 | 描述 |\n| --- | --- | --- | --- |\n"
        "| room_id | string | 是 | 房间号 |\n| seconds | int | 是 | 静音的秒数 |\n\n"
        "## 错误码\n\n详见错误码。\n"
    )


ROOM_ERRORS = """# 错误码

| 值 | 含义 |
| --- | --- |
| 61001 | 主持人不在线 |
| 61007 | 应用没有静音权限 |
| 62000-62099 | 静音服务异常 |
"""


@pytest.mark.parametrize(
    ("question", "row", "is_alone"),
    [
        ("PUT /v2/rooms/7/mute 61007", "应用没有静音权限", True),
        ("PUT /v2/rooms/7/mute 62050", "静音服务异常", True),
        (
            "curl -X PUT https://h.example.com/v2/rooms/7/mute -d '{\"seconds\":5}' 返回 61007",
            "应用没有静音权限",
            True,
        ),
        (
            'curl https://h.example.com/v2/rooms/7/mute 报 {"code":61007,"message":"x"}',
            "应用没有静音权限",
            True,
        ),
        ("全员静音返回 61007，主持人没收到通知", "应用没有静音权限", False),
    ],
)
def test_code_of_the_platform_is_quoted_first_although_an_operation_is_named(
    tmp_path: Path, question: str, row: str, is_alone: bool
) -> None:
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    pages = {
        "all": sections_of_operation("全员静音", 12),
        "some": sections_of_operation("批量静音", 12),
        "errors": ROOM_ERRORS,
    }
    for name, page in pages.items():
        (tmp_path / "guides" / f"{name}.md").write_text(page)
    first, *others = ask(tmp_path, question).answer
    assert row in first
    assert "主持人不在线" not in first
    assert (not others) == is_alone
