"""XML documents in questions, which are read like JSON."""

import pytest

from runnables.question.extract_details import extract_details
from runnables.question.xml_bodies import MAX_DOCUMENTS, replace_xml

ORDER_PAID = """下单失败：<xml>
  <return_code><![CDATA[SUCCESS]]></return_code>
  <result_code><![CDATA[FAIL]]></result_code>
  <err_code><![CDATA[ORDERPAID]]></err_code>
  <err_code_des><![CDATA[该订单已支付]]></err_code_des>
</xml>"""


def test_reply_in_xml_is_the_response() -> None:
    details = extract_details(ORDER_PAID)
    assert isinstance(details.response, dict)
    assert details.response["result_code"] == "FAIL"
    assert details.error == "ORDERPAID 该订单已支付"
    assert details.shown == "下单失败"


def test_declaration_and_nested_elements() -> None:
    text = (
        '<?xml version="1.0"?>\n<Error><Code>E1</Code><Details><Key>a</Key></Details></Error> why'
    )
    assert replace_xml(text) == '{"Code": "E1", "Details": {"Key": "a"}} why'


@pytest.mark.parametrize(
    "text",
    [
        '<?xml version="1.0" encoding="GBK"?><r><msg>签名错误</msg></r>',
        '<?xml version="1.0" encoding="ISO-8859-1"?><r><msg>签名错误</msg></r>',
        '<Response code="1"><msg>签名错误</msg></Response >',
    ],
)
def test_encoding_and_attributes_do_not_matter(text: str) -> None:
    assert replace_xml(text) == '{"msg": "签名错误"}'


def test_request_in_xml_has_parameters() -> None:
    details = extract_details("<xml><appid>wx1</appid><mch_id>2</mch_id></xml> 缺什么参数")
    assert details.request_param == {"appid": "wx1", "mch_id": "2"}


@pytest.mark.parametrize(
    "text",
    [
        "why is <div><p>x</p></div> not rendered",
        "<xml><appid>wx1</appid>",
        "List<Map<String, Object>>",
        '<!DOCTYPE a [<!ENTITY b "c">]><a><d>&b;</d></a>',
        "<a><b></c></a>",
    ],
)
def test_other_markup_stays_as_it_is(text: str) -> None:
    assert replace_xml(text) == text


@pytest.mark.parametrize("count", [100, 20_000])
def test_deep_elements_are_not_read(count: int) -> None:
    text = "<ab>" * count + "x" + "</ab>" * count
    assert replace_xml(text) == text


def test_only_the_first_documents_are_read() -> None:
    text = "<ab><cd>1</cd></ab> " * (MAX_DOCUMENTS + 1)
    assert replace_xml(text).count("<ab>") == 1
