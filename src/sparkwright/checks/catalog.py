"""All checks, by family. Plain tuples: nothing registers itself, and the order is the order of equal findings."""

from collections.abc import Iterable

from sparkwright.checks import (
    containers,
    deep,
    deployment,
    docker,
    driver,
    driver_state,
    exposure,
    gateway,
    gpu,
    host,
    memory,
    memory_plan,
    model,
    model_files,
    network,
    nic,
    ports,
    rdma,
    recipe_fabric,
    recipe_kernels,
    recipe_security,
    recipe_serving,
    storage,
    upkeep,
)
from sparkwright.checks.compat import checks as compat
from sparkwright.domain.check import Check, Context
from sparkwright.domain.finding import Finding, Severity

PREFLIGHT: tuple[Check, ...] = (
    *deployment.CHECKS,
    *host.CHECKS,
    *driver.CHECKS,
    *gpu.CHECKS,
    *docker.CHECKS,
    *model.CHECKS,
    *storage.CHECKS,
    *memory_plan.CHECKS,
    *driver_state.CHECKS,
    *memory.CHECKS,
    *upkeep.CHECKS,
    *deep.CHECKS,
    *nic.CHECKS,
    *rdma.CHECKS,
    *ports.CHECKS,
    *network.CHECKS,
    *containers.CHECKS,
    *model_files.CHECKS,
    *exposure.CHECKS,
    *gateway.CHECKS,
)
RECIPE: tuple[Check, ...] = (
    *compat.CHECKS,
    *recipe_fabric.CHECKS,
    *recipe_kernels.CHECKS,
    *recipe_serving.CHECKS,
    *recipe_security.CHECKS,
)
CHECKS: tuple[Check, ...] = (*PREFLIGHT, *RECIPE)

# Checks that mostly warn, and stop a start where it is worse; those of a severity that stops need not be named.
RISING = frozenset(("DOCK004", "DOCK007", "DRV007", "GPU004", "HOST006", "RCP031", "RCP032", "RCP033"))
STOPPING: tuple[Check, ...] = tuple(one for one in CHECKS if one.severity.stops or one.code in RISING)

_ORDER = tuple(Severity)


def check_all(context: Context, stopping: bool = False) -> tuple[Finding, ...]:
    """The findings of all checks, worst first; findings of one severity in the order of the catalog.

    stopping: only of checks that can stop a start, a quarter of all: a search for remedies asks nothing else.
    """
    checks = STOPPING if stopping else CHECKS
    return worst_first(finding for check in checks for finding in check.findings(context))


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Block, override, warn, info; equal ones stay as they came, and duplicates are dropped."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: _ORDER.index(finding.severity)))
