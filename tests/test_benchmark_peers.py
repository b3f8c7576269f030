"""Tests of the code around the peers: environments, passages, citations. No framework is installed."""

import re
from pathlib import Path

import pytest

from benchmarks.peers.environment import PEERS, REQUIREMENTS, Peer, environ, python
from benchmarks.peers.passages import Passage, read_passages, write_passages
from benchmarks.peers.task import Source, cited

pytestmark = pytest.mark.acceptance

PASSAGES = [
    Passage("a", "发货", "商家须在48小时内发货。\n逾期将处罚。", "https://acme.example/a"),
    Passage("b", "Limits", 'A call returns "429".', "https://acme.example/b"),
]


class Maker:
    """Creates empty environments and counts them."""

    def __init__(self) -> None:
        self.made = 0
        self.fails = False

    def __call__(self, folder: Path, requirements: Path) -> None:
        folder.mkdir()
        self.made += 1
        if self.fails:
            raise OSError("no network")


def test_requirements_are_pinned_and_hashed_without_a_registry() -> None:
    text = REQUIREMENTS.read_text(encoding="utf-8")
    requirements = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    pinned = re.compile(r"[a-z0-9][a-z0-9._-]*==\S+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in requirements.splitlines() if not pinned.fullmatch(line)] == []


def test_requested_packages_are_pinned() -> None:
    asked = REQUIREMENTS.with_suffix(".in").read_text(encoding="utf-8")
    names = set(re.findall(r"^[a-z][a-z0-9-]*", asked, re.MULTILINE))
    pinned = set(re.findall(r"^([a-z0-9._-]+)==", REQUIREMENTS.read_text(), re.MULTILINE))
    assert "haystack-ai" in names
    assert names <= pinned


def test_environment_is_rebuilt_when_requirements_change(
    tmp_path: Path,
) -> None:
    folder, requirements, make = (
        tmp_path / "build" / "peers",
        tmp_path / "requirements.txt",
        Maker(),
    )
    requirements.write_text("one==1\n")
    assert python(folder, requirements, make) == folder / "bin" / "python"
    (folder / "stale").touch()
    python(folder, requirements, make)
    assert make.made == 1
    requirements.write_text("one==2\n")
    python(folder, requirements, make)
    assert make.made == 2
    assert not (folder / "stale").exists()


def test_failed_environment_is_rebuilt(tmp_path: Path) -> None:
    folder, requirements, make = tmp_path / "peers", tmp_path / "requirements.txt", Maker()
    requirements.write_text("one==1\n")
    make.fails = True
    with pytest.raises(OSError, match="no network"):
        python(folder, requirements, make)
    make.fails = False
    python(folder, requirements, make)
    assert make.made == 2


def test_peer_environment_contains_no_external_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "OPENAI_BASE_URL", "LANGSMITH_API_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "elsewhere")
    variables = environ(tmp_path)
    assert "elsewhere" not in variables.values()
    assert variables["HOME"] == str(tmp_path)


def test_every_peer_has_a_module() -> None:
    assert all(REQUIREMENTS.with_name(f"{name}.py").exists() for name in PEERS)


def test_passages_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "passages.jsonl"
    write_passages(path, PASSAGES)
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(PASSAGES)
    assert read_passages(path) == PASSAGES


@pytest.mark.parametrize(
    ("answer", "numbers"),
    [
        ("在48小时内[1]。", [1]),
        ("Twice [2][1], and again [2].", [1, 2]),
        ("None of these: [0], [3], [x], 1.", []),
    ],
)
def test_cited_passages_are_parsed(answer: str, numbers: list[int]) -> None:
    passages = [(passage.title, passage.url) for passage in PASSAGES]
    assert cited(answer, passages) == [
        Source(number=n, title=passages[n - 1][0], url=passages[n - 1][1]) for n in numbers
    ]


@pytest.mark.parametrize("wrapped", [False, True])
def test_replies_of_all_peers_are_parsed_alike(wrapped: bool) -> None:
    reply = {"type": "general", "answer": "Yes [1].", "sources": []}
    peer = Peer("haystack_bm25", "http://127.0.0.1:1/haystack_bm25/run", 1)
    assert peer.answer({"result": reply} if wrapped else reply) == reply
