"""Rules about the link, Docker, disks and open ports: where each fires, where not, and what it would change."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkwright.checks.catalog import CHECKS, check_all
from sparkwright.domain.check import Context
from sparkwright.domain.fabric_facts import ClockSample, Container, EnvironmentSetting, Firewall, Ref, Settings
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Fix, Severity
from sparkwright.facts.deep_check import NO_ROW
from unit.checks import fabric_cases as cases
from unit.checks import link_values
from unit.checks.fabric_cases import (
    FIRING,
    SILENT,
    context_of_two,
    context_with,
    drifted,
    listens,
    network,
    occupied,
    store_facts,
    variables,
)
from unit.checks.samples import NODES, READY, RECIPE, context, healthy, rank_status, run_check
from unit.for_each import for_each

# What the field disagrees about, and what an owner may well want: told, never occupied against a node.
TOLD = {"NET001", "NET004", "NET007", "NET010", "NET014", "RDMA007", "RDMA011", "RDMA013"}
TOLD |= {"DOCK008", "DOCK010", "DISK004", "SEC008", "SEC009", "SEC010", "DEEP003"}
MENDED = {"NET002", "NET003", "NET011"}


@for_each("code", FIRING)
def test_rule_fires(code: str) -> None:
    """Guards that the defect is found, on the node that has it, with evidence, cause and remedy."""
    findings = run_check(code, FIRING[code])
    assert findings
    assert {finding.code for finding in findings} == {code}
    assert all(f.subject and f.title and f.evidence and f.cause for f in findings)
    assert all(f.remedy for f in findings if f.severity is not Severity.INFO)
    assert all(any(node in finding.subject for node in NODES) for finding in findings)
    assert code in [finding.code for finding in check_all(FIRING[code])]


@for_each("code, why, where", SILENT, ids=lambda v: v if isinstance(v, str) else "")
def test_rule_is_silent(code: str, why: str, where: Context) -> None:
    """Guards that what is in order, what is not known and what is another rule's is not blamed."""
    assert run_check(code, where) == [], why


def test_two_healthy_nodes_have_nothing_to_report() -> None:
    """Guards that no rule of these families speaks where all is well, with a recipe and without."""
    mine = set(FIRING)
    for where in (context_of_two({}), context()):
        assert [finding for finding in check_all(where) if finding.code in mine] == []


def test_severity_is_honest() -> None:
    """Guards that `check` alone stops nothing (DOCK013 needs a recipe), and that a contradiction is for information."""
    weights = {(code, finding.severity) for code, where in FIRING.items() for finding in run_check(code, where)}
    wanted = dict.fromkeys(FIRING, Severity.WARN) | dict.fromkeys(TOLD, Severity.INFO)
    wanted |= {"DEEP002": Severity.OVERRIDE, "DOCK013": Severity.BLOCK}
    assert weights == set(wanted.items())


# What hinders a start, or says why it may fail, is told with a recipe too.
@for_each("code", sorted((TOLD - {"DOCK008", "DISK004", "DEEP003"}) | {"SEC001", "SEC007", "DOCK006"}))
def test_a_start_is_not_the_place_for_what_is_merely_worth_knowing(code: str) -> None:
    """Guards that `plan` and `up` report what matters to the recipe, and leave the rest to `check`."""
    assert run_check(code, replace(FIRING[code], recipe=RECIPE)) == []


@for_each("code", ["NET003", "NET016", "RDMA001", "RDMA004", "DOCK007", "DISK002"])
def test_what_matters_to_a_start_is_reported_with_a_recipe(code: str) -> None:
    """Guards that the gate of `plan` and `up` depends on the same rules."""
    assert run_check(code, replace(FIRING[code], recipe=RECIPE))


def test_only_small_things_are_fixed_automatically() -> None:
    """Guards that nothing is changed that restarts a daemon, moves traffic, deletes or is disputed."""
    fixes = [(code, one.fix) for code, where in FIRING.items() for one in run_check(code, where) if one.fix]
    assert {code for code, _ in fixes} == MENDED
    for _, fix in fixes:
        assert fix.node in NODES
        assert all(command.changes for command in (*fix.do, *fix.undo))
        assert not any(word in str(fix) for word in ("systemctl", "ip route", "ufw", "rm -", "reboot"))


