"""Docker cannot hand out the GPU.

Detects: a rank wants the GPU in a container, and the daemon knows neither the runtime `nvidia` nor NVIDIA CDI devices.
Why: `docker run --gpus all` then fails with `could not select device driver`. An installation with nothing but the
  toolkit's hook works without either, which is why this can be overridden.
Evidence: the daemon's list of runtimes.
Remedy: configure the NVIDIA container toolkit and restart the daemon. Docker from snap cannot: use the deb package.
References: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Docker
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, known, simulated, specs_on, weigh
from sparkwright.rules.rule import Context

CODE = "DOCK003"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "Docker has neither the NVIDIA runtime nor CDI devices"

_CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
_SNAP = "sudo snap remove docker   # then Docker Engine as a deb, and nvidia-ctk runtime configure"


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context):
        planned = any(spec.gpu for spec in specs_on(context, facts.node))
        here = planned if context.recipe else bool(known(facts.gpus)) and not simulated(context)
        if here and _lacks(docker):
            yield Finding(
                CODE,
                weigh(context, SEVERITY),
                facts.node,
                "Docker cannot hand out the GPU",
                f"runtimes: {', '.join(docker.runtimes) or 'none'}; CDI: no nvidia.com/gpu",
                "Docker from snap cannot reach the driver's programs"
                if docker.snap
                else "the NVIDIA container toolkit is not installed, or Docker was not configured for it",
                _SNAP if docker.snap else _CONFIGURE,
            )


def _lacks(docker: Docker) -> bool:
    return bool(docker.version) and not docker.cdi and not any(name.startswith("nvidia") for name in docker.runtimes)
