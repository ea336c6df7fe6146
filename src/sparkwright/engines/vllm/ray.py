"""vLLM on Ray: a Ray cluster of all nodes, checked, then one `vllm serve` on the head that spreads its workers over it.

Read for vLLM 0.19.0 to 0.33.0 (vllm/ray/ray_env.py, vllm/v1/executor/ray_*.py) and Ray 2.60.0. Ray sends what the
workers on all nodes print to the head's log, `(RayWorkerProc pid=12, ip=10.0.0.2) text`; a worker rank's own log ends
when its node has joined.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace

from sparkwright.domain.deployment import LogEvent, Phase
from sparkwright.domain.finding import Finding
from sparkwright.domain.plan import Placement, RankFile, RankSpec
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines import vllm
from sparkwright.engines.definitions import FromFile, read_definition
from sparkwright.engines.dialect import dialect, most_telling, pieces
from sparkwright.engines.engine import PAGE, STOP, RenderContext, files_at
from sparkwright.engines.environment import SECRETS, check_distributed
from sparkwright.engines.findings import ENG
from sparkwright.engines.launchers import script
from sparkwright.engines.mounts import model_word
from sparkwright.engines.options import option_name
from sparkwright.engines.vllm import Vllm, process_program
from sparkwright.engines.vllm.releases import vllm_traits

# What belongs to vLLM's own way to span nodes.
NATIVE = ("nnodes", "node-rank", "master-addr", "master-port", "headless")
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
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")
_FAILED = re.compile(r"^ray: error: (?P<why>.*)|^(?P<sick>\[[^\]]*\] .*Unauthenticated: .*)")


class VllmRay:
    name = "vllm-ray"
    metrics_page, stop, traits = PAGE, STOP, FromFile(lambda made: vllm_traits(made.name))

    def check(self, recipe: Recipe) -> Iterator[Finding]:
        yield from check_distributed(recipe, read_definition(self.name).per_rank)
        for name, value in recipe.flags.items():
            if (option := option_name(name)) in NATIVE:
                yield ENG["ENG028"].on(f"flags.{name}", f"{name}: {value}", title=f"--{option} has no place on Ray")
        if recipe.parallelism.dp > 1:
            yield ENG["ENG029"].on("parallelism.dp", f"dp: {recipe.parallelism.dp}")
        if recipe.nodes == 1:
            yield ENG["ENG031"].on("nodes", "nodes: 1")

    def render(self, recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[RankSpec, ...]:
        """vLLM's ranks with a launcher before the program, and that only on the head."""
        ranks = Vllm().render(recipe, placement, context)
        return tuple(_on_ray(spec, recipe, placement, context) for spec in ranks)

    def read(self, line: str) -> LogEvent | None:
        return read_vllm_ray(line)


def _on_ray(spec: RankSpec, recipe: Recipe, placement: Placement, context: RenderContext) -> RankSpec:
    words = () if spec.rank else _serve(recipe, placement, context)
    env = {**variables(recipe, placement, context, spec.rank), **spec.env}
    # The interpreter (process runtime), the script in the rank's folder and its own options
    node, head = placement.nodes[spec.rank], placement.fabric[placement.head].address
    own = placement.fabric[node].address
    nodes = ",".join(placement.fabric[node].address for node in placement.nodes)
    mode = ("worker", "--head", head) if spec.rank else ("head", "--nodes", nodes)
    place = ("--listen", own, "--port", str(recipe.serving.master_port), "--wait", str(WAIT))
    docker, files = recipe.engine.runtime is Runtime.DOCKER, files_at(recipe, context, node, spec.rank)
    program = () if docker else (context.python(recipe, node),)
    launcher = (*program, f"{files}/{LAUNCHER}", *mode, *place, "--folder", folder(context))
    return replace(
        spec,
        argv=(*launcher, *(("--", *_program(recipe), *words) if words else ())),
        env=env,
        entrypoint=("python3",) if docker else None,
        # Ray listens on all interfaces, whatever address it is given: only ranks of this launch may talk to it.
        secrets={**spec.secrets, **({"RAY_AUTH_TOKEN": context.launch_key} if context.launch_key else {})},
        files=rank_files(tuple(env), spec.rank),
        listens=(*(() if spec.rank else ((context.bind, context.port),)), *listens(recipe, placement, spec.rank)),
        engine_argv=words,
    )


def _serve(recipe: Recipe, placement: Placement, context: RenderContext) -> tuple[str, ...]:
    ours = vllm.identity(recipe) | vllm.listening(context, 0) | vllm.size_options(recipe)
    model = model_word(recipe, placement.head, context)
    return vllm.serve_words(recipe, model, ours | {"distributed-executor-backend": "ray"})


def _program(recipe: Recipe) -> tuple[str, ...]:
    if recipe.engine.runtime is Runtime.DOCKER:
        return recipe.engine.program or ("vllm",)
    return process_program(recipe)


def folder(context: RenderContext) -> str:
    """Ray's own folder, the same on all nodes. Short: the sockets below it may have 107 characters."""
    return f"/tmp/sparkwright-ray-{hashlib.sha256(context.deployment.encode()).hexdigest()[:8]}"


def rank_files(names: tuple[str, ...], rank: int) -> tuple[RankFile, ...]:
    """names: variables that every rank has of its own, so that the head's values must not travel."""
    if rank:
        return (script(LAUNCHER),)
    listed = json.dumps(sorted({*names, *_OF_A_NODE, *SECRETS}), indent=0)
    return (script(LAUNCHER), RankFile(NOT_CARRIED, f"{listed}\n"))


def variables(recipe: Recipe, placement: Placement, context: RenderContext, rank: int) -> dict[str, str]:
    files = files_at(recipe, context, placement.nodes[rank], rank)
    return {
        "RAY_memory_monitor_refresh_ms": "0",  # it kills workers when the load peaks: the model is there
        # Measured with vLLM 0.21.0 on Ray 2.55.1: without it all phases came at once, 50 s late.
        "PYTHONUNBUFFERED": "1",
        # Seen with Ray 2.60.0: of lines that differ in numbers only it prints one; a rank's figures were missing.
        "RAY_DEDUP_LOGS": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray listens on all interfaces; 2.52 and later ask for a token.
        **({"RAY_AUTH_MODE": "token"} if context.launch_key else {}),
        **({} if rank else {"VLLM_CONFIG_ROOT": files}),  # where vLLM finds NOT_CARRIED (vllm/ray/ray_env.py)
    }


def listens(recipe: Recipe, placement: Placement, rank: int) -> tuple[tuple[str, int], ...]:
    """Ray's fixed ports on this rank's node; the head's first one is the cluster's."""
    own = placement.fabric[placement.nodes[rank]].address
    first = recipe.serving.master_port
    return tuple((own, first + n) for n in range(1 if rank else 0, PORTS + 1))


def read_vllm_ray(line: str) -> LogEvent | None:
    return most_telling(e for piece in pieces(line, dialect("vllm-ray").begins) if (e := _log_event(piece)))


def _log_event(piece: str) -> LogEvent | None:
    if found := _FAILED.match(piece):
        return LogEvent(Phase.START, f"Ray: {found['why'] or found['sick']}"[:500], error=True)
    ours = dialect("vllm-ray")
    if piece.startswith("ray: "):
        return ours.piece(piece)
    # Without Ray's prefix; vLLM's own `(Worker pid=1) ` looks alike and is understood by vLLM's dialect as well
    prefix = ours.begins.match(piece)
    return dialect("vllm").read(_REPEATED.sub("", piece[prefix.end() :] if prefix else piece))
