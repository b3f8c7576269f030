"""The results of fuzzing as a section of docs/explanation/reliability.md."""

from collections.abc import Sequence
from datetime import date
from importlib.metadata import version

from benchmarks.document import prose, table
from benchmarks.fuzz.run import FuzzResult


def report(found: Sequence[FuzzResult], examples: int, day: date) -> str:
    """The section."""
    said = f"""
        Written by `make fuzz` on {day:%Y-%m-%d}: apidesk {version("apidesk")}, schemathesis
        {found[0].told["schemathesis_version"]}, all checks and phases, at most {examples:,} examples
        an operation.
    """
    head = ["server", "operations", "cases", "minutes", "findings", "stacks in the log"]
    rows = [
        [
            each.answer_service,
            f"{each.operations}",
            f"{each.cases:,}",
            f"{each.told['running_time'] / 60:.1f}",
            f"{each.told['test_cases']['unique_failures']}",
            f"{each.stacks}",
        ]
        for each in found
    ]
    failures = [f"{each.answer_service}: {failure}" for each in found for failure in each.failures]
    verdict = "; ".join(failures) or "Nothing was found"
    return "\n\n".join([prose(said), table(head, rows), prose(f"{verdict}.")])
