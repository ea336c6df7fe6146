"""The drills' own arithmetic: a supervisor that is late, blind or nervous cannot come out well."""

import json

import pytest

from drills.fate import Fate, RequestEnd, SentRequest, judged
from drills.figures import DrillRecord, DrillTarget, figure_row, missed
from drills.watch import Sight, changed, sight_from_file
from unit.for_each import for_each

DONE = '{"choices": [{"finish_reason": "stop"}]}'
PIECE = '{"choices": [{"delta": {"content": "x"}, "finish_reason": null}]}'
ERROR = '{"error": {"message": "gone", "type": "x", "code": 500}}'
BEFORE = Sight(90.0, "ready")
GOOD = (
    Sight(101.5, "draining", refusing=True, incident=1, incidents=1),
    Sight(103.0, "starting", refusing=True, incident=1, incidents=1, relaunches=1),
    Sight(110.0, "ready", incidents=1, relaunches=1),
)


@for_each(
    "status, events, end, fate",
    [
        (200, [PIECE, DONE, "[DONE]"], RequestEnd.CLOSED, Fate.ANSWERED),
        (200, [PIECE, ERROR, "[DONE]"], RequestEnd.CLOSED, Fate.BROKEN),
        (200, [PIECE], RequestEnd.CUT, Fate.BROKEN),
        (200, [PIECE, DONE.replace("stop", "abort"), "[DONE]"], RequestEnd.CLOSED, Fate.BROKEN),
        (0, [], RequestEnd.CUT, Fate.BROKEN),
        (503, [ERROR], RequestEnd.CLOSED, Fate.REFUSED),
        (200, [PIECE], RequestEnd.SILENT, Fate.LOST),
        (200, [PIECE], RequestEnd.CLOSED, Fate.LOST),
        (200, [PIECE, "[DONE]"], RequestEnd.CLOSED, Fate.LOST),
        (200, [], RequestEnd.CLOSED, Fate.LOST),
    ],
)
def test_a_request_is_lost_when_its_client_cannot_know(
    status: int, events: list[str], end: RequestEnd, fate: Fate
) -> None:
    """Silence, and an end in order without the end of the answer, are losses; whatever reports that it failed is
    none."""
    assert judged(status, events, end) is fate


def make_probe(sent: float, ended: float, status: int) -> SentRequest:
    return SentRequest(sent, ended, Fate.REFUSED if status >= 400 else Fate.ANSWERED, status, shaped=True)


def test_a_good_relaunch_meets_its_targets() -> None:
    """Times count from the injection, what is beyond the start from the notice."""
    probes = [make_probe(100.5, 100.6, 200), make_probe(101.8, 101.9, 503), make_probe(110.2, 110.3, 200)]
    made = figure_row("x", "y", DrillTarget(refused=3.0), DrillRecord(100.0, BEFORE, GOOD, probes=probes, start=6.0))
    assert (made.detected, made.refused, made.serving, made.beyond) == pytest.approx((1.5, 1.9, 10.0, 2.5))
    assert made.passed and made.action == "draining 1.5 > starting 3.0 > ready 10.0"


def test_what_was_never_seen_is_missed() -> None:
    """Blindness is not speed: no notice, no refusal and no figure all fail."""
    made = figure_row("x", "y", DrillTarget(refused=3.0), DrillRecord(100.0, BEFORE, ()))
    assert [words.split(":")[0] for words in made.missed[:3]] == ["noticed", "refused", "beyond the start"]
    assert any("too few" in words for words in made.missed)


@pytest.mark.parametrize(
    ("sights", "words"),
    [
        (
            (Sight(102.5, "draining", incidents=1), Sight(104.0, "ready", incidents=1, relaunches=1)),
            "noticed after 2.5",
        ),
        ((*GOOD[:2], Sight(119.0, "ready", incidents=1, relaunches=1)), "beyond the start after 11.5"),
        ((*GOOD, Sight(120.0, "ready", incidents=2, relaunches=2)), "2 false alarm"),
        ((*GOOD[:2], Sight(111.0, "failed", refusing=True, incidents=1, relaunches=1)), "ends failed"),
        ((GOOD[0], Sight(104.0, "ready", incidents=1)), "1 relaunch(es) too few"),
    ],
)
def test_each_target_can_be_missed(sights: tuple[Sight, ...], words: str) -> None:
    """A late notice, a slow way back, a second restart, giving up, and none at all."""
    made = figure_row("x", "y", DrillTarget(), DrillRecord(100.0, BEFORE, sights, start=6.0))
    assert any(words in one for one in made.missed), made.missed


