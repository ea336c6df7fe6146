"""Common questions of checks to a context, and the combinators. A context may lack anything."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from sparkwright.domain.check import Context, Found
from sparkwright.domain.cluster import Node
from sparkwright.domain.facts import Docker, NodeFacts, RankStatus
from sparkwright.domain.finding import Severity
from sparkwright.domain.host_facts import KernelNote, Package
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.unknown import known_or_none
from sparkwright.engines.catalog import simulator, traits

GB10_PCI = "10de:2e12"
DASHBOARD = "the DGX Dashboard (http://localhost:11000)"
NEW_IDENTITY = (
    "sudo rm /etc/machine-id /var/lib/dbus/machine-id; sudo systemd-machine-id-setup; "
    "sudo rm /etc/ssh/ssh_host_*; sudo ssh-keygen -A; sudo reboot"
)
_SHOWN = 160
_PACKAGE = re.compile(r"nvidia-driver-[0-9]{3}(-open|-server|-server-open)?", re.ASCII)
_VERSION = re.compile(r"([0-9]{2,4})(\.[0-9]+)+", re.ASCII)


def node_of(context: Context, name: str) -> Node | None:
    return next((node for node in context.cluster.nodes if node.name == name), None)


def simulated(context: Context) -> bool:
    """True if nothing real is served: the simulator as engine, a simulated model, or the embedded cluster."""
    return context.cluster.simulated or (context.recipe is not None and played(context.recipe))


def played(recipe: Recipe) -> bool:
    """True if the recipe needs no weights. A real engine on the embedded cluster still reads real files."""
    return recipe.model.simulated or simulator(recipe)


def specs_on(context: Context, node: str) -> tuple[RankSpec, ...]:
    return tuple(spec for spec in context.specs if spec.node == node)


def running(facts: NodeFacts) -> tuple[RankStatus, ...] | None:
    """Our ranks that run on the node; None when that is not known."""
    ranks = known_or_none(facts.ranks)
    return None if ranks is None else tuple(rank for rank in ranks if rank.running)


def is_idle(facts: NodeFacts) -> bool:
    """No rank of ours is known to run a real engine there; not known counts as busy."""
    ours = running(facts)
    return ours is not None and all(rank.simulated for rank in ours)


def offset(facts: NodeFacts) -> tuple[float, float] | None:
    """The range of seconds that the node's clock is ahead: it was read at some time between request and answer."""
    times = known_or_none(facts.times)
    now = known_or_none(times.now) if times else None
    return (now - facts.at, now - facts.asked) if now is not None and facts.asked else None


def gpu_may_be_used(context: Context, node: str) -> bool:
    """False for simulated runs, and when the plan is made and no rank on the node takes the GPU."""
    planned = bool(context.specs)
    return not simulated(context) and (not planned or any(spec.gpu for spec in specs_on(context, node)))


def other_gpu(facts: NodeFacts) -> bool:
    """The node shows a GPU and it is another one than a GB10."""
    return any("GB10" not in gpu.name for gpu in known_or_none(facts.gpus) or ())


def not_gb10(facts: NodeFacts) -> bool:
    """True if the node shows another GPU, or none and the processor is none of Arm's: what is known of GB10 drivers
    does not hold there."""
    identity = known_or_none(facts.identity)
    foreign = identity is not None and identity.arch not in ("", "aarch64")
    return other_gpu(facts) or (foreign and not is_gb10(facts))


def machine_nodes(context: Context) -> Iterator[NodeFacts]:
    """Nodes that are machines of their own: a simulated cluster shows the settings of the machine that plays it."""
    yield from () if context.cluster.simulated else context.facts.values()


def gpu_nodes(context: Context) -> Iterator[NodeFacts]:
    """Nodes whose GPU may be used: what is wrong with a GPU stops no rank that does without."""
    yield from (facts for facts in machine_nodes(context) if gpu_may_be_used(context, facts.node))


def gb10_nodes(context: Context) -> Iterator[NodeFacts]:
    """The nodes with a GPU that is a GB10 or is not known."""
    yield from (facts for facts in gpu_nodes(context) if not not_gb10(facts))


def is_gb10(facts: NodeFacts) -> bool:
    """nvidia-smi shows a GB10, or where it does not answer the PCI bus has one."""
    board = known_or_none(facts.board)
    functions = (known_or_none(board.nvidia) or {}) if board else {}
    return GB10_PCI in functions.values() or any("GB10" in gpu.name for gpu in known_or_none(facts.gpus) or ())


def sparks(context: Context) -> Iterator[NodeFacts]:
    """Nodes that are known to be GB10 machines. What others run and how they are set up is their owners' affair."""
    yield from (facts for facts in machine_nodes(context) if is_gb10(facts))


def differing(context: Context, read: Callable[[NodeFacts], str | None]) -> str:
    """`spark-1 6.17, spark-2 6.14` where real nodes have not all the same; '' where they do. None: not known."""
    rows = [(facts.node, value) for facts in machine_nodes(context) if (value := read(facts))]
    return ", ".join(f"{node} {value}" for node, value in rows) if len({value for _, value in rows}) > 1 else ""


def real_nodes(context: Context) -> Iterator[NodeFacts]:
    """All nodes of a real deployment or cluster."""
    yield from () if simulated(context) else context.facts.values()


def unplanned(context: Context) -> Iterator[NodeFacts]:
    """The nodes of a `check` without a recipe: what is merely worth knowing does not belong into a start."""
    yield from () if context.recipe else real_nodes(context)


