"""Secrets are masked in stored texts in every pasted syntax; text about secrets is kept."""

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

import app.masking.masking
from app.masking.masking import SecretScan, mask
from app.masking.text_spans import TextSpan
from app.service import record_writer
from app.service.records import RecordStore
from ingestion.database.engine import open_engine
from schemas.answer import AnswerDraft
from schemas.settings import read_settings
from tests.model_replies import MakeClient, ask, is_classification, structured
from tests.model_script import Answer as Said
from tests.model_script import Recorded
from tests.model_server import ModelServer
from tests.question_records import LONG_AGO
from tests.serving_process import wait_until

# Pasted text, the secrets in it, and parts that must be kept. All values are invented.
PASTED: list[tuple[str, list[str], list[str]]] = [
    (
        "https://gw.example.com/rest?method=order.get&app_key=31862054&session=61017f3e9b2c&sign=4F8D0C1B9E7A63524F8D0C1B9E7A6352&v=2.0 为什么报 isv.invalid-signature",
        ["61017f3e9b2c", "4F8D0C1B9E7A63524F8D0C1B9E7A6352"],
        ["method=order.get&app_key=31862054&session=", "&v=2.0 为什么报 isv.invalid-signature"],
    ),
    (
        "app_key=31862055&timestamp=1795140000000&sign_method=hmac-sha256&sign=kX2%2FqY9v%2BLp0%3D",
        ["kX2%2FqY9v", "Lp0%3D"],
        ["timestamp=1795140000000&sign_method=hmac-sha256"],
    ),
    (
        "param_json=%7B%22access_token%22%3A%22at_5b1d9e%22%2C%22receiver_mobile%22%3A%2213512340987%22%2C%22num%22%3A2%7D",
        ["at_5b1d9e", "13512340987"],
        ["%22num%22%3A2%7D"],
    ),
    (
        "next=%252Fcb%253Ftoken%253Dq7w8e9r0t1%2526page%253D2",
        ["q7w8e9r0t1"],
        ["next=%252Fcb%253F", "%2526page%253D2"],
    ),
    (
        '{"app_key": 40516273, "access_token": "at_0f9e8d7c6b5a", "order_no": "261117201806334905"} 返回 40014',
        ["at_0f9e8d7c6b5a"],
        ['"order_no": "261117201806334905"} 返回 40014', '{"app_key": 40516273, '],
    ),
    ("{'appKey': '40516274', 'appSecret': 'pL0okMij9', 'page': 1}", ["pL0okMij9"], ["'page': 1"]),
    (
        r'{"body":"{\"appkey\":\"40516275\",\"sign\":\"b0a1c2d3e4f5b0a1c2d3e4f5b0a1c2d3\",\"sku_id\":\"4411\"}"}',
        ["b0a1c2d3e4f5b0a1c2d3e4f5b0a1c2d3"],
        [r"\"sku_id\":\"4411\""],
    ),
    (
        '被截断的日志 {"method":"item.get","sign":"7e6d5c4b3a291807f6e5',
        ["7e6d5c4b3a291807f6e5"],
        ['"method":"item.get"'],
    ),
    (
        "curl -X POST https://open.example.com/dop/api/v1/order/ship -H 'Authorization: Bearer zX91.cV82-bN73' -H 'Accept: */*' -d '{\"order_no\":\"261117201806334905\"}'",
        ["zX91.cV82-bN73"],
        ["Authorization: Bearer ", "'Accept: */*'", "/dop/api/v1/order/ship", "261117201806334905"],
    ),
    ("curl -u erp01:Blue-Kettle https://open.example.com/v1/refund", ["Blue-Kettle"], ["curl -u erp01:", "/v1/refund"]),
    (
        "curl --data-urlencode 'client_secret=r4T5y6U7i8' --data-urlencode 'grant_type=client_credentials' https://open.example.com/token",
        ["r4T5y6U7i8"],
        ["grant_type=client_credentials"],
    ),
    ("git clone https://ci:Wint3rTea@git.example.com/erp/sdk.git 403", ["Wint3rTea"], ["https://ci:", "@git.example.com/erp/sdk.git 403"]),
    (
        "POST /rest HTTP/1.1\nHost: open.example.com\nX-Ca-Signature: fT3/aQ9+bW1xZk7uRp2sLg==\nCookie: JSESSIONID=7A6B5C4D3E2F; lang=zh\n\n报 400",
        ["fT3/aQ9+bW1xZk7uRp2sLg", "7A6B5C4D3E2F"],
        ["Host: open.example.com", "报 400"],
    ),
    (
        'Authorization: WECHATPAY2-SHA256-RSA2048 mchid="1900009001",nonce_str="5K8264ILTKCH16CQ",signature="Zm9vYmFyYmF6cXV4",timestamp="1795140000"',
        ["Zm9vYmFyYmF6cXV4", "5K8264ILTKCH16CQ"],
        ["Authorization: WECHATPAY2-SHA256-RSA2048 "],
    ),
    ("export APP_SECRET=mn0bv9cx8\nexport REGION=cn-hangzhou", ["mn0bv9cx8"], ["export APP_SECRET=", "REGION=cn-hangzhou"]),
    (
        "dop:\n  app-key: 51627384\n  app-secret: 0a9b8c7d6e5f4a3b\n  password: |\n    Rain4Days\n  timeout: 3000",
        ["0a9b8c7d6e5f4a3b", "Rain4Days"],
        ["timeout: 3000"],
    ),
    (
        "<xml><app_key>62738495</app_key><sign><![CDATA[C1D2E3F4A5B69788C1D2E3F4A5B69788]]></sign><out_trade_no>20261118001</out_trade_no></xml>",
        ["C1D2E3F4A5B69788C1D2E3F4A5B69788"],
        ["<out_trade_no>20261118001</out_trade_no>", "]]></sign>"],
    ),
    ('<property name="appSecret" value="9z8y7x6w"/><property name="page" value="20"/>', ["9z8y7x6w"], ['name="page" value="20"']),
    (
        'client = DopClient("https://open.example.com", "73849506", "1b2a3c4d5e6f70811b2a3c4d5e6f7081")',
        ["1b2a3c4d5e6f70811b2a3c4d5e6f7081"],
        ['DopClient("https://open.example.com", "73849506", "'],
    ),
    (
        'client.setAppKey("84950617"); map.put("sign", "d4e5f60718293a4b"); client.setPageSize(20);',
        ["d4e5f60718293a4b"],
        ["setPageSize(20)"],
    ),
    ('cfg := dop.Config{AppKey: "95061728", Secret: "gopher7", Retry: 3}', ["gopher7"], ["Retry: 3"]),
    ("$c->appkey = '10627384';\n$c->secretKey = 'php5ecret';\n$req = new OrderGet;", ["php5ecret"], ["$req = new OrderGet;"]),
    (
        "r = requests.get(url, auth=('shop_7', 'Gr33nTea!'), params={'token': 'k3y0fShop', 'page': 2})",
        ["Gr33nTea!", "k3y0fShop"],
        ["'page': 2"],
    ),
    (
        "10:11:12 INFO order.detail token=at_c3d4e5f6a7b8, sign=2a3b4c5d6e7f80912a3b4c5d6e7f8091, cost=132ms, trace_id=4512345123451234512",
        ["at_c3d4e5f6a7b8", "2a3b4c5d6e7f80912a3b4c5d6e7f8091"],
        ["10:11:12 INFO", "cost=132ms, trace_id=4512345123451234512"],
    ),
    (
        "| 参数 | 必填 | 值 |\n|---|---|---|\n| `app_secret` | 是 | `21738495ab` |\n| order_no | 是 | 261117201806334905 |",
        ["21738495ab"],
        ["| order_no | 是 | 261117201806334905 |"],
    ),
    (
        "| app_key | access_token | page |\n| --- | --- | --- |\n| 32849506 | at_99c8b7a6 | 7 |",
        ["at_99c8b7a6"],
        ["| app_key | access_token | page |", "| 32849506 |", "| 7 |"],
    ),
    (
        "my app key is 43950617 and the secret is 5f4e3d2c1b0a, why is the signature wrong?",
        ["5f4e3d2c1b0a"],
        ["my app key is 43950617 and", "why is the signature wrong?"],
    ),
    (
        "the client secret I got by mail was 88ii99jj00; server sign [0f1e2d3c4b5a6978], token 换成 at_66ff77gg 也不行",
        ["88ii99jj00", "0f1e2d3c4b5a6978", "at_66ff77gg"],
        ["也不行"],
    ),
    (
        "我的appKey是 54061728，密钥(app_secret)：t5r4e3w2，签名算出来是 8c7b6a5948372615，登录密码 Tea2Cups99，验证码：483920，一直报 40012",
        ["t5r4e3w2", "8c7b6a5948372615", "Tea2Cups99", "483920"],
        ["一直报 40012"],
    ),
    (
        "待签名：f0e1d2c3b4a5app_key65172839page1f0e1d2c3b4a5，app_secret=f0e1d2c3b4a5；机器人 https://im.example.com/bot/v2/hook/3c9d1e5f-7a2b-4c6d-8e0f-1a3b5c7d9e2f，LTAI5tAbc7De9Fg1Hi3 和 eyJhbGciOiJub25lIn0.eyJzdWIiOiI0MiJ9.c2ln，-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----",
        ["f0e1d2c3b4a5", "3c9d1e5f-7a2b-4c6d-8e0f-1a3b5c7d9e2f", "LTAI5tAbc7De9Fg1Hi3", "eyJzdWIiOiI0MiJ9", "MIIEvQIBADANBgkqhkiG9w0B"],
        ["待签名：", "https://im.example.com/bot/v2/hook/"],
    ),
    (
        "买家 138-1234 5678、+44 20 7946 0958、(0571) 88886666，chen.yi+dev@mail.example.cn，身份证 11010519491231002X，卡 4539 1488 0343 6467，订单 261117201806334905 退不了",
        ["1234 5678", "7946 0958", "88886666", "chen.yi", "mail.example.cn", "11010519491231002X", "0343 6467"],
        ["订单 261117201806334905 退不了"],
    ),
    (
        "手机 １３５１２３４０９８７ 和身份证 110105 19491231 002X 收不到短信，护照号 EG4130272，IBAN 为 GB82 WEST 1234 5698 7654 32，订单 ２６１１１７",
        ["１３５１２３４０９８７", "19491231 002X", "EG4130272", "5698 7654"],
        ["收不到短信", "订单 ２６１１１７"],
    ),
    (
        "I cannot log in with Maple-River27, and my colleague's login is ops01 / Kite!Stone83;\n用 shan-Hai2046 登录也不行，密码从 Wu-Yue1998 改过",
        ["Maple-River27", "Kite!Stone83", "shan-Hai2046", "Wu-Yue1998"],
        ["I cannot log in with", "ops01", "登录也不行", "改过"],
    ),
    (
        "SSN? it is 219-09-9999, CPF 111.444.777-35, 香港身份证 G123456(A)，证件号：K20431187，用 deploy02 / Ww3344..er 登录",
        ["219-09-9999", "111.444.777-35", "G123456(A)", "K20431187", "Ww3344..er"],
        ["SSN? it is", "香港身份证", "deploy02", "登录"],
    ),
    (
        "cert_no=11010519491231002X 不通过；mysqldump -h db -ushop -pTk7wQz2x shop，redis-cli -h r1 -a Zq81mTw0 ping 报 1045",
        ["11010519491231002X", "Tk7wQz2x", "Zq81mTw0"],
        ["mysqldump -h db -ushop -p", "redis-cli -h r1 -a ", "报 1045"],
    ),
    (
        "My keys ASIA7QK2M4XN8RT5WB3J / mZ4/Qk8rT2+vXn7BwY1cLs9DfGh3JpKa6RuEoHtM worked yesterday; dop_v1_4c1f8e27b3a96d05f4e8127cb39ad60e9b3d71c0 gives 401",
        ["ASIA7QK2M4XN8RT5WB3J", "mZ4/Qk8rT2", "4c1f8e27b3a96d05f4e8127cb39ad60e"],
        ["My keys", "worked yesterday"],
    ),
    (
        "X-Hub-Signature-256: sha256=4c1f8e27b3a96d05f4e8127cb39ad60e，密码换成了 Lotus2Pond 也不行，redis 用 requirepass r3d1sQuvz",
        ["4c1f8e27b3a96d05f4e8127cb39ad60e", "Lotus2Pond", "r3d1sQuvz"],
        ["也不行，redis 用 requirepass "],
    ),
    (
        "I use 8c1f4e27b3a96d05f4e8127cb39ad60e to sign, the AES key in config is\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEAwK7\nqS8fVd2LxT\nwhy does it fail",
        ["8c1f4e27b3a96d05f4e8127cb39ad60e", "MIIEpAIBAAKCAQEAwK7"],
        ["I use ", "why does it fail"],
    ),
    (
        'hmac_sha256("jtNayviHzm5YdOnCqIz0Wiw8", body), auth: { user: "bot", pass: "Qk7vPz2m!" }, docker login -u ops -p mOk3lOfEz x',
        ["jtNayviHzm5YdOnCqIz0Wiw8", "Qk7vPz2m!", "mOk3lOfEz"],
        ['auth: { user: "bot", ', "docker login -u ops -p "],
    ),
    (
        "I changed my password to Winter$2024, the root password for staging: c0rrect-h0rse; 支付密码 827364 错误，后台密码: !QAZ2wsx",
        ["Winter$2024", "c0rrect-h0rse", "827364", "!QAZ2wsx"],
        ["I changed my password to ", "the root password for staging: ", "支付密码 "],
    ),
]  # fmt: skip

