"""The closed flavour of the driver on a GB10.

Detects: a package nvidia-driver-NNN or nvidia-dkms-NNN without `-open` is installed on a GB10.
Why: NVIDIA supports Blackwell and later with the open kernel modules alone. With the closed ones of 580.173.02 the GPU
  was found and never started (Xid 169, RmInitAdapter failed); the open ones of the same version worked.
Evidence: the packages.
Remedy: the open flavour of the same version.
References: https://github.com/Start9Labs/start-technologies/pull/3693; README of the driver (Blackwell: open kernel
  modules only).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV018"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a GB10 has the closed kernel modules installed"

_CLOSED = re.compile(r"nvidia-(driver|dkms)-[0-9]{3}(-server)?", re.ASCII)


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        found = [p for p in known(facts.packages) or () if _CLOSED.fullmatch(p.name)]
        if found:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the closed flavour of the driver is installed",
                ", ".join(f"{p.name} {p.version}" for p in found),
                "installed by hand; GB10 is supported with the open kernel modules alone",
                f"the -open packages of the same version; or the update of {DASHBOARD}",
            )
