"""Supervision set up and taken away on fake nodes: what is written where, in which order, and what goes wrong."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from fakes.clock import FakeClock
from fakes.host import FakeHost
from fakes.hosts import FakeHosts
from fakes.rank_node import Rank, RankNode
from fakes.sink import FakeSink
from sparkwright.app.lease import pause_supervisor, remove_supervisor, taking_over
from sparkwright.app.serve.install_supervisor import InstallOptions, InstallResult, install_supervisor
from sparkwright.app.serve.prepare import prepare
from sparkwright.app.serve.stop import down
from sparkwright.app.services import Services
from sparkwright.domain.codec import from_json
from sparkwright.domain.command import Command, Completed, Secret
from sparkwright.domain.errors import Busy, NotReady
from sparkwright.domain.live import Desired
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Notice, StepStarted
from sparkwright.domain.service import Manager
from sparkwright.remote import service
from unit.app.scene import make_scene, request
from unit.app.serve.test_gateway_change import LOOK

STATE = "/home/ai/.local/state/sparkwright"
HOME = f"{STATE}/supervision/twin"
SEAT = """
@@ user
ai
@@ state
{state}
@@ python
{python}
@@ addresses
192.168.1.20 192.168.100.10
@@ manager
{manager}
@@ runtimes
"""
REACH = "@@ user\nai\n@@ addresses\n192.168.1.21 192.168.100.11\n@@ port\n22\n@@ keys\nssh-ed25519 AAAA\n"


class FakeProgram:
    digest = "0123456789abcdef"

    def archive(self) -> bytes:
        return b"an archive"


def seated(python: str = "good /usr/bin/python3", manager: str = "user\nlingers") -> str:
    return SEAT.format(state=STATE, python=python, manager=manager)


def healthy_nodes(told: str = "", tried: str = "192.168.1.21\tok\n192.168.100.11\tok\n") -> list[RankNode]:
    """A head and a worker on which every step goes well."""
    head, worker = RankNode("spark-1", default=Completed(0, "")), RankNode("spark-2", default=Completed(0, ""))
    head.on("@@ python", told or seated()).on("ssh-keygen", "ssh-ed25519 KEY\n").on("ControlPath=none", tried)
    head.on('home/services/$2"; mark=', Completed(0, ""))  # else it takes a detached service for a rank
    worker.on("SSH_CONNECTION", REACH)
    return [head, worker]


async def plan(**more: Any) -> Plan:
    return replace((await prepare(make_scene().services, request(**more))).plan)


def services(hosts: Sequence[FakeHost], secrets: Mapping[str, Secret] | None = None) -> Services:
    return replace(
        make_scene(secrets=secrets or {}).services, hosts=FakeHosts(*hosts), program=FakeProgram(), time_scale=0.1
    )


async def run_install(hosts: list[RankNode], order: InstallOptions | None = None, **secrets: str) -> InstallResult:
    here = services(hosts, {name: Secret(value) for name, value in secrets.items()})
    order = order or InstallOptions(fresh=True, figures={"available:spark-1": 5})
    return await install_supervisor(here, request(supervised=True), await serving(hosts), order)


async def serving(hosts: list[RankNode]) -> Plan:
    """Its ranks run."""
    made = await plan()
    for host, spec in zip(hosts, made.specs, strict=True):
        host.ranks["/rank"] = Rank(spec.labels, spec.argv)
    return made


def changed(host: FakeHost) -> list[str]:
    """The changes apart from the lease."""
    return [change for change in host.changes if "lease" not in change]


def written(host: FakeHost) -> dict[str, bytes]:
    """Names below HOME -> contents, in the order of their writing."""
    commands = [command for command in host.commands if command.changes.startswith(f"write {HOME}/")]
    return {command.argv[5]: command.stdin or b"" for command in commands}


def change_position(host: FakeHost, words: str) -> int:
    """The position of the first question."""
    return next(number for number, change in enumerate(host.changes) if words in change)


def finding_codes(found: InstallResult) -> list[str]:
    """The codes apart from the gateway's, which these nodes cannot have: SUP006."""
    return [finding.code for finding in found.findings if finding.code != "SUP006"]


