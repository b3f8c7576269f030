"""Code is quoted if a question asks for it, and its words count as far as they have a meaning."""

from pathlib import Path

import pytest

from runnables.answer.code_segments import words_in_segment
from runnables.answer.segments import Segment
from tests.refund_terms import TERMS
from tests.small_platform import PLATFORM, ask, quoted_page

TABS = (
    "# Tokens\n\n## Create a search token\n\nSearch tokens are signed on your server.\n\n"
    "**Python**\n\n```python\ntoken = client.sign(ttl=900)\n```\n\n"
    "**Node.js**\n\n```js\nconst token = client.sign({ttl: 900});\n```\n\n"
    "**Go**\n\n```go\ntoken, err := client.Sign(15 * time.Minute)\n```\n\n"
    "A search token cannot be revoked. Rotate the key that signed it.\n"
)


def test_only_the_tab_of_the_named_language_is_quoted(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, TABS, "how do I sign a search token in Go?")
    assert "client.Sign(15" in text
    assert "ttl=900" not in text
    assert "ttl: 900" not in text


def test_all_tabs_are_quoted_if_no_language_is_named(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, TABS, "how do I create a search token?")
    assert "client.Sign(15" in text
    assert "ttl=900" in text
    assert "ttl: 900" in text


def test_sentence_is_quoted_without_tabs_that_are_not_asked_for(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, TABS, "can i revoke a single search token")
    assert "cannot be revoked" in text
    assert "```" not in text


def test_single_block_of_code_is_quoted_with_the_text_around_it(tmp_path: Path) -> None:
    page = (
        "# Keys\n\nEvery request needs a key in a header:\n\n```http\nAuthorization: Bearer KEY\n```\n\n"
        "The header `X-Key` is no longer accepted.\n"
    )
    assert "Bearer KEY" in quoted_page(tmp_path, page, "X-Key is not accepted anymore")


SETTINGS = (
    "# Configuration\n\n## Sample\n\n```ini\n[boats]\n\n"
    + "".join(
        f"# The {name} of all boats in the {name} harbour, as the harbour master counts them.\n"
        f"# It is read when the server starts. (integer value)\n#{name}_count = {number}\n\n"
        for number, name in enumerate(
            ["crew", "anchor", "rudder", "lantern", "cargo", "ladder"], 11
        )
    )
    + "```\n"
)


def test_only_the_setting_that_is_asked_for_is_quoted_from_a_long_configuration_file(
    tmp_path: Path,
) -> None:
    text = quoted_page(tmp_path, SETTINGS, "is there a maximum for ladders?")
    assert "#ladder_count = 16\n```" in text
    assert "anchor_count" not in text


def test_import_statement_does_not_answer_a_question_about_imports(tmp_path: Path) -> None:
    page = (
        "# Webhooks\n\n## Signatures\n\n```python\nfrom client.webhooks import verify\n\nverify(request)\n"
        "```\n\n## Events\n\n- `job.completed`: an import is done\n- `job.failed`: a job has failed\n"
    )
    text = quoted_page(tmp_path, page, "which webhook fires for imports")
    assert "an import is done" in text.partition("[1]")[0]


def test_pasted_command_is_not_answered_with_the_same_command(tmp_path: Path) -> None:
    page = (
        "# Lockers\n\n## Release a locker\n\nThe items inside stay. The keys of the locker are removed too.\n\n"
        "### Sample request\n\n```sh\n$ curl \\\n    --request PUT \\\n"
        "    http://127.0.0.1:7700/v1/locker/release/my-locker-id\n```\n"
    )
    command = "curl --request PUT http://127.0.0.1:7700/v1/locker/release/my-locker-id"
    text = quoted_page(tmp_path, page, f"{command} does that also remove its keys?")
    assert "keys of the locker are removed too" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("```bash\npip install client  # refund\n```", set()),
        ("```js\nimport refund\n```", {"refund"}),
        ("```js\n// refund\nclient.send()\n```", {"refund"}),
    ],
)
def test_comment_behind_a_statement_is_not_counted(text: str, words: set[str]) -> None:
    assert words_in_segment(TERMS, Segment(0, "code", text)) == words
    assert words_in_segment(TERMS, Segment(0, "paragraph", text)) == {"refund"}


LOGS = (
    "# Logs\n\n## Failing call to a closed room\n\n### Example\n\nThis line may look scary\n\n"
    "```\n[W 2024-01-02 08:00:00 gate:12] Failing call to a closed room: /rooms/<name>/tools\n```\n\n"
    "### Cause\n\nThe guest left, but a tab is still open.\n\n"
    "### Remedy\n\nClose the tab or ignore the line.\n\n## Doors\n\nA door has a lock.\n"
)
PASTED = "[W 2025-03-04 09:10:11 gate:12] Failing call to a closed room: /rooms/blue/tools"


