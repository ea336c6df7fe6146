"""The program of the role on head and standby: what it writes for the gateway, by the answers of the nodes."""

from pathlib import Path

import pytest

from fakes.host import FakeHost
from fakes.hosts import FakeHosts
from sparkwright.adapters.machine import boot_id, seconds_since_boot
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import Unreachable
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.domain.standby import FOLDER, NEEDS_HEAD, RETURN_FILE, TERM_FILE, StandbyRole, Term
from sparkwright.domain.values import replace
from sparkwright.gateway.keys import ROUTE, RouteSetting
from sparkwright.supervisor.core.term import Vote
from sparkwright.supervisor.home import Log
from sparkwright.supervisor.standby import VoteKeeper, parse_vote
from unit.app.scene import make_scene

NODES = ("spark-1", "spark-2", "spark-3")


class KeeperScene:
    """One of the two nodes, and what each voter answers."""

    def __init__(self, folder: Path, node: str) -> None:
        self.home = folder / "supervision" / FOLDER
        self.home.mkdir(parents=True)
        self.tree = self.home / "state"
        cluster = Cluster("lab", tuple(Node(name, name) for name in NODES), "spark-1")
        self.role = StandbyRole(node, "spark-1", "spark-2", cluster, NODES, str(self.tree), url="https://spark-2/v1")
        self.hosts = [FakeHost(name, Completed(0, "held -\n")) for name in NODES]
        services = replace(make_scene().services, hosts=FakeHosts(*self.hosts), cluster=cluster)
        self.keeper = VoteKeeper(self.home, self.role, services, Log(self.home / "log", lambda: 0.0))
        inner = self.tree / "supervision" / FOLDER if node == "spark-2" else self.home
        self.path = inner / TERM_FILE

    def say(self, *answers: str | BaseException) -> None:
        for host, answer in zip(self.hosts, answers, strict=True):
            host.on(lambda _: True, answer)

    def term(self) -> Term:
        return from_json(Term, self.path.read_bytes())

    @property
    def serves(self) -> bool:
        return self.term().is_held(boot_id(), seconds_since_boot())


async def test_a_new_head_serves_as_before_until_it_has_votes_once(tmp_path: Path) -> None:
    """Guards an `up` that adds a standby to a head that serves: no term is written that would refuse clients."""
    it = KeeperScene(tmp_path, "spark-1")
    await it.keeper._ask()
    assert not it.path.exists()
    it.say("granted\n", Unreachable("spark-2", "no route", ""), "granted\n")
    await it.keeper._ask()
    assert it.serves and it.keeper.holds
    await it.keeper.aclose()


@pytest.mark.parametrize("before", [Term("an earlier boot", 1e9), Term("", 0.0)])
async def test_a_head_that_comes_back_stays_away(tmp_path: Path, before: Term) -> None:
    """Guards a head after its reboot: the standby has most votes, clients are told where to go, and it serves again
    once it has them, with an incident."""
    it = KeeperScene(tmp_path, "spark-1")
    it.path.write_text(to_json(replace(before, at=1.0)))
    (tmp_path / "supervision/chat/door").mkdir(parents=True)
    route = RouteSetting("chat-r1", "127.0.0.1:1", 1, replica_of="chat")
    (tmp_path / "supervision/chat/door" / ROUTE).write_text(to_json(route))
    it.keeper._term = it.term()
    it.say("granted\n", "held spark-2\n", "held spark-2\n")
    await it.keeper._ask()
    assert not it.serves and it.term().why == "spark-2 serves in its place"
    it.say(*["granted\n"] * 3)
    await it.keeper._ask()
    assert it.serves and not it.term().why
    await it.keeper.aclose()
    (incident,) = (tmp_path / "incidents/chat").rglob("incident.json")
    assert "spark-2 served in its place" in incident.read_text()


async def test_the_standby_takes_over_and_gives_back(tmp_path: Path) -> None:
    """Guards the way back: it stops to serve before its votes are free, each with the question that got it."""
    it = KeeperScene(tmp_path, "spark-2")
    lost = it.tree / "supervision/alone"
    lost.mkdir(parents=True)
    (lost / NEEDS_HEAD).touch()
    it.say(Unreachable("spark-1", "gone", ""), "granted\n", "granted\n")
    await it.keeper._ask()
    it.keeper._show_lost_once()
    shown = from_json(Live, (lost / "live.json").read_bytes())
    assert it.serves and (shown.phase, shown.refusing) == (DeploymentState.FAILED, True)
    assert shown.why == "it has a rank on spark-1, which is away"
    nonce = it.hosts[1].commands[-1].argv[-1]
    seen: list[bool] = []

    def released(_: object) -> Completed:
        seen.append(it.serves)
        return Completed(0, "")

    it.hosts[1].on(lambda command: command.argv[-1] == nonce, released)
    assert not await it.keeper._give_back()
    (it.home / RETURN_FILE).touch()
    assert await it.keeper._give_back()
    assert seen == [False] and not it.keeper.holds and not it.keeper._patience.is_over(seconds_since_boot() + 30)
    await it.keeper.aclose()


async def test_too_few_votes_are_no_term(tmp_path: Path) -> None:
    """Guards a standby that is the isolated one: its own vote alone lets it do nothing, and it rests."""
    it = KeeperScene(tmp_path, "spark-2")
    gone = [Unreachable(name, "no route", "") for name in ("spark-1", "spark-3")]
    it.say(gone[0], "free\n", gone[1])
    assert not await it.keeper._may_ask()
    it.say(gone[0], "granted\n", gone[1])
    await it.keeper._ask()
    assert not it.serves and "most of spark-1, spark-2, spark-3" in it.term().why
    await it.keeper.aclose()


@pytest.mark.parametrize(
    ("text", "code", "vote"),
    [
        ("granted\n", 0, Vote(True)),
        ("free\n", 0, Vote(False)),
        ("held spark-2\n", 0, Vote(False, "spark-2")),
        ("granted\n", 1, None),
        ("", 0, None),
        ("Welcome\ngranted\n", 0, Vote(True)),
        ("granted by nobody\n", 0, None),
    ],
)
def test_an_answer_that_is_none_is_no_vote(text: str, code: int, vote: Vote | None) -> None:
    assert parse_vote(Completed(code, text)) == vote
