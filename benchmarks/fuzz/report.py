"""Formats the results of fuzzing as a section of docs/explanation/reliability.md."""

from collections.abc import Sequence
from datetime import date
from importlib.metadata import version

from benchmarks.document import prose, table
from benchmarks.fuzz.run import FuzzResult


def report(results: Sequence[FuzzResult], examples: int, day: date) -> str:
    """Return the section."""
    introduction = f"""
        Written by `make fuzz` on {day:%Y-%m-%d}: apidesk {version("apidesk")}, schemathesis
        {results[0].report["schemathesis_version"]}, all checks and phases, at most {examples:,} examples
        per operation.
    """
    head = ["server", "operations", "cases", "minutes", "findings", "stack traces in the log"]
    rows = [
        [
            each.server_kind,
            f"{each.operations}",
            f"{each.cases:,}",
            f"{each.report['running_time'] / 60:.1f}",
            f"{each.report['test_cases']['unique_failures']}",
            f"{each.stacks}",
        ]
        for each in results
    ]
    failures = [f"{each.server_kind}: {failure}" for each in results for failure in each.failures]
    verdict = "; ".join(failures) or "Nothing was found"
    return "\n\n".join([prose(introduction), table(head, rows), prose(f"{verdict}.")])
