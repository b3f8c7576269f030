"""Tests of `make fuzz`: findings and their report."""

from datetime import date
from typing import Any

import pytest

from benchmarks.fuzz.report import report
from benchmarks.fuzz.run import SERVER_KINDS, FuzzResult

pytestmark = pytest.mark.acceptance

FAILURE = {"title": "Server error", "operations": ["POST /ask"]}


def fuzz_result(stacks: int = 0, **fields: Any) -> FuzzResult:
    report_json = {
        "schemathesis_version": "4.0.0",
        "running_time": 90.0,
        "complete": True,
        "operations": {"total": 11, "tested": 11},
        "test_cases": {"generated": 12_345, "unique_failures": 0},
        "failures": [],
        "errors": [],
    }
    return FuzzResult(SERVER_KINDS[0], report_json | fields, stacks)


@pytest.mark.parametrize(
    ("result", "failures"),
    [
        (fuzz_result(), []),
        (fuzz_result(stacks=2), ["2 stack traces in the log"]),
        (fuzz_result(failures=[FAILURE]), ["Server error (POST /ask)"]),
        (fuzz_result(errors=["no schema"]), ["an error of schemathesis: no schema"]),
        (fuzz_result(complete=False), ["not everything was tested"]),
        (fuzz_result(operations={"total": 11, "tested": 10}), ["not everything was tested"]),
    ],
)
def test_any_finding_is_a_failure(result: FuzzResult, failures: list[str]) -> None:
    assert result.failures == failures


def test_report_section() -> None:
    text = report([fuzz_result(), fuzz_result(stacks=1)], 1_000, date(2026, 1, 2))
    assert "on 2026-01-02" in text
    assert "at most 1,000 examples" in text
    assert f"| {SERVER_KINDS[0]} | 11 | 12,345 | 1.5 | 0 | 0 |" in text
    assert text.endswith(f"{SERVER_KINDS[0]}: 1 stack traces in the log.")
    assert report([fuzz_result()], 1, date(2026, 1, 2)).endswith("Nothing was found.")
