"""The dashboard and the alerts: every expression parses and names figures that the exporter really gives."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from functional.command import UserShell
from sparkwright.adapters.exporter import Exporter
from sparkwright.cli import monitoring
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live, LiveCanary, LiveEngine, LiveNode, LiveRank

FOLDER = Path(monitoring.__file__).parent / "dashboards"
HERE = Path(__file__).parent / "monitoring"
promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (package prometheus)")


def exporter_page(home: Path) -> str:
    """Two scrapes of a deployment of which everything is known."""
    names = [f.name for f in fields(LiveNode) if f.name not in ("node", "at", "reached", "blind")]
    node = LiveNode("spark-1", 10.0, True, **dict.fromkeys(names, 5))
    engine = LiveEngine(10.0, **{f.name: 5.0 for f in fields(LiveEngine) if f.name != "at"})
    live = Live(10.0, "twin", DeploymentState.READY, 5.0, troubles=(("leak", ""),), nodes=(node,), engine=engine)
    live = replace(live, ranks=(LiveRank(0, "spark-1", True),), canary=LiveCanary(9.0, 0.3))
    later = replace(live, engine=LiveEngine(20.0, **{f.name: 9.0 for f in fields(LiveEngine) if f.name != "at"}))
    exporter = Exporter(home, lambda: 12.0)
    for each in (live, later):
        (home / "live.json").write_text(to_json(each))
        told = exporter.page().decode()
    return told


@pytest.fixture
def exported(tmp_path: Path) -> str:
    return exporter_page(tmp_path)


def dashboard() -> dict[str, object]:
    found: dict[str, object] = json.loads((FOLDER / "dashboard.json").read_text())
    return found


def panels() -> list[dict[str, object]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]  # type: ignore[attr-defined,index]


def expressions() -> Iterator[tuple[str, str]]:
    """The (place, PromQL) of each expression with Grafana's variables filled in."""
    for panel in panels():
        for target in panel["targets"]:  # type: ignore[attr-defined]
            yield f"panel {panel['title']}", _filled(target["expr"])
    for note in dashboard()["annotations"]["list"]:  # type: ignore[index]
        yield "annotation", _filled(note["expr"])
    for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"]:
        yield from ((f"alert {rule['alert']}", rule["expr"]) for rule in group["rules"])


def _filled(text: str) -> str:
    return text.replace("$deployment", "twin").replace("$__rate_interval", "1m")


def test_every_figure_in_use_is_exported_and_the_other_way_round(exported: str) -> None:
    """A renamed metric makes a panel that is empty for ever, and an alert that never comes."""
    samples = {s.name for family in text_string_to_metric_families(exported) for s in family.samples}
    used = {name for _, text in expressions() for name in re.findall(r"\bsparkwright_\w+", text)}
    assert used - samples == set()
    unseen = {name.removeprefix("sparkwright_") for name in samples - used}
    assert unseen == {
        "canary_timestamp_seconds",
        "deployment_incident_open",
        "deployment_phase_start_timestamp_seconds",
        "engine_draft_acceptance_ratio",  # the dashboard computes both over a window of its own
        "engine_prefix_cache_hit_ratio",
        "node_memory_size_bytes",
        "supervisor_last_seen_timestamp_seconds",
    }


def test_labels_in_use_are_exported(exported: str) -> None:
    """A matcher for a label that nothing has matches nothing."""
    families = text_string_to_metric_families(exported)
    known = {label for family in families for sample in family.samples for label in sample.labels}
    used = {name for _, text in expressions() for name in re.findall(r"[{,]\s*(\w+)\s*[=!]", text)} - {"job"}
    legends = json.dumps(dashboard())
    assert (used | set(re.findall(r"{{(\w+)}}", legends))) - known == set()


def test_panels_are_next_to_each_other() -> None:
    """Grafana's grid is 24 wide; panels that overlap are moved, and nobody knows where to."""
    taken: set[tuple[int, int]] = set()
    ids = [panel["id"] for panel in dashboard()["panels"]]  # type: ignore[attr-defined,index]
    for panel in panels():
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}  # type: ignore[index]
        assert not cells & taken and max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    assert len(set(ids)) == len(ids)


def test_every_alert_reports_what_to_do_and_is_tried() -> None:
    """A severity, two sentences, and in alerts_test.yaml a series on which it fires and one on which it does not."""
    rules = [
        rule for group in yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"] for rule in group["rules"]
    ]
    for rule in rules:
        assert rule["labels"]["severity"] in ("critical", "warning", "info")
        assert set(rule["annotations"]) == {"summary", "description"}
    tried = [
        one
        for test in yaml.safe_load((HERE / "alerts_test.yaml").read_text())["tests"]
        for one in test["alert_rule_test"]
    ]
    for fires in (True, False):
        assert {rule["alert"] for rule in rules} == {
            one["alertname"] for one in tried if bool(one["exp_alerts"]) is fires
        }


def checked(folder: Path, *words: str, stdin: str | None = None) -> str:
    done = subprocess.run(["promtool", *words], cwd=folder, input=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@promtool
def test_prometheus_takes_the_files(tmp_path: Path) -> None:
    """Its own checker, and its own tests of the alerts."""
    for path in (*FOLDER.iterdir(), HERE / "alerts_test.yaml"):
        shutil.copy(path, tmp_path)
    checked(tmp_path, "check", "config", "prometheus.yaml")
    checked(tmp_path, "test", "rules", "alerts_test.yaml")


@promtool
def test_prometheus_takes_the_figures(exported: str, tmp_path: Path) -> None:
    """Names, units and help as its checker wants them: it reports nothing."""
    assert checked(tmp_path, "check", "metrics", stdin=exported) == ""


@promtool
def test_prometheus_takes_every_expression(tmp_path: Path) -> None:
    """Each panel's, as a rule of its own."""
    rules = [{"record": f"test:n{number}", "expr": text} for number, (_, text) in enumerate(expressions())]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump({"groups": [{"name": "all", "rules": rules}]}))
    assert f"{len(rules)} rules found" in checked(tmp_path, "check", "rules", "all.yaml")


def test_the_files_are_written_and_nothing_is_lost(tmp_path: Path) -> None:
    """Once, again, and not over what somebody has changed."""
    shell = UserShell(tmp_path)
    code, text, err = shell.run("monitoring", "--out", "m")
    assert (code, err) == (0, "") and "wrote m/alerts.yaml" in text
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == sorted(monitoring.FILES)
    assert shell.run("monitoring", "--out", "m", "--json")[0] == 0
    (tmp_path / "m" / "alerts.yaml").write_text("mine")
    code, _, err = shell.run("monitoring", "--out", "m")
    assert code == 2 and "alerts.yaml there and different" in err
    assert shell.run("monitoring", "--out", "m", "--overwrite")[0] == 0
    assert (tmp_path / "m" / "alerts.yaml").read_text() != "mine"
    code, _, err = shell.run("monitoring", "--out", "m/alerts.yaml/x")
    assert code == 2 and "Traceback" not in err
