"""Updated packages wait for a reboot.

Detects: /run/reboot-required is there on a GB10. A warning when kernel, driver or firmware packages are among those
  that ask for it.
Why: what is loaded is older than what is on the disk; the next reboot, also one after a power cut, brings a different
  system than the one that was tested.
Evidence: the packages that ask for it.
Remedy: reboot at a time of your choosing, all nodes together.
References: https://www.debian.org/doc/debian-policy/ (signalling that a reboot is required).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST013"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "an update waits for a reboot"

_WEIGHTY = re.compile(r"linux-(image|modules|nvidia)|nvidia|mlnx|fwupd")


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        if upkeep and upkeep.reboot_needed:
            weighty = any(_WEIGHTY.match(name) for name in upkeep.reboot_for)
            yield Finding(
                CODE,
                Severity.WARN if weighty else SEVERITY,
                facts.node,
                "an update waits for a reboot",
                f"/run/reboot-required: {', '.join(upkeep.reboot_for[:6]) or 'no package named'}",
                "packages were updated and the machine has run on since then",
                "sudo systemctl reboot --no-block on all nodes, when nothing is served; then sparkwright check",
            )
