"""The machine-id of an OEM image that many machines share.

Detects: /etc/machine-id is the one that OEM images of GB10 machines were shipped with.
Why: every such machine has it: DHCP and discovery mix them up, also with machines that are not in this cluster. The
  ssh host keys of that image are known to everybody (CVE-2026-24218).
Evidence: the id.
Remedy: make a new one, and new ssh host keys.
References: CVE-2026-24218; https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.remedies import NEW_IDENTITY
from sparkwright.rules.rule import Context

CODE = "HOST003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the machine-id is one that many machines have"

_KNOWN = ("295f5139615f4bbaa29921a29574c7a3",)


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        identity = known(facts.identity)
        if identity and identity.machine_id in _KNOWN:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the machine-id is that of the OEM's image",
                f"machine-id {identity.machine_id}",
                "the OEM's image came with a ready-made id and ready-made ssh host keys (CVE-2026-24218)",
                NEW_IDENTITY,
            )
