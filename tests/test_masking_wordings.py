"""Secrets are masked in everyday wordings: in brackets, before their name, in lists and changes."""

from pathlib import Path

import pytest

from app.masking.masking import SecretScan, is_masked, mask
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

KEY = "h4k9s2m7x1q8w3e6"
HEX = "5be1c07d92fa58465be1c07d92fa5846"
GUID = "0a1b2c3d-1111-4222-8333-abcdefabcdef"

ENCLOSED = [
    "“{}”",
    "‘{}’",
    "「{}」",
    "『{}』",
    "【{}】",
    "《{}》",
    "（{}）",
    "({})",
    "[{}]",
    "‹{}›",
    '"{}"',
    "'{}'",
    "`{}`",
]

# Wordings, and the secrets in them. All values are invented.
MASKED: list[tuple[str, list[str]]] = [
    # a name, then a value without a separator
    ("密码“Harbor2291”登录失败", ["Harbor2291"]),
    ("登录口令（Harbor2292）被拒绝", ["Harbor2292"]),
    ('password "Harbor2293" is refused', ["Harbor2293"]),
    ("`app_secret` `h4k9s2m7x1q8w3e6` fails", [KEY]),
    ("验证码（773190）已失效，动态码【905512】也是", ["773190", "905512"]),
    ("密码是【Harbor2294】, the token is (h4k9s2m7x1q8w3e6)", ["Harbor2294", KEY]),
    (f"app_secret——{KEY}", [KEY]),
    (f"app_secret “{KEY}“, my secret, {KEY}, is refused", [KEY]),
    ("密码、Harbor2297\n口令（ Harbor2298 ）", ["Harbor2297", "Harbor2298"]),
    (f"密钥 - {KEY}", [KEY]),
    (f"app_secret\n\n{KEY}\n\n为什么", [KEY]),
    (f"API key:\n```\n{KEY}\n```", [KEY]),
    ("user lily and pass Harbor2295", ["Harbor2295"]),
    # numbers in two groups, the second of which is long
    ("card_no: 622202 1234567890128 is refused", ["622202", "1234567890128"]),
    ("银行卡号 622202-1234567890128，卡号：622203 12345678901", ["1234567890128", "12345678901"]),
    ("身份证 110105 19491231002X 不通过", ["110105", "19491231002X"]),
    ("card_no: 6222 0212 3456 7890 1761200000000", ["6222 0212 3456 7890"]),
    ("Authorization: Custom aB3dE5fG7hJ9kL2m then it fails", ["aB3dE5fG7hJ9kL2m"]),
    ('Authorization: "Custom aB3dE5fG7hJ9kL2m" then it fails', ["aB3dE5fG7hJ9kL2m"]),
    ("Authorization: Custom scheme abcDEF765432xyz123", ["abcDEF765432xyz123"]),
    ("Authorization: Acme v1 abcdef765432xyz", ["abcdef765432xyz"]),
    ("Authorization: Acme Scheme abcdef765432XYZ", ["abcdef765432XYZ"]),
    ("Authorization: Bearer s3cret12 requestId1234567", ["s3cret12"]),
    ("身份证 110105194912 31002X 不通过", ["110105194912", "31002X"]),
    # random values in code and in lines about keys
    (f'jwt.encode(payload, "{HEX}", algorithm="HS256")', [HEX]),
    (f'hmac.new(b"{HEX}", body, sha256)', [HEX]),
    (f'hmac.New(sha256.New, []byte("{HEX}"))', [HEX]),
    (f'openssl dgst -sha256 -hmac "{HEX}" body.txt', [HEX]),
    (f"orders with bearer {HEX} give 401", [HEX]),
    # further names, and other forms of characters
    (f"密碼：Harbor2296，應用密鑰「{KEY}」", ["Harbor2296", KEY]),
    (f"存取權杖：{KEY} 已過期", [KEY]),
    ("身分證字號 B234567891，驗證碼 338201", ["B234567891", "338201"]),
    (f"密匙：{KEY}，金鑰 {KEY}", [KEY]),
    ("my PIN is 77120, PIN码 482913", ["77120", "482913"]),
    (f"X-Auth: {KEY}", [KEY]),
    (f"auth: {KEY}", [KEY]),
    ("Passwort: Birke-4471", ["Birke-4471"]),
    (f"token=\u200b{KEY}, app\u200b_secret:\u3000{KEY}", [KEY]),
    # a value before its name
    (f"我拿 {KEY} 作为密钥", [KEY]),
    (f"用 {KEY} 当 app_secret", [KEY]),
    ("把 Lagoon!5518 设为登录密码", ["Lagoon!5518"]),
    (f"{KEY} is my app_secret", [KEY]),
    (f'we use "{KEY}" as the signing key', [KEY]),
    # a change
    (f"I set the token to {KEY} but get 401", [KEY]),
    ("my password was changed to Meadow9034", ["Meadow9034"]),
    ("I changed my password from Tulip1123 to Tulip4456", ["Tulip1123", "Tulip4456"]),
    ("密码从 Tulip1123 改成 Tulip4456", ["Tulip1123", "Tulip4456"]),
    (f"把密钥由“{KEY}”换成“x1q8w3e6h4k9s2m7”", [KEY, "x1q8w3e6h4k9s2m7"]),
    # lists of arguments, code and CSV
    ('["--user", "ops", "--password","Falcon3381"]', ["Falcon3381"]),
    ('["curl","-u","ops:Falcon3382"]', ["Falcon3382"]),
    ('request(app).get("/v1").auth("ops", "Falcon3383")', ["Falcon3383"]),
    ("new BasicAuth('ops','Falcon3384')", ["Falcon3384"]),
    ("user,password\nlily,Falcon3385\ntom,Falcon3386", ["Falcon3385", "Falcon3386"]),
    (f'"app_key";"app_secret"\n"62109284";"{KEY}"', [KEY]),
    ("账号,登录密码\nlily,Falcon3391", ["Falcon3391"]),
    (f"应用,应用密钥,初始密码\n店铺,{KEY},Falcon3392", [KEY, "Falcon3392"]),
    ("密码\n“Maple-River27\nnext line", ["Maple-River27"]),
    (f"| 应用 | 应用密钥 |\n|---|---|\n| 店铺 | {KEY} |", [KEY]),
    (f"| app | App Secret (prod) |\n|---|---|\n| shop | {KEY} |", [KEY]),
    (f"app,App Secret (prod)\nshop,{KEY}", [KEY]),
    ('user,note,password\nlily,"a, b",Falcon3393\ntom,"c","Fal,con3394"', ["Falcon3393", "Fal,con3394"]),
    ("user,password,\nlily,Falcon3395,\n\n\ntom,Falcon3396 ,", ["Falcon3395", "Falcon3396"]),
    ("user,password\nlily,Falcon3397,\ntom,Falcon3398", ["Falcon3397", "Falcon3398"]),
    ("user\tpassword\tnote\nlily\tFalcon3399\t", ["Falcon3399"]),
    # one-time codes
    ("验证码“7731”，验证码 483920 错误", ["7731", "483920"]),
    ("my PIN (7712), PIN is (7713), PIN: (7714)", ["7712", "7713", "7714"]),
    # others
    ("I log in as ops:Falcon3388", ["Falcon3388"]),
    (f"待签名串 {KEY}app_key2002methodorder.get{KEY}", [KEY]),
    (
        f"https://acme.webhook.office.com/webhookb2/{GUID}@{GUID}/IncomingWebhook/{HEX}/{GUID}",
        [GUID, HEX, "IncomingWebhook"],
    ),
]  # fmt: skip