def test_a_drill_that_must_not_be_touched_fails_at_any_touch() -> None:
    """A busy engine: no sign is looked for, and every incident and relaunch is a false alarm."""
    calm = DrillTarget(sign="", relaunches=0, incidents=0)
    assert figure_row("x", "y", calm, DrillRecord(100.0, BEFORE, ())).passed
    made = figure_row("x", "y", calm, DrillRecord(100.0, BEFORE, GOOD))
    assert made.false_alarms == 2 and not made.passed
    warned = Sight(110.0, "degraded", troubles=("leak",)), Sight(120.0, "ready")
    assert figure_row("x", "y", calm, DrillRecord(100.0, BEFORE, warned)).false_alarms == 1


def test_requests_are_counted_by_their_fate() -> None:
    """Lost ones fail the drill; a refusal must give the reason in an error object."""
    requests = [SentRequest(100.0, 101.0, fate, 200, shaped=False) for fate in Fate]
    made = figure_row("x", "y", DrillTarget(), DrillRecord(100.0, BEFORE, GOOD, requests, start=6.0))
    assert (made.answered, made.turned_away, made.broken, made.lost) == (1, 1, 1, 1)
    assert "1 request(s) lost" in made.missed and "1 refusal(s) without an error object" in made.missed


def test_a_delayed_probe_counts_as_refused_only_after_the_notice() -> None:
    """A frozen engine holds probes, too: that is not the gateway's doing."""
    probes = [make_probe(100.2, 109.0, 200), make_probe(102.0, 110.1, 200)]
    made = figure_row("x", "y", DrillTarget(refused=3.0), DrillRecord(100.0, BEFORE, GOOD, probes=probes, start=6.0))
    assert made.refused == pytest.approx(2.0)


def test_a_reboot_counts_from_when_the_node_is_back() -> None:
    """The node's boot time is not the supervisor's."""
    made = figure_row("x", "y", DrillTarget(), DrillRecord(100.0, BEFORE, GOOD, start=2.0, restored=106.0))
    assert made.beyond == pytest.approx(2.0) and made.serving == pytest.approx(10.0)


def test_what_a_rebooting_node_reports_is_noticed_from_when_it_is_back() -> None:
    """Off it reports nothing; a fault that could be noticed before has no such excuse."""
    seen = DrillRecord(100.0, BEFORE, GOOD, start=6.0, restored=100.5)
    assert figure_row("x", "y", DrillTarget(detected=1.2, back=True), seen).passed
    assert figure_row("x", "y", DrillTarget(detected=1.2), seen).missed == ("noticed after 1.5 s, target 1.2 s",)


def test_a_slow_machine_may_take_as_many_starts() -> None:
    """Measured by the engine's own start in the same run; a quick one is checked against the seconds."""
    late = (*GOOD[:2], Sight(119.0, "ready", incidents=1, relaunches=1))
    assert figure_row("x", "y", DrillTarget(starts=2.0), DrillRecord(100.0, BEFORE, late, start=6.0)).passed
    assert not figure_row("x", "y", DrillTarget(starts=2.0), DrillRecord(100.0, BEFORE, late, start=2.0)).passed


def test_live_json_is_read_as_it_is_written() -> None:
    """A missing file, a changed time and a changed phase."""
    assert sight_from_file(1.0, None).phase == "absent" and not sight_from_file(1.0, None).serving
    tree = json.loads('{"at": 5, "phase": "degraded", "refusing": false, "troubles": [["leak", "words"]], "pid": 7}')
    now = sight_from_file(5.0, tree)
    assert now.serving and now.troubles == ("leak",) and now.pid == 7
    assert not changed(now, sight_from_file(6.0, tree)) and changed(
        now, sight_from_file(6.0, {**tree, "phase": "ready"})
    )
    assert (
        missed(
            DrillTarget(sign="", relaunches=0, final=("degraded",)),
            figure_row("", "", DrillTarget(""), DrillRecord(0, now, ())),
            DrillRecord(0, now, ()),
        )
        == []
    )
