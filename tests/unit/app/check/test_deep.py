"""`check --deep` on fake nodes: what is sent where, what is left out, and that nothing stays."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from fakes.host import FakeHost
from fakes.hosts import FakeHosts
from fakes.sink import FakeSink
from sparkwright.app.check.deep import run_deep_checks
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.fabric_facts import Containers, Image, Nic
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.progress import StepDone, StepStarted
from unit.app.scene import make_scene
from unit.checks.samples import CLUSTER, EMBEDDED, NODES, RAILS, healthy, interfaces, rank_status, rdma_ports
from unit.facts.test_deep_check import HEAD, perftest_row

SAMPLES = "@@ load\ntorch on the node\n@@ samples\n" + "2411 MHz, 45.10 W, 96 %\n" * 10
GOOD = HEAD + perftest_row("97.41")


def is_server(command: Command) -> bool:
    return "ib_write_bw" in command.argv[2] and "while" not in command.argv[2]


def is_client(command: Command) -> bool:
    return "ib_write_bw" in command.argv[2] and "while" in command.argv[2]


async def wait_forever(_: Command) -> Completed:
    await asyncio.Event().wait()
    raise AssertionError("nobody wakes a server")


def measured_node(name: str, **answers: Any) -> FakeHost:
    """A node on which a server waits until it is ended, a client is answered, and the GPU is fast."""
    host = (
        FakeHost(name)
        .on(is_server, wait_forever)
        .on("docker rm -f", "")
        .on("nvidia-smi", answers.get("clocks", SAMPLES))
    )
    return host.on(is_client, answer_later(answers.get("client", GOOD)))


def answer_later(answer: str | BaseException) -> Callable[[Command], Awaitable[str | BaseException]]:
    """A client's answer takes its time: the server has begun by then."""

    async def given(_: Command) -> str | BaseException:
        await asyncio.sleep(0)
        return answer

    return given


def facts_of(**changes: Any) -> dict[str, NodeFacts]:
    return {name: healthy(name, **changes) for name in NODES}


async def run_checks(hosts: tuple[FakeHost, ...], facts: dict[str, NodeFacts], **changes: Any) -> tuple[Finding, ...]:
    services = replace(make_scene().services, **{"cluster": CLUSTER, "hosts": FakeHosts(*hosts), **changes})
    return await run_deep_checks(services, services.cluster.nodes, facts)


def codes_with_severity(findings: tuple[Finding, ...]) -> list[tuple[str, Severity]]:
    return [(finding.code, finding.severity) for finding in findings]


async def test_each_rail_is_sent_over_and_each_gpu_watched() -> None:
    """Guards that every rail is measured with its own device, GID and addresses, the server bound to its own."""
    hosts = measured_node("spark-1"), measured_node("spark-2")
    findings = await run_checks(hosts, facts_of())
    assert codes_with_severity(findings) == [("DEEP001", Severity.INFO)] * 2 + [("DEEP002", Severity.INFO)] * 2
    sent = [command.argv[4:] for command in hosts[0].ran(is_client)]
    served = [command.argv[4:] for command in hosts[1].ran(is_server)]
    assert sent == [
        ("rocep1s0f0", "3", "18515", "3", "10.40.0.1", "10.40.0.2"),
        ("roceP2p1s0f0", "3", "18516", "3", "10.41.0.1", "10.41.0.2"),
    ]
    assert served == [
        ("rocep1s0f0", "3", "18515", "3", "10.40.0.2"),
        ("roceP2p1s0f0", "3", "18516", "3", "10.41.0.2"),
    ]
    assert [command.changes for command in hosts[0].commands if command.changes] == [
        "clock test: the GPU under load for ten seconds"
    ]


async def test_what_takes_seconds_is_announced() -> None:
    """Guards that the user sees what is measured, and how long it usually takes, before it is done."""
    sink = FakeSink()
    await run_checks((measured_node("spark-1"), measured_node("spark-2")), facts_of(), sink=sink)
    started = [(h.step, h.detail, h.usual) for h in sink.happenings if isinstance(h, StepStarted)]
    assert started == [
        ("RDMA bandwidth", "spark-1 to spark-2 over rocep1s0f0", 3),
        ("RDMA bandwidth", "spark-1 to spark-2 over roceP2p1s0f0", 3),
        ("clocks under load", "spark-1, spark-2", 10),
    ]
    assert len([h for h in sink.happenings if isinstance(h, StepDone)]) == 3


async def test_capped_rail_and_stuck_clock_are_named() -> None:
    """Guards the two findings for which this is run."""
    stuck = SAMPLES.replace("2411", "721").replace("45.10", "12.0")
    hosts = measured_node("spark-1", client=HEAD + perftest_row("13.22")), measured_node("spark-2", clocks=stuck)
    findings = await run_checks(hosts, facts_of())
    assert codes_with_severity(findings)[:2] == [("DEEP001", Severity.WARN)] * 2
    assert [(f.code, f.severity, f.subject) for f in findings[2:]] == [
        ("DEEP002", Severity.INFO, "spark-1"),
        ("DEEP002", Severity.OVERRIDE, "spark-2"),
    ]


