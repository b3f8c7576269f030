"""The wheel: one package, installed into an environment without the repository, and the guide's examples."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import httpx
import pytest

from deploy.wheel_build import PACKAGES, ROOT_PACKAGE, rename_imports
from tests.deployment.deployment_files import CONTAINERS
from tests.model_replies import is_classification, structured
from tests.model_script import Recorded, Reply, ToolCall
from tests.model_server import ModelServer
from tests.product_modules import MODULES, ROOT
from tests.serving_process import ServingProcess

GUIDE = ROOT / "docs" / "how-to" / "use-from-langchain.md"
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = FENCE.findall(GUIDE.read_text(encoding="utf-8"))
SUMMARY = "Send the price in fen. [1]"


def imported_packages(source: str) -> set[str]:
    """The top-level packages that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.acceptance
def test_all_imports_are_renamed() -> None:
    left = {
        path.relative_to(ROOT).as_posix()
        for path in MODULES
        if imported_packages(rename_imports(path.read_text(encoding="utf-8"))) & set(PACKAGES)
    }
    assert left == set()


def test_only_imports_are_renamed() -> None:
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        changed = zip(source.splitlines(), rename_imports(source).splitlines(), strict=True)
        for before, after in changed:
            assert before == after or before.lstrip().startswith("from "), (path, before)


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and an empty folder to work in."""

    python: Path
    wheel: Path
    folder: Path

    @property
    def command(self) -> Path:
        """The command `apidesk`."""
        return self.python.with_name("apidesk")

    def run(self, code: str, **environment: str) -> str:
        """Return what `code` prints."""
        result = subprocess.run(
            [self.python, "-c", code],
            cwd=self.folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel. The environment sees the installed libraries, but not the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    python = venv / "bin" / "python"
    (site_packages,) = venv.glob("lib/*/site-packages")
    # The .pth files in that folder, such as the one of the editable installation, are not read.
    (site_packages / "libraries.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--no-index", wheel], check=True)
    empty = folder / "empty"
    empty.mkdir()
    return Installed(python, wheel, empty)


@pytest.mark.acceptance
def test_wheel_has_one_package_with_all_files(installed: Installed) -> None:
    with ZipFile(installed.wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {ROOT_PACKAGE}
    tracked = subprocess.run(
        ["git", "ls-files", "apidesk", "samples", *PACKAGES],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    expected = {
        path if path.startswith(f"{ROOT_PACKAGE}/") else f"{ROOT_PACKAGE}/{path}"
        for path in tracked
        if (ROOT / path).exists()
    }
    assert expected - names == set()


@pytest.mark.acceptance
def test_modules_are_imported_from_one_package(installed: Installed) -> None:
    code = f"""
import json, sys, apidesk, apidesk.app.main
json.dump([name for name in sys.modules if name.partition(".")[0] in {PACKAGES!r}], sys.stdout)
"""
    assert json.loads(installed.run(code)) == []


@pytest.mark.acceptance
def test_imports_of_the_waiting_pod_exist(installed: Installed) -> None:
    (script,) = (wait["args"][0] for wait in CONTAINERS.values() if "command" in wait)
    imports = [line for line in script.splitlines() if line.startswith(("import ", "from "))]
    assert len(imports) == 4
    installed.run("\n".join(imports))


@pytest.mark.acceptance
def test_installed_server_answers_from_an_empty_folder(
    installed: Installed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tests.serving_process.APIDESK", str(installed.command))
    server = ServingProcess(tmp_path / "log", {})
    try:
        body = {"question": "what does error 44203 mean?"}
        with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
            answer = client.post("/ask", json=body).json()
            page = client.get("/")
    finally:
        server.stop()
    assert "44203" in answer["answer"][0]
    assert page.status_code == 200
    assert '"logger": "apidesk.app.' in server.log or "apidesk.app." in server.log


# --- the examples of the guide --------------------------------------------------------------------


def reply(request: Recorded) -> Reply:
    """Reply as a chain, the pipeline or an agent needs it."""
    tools = request.body.get("tools")
    if tools and request.body["messages"][-1]["role"] != "tool":
        return Reply(tool_calls=[ToolCall("search", {"query": "error 44203"})])
    if tools or "Question:" in request.text:
        assert "44203" in request.text
        return Reply("Send the price in fen.")
    if is_classification(request):
        return Reply(structured(api_name=None, type="general"))
    return Reply({"answer": [SUMMARY]})


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A scripted server in place of OpenAI's."""
    with ModelServer(default=reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        yield server
    assert not server.faults


@pytest.mark.acceptance
@pytest.mark.parametrize(
    ("part", "output"),
    [
        ("desk.ask(", r"`44203`.*\nhigh https://open\.example\.com/#/api\?apiId=1206\n$"),
        ("desk.retriever.bind(", r"^Send the price in fen\.\n$"),
        (
            "apidesk.open(model=model)",
            r"^\['Send the price in fen\. \[1\]'\]\nopenai:gpt-4o-mini \[\]\n$",
        ),
        ("create_agent(", r"^Send the price in fen\.\n$"),
        ("astream_events(", r"^1 .+"),
        ("pipeline.batch(", r"^[12] of 2 answers cite the expected page\n$"),
    ],
)
def test_example_of_the_guide_runs(
    installed: Installed, openai: ModelServer, part: str, output: str
) -> None:
    (code,) = [example for example in EXAMPLES if part in example]
    assert re.search(output, installed.run(code), re.DOTALL)


def test_every_example_of_the_guide_is_tested() -> None:
    assert len(EXAMPLES) == 6


@pytest.mark.acceptance
def test_langgraph_example_answers(installed: Installed) -> None:
    folder = installed.folder / "studio"
    shutil.copytree(ROOT / "examples" / "langgraph", folder)
    config = json.loads((folder / "langgraph.json").read_text(encoding="utf-8"))
    module, _, name = config["graphs"]["apidesk"].partition(":")
    code = f"""
import asyncio, runpy
graph = runpy.run_path("studio/{module}")["{name}"]
question = {{"role": "user", "content": "what does error 44203 mean?"}}
print(asyncio.run(graph.ainvoke({{"messages": [question]}}))["messages"][-1].text)
"""
    assert "44203" in installed.run(code)
