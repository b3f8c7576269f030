"""Asks questions of a service with real models, checks every answer, and prints the figures.

    python -m tests.real_models ENVIRONMENT [--questions N] [--deadline S] [--document PAGE]

ENVIRONMENT is the virtual environment with the models, which `make test-models` creates. Without
`--questions`, all parts run; with it, N questions about three platforms are asked. Fails if an answer is
not valid, or contains an identifier, a link or a citation that is neither in its sources nor listed.
"""

import argparse
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from benchmarks.document import write_between_markers
from tests.real_models.measurements import ModelClock, Outcome, table
from tests.real_models.parts import ServiceHarness, ask_all_parts, ask_many
from tests.real_models.servers import chat_server, embedding_server, free_port, running


def main() -> None:
    """Run the parts and print the figures; exit with 1 if an answer is not valid."""
    parser = argparse.ArgumentParser(prog="python -m tests.real_models")
    parser.add_argument("environment", type=Path)
    parser.add_argument("--questions", type=int)
    parser.add_argument("--deadline", type=float, default=120, help="seconds per question")
    parser.add_argument("--document", type=Path)
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers end as well
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        urls = []
        for make_command, name in ((chat_server, "chat"), (embedding_server, "embedding")):
            port, log = free_port(), folder / f"{name}.log"
            command = make_command(given.environment, port)
            urls.append(stack.enter_context(running(command, log, port)))
        clock = stack.enter_context(ModelClock().running())
        harness = ServiceHarness(folder, urls[0], urls[1], clock, given.deadline)
        count = given.questions
        for outcome in ask_many(harness, count) if count else ask_all_parts(harness):
            outcomes.append(outcome)
            _print(outcome)
    figures = table(outcomes)
    print(f"\n{figures}")
    if given.document:
        write_between_markers(given.document, figures, "real models")
    sys.exit(any(outcome.problems for outcome in outcomes))


def _print(outcome: Outcome) -> None:
    answer = outcome.answer
    said = (
        f"{answer.type} {answer.confidence} {answer.answered_by} {answer.degraded}"
        if answer
        else ""
    )
    print(f"{outcome.part}: {outcome.seconds:5.1f} s  {said}  {outcome.question[:60]}", flush=True)
    for step in answer.answer if answer else ():
        print(f"    > {' '.join(step.split())[:120]}")
    for problem in outcome.problems:
        print(f"    {problem}", flush=True)


if __name__ == "__main__":
    main()