def proposed_fix(code: str, where: Context) -> Fix | None:
    (finding,) = run_check(code, where)
    return finding.fix


def test_mtu_is_set_until_the_next_boot_and_back_to_what_was_seen() -> None:
    """Guards that the fix raises the smaller end only, reports that it does not last, and undoes to the value found."""
    fix = proposed_fix("NET002", FIRING["NET002"])
    assert fix
    assert fix.node == "spark-1"
    assert "until the next boot" in fix.says
    assert [command.argv[-2:] for command in fix.do] == [("enP2p1s0f0np0", "9000")]
    assert [command.argv[-2:] for command in fix.undo] == [("enP2p1s0f0np0", "1500")]
    assert fix.root


@pytest.mark.parametrize("ranks", [(rank_status("big"),), Unknown("")])
def test_no_mtu_is_changed_under_a_running_rank(ranks: Any) -> None:
    """Guards running connections: with a rank there, or when that is not known, only the remedy is reported."""
    first = FIRING["NET002"].facts["spark-1"]
    where = replace(FIRING["NET002"], facts={"spark-1": replace(first, ranks=ranks), "spark-2": healthy("spark-2")})
    assert proposed_fix("NET002", where) is None


def test_only_a_newline_is_taken_from_a_ref() -> None:
    """Guards that the fix writes the very name that is there, as the user, and that a lost snapshot is left alone."""
    fix = proposed_fix("MODEL005", cases.BAD_REF)
    assert fix
    assert not fix.root
    assert [c.argv[-1] for c in (*fix.do, *fix.undo)] == ["abc123", "abc123\n"]
    lost = context_with(**store_facts(refs=(Ref("models--org--big", "abc123\n", False),)))
    (finding,) = run_check("MODEL005", lost)
    assert finding.fix is None
    assert "no such snapshot" in finding.evidence


def test_without_a_recipe_the_whole_cache_is_inspected() -> None:
    """Guards that `check` alone reports any model of the cache, and that a start reports its own only."""
    (unfinished,) = run_check("MODEL004", cases.UNFINISHED)
    assert unfinished.severity is Severity.INFO and unfinished.title.startswith("1 unfinished download(s) in ")
    assert [finding.severity for finding in run_check("MODEL005", cases.BAD_REF)] == [Severity.WARN]
    assert run_check("MODEL004", replace(cases.UNFINISHED, recipe=RECIPE)) == []


def test_netplan_mode_goes_back_to_what_it_was() -> None:
    """Guards that undo restores the mode that was seen."""
    fix = proposed_fix("NET011", FIRING["NET011"])
    assert fix
    assert [c.argv[-2:] for c in (*fix.do, *fix.undo)] == [(m, "/etc/netplan/40-cx7.yaml") for m in ("600", "644")]


def test_rules_of_a_firewall_that_may_not_be_read_are_not_guessed() -> None:
    """Guards that an active firewall with unreadable rules is reported and not blamed."""
    (finding,) = run_check("NET012", context_with(**network(firewall=Firewall("ufw", Unknown("")))))
    assert finding.severity is Severity.INFO
    assert "root only" in finding.evidence


def test_open_port_behind_a_firewall_is_only_reported() -> None:
    """Guards against alarms about ports that nobody reaches."""
    where = context_with(**listens("0.0.0.0", 8000, "vllm"), **network(firewall=Firewall("ufw", ())))
    assert [f.severity for f in run_check("SEC001", where)] == [Severity.INFO]


def test_pinned_gid_of_the_recipe_stops_it() -> None:
    """Guards that a recipe with a number that is link-local on a node is refused, and names what is there."""
    pinned = replace(RECIPE, env={"NCCL_IB_GID_INDEX": "1"})
    first = run_check("RDMA008", context(recipe=pinned))[0]
    assert first.severity is Severity.OVERRIDE
    assert first.evidence == "the recipe: NCCL_IB_GID_INDEX=1; rocep1s0f0 has RoCE v2 link-local at 1"
    empty = run_check("RDMA008", context_with(**variables("NCCL_IB_GID_INDEX=")))[0]
    assert "set and empty" in empty.evidence
    moved = run_check("RDMA008", context_with(**variables("NCCL_IB_GID_INDEX=3"), **drifted(5)))
    assert [f.evidence for f in moved] == ["/etc/environment: NCCL_IB_GID_INDEX=3; rocep1s0f0 has nothing at 3"]


