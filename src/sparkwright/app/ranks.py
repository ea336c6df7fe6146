"""Ranks on their nodes, for either runtime: start, follow, stop, remove."""

import json
import re
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from secrets import token_hex

from sparkwright.app.services import Services, by_node, finish_all, together
from sparkwright.domain.command import TIMED_OUT, Command
from sparkwright.domain.errors import CommandFailed, NodeError, Unreachable
from sparkwright.domain.facts import KeeperStatus, RankStatus, Unknown
from sparkwright.domain.plan import Plan, RankSpec
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.facts import keepers as asking
from sparkwright.facts.ranks import ranks_fact
from sparkwright.ports import Host
from sparkwright.remote import docker, process
from sparkwright.remote.leftovers import remove_leftovers

# What a follow command prints behind its mark: status, exit code, out of memory, when it ended and when that was asked.
_LEFT = re.compile(r"(?:removed|used|left) \d{1,15} /dev/shm/[A-Za-z0-9._-]+")
_NUMBER = r"-?\d{1,12}(?:\.\d{1,12})?"
_END = re.compile(
    r"((?:created|removing|exited|dead|gone|restarted) (?:-?\d{1,10}|unknown) (?:true|false)) "
    rf"({_NUMBER}) ({_NUMBER})"
)


@dataclass(frozen=True, slots=True)
class Way:
    """The start options of a rank on its node. state: absolute there. image_id: run exactly this image, whatever its
    name there. memlock: True if the daemon can lift that limit."""

    state: str
    image_id: str = ""
    memlock: bool = True


@dataclass(frozen=True, slots=True)
class RankListing:
    """Our ranks as the nodes report them, and why some nodes could not be asked, or their containers not be seen."""

    ranks: tuple[RankStatus, ...]
    lost: dict[str, NodeError]
    blind: dict[str, str] = field(default_factory=dict)

    def of(self, deployment: str) -> tuple[RankStatus, ...]:
        return tuple(r for r in self.ranks if r.deployment == deployment)


async def listing(services: Services, nodes: Sequence[str]) -> RankListing:
    """Our ranks on these nodes, in one round trip a node. Raises nothing for a node that cannot be asked."""
    found = await listed(services, nodes)
    for node, why in found.blind.items():
        services.notice(f"{node}: {why}", warning=True)
    return found


async def listed(services: Services, nodes: Sequence[str]) -> RankListing:
    async def one(name: str) -> tuple[RankStatus, ...] | Unknown | NodeError:
        try:
            return await services.read(name, ranks_fact(services.cluster.node(name)))
        except NodeError as error:
            return error

    told = await by_node(nodes, one)
    ranks = tuple(rank for found in told.values() if isinstance(found, tuple) for rank in found)
    lost = {name: found for name, found in told.items() if isinstance(found, NodeError)}
    return RankListing(ranks, lost, {name: found.why for name, found in told.items() if isinstance(found, Unknown)})


async def all_ranks(services: Services, nodes: Sequence[str]) -> tuple[RankStatus, ...]:
    """All ranks on the nodes, like `listing`, but raises Unreachable if a node could not be asked."""
    return reached(await listing(services, nodes)).ranks


def reached(found: RankListing) -> RankListing:
    for error in found.lost.values():
        raise error
    return found


async def require_nodes(services: Services, deployment: str, nodes: Sequence[str]) -> None:
    """Raise Unreachable if a node of a deployment that serves cannot be asked: nothing of it is stopped then."""
    found = await listed(services, nodes)
    for node, error in found.lost.items():
        said = error.message.removeprefix(f"{node}: ")
        raise Unreachable(node, f"{said}; {deployment} serves and was left as it is", error.hint)
    for node, why in found.blind.items():
        said = f"its ranks cannot be listed: {why}; {deployment} serves and was left as it is"
        raise Unreachable(node, said, f"`sparkwright check` on {node}")


def handle(services: Services, deployment: str, spec: RankSpec) -> str:
    """The container's name, or the folder of the processes."""
    if spec.runtime is Runtime.DOCKER:
        return docker.container_name(deployment, spec.rank)
    return process.rank_dir(services.state_on(spec.node), deployment, spec.rank)


@dataclass(frozen=True, slots=True)
class End:
    """The end of a rank, as its node shows it: `exited 137 false`, the last for the out-of-memory killer of its
    container; `restarted unknown false` if Docker has started the container again since.

    ago: seconds before that was asked.
    """

    how: str
    ago: float


async def keepers_on(services: Services, nodes: Sequence[str]) -> tuple[KeeperStatus, ...]:
    """All of ours on the nodes. Raises Unreachable."""

    async def one(node: str) -> tuple[KeeperStatus, ...]:
        return asking.parse(await services.run(node, asking.command(services.state_on(node))), node)

    return tuple(found for told in await together(map(one, nodes)) for found in told)


