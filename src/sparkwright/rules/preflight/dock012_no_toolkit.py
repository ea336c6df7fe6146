"""Docker knows the NVIDIA runtime, and its program is not there.

Detects: daemon.json names nvidia-container-runtime, there is no nvidia-ctk on the node, and Docker has no CDI devices.
Why: `docker run --gpus all` ends with `unknown or invalid runtime name: nvidia` or does not find its hook: the
  toolkit was removed, or an update stopped half-way.
Evidence: the daemon's runtimes, and that nvidia-ctk is not on the PATH.
Remedy: install the toolkit again.
References: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, known, not_gb10
from sparkwright.rules.rule import Context

CODE = "DOCK012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the NVIDIA container toolkit is gone"


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context):
        held = known(facts.containers)
        gpu = bool(known(facts.gpus)) and not not_gb10(facts)
        wanted = held is not None and any("nvidia-container-runtime" in line for line in held.daemon)
        if gpu and held and wanted and not held.toolkit and "nvidia" in docker.runtimes and not docker.cdi:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "Docker's runtime nvidia has no program behind it",
                f"runtimes: {', '.join(docker.runtimes)}; no nvidia-ctk on the PATH",
                "the container toolkit was removed, or its update stopped half-way",
                f"on {facts.node}: sudo apt install --reinstall nvidia-container-toolkit",
            )
