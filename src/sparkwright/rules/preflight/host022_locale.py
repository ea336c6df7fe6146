"""A DGX OS node whose messages are not in English.

Detects: /etc/default/locale of a DGX OS node sets messages to another language.
Why: NVIDIA Sync reads apt's words and asks for an update that is already installed. Sparkwright itself asks with
  LC_ALL=C.
Evidence: the setting.
Remedy: English for messages only.
References: https://github.com/DoctorMasterNewb/sparkbase (System Software Update Required on an updated machine).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.rule import Context

CODE = "HOST022"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "messages of apt are not in English"

_ENGLISH = ("en", "C", "POSIX")


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        upkeep, identity = known(facts.upkeep), known(facts.identity)
        told_language = upkeep.locale if upkeep else ""
        if told_language and identity and known(identity.ota_version) and not told_language.startswith(_ENGLISH):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "messages are not in English; NVIDIA Sync may see updates that are none",
                f"/etc/default/locale: {told_language}",
                "the language chosen when the machine was set up",
                "sudo update-locale LC_MESSAGES=en_US.utf8",
            )