async def test_the_request_is_written_before_anything_runs() -> None:
    """Program, request and way are on the head when the unit starts; the request names the nodes as the head sees
    them."""
    hosts = healthy_nodes()
    found = await run_install(hosts)
    head = hosts[0]
    assert (found.node, found.manager) == ("spark-1", Manager.USER)
    assert (
        change_position(head, "unpack")
        < change_position(head, "desired.json")
        < change_position(head, "unit sparkwright-supervisor-twin.service")
    )
    desired = from_json(Desired, written(head)["desired.json"])
    assert [(node.name, node.ssh) for node in desired.cluster.nodes] == [("spark-1", "local"), ("spark-2", "spark-2")]
    assert (desired.recipe.name, desired.force, desired.by) == ("twin", "a test", "anna@laptop")
    assert (desired.time_scale, desired.python) == (0.1, "python3")
    assert json.loads(written(head)["figures.json"]) == {"available:spark-1": 5}


async def test_what_is_waited_for_at_the_end_is_waited_for_at_once() -> None:
    """Guards an `up` that changes nothing: gateway and supervisor answer each in its own time, and a line says so."""
    hosts, asked = healthy_nodes(), asyncio.Event()

    async def gateway_waits(_: Command) -> Completed:
        async with asyncio.timeout(10):
            await asked.wait()
        return Completed(0, "")

    def supervisor_is_asked(_: Command) -> Completed:
        asked.set()
        return Completed(0, "")

    hosts[0].on("@@ front", LOOK.format(front="", behind="")).on("does not answer after", gateway_waits)
    hosts[0].on(lambda command: command == service.await_alive(HOME), supervisor_is_asked)
    here, order = replace(services(hosts), sink=FakeSink()), InstallOptions(fresh=True)
    found = await install_supervisor(here, request(supervised=True), await serving(hosts), order)
    assert found.reach is not None
    steps = [one.detail for one in here.sink.of(StepStarted)]  # type: ignore[attr-defined]
    assert "waiting for an answer of the gateway on port 8443, and the supervisor's report" in steps


async def test_secrets_travel_apart_and_unseen() -> None:
    """Only those that a relaunch needs, in no argv and not in the desired state."""
    hosts = healthy_nodes()
    await run_install(hosts, HF_TOKEN="hf_s3cr3t", OTHER="0th3r")
    assert json.loads(written(hosts[0])["secrets.json"]) == {"HF_TOKEN": "hf_s3cr3t"}
    seen = [word for command in hosts[0].commands for word in command.argv] + [repr(hosts[0].commands)]
    assert not [word for word in seen if "s3cr3t" in word or "0th3r" in word]
    assert b"s3cr3t" not in written(hosts[0])["desired.json"]


async def test_a_worker_that_opens_already_is_not_changed() -> None:
    """No key is added if the nodes know each other."""
    hosts = healthy_nodes()
    await run_install(hosts)
    assert changed(hosts[1]) == []


async def test_else_a_narrow_key_is_added() -> None:
    """The key is for the head's addresses only; then the way is tried again."""
    hosts = healthy_nodes()
    refused = "192.168.1.21\tPermission denied (publickey).\n"
    hosts[0].on("ControlPath=none", refused, "192.168.1.21\tok\n")
    found = await run_install(hosts)
    assert changed(hosts[1]) == ["let sparkwright:lab/twin in by ssh"] and found.node
    (line,) = [command.argv[4] for command in hosts[1].commands if command.changes.startswith("let ")]
    assert line == 'restrict,from="192.168.1.20,192.168.100.10" ssh-ed25519 KEY sparkwright:lab/twin'


async def test_without_a_way_to_a_worker_there_is_no_supervisor() -> None:
    """One that could only end half of the ranks would do harm; what serves is left alone, and it is reported."""
    hosts = healthy_nodes(tried="192.168.1.21\tConnection refused\n")
    found = await run_install(hosts)
    assert finding_codes(found) == ["SUP003"] and found.node == ""
    assert "Connection refused" in found.findings[0].evidence
    assert "desired.json" not in written(hosts[0])


@pytest.mark.parametrize(
    ("told", "code", "node"),
    [
        (seated(python="old Python 3.10.12"), "SUP001", ""),
        (seated(manager="no systemd runs here"), "SUP002", "spark-1"),
        ("", "SUP005", ""),
    ],
)
async def test_what_is_missing_is_one_finding(told: str, code: str, node: str) -> None:
    """Old Python, no systemd, a shell that fails: `up` is no failure for it."""
    hosts = healthy_nodes(told or "nonsense")
    found = await run_install(hosts)
    assert finding_codes(found) == [code]
    assert found.node == node


