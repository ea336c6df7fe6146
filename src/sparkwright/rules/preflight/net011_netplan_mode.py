"""A netplan file is open to others.

Detects: a file in /etc/netplan whose mode gives group or others any right.
Why: netplan complains at every apply, newer ones leave such a file out, and it may hold Wi-Fi passwords.
Evidence: mode and file.
Remedy: mode 600.
References: https://github.com/eugr/spark-vllm-docker (docs/NETWORKING.md: 40-cx7.yaml, 600)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.remote.repair import mode_fix
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "NET011"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a netplan file is open to others"

_WANTED = "600"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        network = known(facts.network)
        for path, mode in network.netplan.items() if network else ():
            if not mode.endswith("00"):
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{path} has mode {mode}",
                    f"stat: {mode} {path}",
                    "it was written without a thought to its mode; netplan wants 600",
                    f"on {facts.node}: sudo chmod {_WANTED} {path}",
                    mode_fix(facts.node, path, _WANTED, mode),
                )