KEPT = [
    "密码（password）字段要加密吗，密钥（Secret Key）在哪看，token (optional)",
    "app_secret（应用密钥）怎么重置，令牌（access_token）有效期多久",
    "密码（8-20位），sign (HMAC-SHA256)，密钥（AES-128-CBC/PKCS7Padding），验证码（短信）",
    "password (RFC-6749-bis), token (JWT-RS256), api key (v2.0-beta)",
    "密码“不能为空”，签名“isv.invalid-signature”，密钥“已失效”",
    'error "invalid_token", the key "order_status" is missing, data["access_token"]',
    "token——怎么拿？password - required; secret -- see section 2",
    "见《签名算法》一节和【密钥】",
    "密码从 8 位改成 12 位，签名方式从 MD5 改成 HMAC-SHA256，把密钥从测试环境换成正式环境",
    "I set the token to expire in 2 hours, the password was changed to a new one",
    "I set the token to the header X-Token2",
    "用 UTF-8 作为签名编码，我用 MD5 做签名，用 utf8mb4 作为密码字段编码",
    "HMAC-SHA256 is the signing method, v2.1 is the token version, order_no2 is the key",
    "use client-credentials2 as the token grant",
    '["--password", password], ["--token", "$TOKEN"]',
    ".auth(username, password), new BasicAuth(user, password)",
    'requests.get(url, auth=("user", "password"))',
    "app_key, app_secret, sign\nparam1, param2, param3",
    "user,password\nstring,string",
    "app_secret\n\n怎么获取",
    "token\npage_size\norder_id2",
    "log in as admin: 403, sign in as user:read, log in as service:account",
    "user bob and pass his id, pass order_no2 to the call",
    "auth: basic, X-Auth-Version: 2, bearer auth, jwt.decode(token, key)",
    "PIN 码是几位，can I pin 100 messages",
    "密碼欄位必填嗎，權杖多久過期，身分證要上傳嗎",
    "签名串 key1value1key2value2key1value1",
    "the md5 of the body is 9e107d9d372bb6826bd81d3542a419d6, does the signature use it?",
    "hmac.new(secret.encode(), msg, hashlib.sha256).hexdigest()",
    "regular expression token:[a-zA-Z0-9-_]+",
    "POST /hooks/123456/events",
    "password, username2, OrderNo22 and api_key, nonce_str32 are parameters",
    "忘记密码，iPhone15Pro 上收不到短信，用iPhone15Pro登录失败",
    "$ pwd\n/home/Lily2024/project",
    "password: /home/Lily2024/project/",
    "com.example.TokenV2x3y4z5a6b7 is the token, we use /opt/keys2/main3.cfg as the key",
    "use @acme/auth2-h4k9s2m7x1 as the token",
    "lib-h4k9s2m7x1q8-2.10 is the token",
    "2026-11-20T10:20:30Z is the token expiry, h4k9s2m7x1q8w3e6 is the token class",
    "h4k9s2m7x1q8w3e6 is the token library, h4k9s2m7x1q8w3e6 is the password resource",
    "发送验证码 500 错误，获取验证码 429 限流，验证码 3000 毫秒，验证码 1001 报错，验证码（1001）",
    "otp 5001 error, captcha (40014)",
    "set the token to TokenV2Header3",
    "<Authorization>Bearer YOUR_TOKEN</Authorization> <Authorization>Token token</Authorization>",
    "請求標識 5be1c07d92fa58465be1c07d92fa5846 驗簽失敗，訂單編號：6222021234567890123",
    "byte[] date = sign(stamp, kSecret, SigningAlgorithm.HmacSHA256);",
]


