"""Tests of identifier matching: an identifier alone finds the page that defines it."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from app.service.answer_service import AnswerService
from ingestion.sources.registry import read_source
from ingestion.text.markdown_blocks import parse_table, plain_text
from runnables.question.extract_details import extract_details
from runnables.question.query_analysis import (
    asks_about_code,
    extract_identifiers,
    header_names,
)
from runnables.retrieval.exact_search import (
    DEFINED,
    definition_strength,
    missing_identifiers,
    similar_identifiers,
)
from schemas.document import SourceDocument
from schemas.platform import SourceLimits
from schemas.question import Filters
from schemas.settings import read_settings
from tests.chunks import page
from tests.collections import open_collection, write
from tests.small_platform import quoted_page

MIN_HIT_RATE = 0.99
SECTIONS = {"code": "error_codes", "field": "_parameters"}


def documents(answer_service: AnswerService) -> Iterator[SourceDocument]:
    for source in answer_service.platform.sources:
        for found in read_source(source, SourceLimits()):
            assert isinstance(found, SourceDocument)
            yield found


def definitions(answer_service: AnswerService, kind: str) -> dict[str, set[str]]:
    """Return the titles of the documents that define each URL, error code or field of the samples.

    A guide with a table row about an error code or field defines it as well as an API does.
    """
    asked: set[str] = set()
    defined: dict[str, set[str]] = defaultdict(set)
    for document in documents(answer_service):
        defined[document.api_url].add(document.title)
        for section in document.sections:
            rows = [plain_text(row[0]) for row in parse_table(section.body)[1:] if row]
            for name in rows:
                defined[name].add(document.title)
                defined[name.rpartition(".")[2]].add(document.title)
            if SECTIONS.get(kind, "nothing") in section.kind:
                asked.update(rows)
        if kind == "url" and document.api_url:
            asked.add(document.api_url)
    return {name: defined[name] for name in asked}


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("kind", "phrases"),
    [
        (
            "code",
            [
                "{}",
                "{} 是什么错误",
                "错误码 {}",
                "errcode {} 怎么解决",
                "接口返回 errcode {} 是什么意思，怎么处理",
                "what does error {} mean?",
                "the API returns errcode {}, what does it mean and how do I handle it",
            ],
        ),
        ("url", ["{}", "接口 {}", "https://open.example.com{}?page=1"]),
        ("field", ["{}", "what is {}"]),
    ],
)
def test_identifier_alone_finds_its_page_first(
    client: TestClient[Litestar], sample_service: AnswerService, kind: str, phrases: list[str]
) -> None:
    missed: list[tuple[str, str]] = []
    asked = 0
    for number, (name, titles) in enumerate(sorted(definitions(sample_service, kind).items())):
        for phrase in phrases if kind != "field" or number % 3 == 0 else phrases[:1]:
            asked += 1
            question = phrase.format(name)
            found = client.post("/retrieve", json={"question": question}).json()["sources"]
            if found[0]["title"] not in titles:
                missed.append((question, found[0]["title"]))
    assert asked > 50
    assert len(missed) <= (1 - MIN_HIT_RATE) * asked, "\n".join(map(str, missed))


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("40014", ["40014"]),
        ("what does isv.invalid-signature mean", ["isv.invalid-signature"]),
        ("接口 /dop/api/v1/order/search", ["/dop/api/v1/order/search"]),
        ("https://open.example.com/dop/api/v1/x?page=1", ["/dop/api/v1/x"]),
        ("order_no 是什么", ["order_no"]),
        ("items[].sku_id", ["items[].sku_id"]),
        ("createdTime or updated-at", ["createdtime", "updated-at"]),
        ("sign", ["sign"]),
        ("sign?", ["sign"]),
        ("@everyone", ["@everyone"]),
        ("怎么发货", []),
        ("how do I ship an order", []),
        ("sign 是什么意思", ["sign"]),
        ("what does the field mode mean?", ["mode"]),
        ("what is the mode of a rate plan", []),
        ("how to sign", []),
        ("well-known facts", ["well-known"]),
        ("which calls, e.g. for refunds in the U.S., run at 3 p.m.?", []),
        ("HTTP 403 error", ["403"]),
        ("2026/07/03 12:00:00,123 HTTP error: 403", ["403"]),
        ("2026-07-03T12:00:00.123+0800 error", []),
        ("403 items", []),
        ("what does 402 mean", ["402"]),
        ("402 是什么意思", ["402"]),
        ("I keep getting 429", ["429"]),
        ("why do I get a 404 here", ["404"]),
        ("接口返回 500 了", ["500"]),
        ("what is 100 items a page good for", []),
        ("returns 100 items", []),
        ("errcode -1 怎么解决", ["-1"]),
        ("errcode ratelimited 怎么解决", ["ratelimited"]),
        ("connect failed rc=5", ["5", "0x05"]),
        ("收到 reasonCode 0x8E", ["0x8e", "reasoncode"]),
        ("upgrade step -3", ["-3"]),
        ("气温 -3 度", []),
        ("version conflict 409", ["409"]),
        ("which host answers 409", []),
        ("at most 500", []),
        ("INVALID_SIGN 和 99991672", ["invalid_sign", "99991672"]),
        ("what do --draft and -f do", ["--draft", "-f"]),
        ("400-555-0123 是什么", ["400-555-0123"]),
        ("call 020-55501234 on 2024-08-01, pages 100-200", ["020-55501234"]),
        ("/v1/orders 返回 40014", ["40014", "/v1/orders"]),
        ("", []),
    ],
)
def test_extract_identifiers(question: str, expected: list[str]) -> None:
    assert extract_identifiers(question) == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("错误码 40014 怎么处理", ()),
        ("错误码 987654 怎么处理", ("987654",)),
        ("POST /dop/api/v1/order/search?page=1", ()),
        ("/dop/api/v1/order/clone 怎么调用", ("/dop/api/v1/order/clone",)),
        ("isv.no-such-code 和 isv.invalid-signature", ("isv.no-such-code",)),
        ("一次最多 987654 条吗", ()),
        ("a well-known check-in", ()),
        ("上传 no-such-file.csv 和 no_such.png 被拒了，哪些后缀可以？", ()),
        ("no-such-config.yaml 放在哪里", ("no-such-config.yaml",)),
        ('怎么办 {"code":40014,"msg":"x","data":{"no_such_field":"no_such_value"}}', ()),
        ('怎么办 {"code":987654,"msg":"x"}', ("987654",)),
        ('怎么办 {"code":40014,"msg":"No such order: ord_1"}', ()),
        ('ord_1 怎么办 {"code":40014,"msg":"No such order: ord_1"}', ("ord_1",)),
        ("/api/v1/order/search 怎么调用", ()),
        ('till.post(f"{host}/dop/api/v1/order/search", json=body) 为什么失败', ()),
        ("OrderError - {http_state:403, no_such_id: 7f3a, code:40014}", ()),
        ("no_such_id 是什么 {no_such_id: 7f3a}", ("no_such_id",)),
        ("till.post(order) 怎么用", ("till.post",)),
    ],
)
def test_missing_identifiers_are_those_that_no_document_contains(
    sample_service: AnswerService, question: str, expected: tuple[str, ...]
) -> None:
    details = extract_details(question)
    assert missing_identifiers(sample_service.collection, details, Filters()) == list(expected)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("what does error 41229 mean?", "It contains similar names: `41"),
        ("怎么解析 isv.invalid-signiture", "`isv.invalid-signature`"),
        ("/dop/api/v1/order/shiip 返回什么", "`/dop/api/v1/order/ship`"),
        ("what does error 990099 mean?", "does not contain `990099`."),
        ("字段 SUB_ORDER_NUM 是什么", "没有 `SUB_ORDER_NUM`"),
    ],
)
def test_an_unknown_identifier_is_named_with_similar_ones(
    client: TestClient[Litestar], question: str, sentence: str
) -> None:
    answer = client.post("/ask", json={"question": question}).json()
    assert sentence in " ".join(answer["answer"])
    assert (answer["confidence"], answer["sources"]) == ("low", [])


@pytest.mark.parametrize(
    "question",
    ["acme.CardError: why", 'File "/app/main.py", line 3: CardError', "require() of /app/node_modules/x.js"],
)  # fmt: skip
def test_classes_with_their_package_and_source_files_are_not_missing(
    tmp_path: Path, question: str
) -> None:
    text = "# Exceptions\n\nThe SDK raises CardError if a card is declined. ES modules need require().\n"
    assert "does not contain" not in quoted_page(tmp_path, text, question)


FLAGS = (
    "# Send\n\n## States\n\n| State | Meaning |\n| --- | --- |\n| draft | Not sent yet. |\n"
    "| all | Any state. |\n\n## Command\n\n| Flag | Description |\n| --- | --- |\n"
    "| `--file`, `-f` | The PDF. |\n| `--draft` | Creates it without sending it. |\n"
    "| `--all-pages` | Prints it completely. |\n"
)


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("what does --draft do", "Creates it without sending it."),
        ("--draft 是什么意思", "Creates it without sending it."),
        ("what is -f", "The PDF."),
    ],
)
def test_flag_is_found_with_its_dashes_only(tmp_path: Path, question: str, fact: str) -> None:
    first, _, _ = quoted_page(tmp_path, FLAGS, question).partition("Not sent yet.")
    assert fact in first


def test_flag_is_missing_if_documents_contain_only_its_word(tmp_path: Path) -> None:
    collection = open_collection(read_settings(milvus_uri=str(tmp_path / "milvus.db")), "embedded")
    write(collection, page("flags", FLAGS))
    details = extract_details("is there --all, --watch, --draft or -f?")
    assert missing_identifiers(collection, details, Filters()) == ["--all", "--watch"]
    collection.close()


def test_field_is_missing_if_documents_contain_only_a_longer_name(tmp_path: Path) -> None:
    collection = open_collection(read_settings(milvus_uri=str(tmp_path / "milvus.db")), "embedded")
    write(
        collection,
        page("fields", "| `items[].identifier` | The id |\n| `order.lines[].id` | The id |"),
    )
    details = extract_details("what are items.id and lines.id?")
    assert missing_identifiers(collection, details, Filters()) == ["items.id"]
    collection.close()


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ('{"code": -352, "message": "风险检查没有通过"}', "没有 `-352`"),
        ('{"code": 7351, "message": "风险检查没有通过"}', "没有 `7351`"),
        ('{"code": -351, "message": "别的话"}', "检查账号"),
        ('{"code": 404, "message": "风险检查"}', "检查账号"),
    ],
)
def test_short_code_of_a_pasted_response_is_missing(
    tmp_path: Path, response: str, said: str
) -> None:
    codes = "# 风险检查\n\n风险检查没有通过时返回错误码：\n\n- -351: 检查账号\n- -350: 请求太快\n"
    text = quoted_page(tmp_path, codes, response)
    assert said in text
    assert ("检查账号" in text) is (said == "检查账号")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("HTTP/1.1 200 OK\nCooldown: 7\nContent-Type: text/html\n\nand now?", ["cooldown"]),
        ("> GET /jars HTTP/1.1\n> Lid: x\n>\n< HTTP/2 429\n< Cooldown: 7", ["lid", "cooldown"]),
        ("GET /jars HTTP/1.1 returned 404. Expected: 200. Actual: 404. Why?", []),
        ("GET /jars HTTP/1.1 failed\nExpected: 200\nActual: 404\nWhy?", []),
        ("GET /jars HTTP/1.1\nLid: x\n\nHTTP/2 429\nCooldown: 7", ["lid", "cooldown"]),
        ("HTTP/1.1 429 Too Many\r\nCooldown: 7\r\n\r\nQuestion: why?", ["cooldown"]),
        ("HTTP/2 429\nx-lid-open: 30\nCool-Down: 3\n\nnote: x", ["cool-down"]),
        ("We support HTTP/2 only. Background: our proxy. Goal: one kiln.", []),
        ("what may the Cooldown header contain", ["cooldown"]),
        ("HTTP/1.1 200 OK Cooldown: 7 Content-Type: text/html What now?", ["cooldown"]),
        ("HTTP/1.1 403 No Server: kiln/1.18.0 X-Lid: 3. Expected: 200.", ["x-lid"]),
        ("POST /v1/jars HTTP/1.1 Host: kilns.example Lid-Key: abc", ["lid-key"]),
        ("I get HTTP/1.1 403 No X-Lid: ip here\nWhy is that?", ["x-lid"]),
        ("HTTP/1.1 404 Not Found\n\nExpected: 200", []),
        ("does the Excel header row or the Quartzo header block matter", []),
        ("which header Is required, and which header You sent", []),
        ("is the header If-Jar-Open or the header Lid-State needed", []),
        ("Cooldown: 7 days, which header is this", []),
        ("Which headers do I need in the Request header?", []),
    ],
)
def test_header_is_an_identifier(question: str, names: list[str]) -> None:
    assert header_names(question) == names
    assert set(names) <= set(extract_identifiers(question))


@pytest.mark.parametrize(
    "message", ["HTTP/1.1 200 OK\nServer: x\nCooldown: 7", "HTTP/2 429\ndate: x\ncooldown: 7"]
)
def test_header_of_a_sample_response_is_no_definition(message: str) -> None:
    sample = page("sample", f"```http\n{message}\n\n{{}}\n```")
    described = page("described", "Cooldown: seconds to wait")
    strengths = [definition_strength(chunk, ["cooldown"]) for chunk, *_ in (sample, described)]
    assert strengths == [0, DEFINED]


def test_code_after_the_first_line_of_a_sample_response_is_defined() -> None:
    (chunk,) = page("errors", "HTTP/1.1 404 Not Found\nkiln_gone: The kiln was removed.")
    assert definition_strength(chunk, ["kiln_gone"]) == DEFINED


VARIABLE_PARTS = (
    "The variable KILN_<ROOM>_HEAT的值. Ids begin with `deg_`, as in `kiln_{id}` and lid_<env>.yaml.\n\n"
    "Call `GET /_alive` first, 再调用/lids接口. We sign with v4.\n\n- `{thing}_id`: the id of a thing\n"
)


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("is KILN_attic_HEAT right?", []),
        ("is KILN_attic_COLD right?", ["kiln_attic_cold"]),
        ("deg_glaze=3 or kiln_shelf_size=3?", ["deg_glaze", "kiln_shelf_size"]),
        ("what does glaze_id mean?", ["glaze_id"]),
        ("GET /v2/_alive, /v1/lids or /v2/_awake?", ["/v2/_awake"]),
    ],
)
def test_name_that_matches_a_documented_pattern_is_not_missing(
    tmp_path: Path, question: str, missing: list[str]
) -> None:
    collection = open_collection(read_settings(milvus_uri=str(tmp_path / "milvus.db")), "embedded")
    write(collection, page("names", VARIABLE_PARTS))
    assert missing_identifiers(collection, extract_details(question), Filters()) == missing
    collection.close()


MEMBERS = (
    "# Module kiln.py\n\n```python\nk = Kiln(3)\nk.light_up(at=900)\n```\n\n## class Kiln()\n\nOne oven.\n\n"
    "### async def light\\_up()\n\nHeats the oven slowly.\n\n## class Glaze()\n\nAll coats.\n\n"
    "### def coat()\n\nPaints one coat.\n\n## class GlazeKind(Enum)\n\n- MATT: no shine\n- GLOSSY: a mirror\n\n"
    "## def list\\_kilns()\n\nReturns every oven.\n"
)


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("what does Kiln.light_up do", "Heats the oven slowly."),
        ("kiln.Kiln.light_up()", "Heats the oven slowly."),
        ("Glaze.coat 怎么用", "Paints one coat."),
        ("GlazeKind.GLOSSY", "a mirror"),
        ("what does kiln.list_kilns return?", "Returns every oven."),
    ],
)
def test_member_is_found_in_the_section_of_its_class(
    tmp_path: Path, question: str, fact: str
) -> None:
    text = quoted_page(tmp_path, MEMBERS, question)
    assert fact in text.partition("[1]")[0]


def test_member_of_another_class_is_missing(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, MEMBERS, "Glaze.light_up 怎么用")
    assert "没有 `Glaze.light_up`" in text
    assert "k.light_up" not in text


@pytest.mark.parametrize(
    ("heading", "identifier", "is_defined"),
    [
        ("async def light\\_up()", "light_up", True),
        ("class acme.kiln.Kiln(size)", "kiln.kiln", True),
        ("def light_up_all()", "light_up", False),
        ("Before light_up", "light_up", False),
    ],
)
def test_heading_declares_an_identifier(heading: str, identifier: str, is_defined: bool) -> None:
    (chunk,) = (
        each.model_copy(update={"section": f"Kilns > {heading}"}) for each in page("x", "Text.")
    )
    assert (definition_strength(chunk, [identifier]) >= DEFINED) is is_defined


@pytest.mark.parametrize(
    "question",
    [
        '{"type": "invalid_request", "message": "Order is locked", "param": null}',
        '{"status": 409, "message": "Order is locked"} what is wrong?',
        'File "/app/a.py", line 12, in f\n    order.change("ord_1")\nacme.errors.Locked: Order is locked',
        "Error: Order is locked\n    at Socket.read (node:internal/stream:217:20)",
    ],
)
def test_message_of_a_pasted_error_is_searched_for(tmp_path: Path, question: str) -> None:
    text = (
        "# Errors\n\n## `Invalid API request key`\n\nThe key of the request is wrong.\n\n"
        "## `Order is locked`\n\nSomeone has it open in the editor.\n"
    )
    answer = quoted_page(tmp_path, text, question)
    assert "Someone has it open in the editor." in answer
    assert "The key of the request" not in answer
    assert "does not contain" not in answer


def test_similar_paths_are_compared_without_case_and_suggested_as_written(tmp_path: Path) -> None:
    collection = open_collection(read_settings(milvus_uri=str(tmp_path / "milvus.db")), "embedded")
    write(collection, page("user", "Returns a user.", api_url="/V1/GetUserInfo"))
    assert similar_identifiers(collection, "/v1/getuserinf", (), Filters()) == ["/V1/GetUserInfo"]
    collection.close()


@pytest.mark.parametrize(
    ("question", "section", "fact"),
    [
        ("调用 /dop/api/v1/order/ship 返回 41021 怎么办", "错误码", "`41021`"),
        ("which parameters does POST /dop/api/v1/product/sku_price need?", "Request parameters",
         "| Name | Type | Required | Description |"),
    ],
)  # fmt: skip
def test_path_does_not_hide_what_the_question_asks_for(
    client: TestClient[Litestar], question: str, section: str, fact: str
) -> None:
    answer = client.post("/ask", json={"question": question}).json()
    assert fact in answer["answer"][0]
    assert answer["sources"][0]["section"] == section
    assert answer["confidence"] in ("high", "medium")


@pytest.mark.parametrize(
    "body",
    [
        "| Field | Meaning |\n| --- | --- |\n| user\\_id | The user. |",
        "- user\\_id: the user.",
        "user\\_id: the user.",
    ],
    ids=["row", "item", "line"],
)
def test_escaped_identifier_is_found(body: str) -> None:
    (chunk,) = page("fields", body)
    assert definition_strength(chunk, ["user_id"]) >= DEFINED
    assert definition_strength(chunk, ["user"]) < DEFINED


def test_mentions_of_several_identifiers_are_no_definition() -> None:
    (mention,) = page("mention", "use `kiln_a` and `lid_b` here")
    (definition,) = page("definition", "- `kiln_a`: the kiln, unlike `lid_b`")
    assert definition_strength(mention, ["kiln_a", "lid_b"]) < DEFINED
    assert definition_strength(definition, ["kiln_a", "lid_b"]) > DEFINED


def test_identifier_in_the_code_column_is_defined_even_if_another_cell_contains_it() -> None:
    row = "| 404 | order not_found | not_found |"
    (chunk,) = page("errors", f"| HTTP | Message | Code |\n| --- | --- | --- |\n{row}")
    assert definition_strength(chunk, ["not_found"]) >= DEFINED


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("返回 18017 怎么解决", True),
        ("报 18019", True),
        ("遇到 -1003 怎么办", True),
        ("-1015 是什么意思", True),
        ("what does -2010 mean", True),
        ("why do I get -1021", True),
        ("should I retry a 500", True),
        ("should I retry 422?", True),
        ("the import returns 207", True),
        ("why do the uploads of large files to the archive fail with 507?", True),
        ("409 when closing a room", True),
        ("can the uploads fail with 500 files", False),
        ("the upload fails with 507, which size is allowed", False),
        ("what do I do on a 409 or a 412", True),
        ("上传返回 -11", True),
        ("18017 怎么解决", True),
        ("-509 如何处理？", True),
        ("412怎么解决", True),
        ("怎么解决 18017", True),
        ("how do I fix 18017?", True),
        ("how to solve -509", True),
        ("18017 条怎么处理", False),
        ("怎么处理 18017 条消息", False),
        ("how do I handle 5000 messages", False),
        ("write a 500 word text", False),
        ("it returns 100 items", False),
        ("返回 18017 条怎么办", False),
        ("it returns 5000 items", False),
        ("how do I send 20000 messages", False),
        ("412 or 428, which one and when?", True),
        ("400 vs 422", True),
        ("什么时候是412还是428", True),
        ("do I need 412 or 428.5 metres of pipe", False),
        ("401 or 403, when do I get which?", True),
        ("/kilns 一直 503 啥原因", True),
        ("传大文件就 413 了，怎么办", True),
        ("I suddenly get 429", True),
        ("传图片上去，415", True),
        ("the kiln just gives up, 504", True),
        ("order 404 is missing", False),
        ("订单 404 没有发货", False),
        ("第 404 个", False),
        ("limit 填 500 行么", False),
        ("version conflict 409", True),
        ("这个接口偶尔 504，它多久算超时？", True),
        ("Can I set the timeout to 408?", False),
        ("How do I register kiln 404", False),
        ("我有 404 台窑，可以注册吗", False),
        ("How do I close ticket 404?", False),
        ("id=404", False),
        ("user_id 404", False),
        ("lid_id: 404, how do I rename it", False),
        ("USD 404", False),
        ("404 x 505", False),
        ("宽度设为 405 像素", False),
        ("403 件", False),
        ("选 12 还是 405？", False),
        ("is it 12,404.", False),
        ("a 401(k) plan", False),
        ("phone 415 555 0100", False),
        ("What is the difference between a 401 and a 403?", True),
        ("401和403有什么区别", True),
        ("What's the difference between 401 and 403?", True),
        ("Differences between 401 and 403", True),
        ("401 和 403 有何区别", True),
        ("401跟403有啥区别", True),
        ("401、403 有什么不同", True),
        ("401与403分别代表什么", True),
        ("explain 401 vs 403", True),
        ("401 or 403, which is right?", True),
        ("when is it 401 and when 403?", True),
        ("401, 403 or 412?", True),
        ("can it take 401, 403 or 412 items", False),
        ("are the rooms between 401 and 412 free", False),
        ("可以买401和402个吗", False),
        ("can a room have 400 or 500 seats", False),
        ("can I book rooms 401 and 404 in one call?", False),
        ("can I book rooms 401 and 404?", False),
        ("450 or 501 characters", False),
        ("408/512 px", False),
        ("价格是401和402元", False),
    ],
)
def test_code_is_asked_about_without_the_word_error(question: str, asks: bool) -> None:
    assert asks_about_code(question) is asks


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            "what does error 44203 mean?",
            "The part of the documentation of Qingqiao Open Platform that the filters select does not"
            " contain `44203`.",
        ),
        ("错误码 44203 是什么意思", "青桥开放平台的文档中符合筛选条件的部分没有 `44203`。"),
    ],
)
def test_code_outside_the_filters_is_missing(
    client: TestClient[Litestar], question: str, sentence: str
) -> None:
    found = client.post("/ask", json={"question": question}).json()
    assert "44203" in found["answer"][0]
    asked = {"question": question, "filters": {"source": "guides"}}
    missing = client.post("/ask", json=asked).json()
    assert missing["answer"][0].startswith(sentence)
    assert missing["confidence"] == "low"


@pytest.mark.parametrize("question", ["@everyone", "`@everyone`?"])
def test_mention_is_found_although_its_word_is_common(tmp_path: Path, question: str) -> None:
    page = (
        "# Rooms\n\n## Names\n\nA room has a name.\n\n## Calls\n\n"
        "The text `@everyone` calls all members of a room.\n\n## Limits\n\nA room has 50 seats.\n"
    )
    # In many words, a single occurrence of a common word says nothing about the topic.
    page += "".join(f"\n## Floor {i}\n\n{'This floor has a room. ' * 40}\n" for i in range(160))
    answer = quoted_page(tmp_path, page, question)
    assert "calls all members" in answer
    assert "50 seats" not in answer
