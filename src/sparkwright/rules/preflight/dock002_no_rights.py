"""The user may not use Docker.

Detects: the recipe's runtime is docker, the daemon's socket is there, and the ssh user may not write to it.
Why: every docker call of sparkwright would fail; sudo is not used behind the user's back.
Evidence: Docker's own line (`permission denied while trying to connect to the docker API`) or the socket's rights.
Remedy: add the user to the group docker and log in again; that group is as good as root on the node.
References: https://docs.docker.com/engine/install/linux-postinstall/
"""

from collections.abc import Iterator

from sparkwright.domain.facts import DockerTrouble, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import dockers, known, weigh
from sparkwright.rules.rule import Context

CODE = "DOCK002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the user has no right to use Docker"


def check(context: Context) -> Iterator[Finding]:
    for facts, docker in dockers(context):
        if docker.trouble is DockerTrouble.NO_RIGHTS:
            user = _user(facts)
            yield Finding(
                CODE,
                weigh(context, SEVERITY),
                facts.node,
                f"{user} may not use Docker",
                docker.said or "the daemon's socket is not writable for this user",
                f"{user} is not in the group docker, or was added to it after logging in",
                f"sudo usermod -aG docker {user}   # then log in to the node again; the group is as good as root",
            )


def _user(facts: NodeFacts) -> str:
    identity = known(facts.identity)
    return identity.user if identity and identity.user else "$USER"
