"""Questions about a cell of a table are answered with its row."""

from pathlib import Path

import pytest

from tests.small_platform import quoted_page

PLANS = (
    "# Exports\n\nExports of collections are free up to 100 GB per month, then $0.02 per GB.\n\n"
    "# Overage\n\nOn the Starter plan:\n\n| Item | Price |\n| --- | --- |\n"
    "| 1 GB of extra storage | $0.25 per month |\n\n"
    "# Plans\n\n|  | Free | Starter | Business |\n| --- | --- | --- | --- |\n"
    "| Price per month | $0 | $49 | $399 |\n| Projects | 1 | 5 | 25 |\n"
    "| Collections per project | 3 | 50 | 500 |\n| Documents | 100,000 | 5 million | 100 million |\n"
    "| Backups | – | daily | hourly |\n| Support | forum | by mail | by phone |\n\n"
    "All prices are without VAT.\n"
)


@pytest.mark.parametrize(
    ("question", "row"),
    [
        ("how many collections on free", "| Collections per project | 3 |"),
        ("how much is the starter plan", "| Price per month | $0 | $49 |"),
        ("do i get backups on business", "| Backups | – | daily | hourly |"),
    ],
)
def test_row_of_the_named_plan_is_quoted_first_and_alone(
    question: str, row: str, tmp_path: Path
) -> None:
    first, _, _ = quoted_page(tmp_path, PLANS, question).partition("[1]")
    assert row in first
    assert first.count("\n|") == 3  # header, delimiter and row
    assert "VAT" not in first


ROLES = (
    "# 解散群组\n\n解散群组后，群消息不能恢复。群主可以先转让群组。\n\n"
    "# 群角色\n\n| 操作 | 群主 | 群管理员 | 普通成员 |\n| --- | --- | --- | --- |\n"
    "| 解散群 | 支持 | 不支持 | 不支持 |\n| 修改群名 | 支持 | 支持 | 不支持 |\n| 邀请 | 支持 | 支持 | 支持 |\n"
)


def test_permission_of_a_role_is_looked_up_in_the_matrix(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, ROLES, "普通成员能解散群吗")
    first, _, _ = text.partition("[1]")
    assert "| 解散群 | 支持 | 不支持 | 不支持 |" in first
    assert "修改群名" not in text


def test_question_that_names_only_a_column_gets_the_whole_table(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, PLANS, "what is in the Business plan")
    assert "Collections per project" in text
    assert "Backups" in text


LIMITS = (
    "# Limits\n\nEach project has limits:\n\n| Item | Limit |\n| --- | --- |\n| Boards | 40 |\n"
    "| Columns | 12 |\n| Labels | 200 |\n| Members | 75 |\n| Webhooks | 9 |\n| Rules | 30 |\n"
)


def test_row_asked_for_comes_first_in_a_small_table(tmp_path: Path) -> None:
    text = quoted_page(tmp_path, LIMITS, "what is the limit of webhooks in a project")
    assert "| --- | --- |\n| Webhooks | 9 |\n| Boards | 40 |\n| Columns | 12 |" in text
