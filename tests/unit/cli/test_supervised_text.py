"""The report of `status` on a supervisor."""

from dataclasses import replace
from typing import Any

from sparkwright.cli.text import deployment_text
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.live import (
    DeploymentState,
    Live,
    LiveCacheTier,
    LiveCanary,
    LiveNode,
    LivePrefixes,
    LiveRestart,
    Supervised,
)

GIB = 1024**3
LIVE = Live(1000.0, "twin", DeploymentState.READY, 940.0)


def status_lines(unit: str = "", **changed: Any) -> list[str]:
    """The lines below the deployment's own."""
    return status_text(Supervised("twin", "spark-1", 1001.0, True, replace(LIVE, **changed), unit)).splitlines()[1:]


def status_text(supervised: Supervised | None) -> str:
    found = Deployment("twin", DeploymentState.READY, (), "http://spark-1:8000/v1", supervised=supervised)
    return deployment_text(found)


def test_a_quiet_deployment_has_one_line() -> None:
    """No incidents, no figures: only who watches."""
    assert status_lines("sparkwright-supervisor-twin.service") == [
        "  supervised on spark-1 by sparkwright-supervisor-twin.service"
    ]
    assert status_lines() == ["  supervised on spark-1, not restarted after a reboot"]


def test_prompts_that_were_sent_again_are_one_line() -> None:
    """Guards who waits for a context: how far it is, and why some were left out."""
    going = LivePrefixes(14, 12, 0, 48_000, 20.0)
    assert status_lines(prefixes=going)[0] == "  kept prompts: 12 prefixes, 48,000 tokens re-sent in 20 s; 2 to go"
    over = replace(going, refused=1, at=990.0, why="clients need the engine")
    said = "12 prefixes, 48,000 tokens re-sent in 20 s; 1 could not be sent; 1 left out: clients need the engine"
    assert " ".join(status_lines(prefixes=over)[0].split()) == f"kept prompts: {said}"
    assert "1 prefix, 9 tokens" in status_lines(prefixes=LivePrefixes(1, 1, 0, 9, 1.0, 990.0))[0]


def test_tiers_of_the_engines_cache_have_a_line_each() -> None:
    """Guards that what the engine does not tell is called unknown."""
    tiers = (LiveCacheTier("host", 8 * GIB, hits=1200.0), LiveCacheTier("disk", 200 * GIB))
    said = [" ".join(line.split()) for line in status_lines(cache_tiers=tiers)]
    assert said[0] == "host cache of the engine: 8.0 GiB a node, use unknown; 1,200 prompt tokens found there"
    assert said[1] == "disk cache of the engine: 200.0 GiB a node, use unknown; hits unknown"


def test_memory_reports_where_it_goes() -> None:
    """Shrinking with the time that is left, growing, steady, and unknown."""
    row, left = LiveNode("spark-1", 1000.0, True, available=20 * GIB), "20.0 GiB available"
    for node, said in (
        (
            replace(row, per_hour=-2.0 * GIB, time_left=3600.0),
            f"{left}, 2.0 GiB less each hour; at its floor in 1 h 00 min",
        ),
        (replace(row, per_hour=0.5 * GIB), "20.0 GiB available, 0.5 GiB more each hour"),
        (replace(row, per_hour=-1000.0, time_left=9e9), "20.0 GiB available"),
        (row, "20.0 GiB available"),
        (replace(row, reached=False), "cannot be asked now"),
    ):
        assert status_lines(nodes=(node,))[0] == f"  memory  spark-1  {said}"
    assert len(status_lines(nodes=(replace(row, available=None),))) == 1


def test_a_kernel_log_that_nobody_reads_is_a_matter_of_check() -> None:
    """Guards a line that would stand in every status for ever: `check` has it (HOST024), and JSON."""
    node = LiveNode("spark-1", 1000.0, True, blind="this user may read neither the journal nor dmesg")
    assert "kernel log" not in "\n".join(status_lines(nodes=(node,)))


def test_a_head_that_runs_another_program_is_named() -> None:
    """Guards an upgrade of the laptop: the head goes on with the older program until `up`."""
    watched = Supervised("twin", "spark-1", 1001.0, True, LIVE, program="a1b2c3d4e5f60718")
    one = Deployment("twin", DeploymentState.READY, (), supervised=watched, program="0011223344556677")
    said = deployment_text(one)
    assert "its program on spark-1 is another version (a1b2c3d4) than here (00112233)" in " ".join(said.split())
    for same in ("", watched.program):
        assert "another version" not in deployment_text(replace(one, program=same))


def test_a_canary_that_got_nothing_reports_what_came() -> None:
    """The report also has the time of the question."""
    assert (
        status_lines(canary=LiveCanary(996.0, None, "HTTP 500"))[0]
        == "  probe request: no token, asked 5.0 s ago: HTTP 500"
    )


