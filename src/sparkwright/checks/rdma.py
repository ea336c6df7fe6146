"""Checks of RDMA devices, GIDs and NCCL settings."""

from collections.abc import Iterator

from sparkwright.checks.rails import compared, rails_of, roce_index, wired_nodes
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import EnvironmentSetting
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, OVERRIDE, WARN
from sparkwright.domain.unknown import known_or_none

_GID_INDEX = "NCCL_IB_GID_INDEX"
_INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "MN_IF_NAME")


def gid_drift(context: Context) -> Iterator[Found]:
    indices = [(rail, roce_index(rail.port)) for facts in compared(context) for rail in rails_of(facts)]
    found = [(rail, index) for rail, index in indices if index is not None]
    if len({index for _, index in found}) > 1:
        yield Found(
            ", ".join(f"{rail.node} {rail.port.device} {index}" for rail, index in found),
            subject=", ".join(dict.fromkeys(rail.node for rail, _ in found)),
        )


def gid_pinned(context: Context) -> Iterator[Found]:
    for facts in wired_nodes(context):
        for where, value in _pinned(context, facts):
            wrong = _wrong(facts, value)
            if wrong:
                by_recipe = where == "the recipe"
                yield Found(
                    f"{where}: {_GID_INDEX}={value}; {wrong}",
                    title=f"{_GID_INDEX}={value} is wrong on this node",
                    fix=f"take {_GID_INDEX} out of {where}; NCCL finds it by NCCL_IB_ROCE_VERSION_NUM=2",
                    severity=OVERRIDE if by_recipe else WARN,
                    subject=facts.node,
                )


def _pinned(context: Context, facts: NodeFacts) -> Iterator[tuple[str, str]]:
    if context.recipe and _GID_INDEX in context.recipe.env:
        yield "the recipe", context.recipe.env[_GID_INDEX]
    settings = known_or_none(facts.settings)
    for setting in settings.communication if settings else ():
        if setting.name == _GID_INDEX:
            yield setting.where, setting.value


def _wrong(facts: NodeFacts, value: str) -> str:
    """The wrong kind of GID at that index of the first port; '' if it is right or unknown."""
    index = int(value) if value.isascii() and value.isdigit() and len(value) < 4 else None
    if value == "":
        return "set and empty, which is not the same as not set"
    for port in (rail.port for rail in rails_of(facts) if rail.link.addresses and rail.port.gids):
        entry = next((gid for gid in port.gids if gid.index == index), None)
        if index is not None and not (entry and entry.version.endswith("v2") and entry.ipv4):
            kind = f"RoCE {entry.version} {entry.ipv4 or 'link-local'}" if entry else "nothing"
            return f"{port.device} has {kind} at {index}"
    return ""


def hcas_differ(context: Context) -> Iterator[Found]:
    active = {
        f.node: [port.device for port in known_or_none(f.rdma) or () if port.active] for f in wired_nodes(context)
    }
    cabled = {node: names for node, names in active.items() if names}
    if len({len(names) for names in cabled.values()}) > 1:
        fewest = min(cabled, key=lambda node: len(cabled[node]))
        yield Found(
            "; ".join(f"{node}: {', '.join(names)}" for node, names in cabled.items()),
            title=f"{len(cabled[fewest])} active HCA(s) here, more elsewhere",
            fix=f"on {fewest}: rdma link; then sudo ip link set NETDEV up for the port that is DOWN",
            subject=fewest,
        )


def variables_left(context: Context) -> Iterator[Found]:
    for facts in wired_nodes(context):
        settings = known_or_none(facts.settings)
        for setting in settings.communication if settings else ():
            harm = _harm(facts, setting)
            if context.recipe and not harm:
                continue
            yield Found(
                f"{setting.where}: {setting.name}={setting.value}",
                title=f"{setting.name} is set node-wide",
                cause=harm or "it reaches every process that is started by hand, regardless of its recipe",
                fix=f"take the line out of {setting.where}"
                if setting.where != "session"
                else f"look for who sets it: grep -rs {setting.name} /etc ~/.ssh ~/.pam_environment",
                severity=WARN if harm else INFO,
                subject=facts.node,
            )


def _harm(facts: NodeFacts, setting: EnvironmentSetting) -> str:
    name, value = setting.name, setting.value
    if (name == "NCCL_IB_DISABLE" and value == "1") or (name == "NCCL_NET" and value.lower() == "socket"):
        return "RDMA is off: NCCL goes over sockets at a fraction of the speed"
    if name in _INTERFACES:
        return _no_interface(facts, value)
    return _few_hcas(facts, value) if name == "NCCL_IB_HCA" else ""


def _no_interface(facts: NodeFacts, value: str) -> str:
    """`^eth` excludes, `=eth0` is exact, anything else a prefix."""
    links = known_or_none(facts.interfaces)
    wanted = [word.strip().lstrip("=") for word in value.split(",") if word.strip()]
    there = [word for word in wanted if any(link.name.startswith(word) for link in links or ())]
    return "" if links is None or there or value.startswith("^") else f"the node has no interface {value}"


def _few_hcas(facts: NodeFacts, value: str) -> str:
    active = [rail.port.device for rail in rails_of(facts)]
    wanted = {word.strip().partition(":")[0].lstrip("=") for word in value.split(",")}
    if not active or value.startswith("^"):
        return ""
    named = [device for device in active if any(device.startswith(word) for word in wanted if word)]
    if not named:
        return f"none of the ACTIVE HCAs ({', '.join(active)}) is named"
    return f"only {', '.join(named)} of {', '.join(active)}: half of the bandwidth" if len(named) < len(active) else ""


def nccl_versions(context: Context) -> Iterator[Found]:
    files = {
        f.node: settings.nccl for f in compared(context) if (settings := known_or_none(f.settings)) and settings.nccl
    }
    versions = {path.rpartition(".so.")[2] for paths in files.values() for path in paths}
    if len(versions) > 1:
        yield Found(
            "; ".join(f"{node}: {', '.join(paths)}" for node, paths in files.items()),
            title=f"NCCL {' and '.join(sorted(versions))} installed",
            subject=", ".join(files),
        )


CHECKS = explained(
    __file__,
    Check("RDMA007", INFO, "RoCE v2 GID indices differ", gid_drift),
    Check("RDMA008", OVERRIDE, "NCCL_IB_GID_INDEX is wrong", gid_pinned),
    Check("RDMA009", WARN, "number of active HCAs differs", hcas_differ),
    Check("RDMA012", WARN, "communication variables set node-wide", variables_left),
    Check("RDMA013", INFO, "several NCCL versions installed", nccl_versions),
)