def everywhere(context: Context) -> str:
    """The subject of a finding about several nodes."""
    return ", ".join(facts.node for facts in machine_nodes(context))


def dockers(context: Context) -> Iterator[tuple[NodeFacts, Docker]]:
    """Nodes with what is known of their Docker, unless the recipe runs processes. Without a recipe all real nodes."""
    recipe = context.recipe
    wanted = recipe.engine.runtime is Runtime.DOCKER if recipe else not context.cluster.simulated
    for facts in context.facts.values() if wanted else ():
        docker = known_or_none(facts.docker)
        if docker is not None:
            yield facts, docker


def weigh_severity(context: Context, severity: Severity) -> Severity:
    """The severity for a recipe that needs it; without a recipe it is only worth knowing."""
    return severity if context.recipe else Severity.INFO


def environments(context: Context, name: str) -> Iterator[tuple[RankSpec, str]]:
    """The real ranks for which somebody gave the variable, the recipe or the node's entry, and its value there."""
    recipe = context.recipe
    if simulated(context):
        return
    by_recipe = recipe is not None and name in recipe.env
    for spec in context.specs:
        entry = next((dict(node.env) for node in context.cluster.nodes if node.name == spec.node), {})
        if name in spec.env and (by_recipe or name in entry):
            yield spec, spec.env[name]


def interface_names(value: str) -> Sequence[str]:
    """`=eth0,eth1:1` -> eth0, eth1; none of a list of what to leave out (`^docker0`)."""
    return () if value.startswith("^") else [part.strip().lstrip("=").partition(":")[0] for part in value.split(",")]


def served_on_gb10(context: Context, code: str = "") -> Recipe | None:
    """The recipe, where it serves a real model on GB10 nodes, with an engine that the check `code` is about."""
    recipe = context.recipe
    if recipe is None or recipe.model.simulated or simulator(recipe):
        return None
    if (code and code not in traits(recipe).faults) or any(other_gpu(facts) for facts in context.facts.values()):
        return None
    return recipe


def kernel_notes(context: Context, pattern: re.Pattern[str]) -> Iterator[tuple[NodeFacts, tuple[KernelNote, ...]]]:
    """GB10 nodes whose log of this boot has such lines, with them."""
    for facts in sparks(context):
        log = known_or_none(facts.kernel_log)
        found = log.matching(pattern) if log else ()
        if found:
            yield facts, found


def _times(found: tuple[KernelNote, ...]) -> int:
    return sum(note.count for note in found)


def quoted(found: tuple[KernelNote, ...]) -> str:
    """The first line, when it came, and how many there are: `kernel log, 41 s after boot: ... (163 such lines)`."""
    first = found[0]
    when = "" if first.first is None else f", {first.first:.0f} s after boot"
    more = f" ({_times(found)} such lines)" if _times(found) > 1 else ""
    return f"kernel log{when}: {first.text[:_SHOWN]}{more}"


def driver_versions(context: Context) -> Iterator[tuple[str, str, int]]:
    """(node, `580.142`, 580) of GB10 nodes whose GPU may be used and whose loaded module is known."""
    for facts in context.facts.values():
        driver = known_or_none(facts.driver)
        match = _VERSION.fullmatch(driver.version) if driver and isinstance(driver.version, str) else None
        if match and gpu_may_be_used(context, facts.node) and not not_gb10(facts):
            yield facts.node, match[0], int(match[1])


def driver_package(facts: NodeFacts) -> Package | None:
    """The package that represents the driver as a whole: `nvidia-driver-580-open`."""
    return next((p for p in known_or_none(facts.packages) or () if _PACKAGE.fullmatch(p.name)), None)


def upstream(version: str) -> str:
    """`580.142` of `580.142-0ubuntu0.24.04.1`, without an epoch."""
    return version.rpartition(":")[2].partition("-")[0]


def library_differs(facts: NodeFacts) -> tuple[str, str] | None:
    """(loaded module, libcuda) when both are known and are not of one version: CUDA refuses such a pair."""
    driver, board = known_or_none(facts.driver), known_or_none(facts.board)
    library = known_or_none(board.libcuda) if board else None
    loaded = known_or_none(driver.version) if driver else None
    if not loaded or not library or not library.version or library.version == loaded:
        return None
    return loaded, library.version


def per_node(
    source: Callable[[Context], Iterable[Any]], find: Callable[..., Iterable[Found]]
) -> Callable[[Context], Iterator[Found]]:
    """`find` for each row of `source` (facts of a node, or a tuple that begins with them); the node is the subject."""

    def found(context: Context) -> Iterator[Found]:
        for row in source(context):
            args = row if isinstance(row, tuple) else (row,)
            subject = args[0].node if isinstance(args[0], NodeFacts) else args[0]
            yield from (replace(one, subject=subject) for one in find(*args))

    return found


def differs(read: Callable[[NodeFacts], str | None], label: str = "") -> Callable[[Context], Iterator[Found]]:
    """One finding about all real nodes where `read` is not the same on those of which it is known."""

    def found(context: Context) -> Iterator[Found]:
        if shown := differing(context, read):
            yield Found(label + shown, subject=everywhere(context))

    return found


def in_kernel_log(pattern: re.Pattern[str]) -> Callable[[Context], Iterator[Found]]:
    """A GB10 node whose kernel log of this boot has such lines."""
    return per_node(lambda context: kernel_notes(context, pattern), lambda facts, notes: (Found(quoted(notes)),))
