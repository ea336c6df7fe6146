"""Checks of the nodes as machines: identity, kernel, release, firmware, clock."""

import re
from collections.abc import Iterator
from itertools import combinations, groupby

from sparkwright.checks.reading import NEW_IDENTITY, differs, machine_nodes, per_node, sparks, specs_on
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.unknown import known_or_none

_OEM_IDS = ("295f5139615f4bbaa29921a29574c7a3",)
_LEAKS_CMA = re.compile(r"7\.0\.0-1019-nvidia.*")


def machine_id_shared(context: Context) -> Iterator[Found]:
    rows = [(node, identity) for node, facts in context.facts.items() if (identity := known_or_none(facts.identity))]
    rows = sorted((row for row in rows if row[1].machine_id), key=lambda row: row[1].machine_id)
    for machine_id, group in groupby(rows, key=lambda row: row[1].machine_id):
        same = list(group)
        if not context.cluster.simulated and len({(identity.boot_id, identity.hostname) for _, identity in same}) > 1:
            nodes = [node for node, _ in same]
            yield Found(
                f"machine-id {machine_id} on {' and '.join(nodes)}",
                fix=f"on {nodes[-1]}: {NEW_IDENTITY}",
                subject=", ".join(nodes),
            )


def same_machine(context: Context) -> Iterator[Found]:
    remote = () if context.cluster.simulated else [node.name for node in context.cluster.nodes if not node.is_local]
    for one, other in combinations([facts for facts in context.facts.values() if facts.node in remote], 2):
        first, second = known_or_none(one.identity), known_or_none(other.identity)
        same = first and second and (first.boot_id, first.hostname) == (second.boot_id, second.hostname)
        if same and first and first.boot_id:
            yield Found(
                f"hostname {first.hostname} and boot id {first.boot_id} on both",
                fix=f"correct the ssh address of {one.node} or {other.node} in the cluster file",
                subject=f"{one.node}, {other.node}",
            )


def machine_id_of_image(facts: NodeFacts) -> Iterator[Found]:
    identity = known_or_none(facts.identity)
    if identity and identity.machine_id in _OEM_IDS:
        yield Found(f"machine-id {identity.machine_id}")


def host_keys_shared(context: Context) -> Iterator[Found]:
    for one, other in combinations(machine_nodes(context), 2):
        shared = sorted(set(_keys(one)) & set(_keys(other)))
        if shared and not _one_machine(one, other):
            yield Found(
                f"{shared[0]} on {one.node} and {other.node}",
                fix=f"on {other.node}: sudo rm /etc/ssh/ssh_host_*; sudo ssh-keygen -A; sudo systemctl restart ssh"
                "   # then ssh-keygen -R its name wherever it was known",
                subject=f"{one.node}, {other.node}",
            )


def _keys(facts: NodeFacts) -> tuple[str, ...]:
    upkeep = known_or_none(facts.upkeep)
    return upkeep.host_keys if upkeep else ()


def _one_machine(one: NodeFacts, other: NodeFacts) -> bool:
    """Containers on one machine share its boot; two names for one machine are HOST002."""
    first, second = known_or_none(one.identity), known_or_none(other.identity)
    return first is None or second is None or first.boot_id == second.boot_id


def _arch(facts: NodeFacts) -> str | None:
    identity = known_or_none(facts.identity)
    return identity.arch if identity else None


def kernel_leaks_cma(context: Context) -> Iterator[Found]:
    for facts in machine_nodes(context):
        kernel = known_or_none(facts.kernel)
        if kernel and _LEAKS_CMA.fullmatch(kernel.release) and "kho=off" not in kernel.cmdline.split():
            yield Found(
                f"uname -r: {kernel.release}; /proc/cmdline has no kho=off",
                title=f"kernel {kernel.release} without kho=off",
                severity=OVERRIDE if any(spec.rdma for spec in specs_on(context, facts.node)) else WARN,
                subject=facts.node,
            )


def kernel_not_nvidia(facts: NodeFacts) -> Iterator[Found]:
    kernel = known_or_none(facts.kernel)
    if kernel and "-nvidia" not in kernel.release:
        yield Found(f"uname -r: {kernel.release}; DGX OS has 6.11-6.17 with -nvidia")


def _kernel(facts: NodeFacts) -> str | None:
    kernel = known_or_none(facts.kernel)
    return kernel.release if kernel else None


def _dgx_release(facts: NodeFacts) -> str | None:
    identity = known_or_none(facts.identity)
    return (known_or_none(identity.ota_version) or None) if identity else None


def firmware_differs(context: Context) -> Iterator[Found]:
    rows = sorted((product, firmware, node) for product, firmware, node in _rows(context))
    for product, group in groupby(rows, key=lambda row: row[0]):
        alike = list(group)
        if len({firmware for _, firmware, _ in alike}) > 1:
            yield Found(
                ", ".join(f"{node} {firmware}" for _, firmware, node in alike),
                title=f"different firmware on machines of one model ({product})",
                subject=", ".join(node for _, _, node in alike),
            )


def _rows(context: Context) -> Iterator[tuple[str, str, str]]:
    for facts in machine_nodes(context):
        identity, board = known_or_none(facts.identity), known_or_none(facts.board)
        product = known_or_none(identity.product) if identity else None
        if product and board and board.bios:
            yield product, f"BIOS {board.bios}" + (f", EC {board.ec}" if board.ec else ""), facts.node


CHECKS = explained(
    __file__,
    Check("HOST001", WARN, "duplicate machine-id on different machines", machine_id_shared),
    Check("HOST002", OVERRIDE, "two cluster entries are one machine", same_machine),
    Check("HOST003", WARN, "machine-id is the OEM image's", per_node(machine_nodes, machine_id_of_image)),
    Check("HOST004", WARN, "duplicate SSH host key", host_keys_shared),
    Check("HOST005", WARN, "nodes have different architectures", differs(_arch)),
    Check("HOST006", WARN, "kernel 7.0.0-1019 without kho=off", kernel_leaks_cma),
    Check("HOST007", INFO, "kernel is not NVIDIA's", per_node(sparks, kernel_not_nvidia)),
    Check("HOST008", WARN, "nodes run different kernels", differs(_kernel)),
    Check("HOST009", WARN, "nodes run different DGX OS releases", differs(_dgx_release, "DGX OS: ")),
    Check("HOST010", WARN, "machines of one model have different firmware", firmware_differs),
)
