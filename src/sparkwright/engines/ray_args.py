"""Ray's part of vLLM on Ray, per rank: the launcher's words, its environment, its files, its ports."""

import hashlib
import json

from sparkwright.domain.command import Secret
from sparkwright.domain.plan import Placement, RankFile
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.engine import RenderContext, files_at
from sparkwright.engines.environment import SECRETS, Variable
from sparkwright.engines.launchers import script

LAUNCHER = "ray_launch.py"
# vLLM reads it from VLLM_CONFIG_ROOT in every version from 0.19.0 to 0.33.0 (vllm/ray/ray_env.py).
NOT_CARRIED = "ray_non_carry_over_env_vars.json"
WAIT = 240  # seconds for all nodes to join: images are there, containers start together
PORTS = 6  # next to serving.master_port, as ray_launch.py counts them
# The executor of vLLM 0.21 and later hands the head's whole environment to workers: what a node owns stays there.
_OF_A_NODE = (
    "HOME", "HOSTNAME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "OLDPWD", "PATH", "PWD", "SHELL", "SHLVL", "TMPDIR",
    "USER", "VIRTUAL_ENV", "XDG_RUNTIME_DIR", "SPARKWRIGHT_RANK_DIR", "SPARKWRIGHT_RAY", "SPT_NOENV", "RAY_AUTH_TOKEN",
)  # fmt: skip


def launcher_words(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[str, ...]:
    """The interpreter (process runtime), the script in the rank's folder and its own options."""
    own = placement.fabric[placement.nodes[rank]].address
    head = placement.fabric[placement.head].address
    nodes = ",".join(placement.fabric[node].address for node in placement.nodes)
    mode = ("worker", "--head", head) if rank else ("head", "--nodes", nodes)
    place = ("--listen", own, "--port", str(recipe.serving.master_port), "--wait", str(WAIT))
    node = placement.nodes[rank]
    program, files = _interpreter(recipe, node, context), files_at(recipe, context, node, rank)
    return (*program, f"{files}/{LAUNCHER}", *mode, *place, "--folder", folder(context))


def _interpreter(recipe: Recipe, node: str, context: RenderContext) -> tuple[str, ...]:
    return () if recipe.engine.runtime is Runtime.DOCKER else (context.python(recipe, node),)


def folder(context: RenderContext) -> str:
    """Ray's own folder, the same on all nodes. Short: the sockets below it may have 107 characters."""
    return f"/tmp/sparkwright-ray-{hashlib.sha256(context.deployment.encode()).hexdigest()[:8]}"


def rank_files(names: tuple[str, ...], rank: int) -> tuple[RankFile, ...]:
    """names: variables that every rank has of its own, so that the head's values must not travel."""
    if rank:
        return (script(LAUNCHER),)
    listed = json.dumps(sorted({*names, *_OF_A_NODE, *SECRETS}), indent=0)
    return (script(LAUNCHER), RankFile(NOT_CARRIED, f"{listed}\n"))


def secrets(context: RenderContext) -> dict[str, Secret]:
    """Ray listens on all interfaces, whatever address it is given: only ranks of this launch may talk to it."""
    return {"RAY_AUTH_TOKEN": context.launch_key} if context.launch_key else {}


def variables(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> tuple[Variable, ...]:
    files = files_at(recipe, context, placement.nodes[rank], rank)
    token = Variable(
        "RAY_AUTH_MODE", "token", "Ray listens on all interfaces; 2.52 and later ask for a token", "2.60.0"
    )
    config = Variable("VLLM_CONFIG_ROOT", files, f"where vLLM finds {NOT_CARRIED}", "vllm/ray/ray_env.py")
    return (
        Variable(
            "RAY_memory_monitor_refresh_ms", "0", "it kills workers when the load peaks: the model is there", "B5"
        ),
        # Measured with vLLM 0.21.0 on Ray 2.55.1: without it all phases came at once, 50 s late.
        Variable(
            "PYTHONUNBUFFERED", "1", "the engine core prints its Ray workers' lines, into a pipe", "docs/acceptance"
        ),
        # Seen with Ray 2.60.0: of lines that differ in numbers only it prints one; a rank's figures were missing.
        Variable("RAY_DEDUP_LOGS", "0", "each rank's lines are wanted", "ray/_private/ray_logging 2.60.0"),
        Variable("RAY_USAGE_STATS_ENABLED", "0", "no telemetry", "ray/_common/usage/usage_lib.py 2.60.0"),
        *((token,) if context.launch_key else ()),
        *(() if rank else (config,)),
    )


def listens(recipe: Recipe, placement: Placement, rank: int) -> tuple[tuple[str, int], ...]:
    """Ray's fixed ports on this rank's node; the head's first one is the cluster's."""
    own = placement.fabric[placement.nodes[rank]].address
    first = recipe.serving.master_port
    return tuple((own, first + n) for n in range(1 if rank else 0, PORTS + 1))
