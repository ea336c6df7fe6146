"""`up --prove`: a short benchmark and the quick probes after a start, judged by the recipe's gates."""

import importlib
from collections.abc import Sequence
from typing import Any

from sparkwright.adapters.files import open_workload
from sparkwright.app.bench.benchmark import run_benchmark
from sparkwright.app.bench.target import BenchRequest, PreparedBench
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli.columns import echo_text
from sparkwright.domain.run import Run
from sparkwright.domain.summary import GateResult
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.wiring import bench as tools
from sparkwright.wiring import keys_to_try, places

PROFILE, TAG = "prove", "prove"
_WITHOUT = ("errors == 0", "failed_probes == 0")
_LONGEST = 4000  # tokens of a prompt of the probes


@dataclass(frozen=True, slots=True)
class ServingProof:
    """runs: of the benchmark and of the probes."""

    runs: tuple[Run, ...]
    results: tuple[GateResult, ...]

    @property
    def passed(self) -> bool:
        return all(one.passed for one in self.results)


async def prove(deployment: str, where: ClusterOptions, lines: Sequence[str], quiet: bool) -> ServingProof:
    """Raises NotReady, UsageError: then nothing is proven, and the deployment continues to serve."""
    # What measures and judges is loaded only for this
    bench = importlib.import_module("sparkwright.cli.bench")
    gates, stats = (importlib.import_module(f"sparkwright.loadgen.{name}") for name in ("gates", "stats"))
    request = BenchRequest(open_workload(PROFILE, places()), tags=(TAG,), keys=keys_to_try(None))
    async with tools(None) as made, bench.endpoint(made, deployment, where, request) as ready:
        if not quiet:
            echo_text(f"proving {deployment}: a short benchmark, then the quick probes", err=True)
        runs = (await _measured(ready, quiet), await _probed(ready, quiet))
    pairs = [(stats.summarize(run), None) for run in runs]
    return ServingProof(runs, gates.judge_runs(gates.parse("\n".join(lines or _WITHOUT), "gates"), pairs))


async def _measured(ready: PreparedBench, quiet: bool) -> Run:
    live = importlib.import_module("sparkwright.cli.bench_screen")
    with live.bench_screen(ready.levels, ready.workload.repeats, quiet, ready.conditions.simulated) as screen:
        return await run_benchmark(ready, screen)


async def _probed(ready: PreparedBench, quiet: bool) -> Run:
    use, text, catalog = map(importlib.import_module, _PROBING)
    work = replace(use.workload("probes", 1, "Quick probes after a start"), deadline=300.0)
    again, entries = ready.with_workload(work), catalog.chosen((), True)
    watch = text.EvalLines(quiet)
    outcomes = use.probe_all(again, entries, _LONGEST, watch)
    plan = use.EvaluationPlan("probes", tuple(entry.name for entry in entries))
    found: Run = await use.evaluate(again, plan, outcomes, watch)
    return found


_PROBING = ("sparkwright.app.bench.evaluate", "sparkwright.cli.eval_text", "sparkwright.evals.catalog")


def proof_text(deployment: str, proof: ServingProof) -> str:
    gates_text = importlib.import_module("sparkwright.cli.bench_text").gates_text
    names = ", ".join(run.id for run in proof.runs)
    verdict = "proven" if proof.passed else "NOT proven: a gate failed; it continues to serve"
    after = [f"  sparkwright report {run.id} -o {run.id}.html" for run in proof.runs]
    after += [] if proof.passed else [f"  sparkwright down {deployment}   stops it"]
    return "\n".join([f"{deployment}: {verdict}", gates_text(names, proof.results), "next", *after])


def proof_json(proof: ServingProof) -> dict[str, Any]:
    gates = [asdict(one) for one in proof.results]
    return {"passed": proof.passed, "runs": [run.id for run in proof.runs], "gates": gates}
