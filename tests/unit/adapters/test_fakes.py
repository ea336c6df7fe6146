"""The fakes keep the ports' promises, too."""

import asyncio
from contextlib import aclosing

import pytest

from fakes.clock import FakeClock
from fakes.endpoint import ANSWER, FakeEndpoint
from fakes.host import FakeHost
from fakes.hosts import FakeHosts
from fakes.sink import FakeSink
from sparkwright import ports
from sparkwright.adapters.hosts import ClusterHosts
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.node_host import NodeHost
from sparkwright.adapters.openai_http import OpenAiEndpoint
from sparkwright.domain.command import Command, Completed, shell_command
from sparkwright.domain.errors import NotReady, Unreachable
from unit.for_each import for_each

PAIRS = [
    (ports.Hosts, FakeHosts, ClusterHosts),
    (ports.Host, FakeHost, NodeHost),
    (ports.Endpoint, FakeEndpoint, OpenAiEndpoint),
    (ports.Clock, FakeClock, SystemClock),
    (ports.Sink, FakeSink, FakeSink),
]


@for_each("port, fake, real", PAIRS, ids=lambda kind: kind.__name__)
def test_every_port_has_a_fake_and_an_adapter(port: type, fake: type, real: type) -> None:
    """The fake and the adapter both have the port's promises, so that a test with the fake means something."""
    wanted = {name for name in vars(port) if name == "__getitem__" or not name.startswith("_")}
    fields = set(getattr(fake, "__dataclass_fields__", ()))
    assert wanted - set(dir(fake)) - fields == set() and wanted - set(dir(real)) == set()


async def test_fake_host_answers_by_rule() -> None:
    """The last rule that fits wins; its answers come in turn and the last one stays."""
    host = FakeHost().on("docker", Completed(1, "", "no")).on(("docker", "ps"), "a\n", "b\n")
    host.on(lambda command: bool(command.changes), Unreachable("spark-1", "gone"))
    ps, rm = Command(("docker", "ps", "-q")), Command(("docker", "rm"))
    assert [(await host.run(ps)).stdout for _ in range(3)] == ["a\n", "b\n", "b\n"]
    assert [done.exit_code for done in await host.run_all([rm, ps])] == [1, 0]
    with pytest.raises(Unreachable):
        await host.run(Command(("docker", "ps"), changes="all"))
    assert len(host.ran(("docker", "ps"))) == 5 and host.round_trips == 5 and host.changes == ["all"]


async def test_fake_host_refuses_surprises() -> None:
    """A command that the test did not expect fails the test, by name."""
    with pytest.raises(AssertionError, match="no answer for: reboot now"):
        await FakeHost().run(Command(("reboot", "now")))


async def test_fake_host_streams_and_closes() -> None:
    """A stream's lines come one by one, and a closed stream is closed."""
    host = FakeHost().on("logs", ["one", "two"])
    async with aclosing(host.stream(shell_command("logs"))) as lines:
        assert await anext(lines) == "one" and host.open_streams == 1
    assert host.open_streams == 0


async def test_fake_host_can_wait() -> None:
    """An answer may be a coroutine, so that a test can cancel in the middle."""

    async def never(_: Command) -> str:
        await asyncio.Event().wait()
        return ""

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await FakeHost().on("sleep", never).run(Command(("sleep", "9")))


async def test_fake_clock_jumps_in_order() -> None:
    """Sleepers wake by their times and not by who began first, without any waiting."""
    clock, woke = FakeClock(), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woke.append((seconds, clock.monotonic()))

    await asyncio.gather(*(sleeper(seconds) for seconds in (3600.0, 1.0, 60.0)))
    assert woke == [(1.0, 1.0), (60.0, 60.0), (3600.0, 3600.0)]
    assert clock.now() - FakeClock().now() == 3600


async def test_fake_endpoint_in_turn() -> None:
    """Refusals first and then an answer, as a starting server gives them."""
    endpoint = FakeEndpoint(NotReady("not yet"), ANSWER)
    with pytest.raises(NotReady):
        await endpoint.ask("http://x", "m", "Hi", 5, None)
    assert await endpoint.ask("http://x", "m", "Hi", 5, None) is ANSWER and len(endpoint.asked) == 2
