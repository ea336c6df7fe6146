"""`make diagnose-report`: any file of cases, and the page about the shared ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data" / "failures-dev.jsonl"
ROW = {"engine": "vllm", "log_kind": "terminal", "cause_family": "network-interface-selection"}
CASES = [
    {
        **ROW,
        "id": "X1",
        "cause_key": "gloo-wrong-interface-loopback",
        "log": "RuntimeError: Gloo connectFullMesh failed with [pair.cc:144] no error, remote=[127.0.0.1]:40213",
    },
    {**ROW, "id": "X2", "cause_key": "wifi-drops", "log": "all is well"},
]


def report(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "diagnose" / "diagnose_report.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=850)


def test_a_file_of_cases_gives_one_answer_each(tmp_path: Path) -> None:
    """Guards the form that others measure with: id, ranked cause keys with confidence and rule code."""
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(row) + "\n" for row in CASES))
    done = report("--data", str(tmp_path / "cases.jsonl"), "--out", str(tmp_path / "out.jsonl"))
    assert done.returncode == 0, done.stderr
    assert "alone: 2 cases, first 50.0%" in done.stdout
    first, second = (json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines())
    assert first["id"] == "X1" and first["ranked"][0]["cause_key"] == "gloo-wrong-interface-loopback"
    assert first["ranked"][0]["confidence"] > 0.8 and first["ranked"][0]["code"].startswith("LNIC")
    assert first["embedded"][0]["cause_key"] == "gloo-wrong-interface-loopback"
    assert second == {"id": "X2", "ranked": [], "embedded": second["embedded"]}


@pytest.mark.parametrize("text", ["{not json\n", json.dumps({"id": "X"}) + "\n"])
def test_a_file_that_is_none_is_reported(tmp_path: Path, text: str) -> None:
    """Guards exit 2 with the file's name; the page is not touched."""
    (tmp_path / "bad.jsonl").write_text(text)
    done = report("--data", str(tmp_path / "bad.jsonl"))
    assert done.returncode == 2 and "bad.jsonl" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.full
def test_the_page_is_what_the_shared_cases_give() -> None:
    """Guards that docs/reference/diagnose-accuracy.md is fresh, and that missed targets are listed."""
    if not SHARED.is_file():
        pytest.skip("data: ../shared is absent, and with it the public logs")
    done = report("--check")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (ROOT / "docs" / "reference" / "diagnose-accuracy.md").read_text()
    assert "all three met" in page or "**missed: " in page
