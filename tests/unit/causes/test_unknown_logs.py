"""Logs of programs that no cause names: the line that explains is shown, with its mechanism and next steps."""

import tomllib
from pathlib import Path

import diagnose_unknown
import pytest

from sparkwright.app.diagnose.examine import examine

LOGS = Path(__file__).resolve().parents[2] / "data" / "logs-unknown"
TRUTH = tomllib.loads((LOGS / "truth.toml").read_text(encoding="utf-8"))
KNOWN = TRUTH["first"] | {name: [line, ""] for name, (line, _) in TRUTH["second"].items()}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_line_that_explains_is_shown(name: str) -> None:
    """Guards wrappers, headings, frames and records of several lines that hide the reason."""
    found = examine([(name, [(LOGS / f"{name}.log").read_bytes()])], 2026, {})
    line, kind = KNOWN[name]
    why = found.explanation
    shown = [proof.text for cause in found.named[:1] for proof in cause.proof] + ([why.line.text] if why else [])
    assert any(line in text for text in shown), shown
    steps = found.named[0].fix if found.named else why.next if why else ()
    assert steps, "no next step"
    assert kind in ("", found.named[0].key if found.named else "", why.mechanism if why else "")


def test_the_first_score_of_the_third_set_is_of_all_its_logs() -> None:
    """Guards the honest figure: every log of the set is scored, has its line, and was scored only once."""
    scored = [one["log"] for one in diagnose_unknown.first_scores()]
    assert scored == sorted(TRUTH["third"])
    assert all(line in (LOGS / f"third-{name}.log").read_text() for name, (line, _) in TRUTH["third"].items())
