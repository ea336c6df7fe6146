"""fwupd and its library are of different versions.

Detects: the packages fwupd and libfwupd* are installed in different versions on a GB10.
Why: an update of DGX OS was cut short; the dashboard then hangs and firmware is not updated (libfwupd version does not
  match daemon).
Evidence: both versions.
Remedy: finish the update.
References: https://github.com/thatcooperguy/NVCheckup (seen with OTA 7.5.0).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import upstream
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST020"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the firmware updater is in two versions"

_LIBRARY = re.compile(r"libfwupd[0-9]*")


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        packages = known(facts.packages) or ()
        daemon = next((p for p in packages if p.name == "fwupd"), None)
        libraries = [p for p in packages if _LIBRARY.fullmatch(p.name)]
        versions = {upstream(p.version) for p in libraries}
        if daemon and libraries and upstream(daemon.version) not in versions:
            library = libraries[-1]
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the firmware updater is in two versions",
                f"fwupd {daemon.version}, {library.name} {library.version}",
                "an update of the system was not finished",
                "sudo apt update && sudo apt install fwupd " + library.name,
            )
