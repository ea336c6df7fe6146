"""Variables of NCCL, Gloo or UCX are set for the whole node.

Detects: such variables in /etc/environment, nccl.conf, a shell's start-up file or the ssh session. Warned of: those
  that turn RDMA off, that name an interface or HCA which is not there, or that name one HCA of two.
Why: left over from an experiment they reach every process that is started by hand (not containers), and nobody looks
  there: `NCCL_IB_DISABLE=1` costs 40 % of the speed and says nothing.
Evidence: the file and the line.
Remedy: take them out; a recipe sets what its engine needs.
References: https://github.com/chenboju/dgx-spark-serving; https://docs.nvidia.com/deeplearning/nccl/user-guide
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import Setting
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import rails, wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "RDMA012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "variables of NCCL, Gloo or UCX are left on the node"

_INTERFACES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "MN_IF_NAME")


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        settings = known(facts.settings)
        for setting in settings.communication if settings else ():
            harm = _harm(facts, setting)
            if context.recipe and not harm:
                continue
            yield Finding(
                CODE,
                SEVERITY if harm else Severity.INFO,
                facts.node,
                f"{setting.name} is set for the whole node",
                f"{setting.where}: {setting.name}={setting.value}",
                harm or "it reaches every process that is started by hand, whatever its recipe says",
                f"take the line out of {setting.where}"
                if setting.where != "session"
                else f"look for who sets it: grep -rs {setting.name} /etc ~/.ssh ~/.pam_environment",
            )


def _harm(facts: NodeFacts, setting: Setting) -> str:
    name, value = setting.name, setting.value
    if (name == "NCCL_IB_DISABLE" and value == "1") or (name == "NCCL_NET" and value.lower() == "socket"):
        return "RDMA is off: NCCL goes over sockets at a fraction of the speed"
    if name in _INTERFACES:
        return _no_interface(facts, value)
    return _few_hcas(facts, value) if name == "NCCL_IB_HCA" else ""


def _no_interface(facts: NodeFacts, value: str) -> str:
    """`^eth` excludes, `=eth0` is exact, anything else a prefix."""
    links = known(facts.interfaces)
    wanted = [word.strip().lstrip("=") for word in value.split(",") if word.strip()]
    there = [word for word in wanted if any(link.name.startswith(word) for link in links or ())]
    return "" if links is None or there or value.startswith("^") else f"the node has no interface {value}"


def _few_hcas(facts: NodeFacts, value: str) -> str:
    active = [rail.port.device for rail in rails(facts)]
    wanted = {word.strip().partition(":")[0].lstrip("=") for word in value.split(",")}
    if not active or value.startswith("^"):
        return ""
    named = [device for device in active if any(device.startswith(word) for word in wanted if word)]
    if not named:
        return f"none of the ACTIVE HCAs ({', '.join(active)}) is named"
    return f"only {', '.join(named)} of {', '.join(active)}: half of the bandwidth" if len(named) < len(active) else ""
