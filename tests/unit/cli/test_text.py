"""Plans, findings, deployments and answers as text; whole plans are saved under tests/data/plans (UPDATE_PLANS=1)."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from click import unstyle

from sparkwright.cli.columns import findings_text
from sparkwright.cli.plan_outlook import Shown, memory_text
from sparkwright.cli.text import (
    answer_text,
    deployment_text,
    plan_text,
    ranks_text,
)
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Answer, Deployment
from sparkwright.domain.facts import FabricChoice, RankStatus
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.ledger import LedgerLine, MemoryLedger, Origin
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.plan import Mount, Placement, Plan, RankFile, RankSpec
from sparkwright.domain.recipe import EngineChoice, Figure, Model, Recipe, Runtime
from sparkwright.domain.units import GIB

DATA = Path(__file__).parents[2] / "data" / "plans"
MEMORY = MemoryLedger(
    "spark-1",
    LedgerLine("pool", 120 * GIB, Origin.MEASURED, "MemTotal of this node"),
    (
        LedgerLine("in use now", 9 * GIB, Origin.MEASURED, "total - available"),
        LedgerLine("weights", 70 * GIB, Origin.COMPUTED, "140 GiB / tp 2"),
    ),
)
HEAD = RankSpec(
    0,
    "spark-1",
    ("serve", "org/name", "--port", "8000", "--speculative-config", '{"method": "mtp"}', "-v"),
    {"SHARED": "same for all", "VLLM_HOST_IP": "192.168.100.10"},
    Runtime.DOCKER,
    image="vllm/vllm-openai@sha256:abc",
    entrypoint=("vllm",),
    mounts=(Mount("/home/ai/hub", "/models/hub", True),),
    secrets={"VLLM_API_KEY": Secret("k-123")},
)
WORKER = replace(
    HEAD, rank=1, node="spark-2", argv=("serve", "org/name", "--headless"),
    env={"SHARED": "same for all", "VLLM_HOST_IP": "192.168.100.11"}, secrets={},
)  # fmt: skip
RECIPE = Recipe(
    "big",
    "Big",
    Model(id="org/name"),
    EngineChoice("vllm", "0.21.0", image="vllm/vllm-openai@sha256:abc"),
    nodes=2,
    profile="256k",
    published=(Figure("decode", 45.7, "tokens/s", "https://x", "pp1024"), Figure("KV pool", 1430000, "tokens", "y")),
)
CLUSTER = Cluster("lab", (Node("spark-1", "ai@spark-1"), Node("spark-2", "spark-2")), "spark-1")
PLAN = Plan(
    "big",
    RECIPE,
    CLUSTER,
    Placement(
        ("spark-1", "spark-2"),
        {
            "spark-1": FabricChoice("192.168.100.10", "enp1s0f0np0", ("rocep1s0f0", "roceP2p1s0f0")),
            "spark-2": FabricChoice("192.168.100.11", "enp1s0f0np0"),
        },
    ),
    (HEAD, WORKER),
    (MEMORY, replace(MEMORY, node="spark-2")),
    (),
    "127.0.0.1",
    8000,
    "name",
)
BLOCK = Finding("MEM001", Severity.BLOCK, "spark-1", "does not fit", "12.0 GiB too much", "weights", "take @128k")
OVERRIDE = Finding("RANK001", Severity.OVERRIDE, "spark-2", "twin runs here", remedy="sparkwright down twin")
NOTE = Finding("ENG005", Severity.INFO, "flags", "checked against 0.21.0")
NOWHERE = Placement(("spark-1",), {})
PLANS: dict[str, tuple[Plan, Shown]] = {
    "fits": (PLAN, Shown()),
    "fits-why": (PLAN, Shown(True, True, True)),
    "refused": (replace(PLAN, findings=(BLOCK, OVERRIDE, NOTE)), Shown(commands=True)),
    "no-commands": (
        replace(PLAN, specs=(), ledgers=(), placement=Placement(("spark-1",), {}), findings=(BLOCK,)),
        Shown(),
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_exactly_this(name: str) -> None:
    """A plan has places, the verdict on memory, copies, commands, figures with their source, and findings."""
    plan, parts = PLANS[name]
    shown = unstyle(plan_text(plan, ("weights: copied from spark-1 to spark-2 over the fabric",), parts)) + "\n"
    file = DATA / f"{name}.txt"
    if os.environ.get("UPDATE_PLANS"):
        file.write_text(shown)
    assert shown == file.read_text()


def test_what_all_ranks_share_is_reported_once() -> None:
    """Two ranks differ in a few calls of many; those are what a reader looks for."""
    shown = ranks_text(PLAN.specs)
    assert shown.count("SHARED='same for all'") == 1
    assert shown.index("environment of all 2 ranks") < shown.index("rank 0 on spark-1")
    assert shown.count("VLLM_HOST_IP=") == 2


def test_one_rank_has_its_environment_with_it() -> None:
    """There is nothing to share."""
    shown = ranks_text((HEAD,))
    assert "environment of all" not in shown
    assert shown.index("rank 0 on spark-1") < shown.index("SHARED=")


def test_a_value_that_only_looks_shared_is_not() -> None:
    """The same name with another value is with each rank."""
    shown = ranks_text((HEAD, replace(WORKER, env={"SHARED": "other"})))
    assert "environment of all" not in shown


def test_the_files_of_a_rank_are_a_part_of_what_runs() -> None:
    """The content of an engine's file is as exact as its words; a launcher is named, a secret is not shown."""
    files = (
        RankFile("options.yaml", "a: 1\nb: 2\n"),
        RankFile("l.py", "x\n" * 40),
        RankFile("k", secret=Secret("hidden")),
    )
    shown = ranks_text((replace(HEAD, files=files),))
    assert "    file options.yaml\n      | a: 1\n      | b: 2\n" in shown
    assert "    file l.py, 40 lines\n" in shown and "    file k: ***\n" in shown and "hidden" not in shown


