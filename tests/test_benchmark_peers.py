"""What is ours of the peers: their environment, their passages, what a reply cites. No framework is installed here."""

import re
from pathlib import Path

import pytest

from benchmarks.peers.environment import PEERS, REQUIREMENTS, Peer, environ, python
from benchmarks.peers.passages import Passage, read_passages, write_passages
from benchmarks.peers.task import Source, cited

PASSAGES = [
    Passage("a", "发货", "商家须在48小时内发货。\n逾期将处罚。", "https://acme.example/a"),
    Passage("b", "Limits", 'A call returns "429".', "https://acme.example/b"),
]


class Maker:
    """Makes environments out of nothing, and remembers how often."""

    def __init__(self) -> None:
        self.made = 0
        self.fails = False

    def __call__(self, folder: Path, requirements: Path) -> None:
        folder.mkdir()
        self.made += 1
        if self.fails:
            raise OSError("no network")


def test_every_requirement_is_pinned_and_hashed_and_names_no_registry() -> None:
    text = REQUIREMENTS.read_text(encoding="utf-8")
    requirements = re.sub(r"\\\n\s*", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    pinned = re.compile(r"[a-z0-9][a-z0-9._-]*==\S+( ; .+?)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in requirements.splitlines() if not pinned.fullmatch(line)] == []


def test_what_the_peers_ask_for_is_among_the_pinned() -> None:
    asked = REQUIREMENTS.with_suffix(".in").read_text(encoding="utf-8")
    names = set(re.findall(r"^[a-z][a-z-]*", asked, re.MULTILINE))
    pinned = set(re.findall(r"^([a-z0-9._-]+)==", REQUIREMENTS.read_text(), re.MULTILINE))
    assert "haystack-ai" in names
    assert names <= pinned


def test_the_environment_is_made_once_and_again_when_its_requirements_change(
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


def test_an_environment_that_could_not_be_made_is_made_anew(tmp_path: Path) -> None:
    folder, requirements, make = tmp_path / "peers", tmp_path / "requirements.txt", Maker()
    requirements.write_text("one==1\n")
    make.fails = True
    with pytest.raises(OSError, match="no network"):
        python(folder, requirements, make)
    make.fails = False
    python(folder, requirements, make)
    assert make.made == 2


def test_a_peer_inherits_nothing_that_could_send_it_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "OPENAI_BASE_URL", "LANGSMITH_API_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "elsewhere")
    variables = environ(tmp_path)
    assert "elsewhere" not in variables.values()
    assert variables["HOME"] == str(tmp_path)


def test_every_peer_is_a_module_of_its_name() -> None:
    assert all(REQUIREMENTS.with_name(f"{name}.py").exists() for name in PEERS)


def test_passages_are_read_as_they_were_written(tmp_path: Path) -> None:
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
def test_a_reply_names_the_passages_that_it_cites(answer: str, numbers: list[int]) -> None:
    passages = [(passage.title, passage.url) for passage in PASSAGES]
    assert cited(answer, passages) == [
        Source(number=n, title=passages[n - 1][0], url=passages[n - 1][1]) for n in numbers
    ]


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_reply_is_read_the_same_from_every_peer(wrapped: bool) -> None:
    reply = {"type": "general", "answer": "Yes [1].", "sources": []}
    peer = Peer("haystack_bm25", "http://127.0.0.1:1/haystack_bm25/run", 1)
    assert peer.answer({"result": reply} if wrapped else reply) == reply