KEPT = [
    "sign 参数怎么生成",
    "签名是怎么算的，密码为 6-20 位",
    "the token expired",
    "the app key of this order is 261117201806334905",
    "token is required, password: it keeps failing",
    "app_key 必填 string",
    "app_secret (string, required): the secret of the app",
    "sign=MD5(app_secret+params+app_secret)",
    "sign = hmac.new(app_secret.encode(), text.encode(), hashlib.sha256).hexdigest()",
    "access_token=config.access_token, headers['token'] = token",
    'url + "&sign=" + sign + "&page=1"',
    "token: <your token>",
    "Authorization: Bearer {token}",
    "Authorization: Bearer $TOKEN",
    "app_key=${APP_KEY}&sign=xxx&token=YOUR_TOKEN&secret=***",
    'api_key="ACME_API_KEY"',
    '"sign": "string", "session": true, "token": null',
    '"required": ["app_key", "sign", "access_token", "status1"]',
    '"token": "The access token of the shop"',
    "| sign | String | 是 | 签名，见签名算法 |",
    "access_token 的有效期是 86400s，expires_in=7200",
    "sign_method=hmac-sha256",
    "isv.invalid-signature 和 40014 是什么错误",
    '{"code": "0", "message": "success"}',
    "code=ORDER_NOT_FOUND",
    "trace_id=4512345123451234512",
    "X-Request-Id: 4bf92f3577b34da6a3ce929d0e0e4736",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "4f9c2b7e-1d3a-4c5b-8e6f-7a8b9c0d1e2f",
    "订单号：6222021234567890123，order_no 261117201806334905",
    "sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "sha256 of the archive is 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08, not what I get",
    "after commit 6e2655949889d4d162945d840d6986490a1b2c3d pages are numbered from 0",
    "git log -1\n6e2655949889d4d162945d840d6986490a1b2c3d\nfails in the build",
    "the Idempotency-Key 4f9c2b7e1d3a4c5b8e6f7a8b9c0d1e2f was used twice",
    "export SIGN_SECRET=${SIGN_SECRET:?not set}",
    "log in with OAuth2 or Chrome-120, 用 iPhone-15.2 登录",
    "型号 １３５１２３ 和版本 ２．０",
    "https://img.example.com/2026/6e2655949889d4d162945d840d698649.png",
    "/dop/api/v1/product/sku_price",
    "com.example.openplatform.client.OrderSearchRequestV2",
    "2026-11-18T10:20:30.123+08:00, 1795140000000, 139.00 元",
    "git@github.com:acme/sdk.git",
    "我的 app_key 是 62109284，appKey: ding8kq2mz7xw4rt1v9b 没有权限",
    "Checking out 6e2655949889d4d162945d840d6986490a1b2c3d, already on it",
    "请求流水 4bf92f3577b34da6a3ce929d0e0e4736 验签失败",
    "does the file begin with -----BEGIN PRIVATE KEY----- or -----BEGIN RSA PRIVATE KEY-----?",
    "-----BEGIN PRIVATE KEY-----\n<your key>\n-----END PRIVATE KEY-----",
    "平台公钥 MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwK7qS8fVd2LxT 验签失败",
    "customer cus_Jn6Dw69CpSe47k has sub_1TnRfN0aUQIoFSEaHniDJ6vS, token of user ou_4bf92f3577b34da6a3ce929d0e0e4736",
    "next_page_token=8JcZ9imecSWdkmWqaShnwufGEiwCVhFX&cursor=aGVsbG8gd29ybGQx",
    "Is 4111111111111111 accepted? The test card 5425 2334 3010 9903 is not",
    "CPF 111.444.777-36 and ticket 000-12-3456 are rejected, part M123456(7) is out of stock",
    "Sample SSN 078-05-1120 and the IBAN of the docs GB82 WEST 1234 5698 7654 32",
    "string_to_sign = 'POST /v2/orders' + ts, params key1value1key2value2",
    "helm upgrade op/relay --set auth.existingSecret=op-relay-auth",
    "appid=4bf92f3577b34da6a3ce929d0e0e4736 sign error rid 5c256054b46e4b7e39b679b527989cf5",
    "应用签名 19:59:7C:4B:73:B9:23:A2:BD:58:37:B3, pass: 120 tests, add the sign to header_v2",
    "redis key op:token:shop:66465427, https://oauth2:YOUR_TOKEN@git.example.com/a.git",
    "AKIAIOSFODNN7EXAMPLE, api_key=sk-xxxxxxxxxxxxxxxx1, email: shop1@example.com",
    "",
]


