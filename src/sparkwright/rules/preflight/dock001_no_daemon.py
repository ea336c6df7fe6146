"""Docker is not there or does not run.

Detects: the recipe's runtime is docker, and the node has no docker program or no daemon that answers.
Why: every rank is a container; without a daemon nothing can be started, staged or looked at.
Evidence: Docker's own first line, or that there is no docker program.
Remedy: start the daemon, or install Docker Engine. At boot a daemon may take minutes: try again.
References: https://docs.docker.com/engine/daemon/start/
"""

from collections.abc import Iterator

from sparkwright.domain.facts import DockerTrouble
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, weigh
from sparkwright.rules.rule import Context

CODE = "DOCK001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Docker is wanted and is not installed or does not run"

_SAID = {DockerTrouble.NOT_INSTALLED: "no `docker` on the node's PATH", DockerTrouble.NOT_RUNNING: "no daemon answers"}
_CAUSE = {
    DockerTrouble.NOT_INSTALLED: "the recipe runs its engine in containers, and the node has no Docker",
    DockerTrouble.NOT_RUNNING: "Docker is installed and its daemon is stopped, still starting or broken",
}
_REMEDY = {
    DockerTrouble.NOT_INSTALLED: "install Docker Engine (https://docs.docker.com/engine/install/), "
    "or set engine.runtime: process",
    DockerTrouble.NOT_RUNNING: "sudo systemctl enable --now docker",
}


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context):
        if docker.trouble in _CAUSE:
            yield Finding(
                CODE,
                weigh(context, SEVERITY),
                facts.node,
                f"Docker is {docker.trouble}",
                docker.said or _SAID[docker.trouble],
                _CAUSE[docker.trouble],
                _REMEDY[docker.trouble],
            )
