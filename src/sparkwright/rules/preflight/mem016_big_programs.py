"""Other programs hold memory of the pool.

Detects: no rank of ours runs on a GB10, and programs with 1 GiB or more of memory of their own do. A warning from 4
  GiB on. GPU memory is GPU002's.
Why: each of them takes away from weights and KV cache; some (a second engine, notebooks, browsers) are there by
  oversight.
Evidence: name, pid, size and unit of each.
Remedy: stop those that are not wanted.
References: https://github.com/guardkit/dgx-spark (open-webui and a second engine beside the model).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.host_facts import Process
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import idle, known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM016"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "other programs hold memory of the pool"

_EACH, _MANY, _SHOWN = GIB, 4 * GIB, 4


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        activity = known(facts.activity)
        processes = (known(activity.processes) or ()) if activity else ()
        big = [process for process in processes if process.rss >= _EACH]
        if big and idle(facts):
            held = sum(process.rss for process in big)
            yield Finding(
                CODE,
                Severity.WARN if held >= _MANY else SEVERITY,
                facts.node,
                f"other programs hold {gib(held)}",
                ", ".join(f"{p.name} (pid {p.pid}, {gib(p.rss)})" for p in big[:_SHOWN]),
                "they run beside the model and share its memory",
                _stop(big[0]),
            )


def _stop(process: Process) -> str:
    if process.unit.endswith(".service") and not process.unit.startswith("user@"):
        return f"sudo systemctl stop {process.unit}, if it is not wanted"
    return f"see whose it is: ps -fp {process.pid}; stop it if it is not wanted"