async def test_without_a_gateway_it_is_supervised_all_the_same() -> None:
    """The missing part is a finding of its own."""
    found = await run_install(healthy_nodes())
    assert found.node == "spark-1" and [finding.code for finding in found.findings] == ["SUP006"]


async def test_linger_is_asked_for_once_and_its_refusal_is_reported() -> None:
    """The user's units end with the last login without linger: then a detached process is better."""
    hosts = healthy_nodes(seated(manager="user"))
    hosts[0].on("enable-linger", Completed(1, "", "Access denied"))
    found = await run_install(hosts)
    assert found.manager is Manager.NONE and "Access denied" in found.findings[0].evidence
    assert change_position(hosts[0], "start supervisor") > 0


async def test_a_supervisor_that_does_not_start_is_reported() -> None:
    """The report has the last lines of its log, and it does not count as supervised."""
    hosts = healthy_nodes()
    alive = service.await_alive(HOME)
    hosts[0].on(lambda command: command == alive, Completed(1, "no module named x\n"))
    found = await run_install(hosts)
    assert found.node == "" and finding_codes(found) == ["SUP004"]


async def test_a_supervisor_that_still_starts_is_not_called_dead() -> None:
    """Its process lives: on a busy head the program takes minutes to load, and nobody knows more."""
    hosts, alive = healthy_nodes(), service.await_alive(HOME)
    hosts[0].on(lambda command: command == alive, Completed(service.SILENT, "process 7 lives, and has not reported\n"))
    (finding,) = (one for one in (await run_install(hosts)).findings if one.code == "SUP004")
    assert (finding.code, finding.title) == ("SUP004", "the supervisor has not reported yet")
    assert "process 7 lives" in finding.evidence and "does not run" not in f"{finding.cause} {finding.title}"


async def test_the_same_request_is_not_written_again() -> None:
    """The caller and the time change nothing: the supervisor that runs goes on."""
    hosts = healthy_nodes()
    await run_install(hosts)
    known = written(hosts[0])
    again = healthy_nodes()
    for name in ("desired.json", "secrets.json"):
        asked = service.read(HOME, name)
        again[0].on(lambda command, asked=asked: command == asked, known[name].decode())
    found = await run_install(again, InstallOptions())
    assert found.node and set(written(again[0])) == {"runtime", service.RESTORE}
    assert not [change for change in again[0].changes if change.startswith("pause")]


async def test_interrupted_it_goes_to_its_end_and_reports_that_it_serves() -> None:
    """Ctrl-C after the first answer: keys and addresses are not shown any more, and a bare end looks like a failure."""
    hosts = healthy_nodes()
    here, caller = services(hosts), asyncio.current_task()
    assert caller

    def interrupt(_: Command) -> Completed:
        caller.cancel()
        return Completed(0, seated())

    hosts[0].on("@@ python", interrupt)
    with pytest.raises(asyncio.CancelledError):
        await install_supervisor(here, request(supervised=True), await serving(hosts), InstallOptions())
    assert any("unit sparkwright-supervisor-twin.service" in change for change in hosts[0].changes)
    assert isinstance(here.sink, FakeSink)
    assert ["the same `sparkwright up` again" in notice.text for notice in here.sink.of(Notice)] == [True]


async def test_what_was_taken_down_meanwhile_is_not_supervised() -> None:
    """A `down` between the first answer and this: a supervisor would restore what somebody has ended."""
    hosts = healthy_nodes()
    made = await serving(hosts)
    hosts[0].ranks.clear()
    with pytest.raises(NotReady, match="before it could be supervised"):
        await install_supervisor(services(hosts), request(supervised=True), made, InstallOptions(fresh=True))
    assert [changed(host) for host in hosts] == [[], []]


async def test_it_waits_for_who_changes_these_nodes_and_then_reports_who() -> None:
    """A `down` or another `up` goes first; one that takes hours is reported instead, and nothing is half done."""
    hosts = healthy_nodes()
    hosts[1].holder = json.dumps({"holder": "bob", "why": "down twin", "since": 0, "nonce": "feed"})
    found = await run_install(hosts)
    assert finding_codes(found) == ["SUP007"] and "bob" in found.findings[0].evidence
    assert [changed(host) for host in hosts] == [[], []] and hosts[0].holder is None

    class Clock(FakeClock):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if self.elapsed >= 5.0 and "bob" in (hosts[1].holder or ""):
                hosts[1].holder = None

    here = replace(services(hosts), clock=Clock())
    assert (
        await install_supervisor(here, request(supervised=True), await serving(hosts), InstallOptions(fresh=True))
    ).node == "spark-1"
    assert 5.0 <= here.clock.monotonic() < 60.0
    (said,) = here.sink.of(Notice)  # type: ignore[attr-defined]
    assert said.text.startswith("waiting, for 60 s at most: ") and "bob" in said.text
    assert [host.holder for host in hosts] == [None, None]


