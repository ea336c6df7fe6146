"""Checks of a recipe's communication between ranks."""

from collections.abc import Iterator

from sparkwright.checks.compat.combination import flag_text, shape_of, variables
from sparkwright.checks.reading import environments, interface_names, served_on_gb10
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import Interface
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import known_or_none
from sparkwright.engines.catalog import traits

_LOOPBACK = "lo"
_RDMA_OFF = {"NCCL_IB_DISABLE": "1", "NCCL_NET": "socket"}
_LEAST_TIMEOUT = 900
_LEAST_SHM = 32_000_000_000  # `32g` in either way of counting
_BALANCED = 0.9  # srt/model_executor: min over ranks < local * 0.9
_BALANCE_CHECK = "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK"
_UCX_WANTED = {"UCX_MEM_MMAP_HOOK_MODE": "none", "UCX_RCACHE_MAX_UNRELEASED": "1024"}
_DISPUTED = {
    "NCCL_CUMEM_ENABLE": (("1",), "most recipes for GB10 set 0; 1 is used after a fix of DMA-BUF, and on a ring"),
    "NCCL_IB_MERGE_NICS": (
        ("0", "1"),
        "1 doubled the bandwidth of a pair for one owner; 0 is what NVIDIA's ring and switches of four use",
    ),
}


def interface_variable(context: Context) -> Iterator[Found]:
    for variable in ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
        for spec, value in environments(context, variable) if len(context.specs) > 1 else ():
            facts = context.facts_of(spec)
            links = known_or_none(facts.interfaces) if facts else None
            wrong = _wrong(variable, value, links)
            if wrong:
                yield Found(
                    "interfaces: " + (", ".join(link.name for link in links) if links else "not known"),
                    title=f"{variable}={value}: {wrong}",
                    fix=f"leave {variable} out: it is filled in with each node's fabric interface",
                    subject=spec.node,
                )


def _wrong(variable: str, value: str, links: tuple[Interface, ...] | None) -> str:
    """The fault of the value; '' if there is none or it is unknown."""
    given = interface_names(value)
    if _LOOPBACK in given:
        return "that is loopback"
    begins = variable.startswith("NCCL") and not value.startswith("=")
    there = [link.name for link in links or ()]
    lost = [name for name in given if not any(link == name or (begins and link.startswith(name)) for link in there)]
    # NCCL takes what it finds of a list; Gloo needs each of its names.
    bad = len(lost) == len(given) if begins else bool(lost)
    return f"the node has no {', '.join(lost)}" if there and given and bad else ""


def hca_variable(context: Context) -> Iterator[Found]:
    for spec, value in environments(context, "NCCL_IB_HCA") if len(context.specs) > 1 else ():
        facts = context.facts_of(spec)
        ports = known_or_none(facts.rdma) if facts else None
        active = [port.device for port in ports or () if port.active]
        dead = [
            name
            for name in interface_names(value)
            if not any(
                device == name or (name and not value.startswith("=") and device.startswith(name)) for device in active
            )
        ]
        if ports and dead:
            yield Found(
                ", ".join(f"{port.device} {port.state}" for port in ports),
                title=f"NCCL_IB_HCA={value}: "
                + (f"no link on {', '.join(dead)}" if dead != [""] else "names no device"),
                subject=spec.node,
            )


def rdma_off(context: Context) -> Iterator[Found]:
    for variable, off in _RDMA_OFF.items():
        for spec, value in environments(context, variable) if len(context.specs) > 1 else ():
            facts = context.facts_of(spec)
            active = [port.device for port in (known_or_none(facts.rdma) or () if facts else ()) if port.active]
            if value.lower() == off and active:
                yield Found(
                    f"active: {', '.join(active)}",
                    title=f"{variable}={value} disables RDMA",
                    fix=f"remove {variable}; for TCP on purpose write `hcas: []` in the node's entry",
                    subject=spec.node,
                )


def rank_timeout(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP005")
    if recipe is None or recipe.nodes == 1:
        return
    name, usual = traits(recipe).timeout
    value = flag_text(recipe, name)
    if value.isdecimal() and int(value) < _LEAST_TIMEOUT:
        yield Found(
            f"{name}: {value}",
            title=f"distributed timeout of {value} s is too short",
            fix=f"flags.{name}: {usual}",
            subject=f"flags.{name}",
        )


def shm_small(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context)
    if recipe is None or recipe.nodes == 1 or recipe.engine.runtime is not Runtime.DOCKER:
        return
    if 0 < recipe.shm_bytes < _LEAST_SHM:
        yield Found(
            f"shm: {recipe.shm_bytes / GIB:g}GiB; 32g to 64g are proven",
            title=f"{gib(recipe.shm_bytes)} of shared memory for ranks on {recipe.nodes} nodes",
            subject="shm",
        )


def memory_unbalanced(context: Context) -> Iterator[Found]:
    recipe = served_on_gb10(context, "RCP017")
    off = variables(context).get(_BALANCE_CHECK, "").lower() in ("0", "false")
    if recipe is None or recipe.parallelism.tp == 1 or off:
        return
    nodes = dict.fromkeys(spec.node for spec in context.specs)
    sizes = [
        (memory.available, name)
        for name in nodes
        if name in context.facts and (memory := known_or_none(context.facts[name].memory))
    ]
    least, most = min(sizes, default=(0, "")), max(sizes, default=(0, ""))
    if least[0] < most[0] * _BALANCED:
        yield Found(f"available: {gib(least[0])} on {least[1]}, {gib(most[0])} on {most[1]}", subject=least[1])


def ucx_cache(context: Context) -> Iterator[Found]:
    recipe, shape, env = served_on_gb10(context, "RCP019"), shape_of(context), variables(context)
    if recipe is None or recipe.nodes == 1 or shape is None:
        return
    lacking = [name for name in _UCX_WANTED if name not in env]
    if lacking and (shape.architecture.startswith("DeepseekV4") or len(lacking) == 1):
        yield Found(f"not set: {', '.join(lacking)}", subject="env")


def nccl_two_sides(context: Context) -> Iterator[Found]:
    for variable, (doubtful, sides) in _DISPUTED.items():
        given = {value for _, value in environments(context, variable)} if len(context.specs) > 1 else set()
        for value in sorted(given & set(doubtful)):
            yield Found(
                f"{len(context.specs)} ranks",
                title=f"{variable}={value} is disputed",
                cause=sides,
                subject=f"env.{variable}",
            )


CHECKS = explained(
    __file__,
    Check("RCP001", OVERRIDE, "unknown interface in a recipe variable", interface_variable),
    Check("RCP002", OVERRIDE, "NCCL_IB_HCA names no usable device", hca_variable),
    Check("RCP003", WARN, "RDMA disabled by a recipe variable", rdma_off),
    Check("RCP005", WARN, "distributed timeout too short", rank_timeout),
    Check("RCP006", WARN, "shared memory too small for several ranks", shm_small),
    Check("RCP017", OVERRIDE, "unbalanced free memory between SGLang ranks", memory_unbalanced),
    Check("RCP019", INFO, "UCX cache not bounded (disputed)", ucx_cache),
    Check("RCP022", INFO, "disputed NCCL setting", nccl_two_sides),
)
