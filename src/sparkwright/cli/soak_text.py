"""The last screen of `soak`: findings, figures, what is unknown, gates, next commands."""

from collections.abc import Sequence
from typing import Any

import click

from sparkwright.cli.bench_text import gates_text
from sparkwright.cli.columns import fold_line, simulated_mark
from sparkwright.domain.run import Run
from sparkwright.domain.soak import Endurance
from sparkwright.domain.summary import GateResult
from sparkwright.domain.units import duration
from sparkwright.domain.values import asdict, dataclass, replace
from sparkwright.loadgen.endurance import endurance, memory_text
from sparkwright.loadgen.gate_lines import Gate
from sparkwright.loadgen.gates import judge_gates
from sparkwright.loadgen.stats import summarize


@dataclass(frozen=True, slots=True)
class SoakResult:
    run: Run
    found: Endurance
    results: tuple[GateResult, ...] = ()


def soak_result(run: Run, gates: Sequence[Gate] = ()) -> SoakResult:
    return SoakResult(run, endurance(run), judge_gates(gates, summarize(run)) if gates else ())


def exit_code(made: SoakResult) -> int:
    return int(bool(made.found.findings) or made.run.state != "done" or any(not one.passed for one in made.results))


def document(made: SoakResult) -> dict[str, Any]:
    """The result without rows, samples and series: `sparkwright runs export` has those."""
    bare = replace(made.found, memory=tuple(replace(one, points=()) for one in made.found.memory), latency={})
    run = {**asdict(replace(made.run, levels=())), "simulated": made.run.conditions.simulated}
    return {"run": run, "soak": asdict(bare), "gates": [asdict(one) for one in made.results]}


def soak_text(made: SoakResult) -> str:
    run, found = made.run, made.found
    head = f"{simulated_mark(run.conditions.simulated)}{run.id}  {run.workload.name}@{run.workload.version} of "
    head += f"{run.conditions.model} at {run.conditions.endpoint}: {verdict(made)}"
    lines = [f"  {found.requests} requests in {duration(found.seconds)}"]
    lines += [fold_line(f"  {memory_text(one)}{'' if one.leak else ': not above noise'}", 4) for one in found.memory]
    lines += [fold_line(f"  {one}", 4) for one in found.unknown]
    lines += [click.style(fold_line(f"  FOUND {one.kind}: {one.text}", 8), fg="red") for one in found.findings]
    gates = gates_text(run.id, made.results) if made.results else ""
    after = [] if run.state == "done" else [f"  sparkwright soak --resume {run.id}   the time that is left"]
    after += [f"  sparkwright report {run.id}   the page again", f"  sparkwright gate {run.id} gates.txt"]
    return "\n\n".join(filter(None, ["\n".join([head, *lines]), gates, "\n".join(["next", *after])]))


def verdict(made: SoakResult) -> str:
    kinds = ", ".join(dict.fromkeys(one.kind for one in made.found.findings))
    early = "" if made.run.state == "done" else "ended early; "
    return early + (f"found {kinds}" if kinds else "nothing found")