@pytest.mark.parametrize(("pasted", "secrets", "kept"), PASTED)
def test_secrets_are_masked_and_the_rest_is_kept(
    pasted: str, secrets: list[str], kept: list[str]
) -> None:
    masked = mask(pasted)
    assert [secret for secret in secrets if secret in masked] == []
    assert [text for text in kept if text not in masked] == []
    assert mask(masked) == masked
    assert SecretScan(pasted).has_secret
    assert not SecretScan(masked).has_secret


def echo(request: Recorded) -> Said:
    """A model that repeats the question with its secrets in every field."""
    asked = request.text.rpartition("<question>")[2].partition("</question>")[0]
    if is_classification(request):
        return structured(api_name=asked, api_url=asked, error=asked, request_param={"q": asked})
    return AnswerDraft(question=asked, introduction=asked, answer=[f"{asked} [1]"])


def found_in(folder: Path) -> list[str]:
    """The secrets in the files below `folder`."""
    held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [secret for _, secrets, _ in PASTED for secret in secrets if secret.encode() in held]


def rename(path: Path, table: str, name: str) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"ALTER TABLE {table} RENAME TO {name}")


@pytest.mark.acceptance
@pytest.mark.parametrize("with_model", [False, True], ids=["extractive", "with a model"])
def test_no_secret_is_stored(
    serve_samples: MakeClient,
    model_client: MakeClient,
    model_server: ModelServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    with_model: bool,
) -> None:
    """Covers sessions, the cache and feedback; records are first in the spool, then in the database."""
    monkeypatch.setattr(record_writer, "RETRY_INTERVAL_S", 0.1)
    model_server.default = echo
    path, spool = tmp_path / "apidesk.db", tmp_path / "spool"
    settings = {"database_url": f"sqlite:///{path}", "spool": spool, "cache_answers": True}
    client = (model_client if with_model else serve_samples)(**settings)
    rename(path, "questions", "away")
    pasted = [text for text, _, _ in PASTED]
    asked = ["\n".join(("怎么发货", *pasted[n : n + 3])) for n in range(0, len(pasted), 3)]
    asked = asked[:: 3 if with_model else 1]
    for number, question in enumerate(asked):
        ask(client, question, session=f"s{number}")
    assert list(spool.rglob("*.jsonl"))
    assert path.with_name("apidesk.db-wal").exists()
    assert found_in(tmp_path) == []

    rename(path, "away", "questions")
    store = RecordStore(open_engine(read_settings(**settings)))
    wait_until(lambda: len(list(store.since(LONG_AGO))) == len(asked), "the database has them")
    last = [record.id for record in store.since(LONG_AGO)][-1]
    judged = client.post(f"/answers/{last}/feedback", json={"score": 1, "comment": PASTED[0][0]})
    assert judged.status_code == 204
    assert found_in(tmp_path) == []
    kept = "\n".join(record.question for record in store.since(LONG_AGO))
    assert all(text in kept for text in PASTED[0][2])