def test_a_refusal_reports_when_it_ends() -> None:
    """The end is shown if it is known; a past time is none."""
    assert status_lines(refusing=True, why="spark-1 is short of memory")[0].endswith(
        "are refused: spark-1 is short of memory"
    )
    assert status_lines(refusing=True, why="x", back_at=1031.0)[0].endswith("x; back in about 30 s")
    assert status_lines(refusing=True, why="x", back_at=900.0)[0].endswith(
        "refused: x; it should have been back 1 min 41 s ago"
    )


def test_a_reason_is_reported_once() -> None:
    """The reason is the state's, and is not repeated as the refusal's."""
    said = status_lines(refusing=True, why="rank 1 exited", reason="rank 1 exited", back_at=1031.0)
    assert said[:2] == ["  reason: rank 1 exited", "  new requests are refused; back in about 30 s"]


def test_what_it_waits_for_is_there() -> None:
    """A deliberate back-off with its end; anything else with how long a start takes."""
    (said, *_) = status_lines(awaited="back-off before launch 3", due=1031.0, usual=4.5)
    assert said == "  back-off before launch 3 until 00:17:11 UTC; a start usually takes 4.5 s"
    assert status_lines(awaited="spark-2: Docker is not running")[0] == "  waiting for spark-2: Docker is not running"


def test_restarts_are_counted() -> None:
    """The count is of the programs next to the engine, each with its last restart."""
    rows = (LiveRestart("gateway (Caddy)", 2, 941.0), LiveRestart("supervisor", 1, 0.0))
    (said, *_) = status_lines(restarts=rows)
    assert said == "  restarts since up: gateway (Caddy) 2 (last 60 s ago), supervisor 1 (last 16 min 41 s ago)"


def test_one_that_is_being_started_again_is_not_called_lost() -> None:
    """systemd does so within seconds; one that nobody starts is reported as such."""
    gone = Supervised("twin", "spark-1", 1001.0, False, LIVE, again=True)
    assert gone.trouble.endswith("1 s ago: it is being started again")
    assert replace(gone, again=False).trouble.endswith(
        "nothing restarts it; the same `sparkwright up` starts one for twin"
    )


def test_a_stall_of_a_second_is_no_new_start() -> None:
    """Guards a service of an hour that reads as one of some seconds."""
    stalled = replace(LIVE, up_since=-2600.0)
    assert status_text(Supervised("twin", "spark-1", 1001.0, True, stalled)).startswith(
        "twin: ready for 61 s, up for 1 h 00 min  http"
    )
    begun = replace(LIVE, up_since=940.0)
    assert status_text(Supervised("twin", "spark-1", 1001.0, True, begun)).startswith("twin: ready for 61 s  http")
    down = replace(stalled, phase=DeploymentState.LOADING)
    assert ", up for" not in status_text(Supervised("twin", "spark-1", 1001.0, True, down))


def test_ranks_that_nobody_supervises_are_called_so() -> None:
    """Guards an interrupted `up`: ready, and nobody would restart it."""
    ranks = (RankStatus("twin", 0, "spark-1", "process", "running", "/x"),)
    text = deployment_text(Deployment("twin", DeploymentState.READY, ranks))
    assert "not supervised: nothing restarts it and it has no gateway; `sparkwright up`" in " ".join(text.split())


def test_a_look_without_a_probe_does_not_call_it_a_start() -> None:
    """Guards `status --watch` and `--no-probe` of a deployment without a supervisor that has served for an hour."""
    ranks = (RankStatus("twin", 0, "spark-1", "process", "running", "/x"),)
    text = deployment_text(Deployment("twin", DeploymentState.RUNNING, ranks))
    assert text.startswith("twin: running") and "its ranks run; whether it serves was not asked" in text


def test_a_head_that_did_not_answer_is_no_missing_supervisor() -> None:
    """Guards a dead sshd of the head: the worker knows neither the address nor the supervisor."""
    ranks = (RankStatus("twin", 1, "spark-2", "process", "running", "/x"),)
    text = deployment_text(Deployment("twin", DeploymentState.DEGRADED, ranks, all_asked=False))
    assert "address and supervisor are unknown until every node answers" in text
    assert "not supervised" not in text


def test_since_when_needs_a_supervisor_that_lives() -> None:
    """Another's word is older than the truth."""
    found = Supervised("twin", "spark-1", 1001.0, True, LIVE)
    assert status_text(found).startswith("twin: ready for 61 s  http")
    assert status_text(replace(found, running=False)) == status_text(None) == "twin: ready  http://spark-1:8000/v1"
