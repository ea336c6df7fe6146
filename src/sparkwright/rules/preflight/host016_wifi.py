"""A node whose way out is Wi-Fi.

Detects: the default route goes over a wireless interface. With power saving on it is a warning.
Why: the MT7925 of a GB10 drops out under load and with power saving: machines were healthy and out of reach for over
  an hour, and a supervisor that asks over ssh takes them for dead.
Evidence: the interface, and its power saving.
Remedy: a cable for management; else no power saving.
References: https://github.com/jschmied/dgx-spark-setup-guide; https://github.com/guardkit/dgx-spark
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST016"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the node is reached over Wi-Fi"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        if upkeep and upkeep.wifi:
            saving = upkeep.power_save is True
            state = "on" if saving else "off" if upkeep.power_save is False else "not known"
            yield Finding(
                CODE,
                Severity.WARN if saving else SEVERITY,
                facts.node,
                "the node is reached over Wi-Fi" + (" with power saving" if saving else ""),
                f"default route over {upkeep.wifi}, power saving {state}",
                "no network cable in the management port (enP7s7)",
                "use the wired port; or wifi.powersave=2 below [connection] in /etc/NetworkManager/conf.d",
            )