@pytest.mark.parametrize("question", [PASTED, f"{PASTED}\nshould I worry about this?"])
def test_pasted_line_is_explained_by_the_sections_after_it(tmp_path: Path, question: str) -> None:
    text = quoted_page(tmp_path, LOGS, question)
    assert "a tab is still open" in text
    assert "ignore the line" in text
    assert "has a lock" not in text


def test_pasted_line_without_an_explanation_is_not_an_answer_with_high_confidence(
    tmp_path: Path,
) -> None:
    page = f"# Logs\n\n## Failing call\n\n### Example\n\n```\n{PASTED}\n```\n"
    (tmp_path / "platform.toml").write_text(PLATFORM)
    (tmp_path / "guides").mkdir()
    (tmp_path / "guides" / "page.md").write_text(page)
    assert ask(tmp_path, PASTED).confidence != "high"


def test_code_within_a_text_is_quoted_although_the_question_contains_other_code(
    tmp_path: Path,
) -> None:
    page = (
        "# Glaze filters\n\nA filter on several glazes matches if one glaze matches, for example in:\n\n"
        '```json\n{"glazes": {"colour": "red"}}\n```\n\n'
        "The operator `all_of` changes this so that every glaze must match the colour:\n\n"
        '```json\n{"glazes": {"all_of": {"colour": "red"}}}\n```\n\n'
        "Pots without a glaze match such a filter.\n"
    )
    question = (
        'I want pots where every glaze is red, but the filter {"glazes": {"colour": "red"}} '
        "also matches pots with one red glaze. What is wrong?"
    )
    text = quoted_page(tmp_path, page, question)
    assert '{"glazes": {"all_of": {"colour": "red"}}}' in text


def test_label_of_code_that_is_not_quoted_is_left_out(tmp_path: Path) -> None:
    page = (
        "# Fire a kiln\n\nA kiln that is hot is not fired again.\n\n"
        '**Example Request**\n\n```json\n{"kiln": "k1", "hot": false}\n```\n\n'
        "The kiln is locked while it is fired.\n"
    )
    question = 'why is the kiln locked and not fired? {"kiln": "k1", "hot": false}'
    text = quoted_page(tmp_path, page, question)
    assert "The kiln is locked" in text
    assert "Example Request" not in text


def test_label_that_announces_only_another_label_is_left_out(tmp_path: Path) -> None:
    page = (
        "# Fire a kiln\n\nFiring takes nine hours.\n\n**Synopsis:**\n\n**Example Request**\n\n"
        "```sh\nkiln fire --hours 9\n```\n"
    )
    text = quoted_page(tmp_path, page, "how do I fire a kiln for nine hours?")
    assert "Example Request" in text
    assert "Synopsis" not in text


def test_label_before_a_bold_value_is_quoted(tmp_path: Path) -> None:
    page = (
        "# Fire a kiln\n\nThe colour of the glaze is set when the kiln is fired.\n\n"
        "**Default glaze colour:**\n\n**none**\n\nThe glaze is applied twice.\n"
    )
    text = quoted_page(tmp_path, page, "which glaze colour does a kiln use when it is fired?")
    assert "**Default glaze colour:**\n\n**none**" in text


def test_label_that_is_left_out_once_is_quoted_with_its_text(tmp_path: Path) -> None:
    page = (
        "# Kilns\n\n## Fire a kiln\n\nFiring a kiln takes nine hours.\n\n**Synopsis:**\n\n"
        "**Example Request**\n\n```sh\nkiln fire --hours 9\n```\n\n"
        "## Cool a kiln\n\n**Synopsis:**\n\nCooling a kiln takes twelve hours after the firing.\n"
    )
    text = quoted_page(tmp_path, page, "how do I fire a kiln for nine hours and cool a kiln?")
    assert "Example Request" in text
    assert text.count("**Synopsis:**") == 1
    assert "**Synopsis:**\n\nCooling a kiln" in text


def test_label_of_a_paragraph_that_is_quoted_before_is_left_out(tmp_path: Path) -> None:
    warning = "A shelf of the kiln that is cracked is not loaded with pots."
    page = (
        f"# Kilns\n\n## Loading the shelf of a kiln\n\n**Important**\n\n{warning}\n\n"
        "Pots on the shelf must not touch.\n\n"
        f"## Pots on the shelf of a kiln\n\n**Warning**\n\n{warning}\n\n"
        "**Note**\n\nPots are fired in the order of the shelf.\n"
    )
    text = quoted_page(tmp_path, page, "how are pots loaded on the shelf of a kiln?")
    assert "**Note**\n\nPots are fired" in text
    assert "**Warning**" not in text