@pytest.mark.parametrize("text", KEPT)
def test_talk_about_secrets_is_kept(text: str) -> None:
    assert mask(text) == text
    assert not SecretScan(text).has_secret


def test_card_verification_codes_are_masked() -> None:
    assert mask("exp 09/28 cvc 417, 安全码 932") == "exp 09/28 cvc ‹cvc›, 安全码 ‹安全码›"


def test_joined_texts_are_masked_like_single_ones() -> None:
    for (first, secrets, _), (second, more, _) in pairwise(PASTED):
        masked = mask(f"{first}\n\n{second}")
        assert [secret for secret in secrets + more if secret in masked] == []
        assert mask(masked) == masked


def test_mask_shows_the_name_and_json_remains_valid() -> None:
    assert mask("sign=9f8e7d6c5b4a&page=1") == "sign=‹sign›&page=1"
    assert mask("config.appSecret = 'k9j8h7'") == "config.appSecret = '‹appSecret›'"
    assert mask('{"app_secret": 12345678}') == '{"app_secret": "‹app_secret›"}'
    assert mask("AKIA1B2C3D4E5F6G7H_secret=abc12345") == "‹key›=‹secret›"


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "unit",
    ["a", "a1", "sign=", "sign='", "token: ", "| sign ", "%25", "\\\"", "https://a:", "a@", "a.b@c.", "eyJa.",
     "Bearer ", "sk-a", "+1 ", "62 ", "Client(\"", "curl -u ", "-----BEGIN PRIVATE KEY-----", "Cookie: a=",
     "cookie=a=<;", "sign=“", "id-1", "签名是", "|---|\n",
     "://a1b2c3d4e5f6g7h8i9j0k1", "Aa1" * 10 + "/", "key " + "ab12" * 8, "-----BEGIN PRIVATE KEY-----" + "A" * 16],
)  # fmt: skip
def test_long_repetitions_do_not_hang(unit: str) -> None:
    text = unit * (20_000 // len(unit)) + "”"
    assert mask(mask(text)) == mask(text)


def test_question_is_scanned_once_on_its_way(
    serve_samples: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record, its turn and the cache share the scan; its answer and restated form are other texts."""
    question = 'what does error 44203 mean? {"app_secret": "9f8e7d6c5b4a3f2e", "code": 44203}'
    scanned: list[str] = []

    def find(text: str) -> list[TextSpan]:
        scanned.append(text)
        return secrets_in(text)

    secrets_in = app.masking.masking._secrets
    monkeypatch.setattr(app.masking.masking, "_secrets", find)
    client = serve_samples(cache_answers=True)
    assert client.post("/ask", json={"question": question, "session": "s"}).status_code == 200
    assert scanned.count(question) == 1
