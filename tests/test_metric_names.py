"""The names of metrics in the documentation, the dashboard and the alert rules."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from litestar import Litestar
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs" / "how-to" / "operate.md"
DEPLOY = ROOT / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yaml"


def exposed_families(client: TestClient[Litestar]) -> dict[str, str]:
    """The type of each metric of apidesk by its name in queries, without the suffixes of histograms."""
    families = text_string_to_metric_families(client.get("/metrics").text)
    suffixes = {"counter": "_total", "info": "_info"}
    return {
        family.name + suffixes.get(family.type, ""): family.type
        for family in families
        if family.name.startswith("apidesk_")
    }


def test_documentation_lists_every_metric(client: TestClient[Litestar]) -> None:
    listed = re.findall(r"^\| `(apidesk_\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(exposed_families(client))


def queries() -> dict[str, str]:
    """The queries of the dashboard and of the alert rules, by panel or alert."""
    dashboard = json.loads((DEPLOY / "grafana" / "apidesk.json").read_text(encoding="utf-8"))
    rules = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"][0]["rules"]
    of_panels = {
        f"panel_{panel['id']}_{target['refId']}": target["expr"].replace("$__rate_interval", "5m")
        for panel in dashboard["panels"]
        for target in panel["targets"]
    }
    return of_panels | {rule["alert"]: rule["expr"] for rule in rules}


def test_queries_use_existing_metrics(client: TestClient[Litestar]) -> None:
    families = exposed_families(client)
    for source, query in queries().items():
        for name in re.findall(r"\bapidesk_\w+", query):
            assert families.get(name.removesuffix("_bucket")) in (
                ["histogram"] if name.endswith("_bucket") else ["counter", "gauge", "info"]
            ), f"{source}: {name}"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_accepts_rules_and_queries(tmp_path: Path) -> None:
    rules = [{"record": f"test:{name}", "expr": query} for name, query in queries().items()]
    recorded = tmp_path / "queries.yaml"
    recorded.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    for path in (ALERTS, recorded):
        done = subprocess.run(["promtool", "check", "rules", path], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
