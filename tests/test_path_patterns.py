"""Questions with a topic or path for which the documents have a pattern with placeholders."""

from pathlib import Path

import pytest

from runnables.retrieval.path_patterns import (
    count_segments_before_parameters,
    matching_patterns,
)
from tests.small_platform import quoted_page

FURTHER_ROWS = "\n".join(
    f"| `/dev/${{key}}/${{name}}/part{i}/get` | publish | Reads part number {i} of the parts list |"
    for i in range(30)
)

PAGE = f"""
# Topics

## System topics

| Topic | Permission | Description |
| --- | --- | --- |
{FURTHER_ROWS}
| `/dev/${{key}}/${{name}}/state/set` | subscribe | The cloud sets the state |
| `/dev/${{key}}/${{name}}/state/set/reply` | publish | The device confirms the state |

## Own topics

Own topics have the form `/own/<key>/+`. At most 50 topics are allowed.

## Sessions

A session ends after an hour without messages.
"""


@pytest.mark.parametrize(
    "question",
    [
        "/dev/a1Xy8/lamp01/state/set",
        "what is the topic /dev/a1Xy8/lamp01/state/set for?",
        "/dev/a1Xy8/lamp01/state/set 的权限",
    ],
)
def test_row_of_the_pattern_is_quoted(tmp_path: Path, question: str) -> None:
    answer = quoted_page(tmp_path, PAGE, question)
    assert "The cloud sets the state" in answer
    assert "part number 7" not in answer
    assert "does not contain" not in answer
    assert "没有" not in answer


def test_pattern_in_prose(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, PAGE, "how many topics like /own/a1Xy8/alarm can I have?")
    assert "At most 50" in answer
    assert "does not contain" not in answer


def test_path_without_a_pattern_is_missing(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, PAGE, "what is /dev/a1Xy8/lamp01/state/delete for?")
    assert "does not contain `/dev/a1Xy8/lamp01/state/delete`" in answer


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("a `/sys/${pk}/${dn}/set`.", "/sys/a/b/set", ["/sys/${pk}/${dn}/set"]),
        ("GET /orders/{id}, /orders/{id}/items", "/v2/orders/42", ["/orders/{id}"]),
        ("/orders/:id or /orders/<id>", "/orders/42", ["/orders/:id", "/orders/<id>"]),
        ("broadcast/{key}/+", "/broadcast/A/x", ["broadcast/{key}/+"]),
        ("格式为/sys/{名称}/#", "/sys/a/b/c", ["/sys/{名称}/#"]),
        ("/room/:id[/:part]/x/...", "/room/1/x/y/z", ["/room/:id[/:part]/x/..."]),
        ("/room/:id[/:part]/x/...", "/room/1/2/x/y", ["/room/:id[/:part]/x/..."]),
        ("all calls of /api/...", "/api/rooms", []),
        ("+/status", "/lamp/status", ["+/status"]),
        ("/sys/${pk}/set", "/sys/a/b/set", []),
        ("/sys/${pk}/set", "/other/sys/a/set", []),
        ("/{a}/{b}", "/orders/42", []),
        ("/orders/items", "/orders/42", []),
        ("read and/or write", "/and/or", []),
    ],
)
def test_patterns_that_match_a_path(text: str, path: str, expected: list[str]) -> None:
    assert matching_patterns(text, path) == expected


def test_pattern_in_a_whole_url_matches_a_path() -> None:
    text = "Call `https://api.acme.example/v1/users/{id}/avatar`."
    assert matching_patterns(text, "/v1/users/5/avatar") == ["/v1/users/{id}/avatar"]


def test_anchors_and_media_types_are_no_patterns() -> None:
    assert matching_patterns("See [x](/orders/#create).", "/orders/5") == []
    assert matching_patterns("Send image/+json.", "image/png") == []


STOPPED = """
# Rooms

## Calls to a closed room

Calls to `/room/:name[/:part]/tools/...` fail with a `503` while the room is closed.
"""


def test_question_about_a_status_of_a_concrete_path_is_answered_from_the_pattern(
    tmp_path: Path,
) -> None:
    question = "Why do calls to /room/blue/tools/lamps fail with 503?"
    answer = quoted_page(tmp_path, STOPPED, question)
    assert "while the room is closed" in answer


def test_missing_path_does_not_hide_a_page_about_the_status(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, STOPPED, "Why do calls to /lift/tools/lamps fail with 503?")
    assert "while the room is closed" in answer


def test_missing_path_alone_is_not_answered(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, STOPPED, "what is /lift/tools/lamps?")
    assert answer == "The documentation of Acme does not contain `/lift/tools/lamps`."


VISITS = """
# Visits

The page `/visits/today/:floor` shows visits to a floor.
"""


def test_path_in_prose_may_lack_its_parameter(tmp_path: Path) -> None:
    answer = quoted_page(tmp_path, VISITS, "what does the page /visits/today show?")
    assert "shows visits to a floor" in answer
    assert "does not contain" not in answer


@pytest.mark.parametrize("parameter", [":id", "{id}", "<id>", "7f3a"])
def test_path_with_a_parameter_is_missing_however_it_is_written(
    tmp_path: Path, parameter: str
) -> None:
    answer = quoted_page(tmp_path, VISITS, f"what does GET /visits/keys/{parameter} return?")
    assert f"does not contain `/visits/keys/{parameter}`" in answer


@pytest.mark.parametrize(
    ("path", "url", "expected"),
    [
        ("/orders/search", "/orders/search/{term}", 2),
        ("/v2/orders", "/orders/{id}/{item}", 1),
        ("/orders", "/orders", 0),
        ("/orders/42", "/orders/{id}", 0),
        ("/shops/orders", "/orders/{id}", 0),
        ("/orders", "/{a}/{b}", 0),
    ],
)
def test_segments_before_the_parameters_are_counted(path: str, url: str, expected: int) -> None:
    assert count_segments_before_parameters(path, url) == expected
