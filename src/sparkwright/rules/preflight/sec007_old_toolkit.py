"""The NVIDIA container toolkit lets containers break out.

Detects: nvidia-ctk older than 1.17.8.
Why: in those a container image can run code as root on the host through the toolkit's hooks (CVE-2025-23266), or see
  the host's file system (CVE-2024-0132).
Evidence: the version.
Remedy: update it; the daemon need not be restarted for running containers.
References: NVIDIA security bulletin of July 2025 (CVE-2025-23266, CVE-2025-23267); CVE-2024-0132
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "SEC007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the NVIDIA container toolkit has a known hole"

_SAFE = (1, 17, 8)


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) and not context.recipe else ():
        docker = known(facts.containers)
        version = docker.toolkit if docker else ""
        if version and _numbers(version) < _SAFE:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"nvidia-container-toolkit {version} lets an image run code on the host",
                f"nvidia-ctk --version: {version}; cured in {'.'.join(map(str, _SAFE))}",
                "CVE-2025-23266: the toolkit's hooks trust the image's environment",
                f"on {facts.node}: sudo apt update && sudo apt install --only-upgrade nvidia-container-toolkit",
            )


def _numbers(version: str) -> tuple[int, ...]:
    """(1, 17, 8) of `1.17.8`; an odd version counts as safe."""
    parts = version.split(".")
    return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() and len(p) < 9 for p in parts) else _SAFE