@pytest.mark.parametrize("enclosed", ENCLOSED)
@pytest.mark.parametrize("name", ["app_secret ", "密钥", "access token "])
def test_value_in_quotation_marks_or_brackets_is_masked(name: str, enclosed: str) -> None:
    masked = mask(f"{name}{enclosed.format(KEY)} 为什么 40014")
    assert KEY not in masked
    assert masked.endswith(" 为什么 40014")
    assert mask(masked) == masked


@pytest.mark.parametrize(("text", "secrets"), MASKED)
def test_wording_is_masked(text: str, secrets: list[str]) -> None:
    masked = mask(text)
    assert [secret for secret in secrets if secret in masked] == []
    assert mask(masked) == masked


@pytest.mark.parametrize("text", KEPT)
def test_ordinary_question_is_kept(text: str) -> None:
    assert mask(text) == text


def test_zero_width_characters_are_kept_outside_of_secrets() -> None:
    text = f"how\u200b about token=\ufeff{KEY[:8]}\u200b{KEY[8:]}\u200b fails"
    assert mask(text) == "how\u200b about token=\ufeff‹token›\u200b fails"
    assert SecretScan(text).masked == mask(text)
    assert list(SecretScan(text).secrets) == [KEY]


def test_labels_are_told_from_names() -> None:
    assert all(map(is_masked, ["‹secret›", "/‹token›", "/‹token›/‹sign›"]))
    assert not any(map(is_masked, ["", "/", "/v1/‹token›", "Order search"]))


@pytest.mark.parametrize(
    ("name", "path", "recorded"),
    [
        (HEX, f"/{HEX}", (None, None)),
        (HEX[:20], "/dop/unknown", (None, "/dop/unknown")),
        ("Unknown order", f"/bot/{HEX}", ("Unknown order", "/bot/‹token›")),
    ],
)
def test_secret_is_not_recorded_as_an_api(
    model_client: MakeClient,
    model_server: ModelServer,
    tmp_path: Path,
    name: str,
    path: str,
    recorded: tuple[str | None, str | None],
) -> None:
    def says(request: Recorded) -> Said:
        if is_classification(request):
            return structured(type="general", api_name=name, api_url=path)
        return AnswerDraft(question="q", introduction="", answer=["Ship the order. [1]"])

    model_server.default = says
    settings = {"database_url": f"sqlite:///{tmp_path}/apidesk.db", "spool": tmp_path / "spool"}
    client = model_client(**settings)
    ask(client, f"怎么发货，token={HEX}")
    store = RecordStore(open_engine(read_settings(**settings)))
    wait_until(lambda: len(list(store.since(LONG_AGO))) == 1, "the record is stored")
    [record] = store.since(LONG_AGO)
    assert (record.api_name, record.api_url) == recorded


@pytest.mark.acceptance
@pytest.mark.parametrize(
    "unit",
    ["password from a1 to ", "密码从 a 改成 b", "从", "token \"a1", "密码“a1", "密码（", "token — ",
     "a1b2c3d4 as the ", "a1b2c3 是我的", "Ab12 as my my my ", "!" * 30 + " ", "1" * 255 + " ",
     "user,password\na,b\n", "user,password\n\"a,", "登录密码,a (b)\n", ",\"a\" ", "登录密码,\n\n", "/a1", "密码，a1b2 ", "1.2 is the ",
     "验证码（1", "TokenA1", "a,token,", "password\n", "token\n\n\n", "login as a:b1", "hmac.new((((",
     "md5((", "curl -u\", \"", "--token\",\"", "set the token to ", "user bob and pass ", "\u200b",
     "token\u200b=", "密碼", "body md5 ", f"webhook/{GUID}@", "auth(\"a\",\"",
     "abcdefgh12345678abcdefgh12345678_", " was", "token ‹a1", "- token -- "],
)  # fmt: skip
def test_long_repetitions_of_wordings_do_not_hang(unit: str) -> None:
    text = unit * (20_000 // len(unit)) + "”"
    assert mask(mask(text)) == mask(text)