@for_each(
    "variable, severity, words",
    [
        ("NCCL_NET=Socket", Severity.WARN, "sockets"),
        ("GLOO_SOCKET_IFNAME=eth7", Severity.WARN, "no interface eth7"),
        ("NCCL_SOCKET_IFNAME=^docker,lo", Severity.INFO, "by hand"),
        ("NCCL_SOCKET_IFNAME==enP7s7", Severity.INFO, "by hand"),
        ("NCCL_IB_HCA=rocep1s0f0:1", Severity.WARN, "half of the bandwidth"),
        ("NCCL_IB_HCA=mlx5_0", Severity.WARN, "none of the ACTIVE HCAs"),
        ("NCCL_IB_HCA=roce", Severity.INFO, "by hand"),
        ("NCCL_DEBUG=INFO", Severity.INFO, "by hand"),
    ],
)
def test_variable_is_weighed_by_what_it_does(variable: str, severity: Severity, words: str) -> None:
    """Guards that a setting which breaks something is distinguished from a merely odd one, in NCCL's syntax."""
    (finding,) = run_check("RDMA012", context_with(**variables(variable)))
    assert finding.severity is severity
    assert words in finding.cause


def test_proxy_of_the_daemon_counts_too() -> None:
    """Guards that Docker's own proxy is seen, and that loopback must be excepted."""
    docker = replace(READY, proxy="http://proxy:3128", no_proxy="10.0.0.0/8")
    (finding,) = run_check("NET013", context_with(docker=docker))
    assert finding.title == "proxy of the Docker daemon intercepts 127.0.0.1"


def test_a_proxy_without_exceptions_catches_the_peer() -> None:
    """Guards that no list at all is the worst list."""
    settings = Settings(proxies=(EnvironmentSetting("/etc/environment", "HTTP_PROXY", "http://p:1"),))
    (finding,) = run_check("NET013", context_with(settings=settings))
    assert finding.remedy.startswith("no_proxy=localhost,127.0.0.1,10.40.0.1,10.41.0.1 ")


def test_a_shared_folder_of_models_is_only_reported() -> None:
    """Guards that models which somebody else looks after are no defect; the hub's cache must be the user's."""
    where = context_with(**store_facts(path="~/models", foreign="root /home/ai/models/big"))
    assert [finding.severity for finding in run_check("FILE003", where)] == [Severity.INFO]


def test_a_key_on_a_command_line_is_shown_nowhere() -> None:
    """Guards that what is reported of a foreign container ends before its first option."""
    (finding,) = run_check("DOCK007", context_with(**occupied(replace(cases.VLLM, command="vllm serve"))))
    assert finding.evidence == "docker ps: qwen vllm/vllm-openai:v0.21.0 vllm serve, with the GPU"


SPARKRUN = Container("sparkrun_0123456789ab_head", "acme/vllm:1", True, "no", gpu=True, model="org/Model-FP8")
COMPOSE = replace(SPARKRUN, name="llm-vllm-1", project="llm", model="/hub/models--org--Model-FP8/snapshots/abc")


@pytest.mark.parametrize(
    ("container", "starter", "stop"),
    [
        (SPARKRUN, "sparkrun", "sparkrun stop 0123456789ab"),
        (COMPOSE, "Docker Compose", "docker compose -p llm down"),
    ],
)
def test_the_same_model_of_another_tool_stops_a_start_and_says_how_to_end_it(
    container: Container, starter: str, stop: str
) -> None:
    """Guards that nobody loads a model twice, and that all ranks of the other deployment are stopped its own way."""
    recipe = replace(RECIPE, model=replace(RECIPE.model, id="org/model-fp8", path=""))
    (finding,) = run_check("DOCK007", replace(context_with(**occupied(container)), recipe=recipe))
    assert finding.title == f"{container.name} serves this model already, started by {starter}"
    assert stop in finding.remedy
    assert finding.severity is Severity.OVERRIDE
    (other,) = run_check("DOCK007", replace(context_with(**occupied(container)), recipe=RECIPE))
    assert (other.severity, f"started by {starter}" in other.title) == (Severity.WARN, True)