async def test_port_pairs_without_an_address_are_sent_over_by_their_link_local_gids() -> None:
    """Guards that a set-up with addresses on the first rail alone is measured on both."""
    facts = {}
    for number, name in enumerate(NODES, 1):
        own = tuple(
            replace(link, addresses=() if link.name == RAILS[1][1] else link.addresses) for link in interfaces(number)
        )
        facts[name] = healthy(name, interfaces=own)
    hosts = measured_node("spark-1"), measured_node("spark-2")
    assert codes_with_severity(await run_checks(hosts, facts))[:2] == [("DEEP001", Severity.INFO)] * 2
    assert hosts[0].ran(is_client)[1].argv[4:] == ("roceP2p1s0f0", "1", "18516", "3", "10.40.0.1", "10.40.0.2")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"nic": Nic(tools=("rdma",))}, "spark-1 has no ib_write_bw"),
        ({"rdma": ()}, "spark-1 has no ACTIVE RDMA port"),
        ({"ranks": (rank_status("big"),)}, "a rank runs there (spark-1)"),
        ({"interfaces": interfaces(7)[2:]}, "spark-1 has no ACTIVE RDMA port"),
        (
            {"rdma": tuple(replace(port, gids=()) for port in rdma_ports(1))},
            "no ACTIVE rails of the two share a subnet and",
        ),
    ],
)
async def test_bandwidth_is_left_out_with_a_reason(changes: dict[str, Any], why: str) -> None:
    """Guards that nothing is started where it cannot work or would disturb, and that this is reported."""
    hosts = measured_node("spark-1"), measured_node("spark-2")
    findings = await run_checks(hosts, facts_of(**changes))
    assert next(f.evidence for f in findings if f.code == "DEEP003").startswith(why)
    assert not [command for host in hosts for command in host.commands if "ib_write_bw" in command.argv[2]]


async def test_a_deployment_is_watched_and_not_loaded() -> None:
    """Guards that next to a rank of ours no load is started, and no container removed."""
    hosts = measured_node("spark-1"), measured_node("spark-2")
    await run_checks(hosts, facts_of(ranks=(rank_status("big"),)))
    (command,) = hosts[0].ran("nvidia-smi")
    assert command.argv[-1] == "busy"
    assert not command.changes
    assert hosts[0].ran("docker rm -f") == []


async def test_no_gpu_and_unknown_ranks_are_reasons() -> None:
    """Guards that a load is made only where it is known that nothing of ours runs."""
    facts = {"spark-1": healthy("spark-1", gpus=()), "spark-2": NodeFacts("spark-2", 0.0, gpus=healthy("spark-2").gpus)}
    findings = await run_checks((measured_node("spark-1"), measured_node("spark-2")), facts)
    assert [f.evidence for f in findings if f.title.startswith("clocks")] == ["no GPU", "what runs there is not known"]


async def test_a_lost_node_is_reported_and_the_rest_goes_on() -> None:
    """Guards that a connection that breaks in the middle is a finding, and no exception."""
    lost = FakeHost("spark-2", default=Unreachable("spark-2", "connection reset"))
    findings = await run_checks((measured_node("spark-1", client=Unreachable("spark-1", "gone")), lost), facts_of())
    assert [f.evidence for f in findings if f.code == "DEEP001"] == [
        f"ib_write_bw {device} -> {device}: spark-1: gone" for device, _, _ in RAILS
    ]
    assert [(f.subject, f.severity) for f in findings if f.code == "DEEP003"] == [("spark-2", Severity.INFO)]


async def test_container_of_the_load_is_removed_also_when_the_user_goes_away() -> None:
    """Guards that nothing stays on a node: neither after the test nor after Ctrl-C in its middle."""
    image = Containers(images=(Image("sha256:1", "arm64", ("vllm/vllm-openai:v0.21.0",)),))
    hosts = measured_node("spark-1", clocks=wait_forever), measured_node("spark-2", clocks=wait_forever)
    task = asyncio.ensure_future(run_checks(hosts, facts_of(containers=image, rdma=())))
    while not all(host.ran("nvidia-smi") for host in hosts):
        await asyncio.sleep(0)
    assert hosts[0].ran("nvidia-smi")[0].argv[6:8] == ("vllm/vllm-openai:v0.21.0", "sparkwright-clock-0123456789abcdef")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [len(host.ran("docker rm -f")) for host in hosts] == [1, 1]


async def test_simulated_nodes_are_not_measured() -> None:
    """Guards that a demo never shows a figure as if it were real."""
    findings = await run_checks((FakeHost("spark-1"), FakeHost("spark-2")), facts_of(), cluster=EMBEDDED)
    assert [f.evidence for f in findings] == ["simulated nodes"]


async def test_server_and_client_end_with_the_user() -> None:
    """Guards that Ctrl-C in the middle of a transfer leaves neither end of it running."""
    ended = list[str]()

    def until_ended(who: str) -> Callable[[Command], Awaitable[str]]:
        async def given(_: Command) -> str:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(who)
            return ""

        return given

    hosts = (
        FakeHost("spark-1").on(is_client, until_ended("client")),
        FakeHost("spark-2").on(is_server, until_ended("server")),
    )
    task = asyncio.ensure_future(run_checks(hosts, facts_of()))
    while not (hosts[0].commands and hosts[1].commands):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(ended) == ["client", "server"]