async def test_disarm_asks_every_node_and_reports_where_something_was() -> None:
    """Units and folder on the head, the key on a worker: all by one call a node."""
    hosts = healthy_nodes()
    hosts[1].on("disarm", "")
    hosts[1].on(lambda command: command.changes == "disarm twin", "was\n")
    assert await remove_supervisor(services(hosts), ("spark-1", "spark-2"), "twin") == ("spark-2",)
    assert [host.changes for host in hosts] == [["disarm twin"], ["disarm twin"]]


async def test_a_person_goes_first() -> None:
    """A supervisor that holds the lease is ended for `down` or `up`; its lease is given back by its own nonce."""
    here = make_scene()
    here.nodes[0].holder = json.dumps({"holder": "supervisor", "why": "start", "since": 0, "nonce": "feed"})
    here.nodes[0].on(_is_pause, "was\nnonce feed\n").on(_is_resume, "")
    here.nodes[1].on(_is_pause, "nonce \n")
    made = replace(here.services, program=FakeProgram())
    async with taking_over(made, ("spark-1", "spark-2"), "twin", "down twin", False) as held:
        assert sorted(held.nodes) == ["spark-1", "spark-2"]
    assert here.nodes[0].changes[-1] == "resume the supervisor of twin"


async def test_a_person_goes_first_also_where_its_last_command_comes_late() -> None:
    """Guards the race of a killed supervisor: what it had sent to a node takes the lease there after it was freed."""
    here = make_scene()
    theirs = json.dumps({"holder": "supervisor", "why": "stop", "since": 0, "nonce": "feed"})
    here.nodes[0].holder = theirs
    here.nodes[0].on(_is_pause, "was\nnonce feed\n").on(_is_resume, "")
    here.nodes[1].on(_is_pause, "nonce \n")
    freed = 0

    def free(_: Command) -> Completed:
        nonlocal freed
        freed += 1
        here.nodes[1].holder = theirs if freed == 1 else None
        return Completed(0, "")

    here.nodes[1].on(lambda command: "release" in command.changes and "feed" in command.argv, free)
    made = replace(here.services, program=FakeProgram())
    async with taking_over(made, ("spark-1", "spark-2"), "twin", "down twin", False) as held:
        assert sorted(held.nodes) == ["spark-1", "spark-2"]
    assert freed == 2


async def test_what_a_supervisor_started_last_is_removed_too() -> None:
    """Ranks are looked for once it is ended: one of a relaunch that was under way would stay for ever."""
    here = make_scene()

    def ending(_: Command) -> Completed:
        here.nodes[1].ranks["/late"] = Rank({"deployment": "twin", "rank": "1", "world": "2"}, ())
        return Completed(0, "was\n")

    here.nodes[0].on(_is_disarm, "was\n").on("$s/supervision/$2", "was\n")
    here.nodes[1].on(_is_disarm, ending)
    removed = await down(replace(here.services, program=FakeProgram()), "twin")
    assert [rank.handle for rank in removed.ranks] == ["/late"] and here.nodes[1].ranks == {}


async def test_but_nobody_else_is_pushed_aside() -> None:
    """Another person's lease is as good as ours."""
    here = make_scene()
    here.nodes[0].holder = json.dumps({"holder": "bob", "why": "up", "since": 0, "nonce": "feed"})
    for node in here.nodes:
        node.on(_is_pause, "nonce \n")
    with pytest.raises(Busy, match="bob"):
        async with taking_over(replace(here.services, program=FakeProgram()), ("spark-1",), "twin", "down twin", False):
            pass


async def test_pause_of_nothing_frees_nothing() -> None:
    """A node without supervision has no nonce to give back."""
    hosts = healthy_nodes()
    assert await pause_supervisor(services(hosts), ("spark-1",), "twin") == ()
    assert hosts[0].changes == ["pause the supervisor of twin"]


def _is_pause(command: Command) -> bool:
    return command.changes.startswith("pause ")


def _is_disarm(command: Command) -> bool:
    return command.changes.startswith("disarm ")


def _is_resume(command: Command) -> bool:
    return command.changes.startswith("let the supervisor")
