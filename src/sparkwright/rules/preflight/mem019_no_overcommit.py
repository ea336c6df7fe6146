"""vm.overcommit_memory is 2.

Detects: vm.overcommit_memory = 2 on a GB10.
Why: CUDA and engines reserve address space far beyond what they use; with strict accounting such reservations fail
  with ENOMEM although memory is free.
Evidence: the value.
Remedy: 0, the default.
References: https://docs.kernel.org/mm/overcommit-accounting.html
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.remote import repair
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM019"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the kernel refuses to overcommit memory"

_NAME, _STRICT, _DEFAULT = "vm.overcommit_memory", 2, 0


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        if upkeep and upkeep.sysctl(_NAME) == _STRICT:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the kernel refuses to overcommit memory",
                f"{_NAME} = {_STRICT}; wanted: {_DEFAULT}",
                "set by hand or by a hardening guide",
                f"sudo sysctl -w {_NAME}={_DEFAULT}, and take the setting out of /etc/sysctl.d",
                repair.sysctl_fix(facts.node, _NAME, _DEFAULT, _STRICT),
            )
