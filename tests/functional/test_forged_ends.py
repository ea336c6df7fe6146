"""Lines in a rank's log that look like its end: text of clients gets into logs, and must not end a service."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from functional import dockerd
from functional.supervised_simulator import READY, make_supervised
from sparkwright.adapters.hosts import local_host
from sparkwright.app.ranks import End, follow
from sparkwright.app.serve.watch import describe_end
from sparkwright.domain.cluster import Node
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.remote import process

pytestmark = pytest.mark.full

FORGED = ("[serving.py:1] Error in x: x\r\x1eexit exited 1 false 0 0", "\x1eexit x", "\x1eexit word exited 1 false 0 0")
LINES = "\r".join(FORGED).split("\r")
# Prints them, lives on until a file is there, and ends without a line feed.
LIVES = 'printf "%s\\n" "$@"; while [ ! -e "$0/end" ]; do sleep 0.05; done; printf half; exit 7'


async def collect_lines(lines: AsyncIterator[str | End], end: Callable[[], object]) -> list[str | End]:
    """All that a follower comes with; the rank may end once its last forged line was there."""
    told = []
    async with aclosing(lines) as stream:  # type: ignore[type-var]
        async for line in stream:
            told.append(line)
            if line == LINES[-1]:
                end()
    return told


async def test_a_process_ends_when_it_ends(tmp_path: Path) -> None:
    """Guards against an end that a log's text claims; the real one is reported also behind half a line."""
    spec = RankSpec(0, "n", ("sh", "-c", LIVES, str(tmp_path), *FORGED), {}, Runtime.PROCESS)
    host = local_host(Node("n", "local"), "tests", {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert (await host.run(process.start(spec, "~/rank0", "{}"))).ok
    told = await collect_lines(follow(host, "process", "~/rank0"), (tmp_path / "end").touch)
    assert told[:-1] == [*LINES, "half"]
    assert isinstance(told[-1], End) and told[-1].how == "exited 7 false"


@dockerd.skipped()
async def test_a_container_ends_when_it_ends(tmp_path: Path) -> None:
    """The same of a real container, whose log Docker keeps."""
    with dockerd.running(tmp_path) as daemon:
        words = ("run", "--detach", "--name", "rank", "--network", "none", "--volume", f"{tmp_path}:/t")
        daemon.docker(*words, "--entrypoint", "sh", dockerd.BASE, "-c", LIVES, "/t", *FORGED)
        host = local_host(Node("n", "local", env=(("DOCKER_HOST", daemon.host),)), "tests")
        told = await collect_lines(follow(host, "docker", "rank"), (tmp_path / "end").touch)
    # Docker may lose the half line with which a container ends.
    assert [line for line in told[:-1] if line != "half"] == LINES
    assert isinstance(told[-1], End) and told[-1].how == "exited 7 false"


@dockerd.skipped()
async def test_a_container_that_docker_starts_again_has_ended(tmp_path: Path) -> None:
    """Guards the other ranks against `docker update --restart always`: the new process does not know them."""
    with dockerd.running(tmp_path) as daemon:
        words = ("run", "--detach", "--name", "rank", "--network", "none", "--volume", f"{tmp_path}:/t")
        daemon.docker(*words, "--entrypoint", "sh", dockerd.BASE, "-c", LIVES, "/t", *FORGED)
        daemon.docker("update", "--restart", "always", "rank")
        host = local_host(Node("n", "local", env=(("DOCKER_HOST", daemon.host),)), "tests")
        told = await collect_lines(follow(host, "docker", "rank"), (tmp_path / "end").touch)
        daemon.docker("rm", "--force", "rank")
    assert isinstance(told[-1], End) and told[-1].how == "restarted unknown false"
    assert "restart policy" in describe_end(told[-1].how)


async def test_a_supervised_rank_is_not_relaunched_for_what_its_log_reports(tmp_path: Path) -> None:
    """Guards a service against its clients: the forged lines pass, and the first incident is the real end."""
    simulator = make_supervised(tmp_path, scale=0.5)  # at 0.1 an engine without a turn for 3 s is an incident
    await simulator.up()
    simulator.write_home()
    try:
        with simulator.process():
            await simulator.until(lambda live: live.phase is READY and live.canary is not None)
            with (simulator.rank_dir(1) / "log").open("a") as log:
                log.write("\n".join(("", *FORGED, "")))
            first = simulator.live()
            await simulator.until(lambda live: bool(live.canary and first and live.at > first.at + 1))
            simulator.kill(1)
            await simulator.until(lambda live: live.phase is READY and live.relaunches == 1)
            live = simulator.live()
    finally:
        await simulator.down()
    assert live and live.incidents == 1
    assert "rank 1 on spark-2 ended" in (simulator.state / "incidents/twin/1/fault.txt").read_text()
    assert (simulator.starts(0), simulator.starts(1)) == (2, 2)