async def follow(host: Host, runtime: str, handle: str, tail: int = 0) -> AsyncIterator[str | End]:
    """Lines of a rank's log (the last `tail`, 0: all) as they come, and at last how it ended.

    A log holds text of clients. The end is what the follow command prints last, behind a word made for this call.
    """
    mark, held = f"\x1eexit {token_hex(8)} ", ""
    command = (docker.follow if runtime == Runtime.DOCKER else process.follow)(handle, tail, mark.split()[1])
    async with aclosing(host.stream(command)) as lines:  # type: ignore[type-var]
        async for line in lines:
            if held:
                yield held
            held = line if mark in line else ""
            if not held:
                yield line
    rest, _, said = held.partition(mark)
    if rest:
        yield rest
    if told := _END.fullmatch(said):
        yield End(told[1], max(float(told[3]) - float(told[2]), 0.0))


async def runs(services: Services, deployment: str, rank: int, node: str) -> bool:
    """True if the node lists the rank as running; False if the node cannot be asked."""
    ranks = (await listed(services, [node])).of(deployment)
    return any(one.rank == rank and one.running for one in ranks)


async def start(services: Services, plan: Plan, spec: RankSpec, way: Way) -> None:
    """Raises CommandFailed with what the node printed."""
    where, host = process.rank_dir(way.state, plan.deployment, spec.rank), services.hosts[spec.node]
    if spec.secrets or spec.files:
        done = await host.run(process.make_folder(where))
        if not done.ok:
            what = f"rank {spec.rank} could not be started: {_last(done.stderr)}"
            raise CommandFailed(spec.node, what, "free the disk")
    secrets, files = f"{where}/secrets.env" if spec.secrets else "", process.files_dir(where)
    if secrets:
        lines = (f"{name}={shlex.quote(value.reveal())}\n" for name, value in spec.secrets.items())
        await host.put("".join(lines).encode(), secrets, 0o600)
    for file in spec.files:
        # A container may run as another user than ours: only files with a secret are closed to it
        text = file.secret.reveal() if file.secret else file.text
        await host.put(text.encode(), f"{files}/{file.name}", 0o600 if file.secret else 0o644)
    if spec.runtime is Runtime.DOCKER:
        # Docker would make a missing folder root's, and the engine could not write its caches there.
        await host.run(docker.make_folders(spec))
        name, exact = docker.container_name(plan.deployment, spec.rank), replace(spec, image=way.image_id or spec.image)
        done = await host.run(docker.run(exact, name, secrets, way.memlock, files))
    else:
        if spec.mounts:
            await host.run(docker.make_folders(spec))
        done = await host.run(process.start(spec, where, json.dumps(dict(spec.labels))))
    if not done.ok:
        said = f"(exit {done.exit_code}): {_last(done.stderr or done.stdout)}"
        hint = f"`sparkwright check` on {spec.node}; nothing of this start was left running"
        raise CommandFailed(spec.node, f"rank {spec.rank} could not be started {said}", hint)


async def stop_all(services: Services, ranks: Sequence[RankStatus], grace: float, remove: bool) -> None:
    """Stops ranks on all nodes side by side; `remove` also takes away containers and folders.

    Raises CommandFailed or Unreachable, once all others have been stopped.
    """
    from sparkwright.engines.catalog import leavings  # `status` needs no engine's file

    handles: dict[tuple[str, str], list[str]] = {}
    leave: dict[tuple[str, str], str] = {}
    for rank in ranks:
        handles.setdefault((rank.node, rank.runtime), []).append(rank.handle)
        if pattern := leavings(rank.engine):
            leave[rank.node, rank.runtime] = pattern

    async def one(node: str, runtime: str) -> None:
        of = docker if runtime == Runtime.DOCKER else process
        if pattern := leave.get((node, runtime)):
            await stopped(node, of.stop(handles[node, runtime], int(grace)))
            await _tidy(services, node, remove_leftovers(pattern, runtime, handles[node, runtime]))
        if remove or not pattern:
            await stopped(node, (of.remove if remove else of.stop)(handles[node, runtime], int(grace)))

    async def stopped(node: str, command: Command) -> None:
        done = await services.run(node, command)
        if done.exit_code == TIMED_OUT:
            what = f"stopping ranks took longer than {command.timeout:.0f} s"
            raise CommandFailed(node, what, "`status` shows what still runs; the same command continues")
        if not done.ok:
            raise CommandFailed(node, f"still there after SIGKILL: {_last(done.stdout + done.stderr)}", "see `status`")

    await finish_all(one(node, runtime) for node, runtime in handles)


async def _tidy(services: Services, node: str, command: Command) -> None:
    """Tells what was found. Nothing waits for it: the next start only has less memory."""
    try:
        told = (await services.run(node, command)).stdout
    except NodeError as error:
        told = ""
        services.notice(f"shared memory of ended ranks was not looked at: {error.message}", warning=True)
    for how, size, path in (line.split(" ", 2) for line in told.splitlines() if _LEFT.fullmatch(line)):
        what = f"{node}: {gib(int(size))} of shared memory that a dead rank had left"
        if how == "removed":
            services.notice(f"{what} was removed ({path})")
        elif how == "left":
            services.notice(f"{what} takes memory from the next start: `sudo rm {path}` there", warning=True)


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:])[:600]
