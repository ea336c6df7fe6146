"""Findings about Docker on a node."""

from dataclasses import replace

import pytest

from sparkwright.domain.facts import Docker, DockerTrouble
from sparkwright.domain.finding import Severity
from unit.checks.samples import READY, context, run_check

NONE = Docker("", trouble=DockerTrouble.NOT_INSTALLED)
STOPPED = Docker("", trouble=DockerTrouble.NOT_RUNNING, said="Cannot connect to the Docker daemon")
FORBIDDEN = Docker("", trouble=DockerTrouble.NO_RIGHTS)
PLAIN = replace(READY, runtimes=("runc",))
TIGHT = replace(READY, can_raise_memlock=False)


@pytest.mark.parametrize(("docker", "code"), [(STOPPED, "DOCK001"), (FORBIDDEN, "DOCK002"), (PLAIN, "DOCK003")])
def test_without_a_recipe_docker_is_worth_knowing(docker: Docker, code: str) -> None:
    """Guards that `check` of nodes whose owner uses no Docker does not fail for it."""
    assert [f.severity for f in run_check(code, context({"docker": docker}, recipe=None))] == [Severity.INFO]


def test_docker_that_is_not_there() -> None:
    """Guards the words for a node without Docker."""
    (finding,) = run_check("DOCK001", context({"docker": NONE}))
    assert (finding.title, finding.evidence) == ("Docker is not installed", "no `docker` on the node's PATH")
    assert finding.remedy.startswith("install Docker Engine")


def test_rootless_docker_is_reported_as_such() -> None:
    """Guards that the remedy for a rootless daemon is not a limit that it cannot have."""
    rootless = replace(TIGHT, rootless=True)
    assert run_check("DOCK004", context({"docker": rootless}))[0].remedy == "use the rootful daemon"
    assert run_check("DOCK003", context({"docker": replace(PLAIN, snap=True)}))[0].remedy.startswith("sudo snap remove")
