"""The standby's role set up on fake nodes: in which order, and what an `up` does where that node is not there."""

from dataclasses import replace

from fakes.rank_node import RankNode
from sparkwright.app.serve.install_supervisor import InstallOptions, InstallResult, install_supervisor
from sparkwright.domain.codec import from_json
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.standby import StandbyRole
from unit.app.scene import request
from unit.app.serve.test_gateway_change import LOOK
from unit.app.serve.test_install_supervisor import REACH, healthy_nodes, seated, services, serving

ROLE_FOLDER = "/home/ai/.local/state/sparkwright/supervision/_standby"


def ready_nodes() -> list[RankNode]:
    """A head and a worker, both with Caddy and a way to each other."""
    hosts = healthy_nodes()
    hosts[1].on("@@ python", seated()).on("ssh-keygen", "ssh-ed25519 KEY\n")
    hosts[1].on("ControlPath=none", "192.168.1.21\tok\n").on('home/services/$2"; mark=', Completed(0, ""))
    hosts[0].on("SSH_CONNECTION", REACH)
    for host in hosts:
        host.on("@@ front", LOOK.format(front="", behind=""))
    return hosts


async def up(hosts: list[RankNode], standby: str = "spark-2") -> InstallResult:
    here = services(hosts)
    here = replace(here, cluster=replace(here.cluster, standby=standby))
    return await install_supervisor(here, request(supervised=True), await serving(hosts), InstallOptions(fresh=True))


def roles_of(host: RankNode) -> list[StandbyRole]:
    written = [one for one in host.commands if one.changes.startswith(f"write {ROLE_FOLDER}/role.json")]
    return [from_json(StandbyRole, one.stdin or b"") for one in written]


async def test_the_head_has_its_votes_before_the_standby_runs() -> None:
    """Guards "never both" from the first second: what the standby gets it gets before, its program after."""
    hosts = ready_nodes()
    seen: list[list[str]] = []

    def votes(_: object) -> Completed:
        seen.append([one.changes for one in hosts[1].commands])
        return Completed(0, "")

    hosts[0].on('tail -n 3 "$h/log" "$h/services/standby/log"', votes)
    found = await up(hosts)
    assert [one.code for one in found.findings] == ["SUP013"] and found.reach, found
    assert found.reach.second.startswith("https://") and found.reach.second.endswith(":8443/v1")
    (before,) = seen
    assert not any("sparkwright-standby" in change for change in before), before
    assert any("unit sparkwright-standby-_standby.service" in one.changes for one in hosts[1].commands)
    (head,), (standby,) = map(roles_of, hosts)
    assert (head.node, standby.node) == ("spark-1", "spark-2") and head.voters == standby.voters == ("spark-2",)
    assert [node.ssh for node in head.cluster.nodes] == ["local", "spark-2"]
    assert [node.ssh for node in standby.cluster.nodes] == ["spark-1", "local"]
    assert not head.programs and [one.name for one in standby.programs] == ["caddy", "door"]
    assert all(mode == 0o600 for path, mode in hosts[1].modes.items() if "_standby" in path)


async def test_a_standby_that_does_not_answer_leaves_the_head_as_it_is() -> None:
    """Guards an `up` next to a node that is off: it serves, says so, and no role is begun on the head."""
    hosts = ready_nodes()
    hosts[1].on("@@ python", Unreachable("spark-2", "spark-2: no route to host", ""))
    found = await up(hosts)
    (finding,) = found.findings
    assert (finding.code, finding.subject) == ("SUP012", "spark-2") and "no route" in finding.evidence
    assert found.node == "spark-1" and found.reach and not found.reach.second
    assert not roles_of(hosts[0])


async def test_a_head_without_votes_starts_no_standby() -> None:
    """Guards a head that the other nodes do not reach: a standby would take over at once."""
    hosts = ready_nodes()
    hosts[0].on('tail -n 3 "$h/log" "$h/services/standby/log"', Completed(1, "no votes"))
    found = await up(hosts)
    assert [one.code for one in found.findings] == ["SUP012"] and "no votes" in found.findings[0].evidence
    assert not roles_of(hosts[1])
    assert any("disarm _standby" in one.changes for one in hosts[0].commands), "it serves on as before"


async def test_without_a_standby_the_role_is_taken_away() -> None:
    """Guards an owner who takes the line out of the cluster file: the standby goes first."""
    hosts = ready_nodes()
    hosts[0].on('f="$1/door/second"', "role\n")
    found = await up(hosts, standby="")
    assert not found.findings
    assert all(any("disarm _standby" in one.changes for one in host.commands) for host in hosts)
