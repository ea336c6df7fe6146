"""The first screen of `bench`: the server, the plan, and the longest duration."""

from collections.abc import Iterator
from typing import Any

from sparkwright.app.bench.target import LevelOutline, PreparedBench
from sparkwright.cli.columns import aligned, fold, mark
from sparkwright.domain.probed import Probed
from sparkwright.domain.units import counted, duration
from sparkwright.domain.workload import Agent, Arrival, LevelPlan


def found_text(ready: PreparedBench) -> str:
    """The server, and how it counts."""
    probed, known = ready.probed, ready.conditions
    engine = f"{probed.engine or 'an unknown engine'} {probed.engine_version}".rstrip()
    context = f"context {probed.context:,} tokens" if probed.context else "context limit unknown"
    rows = [("model", probed.model), ("engine", f"{engine}, {context}"), ("counting", _counting(probed))]
    rows.append(("prompts", f"tokens counted by {known.tokenizer}" if ready.tokenizer.exact else known.tokenizer))
    if known.deployment:
        rows.append(("recipe", f"{known.recipe} {known.recipe_hash[:12]}"))
        rows += [("node", line) for line in known.nodes]
    lacking = [fold(f"  lacking: {text}", 11) for text in lacks(ready)]
    return "\n".join([f"{mark(known.simulated)}{known.endpoint}", *aligned(rows).splitlines(), *lacking])


def lacks(ready: PreparedBench) -> list[str]:
    """The features that the server lacks, and the cost of that."""
    probed, found = ready.probed, []
    if not probed.usage:
        found.append("its streams have no `usage`: only latencies can be measured, no figure per token")
    if not ready.tokenizer.exact:
        found.append("no /tokenize: lengths of prompts are estimates; --tokenizer FILE takes a tokenizer.json")
    if not probed.metrics:
        found.append("no /metrics: nothing of queue, KV cache and prefix hits as the server sees them")
    if not probed.ignore_eos and ready.workload.ignore_eos:
        found.append("it refuses `ignore_eos`: answers may be shorter than planned")
    if ready.conditions.missing:
        found.append(f"{', '.join(ready.conditions.missing)}: without these the run will not count as valid")
    return found


def _counting(probed: Probed) -> str:
    if not probed.usage:
        return "no `usage`"
    more = ["in every chunk"] if probed.continuous else []
    more += ["cached tokens too"] if probed.cached else []
    return f"tokens from `usage`{''.join(f', {one}' for one in more)}"


def plan_text(ready: PreparedBench) -> str:
    """The levels, and what ends them."""
    workload = ready.workload
    head = f"{workload.name}@{workload.version}: {workload.title}"
    rows = [("level", "requests", "prompt", "answer", "at a time"), *(_level(level) for level in ready.outlines)]
    tokens = f", {ready.tokens:,} tokens" if ready.tokens else ""
    each = " for each rate that is tried" if workload.search else ""
    total = f"{counted(ready.requests, 'request')} in {counted(workload.repeats, 'repeat')}{tokens}{each}"
    left_out = (fold(f"  left out: {text}", 12) for text in ready.left_out)
    return "\n".join([head, aligned(rows), f"  {total}; {duration(workload.deadline)} at most", *left_out])


def _level(level: LevelOutline) -> tuple[str, ...]:
    lengths = [f"{n:,}" if n is not None else "as in the file" for n in (level.prompt_tokens, level.output_tokens)]
    return level.plan.name, str(level.requests), *lengths, "".join(_pace(level.plan))


def _pace(plan: LevelPlan) -> Iterator[str]:
    pace, agents = plan.pace, isinstance(plan.shape, Agent)
    if pace.arrival is Arrival.CLOSED:
        yield f"{pace.concurrency}{' agent' if agents else ''}{'s' if agents and pace.concurrency > 1 else ''}"
        return
    yield "at recorded times" if pace.arrival is Arrival.RECORDED else f"{pace.arrival} {pace.rate:g}/s"
    if pace.to_rate:
        yield f" to {pace.to_rate:g}/s"
    if pace.concurrency:
        yield f", at most {pace.concurrency}"


def plan_json(ready: PreparedBench) -> dict[str, Any]:
    """The plan of a dry run as JSON."""
    probed = ready.probed
    return {
        "endpoint": ready.conditions.endpoint,
        "simulated": ready.conditions.simulated,
        "model": probed.model,
        "engine": probed.engine,
        "engine_version": probed.engine_version,
        "context": probed.context,
        "tokenizer": ready.conditions.tokenizer,
        "lacking": lacks(ready),
        "workload": f"{ready.workload.name}@{ready.workload.version}",
        "levels": [
            {"name": one.plan.name, "requests": one.requests, "prompt": one.prompt_tokens, "output": one.output_tokens}
            for one in ready.outlines
        ],
        "left_out": ready.left_out,
        "repeats": ready.workload.repeats,
        "requests": ready.requests,
        "tokens": ready.tokens,
        "seconds_at_most": ready.workload.deadline,
    }
