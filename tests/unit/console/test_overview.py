"""The claims of the first page about a deployment, from its supervisor's last report."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.adapters.sqlite.usage import UsageStore
from sparkwright.console.board import ReportBoard
from sparkwright.console.overview import overview
from sparkwright.console.usage import usage_page
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import (
    DeploymentState,
    Desired,
    Live,
    LiveCacheTier,
    LiveCanary,
    LiveEngine,
    LiveNode,
    LiveRank,
)
from sparkwright.domain.replica import ReplicaPlace
from sparkwright.gateway.usage import Tokens
from unit.app.scene import cluster, recipe

NOW, GIB = time.time(), 1024**3
NODE = LiveNode("spark-1", NOW, True, 120 * GIB, 30 * GIB, per_hour=-2.0 * GIB, time_left=18_000.0, floor=5 * GIB)
ENGINE = LiveEngine(NOW, running=3.0, waiting=1.0, kv_usage=0.42, generation_tokens=10.0)
LIVE = Live(
    NOW,
    "chat",
    DeploymentState.READY,
    NOW - 3662,
    ranks=(LiveRank(0, "spark-1", True), LiveRank(1, "spark-2", True)),
    nodes=(NODE, LiveNode("spark-2", 0.0, False)),
    engine=ENGINE,
    canary=LiveCanary(NOW - 4, 0.4),
)


class OverviewHead:
    def __init__(self, state: Path) -> None:
        self.state, self.board = state, ReportBoard(state, lambda: NOW)

    def show(self, live: Live | None, only: str = "") -> str:
        home = self.state / "supervision" / (live.deployment if live else "chat")
        home.mkdir(parents=True, exist_ok=True)
        if live:
            (home / "live.json").write_text(to_json(live))
        board = ReportBoard(self.state, lambda: NOW)
        board.refresh()
        return str(overview(board, only))


@pytest.fixture
def overview_head(tmp_path: Path) -> OverviewHead:
    return OverviewHead(tmp_path)


def test_one_look_shows_what_serves_and_how_well(overview_head: OverviewHead) -> None:
    """Guards the figures of a deployment that serves, and that what was not sampled is shown as unknown."""
    text = overview_head.show(LIVE)
    for part in ("UTC, for 1 h 01 min", ">42 %<", "1 waiting", "30.0 GiB available of 120.0 GiB", "floor 5.0 GiB"):
        assert part in text
    assert "shrinks by 2.0 GiB/h: 5 h 00 min until its floor" in text and "not sampled yet" in text
    assert "Last real token asked for: 4.0 s ago" in text and "simulated" not in text
    assert "simulated" in overview_head.show(replace(LIVE, simulated=True))
    apart = replace(LIVE, engine=replace(ENGINE, waiting=3.0, deferred=2.0))
    assert "3 waiting, 2 of them deferred" in overview_head.show(apart)


def test_what_no_node_knows_is_not_shown(overview_head: OverviewHead) -> None:
    """Guards cards full of `unknown`; where one node knows it, the others say that they do not."""
    bare = LiveNode("spark-1", NOW, True, 120 * GIB, 30 * GIB)
    text = overview_head.show(replace(LIVE, nodes=(bare, replace(bare, node="spark-2"))))
    assert "30.0 GiB available" in text and not any(word in text for word in ("floor", "time left", "pressure"))
    text = overview_head.show(replace(LIVE, nodes=(bare, replace(NODE, node="spark-2"))))
    assert "floor unknown" in text and "time left: unknown" in text and "floor 5.0 GiB" in text


def test_tiers_of_the_cache_are_shown_with_what_is_known(overview_head: OverviewHead) -> None:
    """Guards hits, use and bytes of a tier, and that figures of an engine that is away are unknown."""
    tier = LiveCacheTier("host", 8 * GIB, part=0.62, hits=1234.0, written=3.0 * GIB)
    text = overview_head.show(replace(LIVE, cache_tiers=(tier, LiveCacheTier("disk", 200 * GIB))))
    assert "Host cache" in text and ">1,234<" in text and "62 % of 8.0 GiB a node in use" in text
    assert "Disk cache" in text and "200.0 GiB a node, use unknown; hits unknown" in text
    away = overview_head.show(replace(LIVE, cache_tiers=(tier,), engine=replace(ENGINE, at=NOW - 60)))
    assert "Host cache" in away and "1,234" not in away and "62 %" not in away
    assert "Host cache" not in overview_head.show(LIVE)


def test_figures_of_what_does_not_serve_are_unknown(overview_head: OverviewHead) -> None:
    """Guards that no rate or queue of an engine that is gone is shown as if it were of now."""
    down = replace(LIVE, phase=DeploymentState.FAILED, refusing=True, why="it dies in every load")
    for live in (down, replace(LIVE, at=NOW - 60), replace(LIVE, engine=None)):
        assert ">42 %<" not in overview_head.show(live)
    text = overview_head.show(down)
    assert "New requests get 503" in text and "it dies in every load" in text and "it was given up" in text


def test_a_silent_supervisor_makes_the_state_unknown(overview_head: OverviewHead) -> None:
    """Guards that an old report is never shown as the state of now, nor a missing one as any state."""
    for live in (None, replace(LIVE, at=NOW - 60)):
        text = overview_head.show(live)
        assert "What it does now is unknown" in text and 'class="hero off"' in text
        assert "Serves, and" not in text


def test_a_start_shows_how_far_it_is(overview_head: OverviewHead) -> None:
    """Guards the progress of each rank while weights load."""
    rank = LiveRank(1, "spark-2", True, "", "load", "shards", 12.0, 48.0, "GiB")
    text = overview_head.show(replace(LIVE, phase=DeploymentState.LOADING, since=NOW - 30, usual=120.0, ranks=(rank,)))
    assert "Starting for 30 s, a start usually takes 2 min 00 s" in text and "12 of 48 GiB" in text


def test_a_key_for_one_deployment_sees_only_that_one(overview_head: OverviewHead) -> None:
    """Guards that two deployments of a head are both shown, but not to a key for one of them."""
    overview_head.show(replace(LIVE, deployment="apple"))
    text = overview_head.show(LIVE)
    assert 'id="d-chat"' in text and 'id="d-apple"' in text
    assert 'id="d-apple"' not in overview_head.show(LIVE, "chat")


def test_nothing_from_outside_becomes_markup(overview_head: OverviewHead) -> None:
    """Guards the page against names and sentences that a model, a node or a log has made."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e"
    node = replace(NODE, node=evil)
    ranks = (LiveRank(0, evil, True, "", evil, evil, 1.0, 2.0, evil),)
    for phase in (DeploymentState.LOADING, DeploymentState.DEGRADED, DeploymentState.FAILED):
        refusing = phase is DeploymentState.FAILED
        bad = replace(LIVE, phase=phase, reason=evil, why=evil, refusing=refusing, troubles=((evil, evil),), quiet=evil)
        text = overview_head.show(replace(bad, nodes=(node,), ranks=ranks, canary=LiveCanary(NOW, None, evil)))
        assert "<script" not in text and "<img" not in text and "\x1b" not in text and "&lt;script" in text


