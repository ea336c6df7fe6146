"""The console's switch on two fake nodes: what serves at the end, whatever fails meanwhile."""

import asyncio
import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from sparkwright.app.serve.switch import switch_to_resting
from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import NotReady, Unreachable
from sparkwright.domain.live import Ask, DeploymentState, Desired, Live, Request, RequestAnswer
from unit.app.scene import ClusterScene, recipe
from unit.app.test_status import running


@dataclass
class SwitchHead:
    """Supervisors of `twin`, which serves, and of `other`, which rests. asked: what each was asked for, in order.

    becomes: what a restart makes of `other`.
    """

    scene: ClusterScene
    becomes: DeploymentState = DeploymentState.READY
    asked: list[tuple[str, Request]] = field(default_factory=list)
    phases: dict[str, DeploymentState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.phases = {"twin": DeploymentState.READY, "other": DeploymentState.HALTED}
        head = self.scene.nodes[0]
        head.default = Completed(0, "")
        head.on("python3 -I -", lambda command: json.dumps([self.row("twin"), self.row("other")]))
        head.on("deployments/$2/desired.json", self.desired)
        head.on(lambda command: '"ask"' in (command.stdin or b"").decode(), self.take)

    def row(self, name: str) -> dict[str, Any]:
        given = tuple(RequestAnswer(request.nonce) for asked, request in self.asked if asked == name)
        last = given[-1].request if given else ""
        live = Live(1000.0, name, self.phases[name], 990.0, "its reason", answers=given, request=last)
        told = {"deployment": name, "running": True, "by": "", "unit": "", "endpoint": "", "now": 1000.0}
        return told | {"live": json.loads(to_json(live))}

    def desired(self, command: Command) -> str:
        return to_json(Desired(command.argv[5], self.scene.services.cluster, recipe()))

    def take(self, command: Command) -> str:
        request, name = from_json(Request, command.stdin or b""), command.argv[5]
        self.asked.append((name, request))
        after = {
            Ask.REPLACE: DeploymentState.STARTING,
            Ask.RESTART: self.becomes,
            Ask.HALT: DeploymentState.HALTED,
            Ask.RETURN: DeploymentState.READY,
        }
        self.phases[name] = after[request.ask]
        return ""

    @property
    def story(self) -> list[tuple[str, Ask]]:
        return [(name, request.ask) for name, request in self.asked]


async def switched(head: SwitchHead) -> None:
    services = head.scene.services
    await switch_to_resting(services, replace(services, nonce="fedcba9876543210"), "twin", "other")


async def test_what_served_rests_and_can_come_back() -> None:
    """The old supervisor waits until the new one serves, and knows its name: it can end the switch itself."""
    head = SwitchHead(running())
    await switched(head)
    assert head.story == [("twin", Ask.REPLACE), ("other", Ask.RESTART), ("twin", Ask.HALT)]
    assert head.asked[0][1].successor == "other"
    assert [what for _, what in head.scene.did("stop", "remove")] == ["stop 0", "stop 1"]
    assert not any(node.holder for node in head.scene.nodes)


async def test_what_does_not_serve_is_taken_back() -> None:
    """It is stopped first, and the error says what serves."""
    head = SwitchHead(running(), DeploymentState.FAILED)
    with pytest.raises(NotReady) as caught:
        await switched(head)
    assert head.story == [
        ("twin", Ask.REPLACE),
        ("other", Ask.RESTART),
        ("other", Ask.HALT),
        ("twin", Ask.RETURN),
    ]
    assert "rolled back: twin serves again" in caught.value.message


async def test_an_error_of_our_own_is_taken_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards a deployment that stays stopped after a bug."""
    head = SwitchHead(running())

    async def broken(*_: Any) -> float:
        raise RuntimeError("a bug")

    monkeypatch.setattr("sparkwright.app.serve.switch.restart", broken)
    with pytest.raises(RuntimeError):
        await switched(head)
    assert head.story[-1] == ("twin", Ask.RETURN) and head.phases["twin"] is DeploymentState.READY


async def test_a_console_that_ends_leaves_the_rest_to_the_supervisor() -> None:
    """Nothing is halted half-way: the request stays, is renewed no more, and names the successor."""
    head = SwitchHead(running(), DeploymentState.LOADING)
    task = asyncio.ensure_future(switched(head))
    while ("other", Ask.RESTART) not in head.story:
        assert not task.done(), task
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert head.story == [("twin", Ask.REPLACE), ("other", Ask.RESTART)]


async def test_nothing_is_stopped_while_a_node_cannot_be_asked() -> None:
    """A switch acts like every command that takes away a serving deployment."""
    head = SwitchHead(running())
    head.scene.nodes[1].on("", Unreachable("spark-2", "no route to host"))
    with pytest.raises(Unreachable):
        await switched(head)
    assert head.story == []