MIXED = st.fixed_dictionaries({}, optional=link_values.VALUES)


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(first=MIXED, second=MIXED, recipe=st.sampled_from([None, RECIPE]))
def test_no_facts_make_a_rule_raise(first: dict[str, Any], second: dict[str, Any], recipe: Any) -> None:
    """Guards that addresses, versions and variables of no sense are passed over, on one node and between two."""
    where = replace(context_of_two(first, second), recipe=recipe)
    assert all(isinstance(finding, Finding) for check in CHECKS for finding in check.findings(where))


def finding_of(code: str) -> Finding:
    return run_check(code, FIRING[code])[0]


@pytest.mark.parametrize(
    ("code", "title", "evidence"),
    [
        (
            "RDMA001",
            "cable hot-plugged, link may be capped",
            "kernel, 4711 s after boot: mlx5_core 0000:01:00.0: Port module event: module 0, Cable plugged",
        ),
        ("RDMA003", "4 of 4 PCI functions of the NIC are missing", "no network function of vendor 15b3"),
        (
            "RDMA010",
            "slow PCIe link of 0000:01:00.0",
            ", ".join(["0000:01:00.0 2.5 GT/s x1"] * 4) + "; expected: 32 GT/s x4",
        ),
        (
            "NET016",
            "enP2p1s0f0np0 and enP2p1s0f0np0 share no subnet",
            "spark-1 enP2p1s0f0np0 10.41.0.1/24; spark-2 enP2p1s0f0np0 10.99.0.2/24; "
            "the first rails: enp1s0f0np0 10.40.0.1/24, enp1s0f0np0 10.40.0.2/24",
        ),
    ],
)
def test_words(code: str, title: str, evidence: str) -> None:
    """Guards the sentences that a user reads of the dearest traps."""
    assert (finding_of(code).title, finding_of(code).evidence) == (title, evidence)


@pytest.mark.parametrize(
    ("gbit", "severity", "words"),
    [
        (98.03, Severity.INFO, "92 to 111"),
        (90.0, Severity.INFO, "92 to 111"),
        (57.1, Severity.WARN, "90 Gb/s or more"),
        (13.22, Severity.WARN, "attached while the machine ran"),
        (Unknown("Link type : Ethernet", NO_ROW), Severity.WARN, "GID index is wrong"),
    ],
)
def test_bandwidth_is_judged_by_its_signature(gbit: float | Unknown, severity: Severity, words: str) -> None:
    """Guards that the figures of the field's own failures name their causes, and that a good one is reported as
    such."""
    (finding,) = run_check("DEEP001", context_of_two({}, measured=cases.bandwidth_measured(gbit)))
    assert finding.severity is severity
    assert words in finding.cause


@pytest.mark.parametrize(
    ("samples", "severities"),
    [
        ([(721, 12, 96)] * 3, [Severity.OVERRIDE]),
        ([(721, 12, 96), (2411, 45, 96)], [Severity.INFO]),
        ([(721, 55, 96)] * 3, [Severity.INFO]),
        ([(721, 12, 96), (721, 12, 5)], [Severity.INFO]),
        ([(721, 12, 40)] * 3, []),
    ],
)
def test_wedge_needs_every_sample(samples: list[tuple[float, float, float]], severities: list[Severity]) -> None:
    """Guards that one fast, thirsty or idle moment clears a GPU, and that an idle one is called not measured."""
    where = context_of_two({}, measured=cases.under_load(*(ClockSample(*sample) for sample in samples)))
    assert [finding.severity for finding in run_check("DEEP002", where)] == severities
    idle = max(used for _, _, used in samples) < 90
    assert [f.evidence for f in run_check("DEEP003", where)] == [
        "torch on the node: the GPU was at 40 % at most"
    ] * idle
