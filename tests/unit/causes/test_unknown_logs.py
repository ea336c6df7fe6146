"""Logs of programs that no cause names: the line that explains is shown, with its mechanism and next steps."""

import tomllib
from pathlib import Path

import pytest

from sparkwright.app.diagnose import examine

LOGS = Path(__file__).resolve().parents[2] / "data" / "logs-unknown"
TRUTH = tomllib.loads((LOGS / "truth.toml").read_text(encoding="utf-8"))["first"]


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_the_line_that_explains_is_shown(name: str) -> None:
    """Guards wrappers, headings, frames and records of several lines that hide the reason."""
    found = examine([(name, [(LOGS / f"{name}.log").read_bytes()])], 2026, {})
    line, kind = TRUTH[name]
    why = found.explanation
    shown = [proof.text for cause in found.named[:1] for proof in cause.proof] + ([why.line.text] if why else [])
    assert any(line in text for text in shown), shown
    steps = found.named[0].fix if found.named else why.next if why else ()
    assert steps, "no next step"
    assert kind in ("", found.named[0].key if found.named else "", why.mechanism if why else "")
