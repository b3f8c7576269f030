"""Tests of `make fuzz`: findings and their report."""

from datetime import date
from typing import Any

import pytest

from benchmarks.fuzz.report import report
from benchmarks.fuzz.run import DESKS, FuzzResult

FAILURE = {"title": "Server error", "operations": ["POST /ask"]}


def found(stacks: int = 0, **fields: Any) -> FuzzResult:
    told = {
        "schemathesis_version": "4.0.0",
        "running_time": 90.0,
        "complete": True,
        "operations": {"total": 11, "tested": 11},
        "test_cases": {"generated": 12_345, "unique_failures": 0},
        "failures": [],
        "errors": [],
    }
    return FuzzResult(DESKS[0], told | fields, stacks)


@pytest.mark.parametrize(
    ("seen", "failures"),
    [
        (found(), []),
        (found(stacks=2), ["2 stacks in the log"]),
        (found(failures=[FAILURE]), ["Server error (POST /ask)"]),
        (found(errors=["no schema"]), ["an error of schemathesis: no schema"]),
        (found(complete=False), ["not everything was tested"]),
        (found(operations={"total": 11, "tested": 10}), ["not everything was tested"]),
    ],
)
def test_any_finding_is_a_failure(seen: FuzzResult, failures: list[str]) -> None:
    assert seen.failures == failures


def test_report_section() -> None:
    text = report([found(), found(stacks=1)], 1_000, date(2026, 1, 2))
    assert "on 2026-01-02" in text
    assert "at most 1,000 examples" in text
    assert f"| {DESKS[0]} | 11 | 12,345 | 1.5 | 0 | 0 |" in text
    assert text.endswith(f"{DESKS[0]}: 1 stacks in the log.")
    assert report([found()], 1, date(2026, 1, 2)).endswith("Nothing was found.")
