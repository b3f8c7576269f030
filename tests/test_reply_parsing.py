"""Objects are parsed from the text of a reply, also from an incomplete one."""

import json

import pytest

from runnables.models.json_text import UnreadableReply, is_unfinished, parse_object
from schemas.answer import AnswerDraft


@pytest.mark.parametrize(
    ("text", "steps", "repaired"),
    [
        ('{"answer": ["a"]}', ["a"], False),
        ('x {not json} {"answer": ["a"]} {}', ["a"], False),
        ('{"answer": ["a {b} ```c```"]}', ["a {b} ```c```"], False),
        ('{"answer": ["a <think> b"]}', ["a <think> b"], False),
        ('{"answer": ["a </think> b"]}', ["a </think> b"], False),
        ('<THINKING>{"answer": ["draft"]}</THINKING>{"answer": ["a"]}', ["a"], False),
        ('hm {"answer": ["a long draft"]}</think>{"answer": ["a"]}', ["a"], False),
        ('```\n{"answer": ["a"]}\n```\n```json\n{"x": 1}\n```', ["a"], False),
        ('{"answer": {"answer": ["a"], "question": "q"}}', ["a"], False),
        ('{"name": "AnswerDraft", "parameters": {"answer": ["a"]}}', ["a"], False),
        ('{"properties": {"answer": ["a"]}}', ["a"], False),
        (r'{"answer": ["\ud83d\ude00 \ud800"]}', ["😀 \ufffd"], False),
        (r'{"answer": ["\ud83d\ude00 \udfff"', ["😀 \ufffd"], True),
        ('{"answer": ["\ud800"]}', ["\ufffd"], False),
        ("{answer: ['a', \"b\",]}", ["a", "b"], True),
        ('{"answer": ["a", "b', ["a"], True),
        ('{"answer": ["a"], "question": "b', ["a"], True),
        ('{"answer": ["a" "b", "c"]}', ["a", "b", "c"], True),
        ('{"introduction": "x" "answer": ["a", "b"]}', ["a", "b"], True),
        ('Sure!\n```json\n{"answer": ["a", "b', ["a"], True),
        ('{"answer": ["a"], "answer": ["b"]}', ["b"], False),
        ('{"answer": ["a"], "n": NaN, "i": -Infinity, "l": 1e999}', ["a"], False),
        ('{"answer": "a"}', ["a"], False),
    ],
)
def test_object_is_parsed(text: str, steps: list[str], repaired: bool) -> None:
    value, was_repaired = parse_object(text, AnswerDraft)

    assert value.answer == steps
    assert was_repaired is repaired


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no JSON"),
        ("null", "no JSON"),
        ("[1, 2]", "no JSON"),
        ("no object at all", "no JSON"),
        ("[" * 60_000, "no JSON"),
        ('{"a":' * 12_000, "no JSON"),
        ("{" * 500_000, "no JSON"),
        ('{"answer": []}', "answer"),
        ('{"answer": ["a', "answer"),
        ('{"answer": [1]}', "answer.0"),
        ('{"question": "q"}', "answer: Field required"),
        (json.dumps(AnswerDraft.model_json_schema()), "JSON Schema"),
    ],
)
def test_unreadable_reply_names_the_problem(text: str, problem: str) -> None:
    with pytest.raises(UnreadableReply, match=problem):
        parse_object(text, AnswerDraft)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("Here is the answer:", True),
        ("<think>{}", True),
        ('{"answer": ["a', True),
        ('{"answer": ["a"]', False),
        ('{"answer": ["a"]}', False),
        ('{"answer": ["a" "b"], "question', False),
    ],
)
def test_reply_that_ends_before_or_within_its_object_is_unfinished(
    text: str, expected: bool
) -> None:
    assert is_unfinished(text) is expected
