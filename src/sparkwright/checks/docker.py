"""Checks of the Docker daemon."""

from collections.abc import Iterator

from sparkwright.checks.reading import dockers, not_gb10, per_node, simulated, specs_on, weigh_severity
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.facts import Docker, DockerTrouble, NodeFacts
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN
from sparkwright.domain.unknown import known_or_none

# What is found, why, and the remedy.
_TROUBLES = {
    DockerTrouble.NOT_INSTALLED: (
        "no `docker` on the node's PATH",
        "the recipe runs its engine in containers, and the node has no Docker",
        "install Docker Engine (https://docs.docker.com/engine/install/), or set engine.runtime: process",
    ),
    DockerTrouble.NOT_RUNNING: (
        "no daemon answers",
        "Docker is installed and its daemon is stopped, still starting or broken",
        "sudo systemctl enable --now docker",
    ),
}
_CONFIGURE = "sudo nvidia-ctk runtime configure --runtime=docker && sudo systemctl restart docker"
_SNAP = "sudo snap remove docker   # then Docker Engine as a deb, and nvidia-ctk runtime configure"


def daemon_down(context: Context) -> Iterator[Found]:
    for facts, docker in dockers(context):
        if docker.trouble in _TROUBLES:
            said, cause, remedy = _TROUBLES[docker.trouble]
            yield Found(
                docker.said or said,
                title=f"Docker is {docker.trouble}",
                cause=cause,
                fix=remedy,
                severity=weigh_severity(context, BLOCK),
                subject=facts.node,
            )


def socket_forbidden(context: Context) -> Iterator[Found]:
    for facts, docker in dockers(context):
        if docker.trouble is DockerTrouble.NO_RIGHTS:
            identity = known_or_none(facts.identity)
            user = identity.user if identity and identity.user else "$USER"
            yield Found(
                docker.said or "the daemon's socket is not writable for this user",
                title=f"{user} has no permission on the Docker socket",
                cause=f"{user} is not in the group docker, or was added to it after logging in",
                fix=f"sudo usermod -aG docker {user}   # then log in to the node again; the group is as good as root",
                severity=weigh_severity(context, BLOCK),
                subject=facts.node,
            )


def gpu_runtime_missing(context: Context) -> Iterator[Found]:
    for facts, docker in dockers(context):
        planned = any(spec.gpu for spec in specs_on(context, facts.node))
        here = planned if context.recipe else bool(known_or_none(facts.gpus)) and not simulated(context)
        if (
            here
            and docker.version
            and not docker.cdi
            and not any(name.startswith("nvidia") for name in docker.runtimes)
        ):
            yield Found(
                f"runtimes: {', '.join(docker.runtimes) or 'none'}; CDI: no nvidia.com/gpu",
                cause="Docker from snap cannot reach the driver's programs"
                if docker.snap
                else "the NVIDIA container toolkit is not installed, or Docker was not configured for it",
                fix=_SNAP if docker.snap else _CONFIGURE,
                severity=weigh_severity(context, OVERRIDE),
                subject=facts.node,
            )


def memlock_capped(context: Context) -> Iterator[Found]:
    for facts, docker in dockers(context):
        if docker.can_raise_memlock is False and _rdma_here(context, facts):
            how = "rootless Docker" if docker.rootless else "dockerd without CAP_SYS_RESOURCE"
            yield Found(
                f"{how}, and its hard limit of locked memory is not unlimited",
                fix="use the rootful daemon"
                if docker.rootless
                else "sudo systemctl edit docker   # add: [Service] LimitMEMLOCK=infinity; then restart docker",
                severity=weigh_severity(context, WARN),
                subject=facts.node,
            )


def _rdma_here(context: Context, facts: NodeFacts) -> bool:
    if context.recipe:
        return any(spec.rdma for spec in specs_on(context, facts.node))
    return any(port.active for port in known_or_none(facts.rdma) or ())


def docker_snap(facts: NodeFacts, docker: Docker) -> Iterator[Found]:
    if docker.snap and bool(known_or_none(facts.gpus)):
        yield Found(f"root: {docker.root}")


def logs_unbounded(context: Context) -> Iterator[Found]:
    for facts, docker in dockers(context) if not context.recipe else ():
        held = known_or_none(facts.containers)
        if docker.log_driver == "json-file" and held and not any("max-size" in line for line in held.daemon):
            yield Found("log driver json-file, no max-size in /etc/docker/daemon.json", subject=facts.node)


def storage_driver(facts: NodeFacts, docker: Docker) -> Iterator[Found]:
    if docker.storage in ("vfs", "devicemapper") and bool(known_or_none(facts.gpus)):
        yield Found(
            f"docker info: Storage Driver {docker.storage}, {docker.root}",
            title=f"slow Docker storage driver {docker.storage}",
            fix=f"move {docker.root} to ext4 or xfs and take storage-driver out of /etc/docker/daemon.json",
        )


def toolkit_missing(facts: NodeFacts, docker: Docker) -> Iterator[Found]:
    held = known_or_none(facts.containers)
    gpu = bool(known_or_none(facts.gpus)) and not not_gb10(facts)
    wanted = held is not None and any("nvidia-container-runtime" in line for line in held.daemon)
    if gpu and held and wanted and not held.toolkit and "nvidia" in docker.runtimes and not docker.cdi:
        yield Found(f"runtimes: {', '.join(docker.runtimes)}; no nvidia-ctk on the PATH")


CHECKS = explained(
    __file__,
    Check("DOCK001", BLOCK, "Docker is not installed or not running", daemon_down),
    Check("DOCK002", BLOCK, "no permission on the Docker socket", socket_forbidden),
    Check("DOCK003", OVERRIDE, "no NVIDIA runtime in Docker", gpu_runtime_missing),
    Check("DOCK004", WARN, "Docker daemon cannot raise memlock", memlock_capped),
    Check("DOCK005", WARN, "Docker installed from snap", per_node(dockers, docker_snap)),
    Check("DOCK010", INFO, "container logs are not limited", logs_unbounded),
    Check("DOCK011", WARN, "slow Docker storage driver", per_node(dockers, storage_driver)),
    Check("DOCK012", WARN, "NVIDIA container toolkit is missing", per_node(dockers, toolkit_missing)),
)
