"""The story of an incident: what `incidents show` prints and the console's page shows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from sparkwright.adapters.sqlite.folders import Folders
from sparkwright.app.diagnose.incidents import ShownIncident
from sparkwright.cli.incidents import shown_text
from sparkwright.console.incidents import incident_page
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.report.incident_story import story_of

WHAT = "rank 1 on spark-2 ended and left no exit code"
LAST = "rank 1 on spark-2: INFO Kernel JIT monitor activated"
PROOF = "rank 1 on spark-2 was killed by signal 9 from outside; the kernel log of spark-2 cannot be read"
DOUBT = "whether the kernel killed a process: no kernel log was given"
INCIDENT = Incident(
    "chat",
    "rank-exited",
    WHAT,
    1000.0,
    number=7,
    evidence=(LAST,),
    closed_at=1013.0,
    serving_at=1013.0,
    outcome="serving again",
    events=(
        IncidentEvent(1000.4, "draining", f"draining (stop): {WHAT}"),
        IncidentEvent(1002.8, "starting", f"starting (launch): starting again: {WHAT}"),
        IncidentEvent(1013.0, "ready", "ready"),
    ),
)
DIAGNOSIS: dict[str, Any] = {
    "causes": [
        {
            "title": "rank killed by an external signal",
            "code": "LIVE009",
            "confidence": 0.75,
            "proof": [{"source": "the ranks' ends", "number": 2, "text": PROOF}],
            "fix": ["sudo journalctl -k -b | grep -i oom"],
        }
    ],
    "untold": [DOUBT],
    "collect": ["sudo journalctl -k -b > kernel.log"],
}


def test_cause_proof_and_doubt_come_before_what_happened() -> None:
    """Guards the order of both screens, and that they tell the same: no cause without its doubt."""
    text = shown_text(ShownIncident("spark-1", INCIDENT, (), DIAGNOSIS))
    page = str(incident_page(INCIDENT, 2000.0, DIAGNOSIS))
    for screen in (text, page.replace("&#x27;", "'")):
        places = [screen.index(part) for part in ("rank killed by an external signal", PROOF, DOUBT, WHAT, "+2.8 s")]
        assert places == sorted(places), screen
        assert "likely, 75%" in screen and "LIVE009" in screen and "clients got nothing for 13 s" in screen
        assert "journalctl -k -b | grep -i oom" in screen


def test_the_last_log_line_is_no_evidence() -> None:
    """Guards against a proof that is none: the last line of a killed rank's log has nothing to do with its end."""
    told = story_of(INCIDENT, DIAGNOSIS)
    assert told.proof == (PROOF,) and told.noted == (("last log", LAST),)
    figures = story_of(replace(INCIDENT, evidence=("MemAvailable fell by 2 GiB", PROOF)), DIAGNOSIS)
    assert figures.noted == (("evidence", "MemAvailable fell by 2 GiB"),)


def test_the_reason_is_told_once() -> None:
    """Guards the time line: each step with its time since the beginning, without the fault's sentence again."""
    told = story_of(INCIDENT, None)
    assert [moment.offset for moment in told.moments] == ["+0.4 s", "+2.8 s", "+13 s"]
    assert not any(WHAT in moment.text for moment in told.moments)
    assert (told.cause, told.proof, told.doubts, told.steps) == ("none that is known", (), (), ())


def test_a_saved_diagnosis_is_bounded_and_may_be_damaged(tmp_path: Path) -> None:
    """Guards the page: a file that is no diagnosis, or a huge one, is none."""
    (folder := tmp_path / "chat" / "3").mkdir(parents=True)
    folders = Folders(tmp_path)
    for content, found in (("{}", {}), ("[1]", None), ("{", None), ("[" * 9000, None), (" " * (1 << 21), None)):
        (folder / "diagnosis.json").write_text(content)
        assert folders.diagnosis(3) == found
    assert folders.diagnosis(4) is None
    for odd in ({"causes": 3, "untold": "x", "collect": None}, {"diagnosis": []}, {"causes": [{"proof": 3, "fix": 1}]}):
        assert story_of(INCIDENT, odd).what == WHAT
