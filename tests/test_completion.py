"""Shell completion: the printed script and the completions it gives."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.main import main

APIDESK = Path(sys.executable).with_name("apidesk")

COMPLETIONS = {
    "commands": ("apidesk in", {"ingest", "init"}),
    "every command": ("apidesk ", {"ask", "chat", "completion", "graph", "init", "serve"}),
    "values of an argument": ("apidesk completion ", {"bash", "zsh", "fish"}),
    "values of an option": ("apidesk graph --mode ", {"pipeline", "tools"}),
    "options": ("apidesk ask --s", {"--show-retrieved"}),
    "commands of a command": ("apidesk keys a", {"add"}),
}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_for_the_shell(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0, result.output
    assert f"_APIDESK_COMPLETE={shell}_complete" in result.stdout


def test_unsupported_shell_is_refused() -> None:
    result = CliRunner().invoke(main, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.stderr


@pytest.mark.parametrize(("typed", "offered"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_completions(typed: str, offered: set[str]) -> None:
    asked = {
        "_APIDESK_COMPLETE": "bash_complete",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split(" ")) - 1),
    }
    result = CliRunner().invoke(main, env=asked, prog_name="apidesk")
    found = {line.partition(",")[2] for line in result.stdout.splitlines()}
    assert offered <= found


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_bash_evaluates_the_script() -> None:
    script = (
        f'PATH={APIDESK.parent}:$PATH; eval "$(apidesk completion bash)"\n'
        "COMP_WORDS=(apidesk inge) COMP_CWORD=1\n"
        "_apidesk_completion apidesk\n"
        'echo "${COMPREPLY[@]}"'
    )
    printed = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (printed.stdout, printed.stderr) == ("ingest\n", "")