def test_a_secret_is_a_mask() -> None:
    """The name reports that there is one."""
    assert "VLLM_API_KEY=***" in ranks_text(PLAN.specs)
    assert "k-123" not in ranks_text(PLAN.specs)


def test_a_pool_that_is_not_known_does_not_claim_to_fit() -> None:
    """No arithmetic with nothing, and nothing above that it could be like."""
    unknown = MemoryLedger("spark-1", LedgerLine("pool", 0, Origin.ASSUMED, "could not be read"), ())
    assert memory_text((unknown,), why=True) == "memory spark-1: not known: could not be read"


def test_what_is_not_known_is_no_figure() -> None:
    """`0.0 GiB weights, fits` would be a promise that nobody can give."""
    lines = (LedgerLine("weights", 0, Origin.ASSUMED, "size not known", known=False),)
    shown = memory_text((replace(MEMORY, lines=lines),), why=False)
    assert "NOT KNOWN whether it fits, without weights" in shown and "? weights, not known" in shown
    assert "  0.0 GiB" not in shown and "|???" in shown


def test_too_much_is_reported_loudly() -> None:
    """Not as a minus sign among figures."""
    full = replace(MEMORY, lines=(LedgerLine("weights", 130 * GIB, Origin.COMPUTED),))
    assert "DOES NOT FIT" in memory_text((full,), why=False)


def test_simulated_is_first() -> None:
    """Plans, deployments and answers begin with the mark."""
    plan = replace(PLAN, cluster=replace(CLUSTER, simulated=True))
    assert plan_text(plan, (), Shown(commands=True)).startswith("SIMULATED  big@256k: ")
    found = Deployment("big", DeploymentState.READY, (), simulated=True)
    assert deployment_text(found) == "SIMULATED  big: ready"
    assert answer_text(Answer("hi", 1, 1, 0.1, 0.2, simulated=True)).startswith("answer SIMULATED: 'hi'")


@pytest.mark.parametrize("simulated", [True, False])
def test_only_a_model_gives_real_tokens(simulated: bool) -> None:
    """The simulator's answers are never called real, whichever of deployment and answer reports that it is
    simulated."""
    answer = Answer("hi", 1, 1, 0.1, 0.2)
    found = Deployment("big", DeploymentState.READY, (), answer=answer, simulated=simulated)
    assert ("real token" in deployment_text(found)) is not simulated
    assert "real" not in deployment_text(replace(found, answer=replace(answer, simulated=True)))


def test_findings_report_only_what_they_have() -> None:
    """No empty labels; nothing is coloured where no terminal is (click takes the codes away)."""
    lines = findings_text((OVERRIDE,)).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:]] == ["remedy"]


def test_a_deployment_shows_each_rank_and_problem() -> None:
    """One line each."""
    one = RankStatus("big", 0, "spark-1", "docker", "running", "c0", engine="vllm 0.21.0", recipe="big@256k")
    ranks = (one, replace(one, rank=1, node="spark-2", state="exited", exit_code=137))
    found = Deployment("big", DeploymentState.DEGRADED, ranks, "http://127.0.0.1:8000/v1", None, ("p",))
    assert deployment_text(found).splitlines() == [
        "big: degraded  http://127.0.0.1:8000/v1",
        "  rank 0  spark-1  running       vllm 0.21.0  big@256k",
        "  rank 1  spark-2  exited (137)  vllm 0.21.0  big@256k",
        "  problem: p",
        "  not supervised: nothing restarts it and it has no gateway; `sparkwright up` with its recipe adds both",
    ]


def test_long_lines_are_broken_for_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """`grep` sees whole lines; people see an indented paragraph."""
    finding = replace(BLOCK, remedy="word " * 60)
    assert max(map(len, findings_text((finding,)).splitlines())) > 200
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda fallback=(80, 24): os.terminal_size((80, 24)))
    lines = findings_text((finding,)).splitlines()
    assert max(map(len, lines)) < 90
    assert lines[-1].startswith(" " * 14 + "word")


def test_numbers_are_written_for_people() -> None:
    """Thousands apart, no exponent."""
    assert "KV pool: 1,430,000 tokens" in plan_text(PLAN, (), Shown(why=True))
    shown = plan_text(PLAN, (), Shown(why=True))
    assert "KV pool: 1,430,000 tokens (y)" in shown
    assert "decode: 45.7 tokens/s (pp1024; https://x)" in shown