def test_usage_is_by_key_and_day(overview_head: OverviewHead) -> None:
    """Guards the sums, that a key's name is text, and that a key for one deployment sees only its model's."""
    (overview_head.state / "door").mkdir()
    store, day = UsageStore(overview_head.state / "door"), time.strftime("%Y-%m-%d", time.gmtime(NOW))
    for key, model, prompt in (("ci", "tiny", 1000), ("<b>x", "other", 500), ("ci", "tiny", 234)):
        store.begin((day, key, model))
        store.end((day, key, model), "finished", Tokens(prompt, 10, 5))
    store.refuse((day, "ci", "tiny"))
    text = overview_head.show(LIVE)
    assert "1,234" in text and "&lt;b&gt;x" in text and "1 refused by a limit" in text
    board = ReportBoard(overview_head.state, lambda: NOW)
    assert [row.key for row in board.used(days=7)] == ["<b>x", "ci"]
    assert "No request in the last 7 days" in usage_page(board.used("chat", 7), 7)
    assert "1,734" in usage_page(board.used(days=7), 7) and day in usage_page(board.used(days=7), 7)


def test_replicas_are_one_model_above_their_own_parts(overview_head: OverviewHead) -> None:
    """A key for the model sees all of its replicas and nothing else."""
    for name, of in (("chat-r1", "chat"), ("chat-r2", "chat"), ("other", "")):
        home = overview_head.state / "supervision" / name
        home.mkdir(parents=True)
        place = ReplicaPlace(of, 1) if of else None
        (home / "desired.json").write_text(to_json(Desired(name, cluster(), recipe(), replica=place)))
        phase = DeploymentState.STARTING if name == "chat-r2" else DeploymentState.READY
        (home / "live.json").write_text(to_json(replace(LIVE, deployment=name, phase=phase)))
    overview_head.board.refresh()
    text = str(overview(overview_head.board, ""))
    assert "<b>chat</b>: 1 of 2 replicas serve" in text and 'id="d-other"' in text
    text = str(overview(overview_head.board, "chat"))
    assert 'id="d-chat-r1"' in text and 'id="d-chat-r2"' in text and "d-other" not in text
