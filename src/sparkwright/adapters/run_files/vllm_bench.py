"""Results of `vllm bench serve --save-result`, with each request (`--save-detailed`) or as totals only.

Names as vLLM 0.21 to 0.33 writes them: ttfts, itls (between chunks) and start_times in seconds, errors '' when well;
totals are `mean_ttft_ms`, `median_tpot_ms`, `p99_e2el_ms` and the like, for the percentiles that were asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from sparkwright.adapters.run_files.totals import (
    MS,
    decode_of,
    fixed_length,
    known_figures,
    moment,
    number,
    run_of_totals,
    single_figure,
    statement,
)
from sparkwright.domain.run import Level, Reads, Row, Run, RunConditions, StatedFigures, Totals
from sparkwright.domain.workload import Arrival, Length, LevelPlan, Pace, Single

TOOL = "vllm bench serve"
_DATE = "%Y%m%d-%H%M%S"
# Name of a figure here -> in vLLM's files
_TIMES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "end_to_end": "e2el"}
_RATES = {
    "output_rate": "output_throughput",
    "total_rate": "total_token_throughput",
    "request_rate": "request_throughput",
    "goodput": "request_goodput",
}
_STATISTICS = {"mean": "mean", "deviation": "std", "median": "median", "p90": "p90", "p99": "p99"}


def is_vllm_bench(tree: Mapping[str, Any]) -> bool:
    return "request_throughput" in tree and "model_id" in tree


def read(tree: Mapping[str, Any]) -> Run:
    """Raises UsageError, KeyError, TypeError, ValueError."""
    detailed = isinstance(tree.get("ttfts"), list)
    level = _detailed(tree) if detailed else _totals(tree)
    note = f"of {tree.get('date', '?')}"
    if not detailed:
        note += ", totals only; prompt and output lengths are means"
    conditions = RunConditions("", str(tree["model_id"]), tokenizer=str(tree.get("tokenizer_id") or ""), client=TOOL)
    return run_of_totals([level], TOOL, conditions, note, moment(tree.get("date"), _DATE))


def _detailed(tree: Mapping[str, Any]) -> Level:
    """The level from lists with an entry for each request."""
    starts: Sequence[float] = tree.get("start_times") or [0.0] * len(tree["ttfts"])
    began = min(starts, default=0.0)
    lists = (tree.get(name) or [] for name in ("ttfts", "itls", "input_lens", "output_lens", "errors"))
    requests = zip(starts, *lists, strict=False)
    rows = tuple(_row(number, start - began, one) for number, (start, *one) in enumerate(requests))
    prompt, output = tree.get("input_lens") or [0], tree.get("output_lens") or [0]
    shape = Single(Length(min(prompt), max(prompt)), Length(min(output), max(output)))
    plan = LevelPlan(_name(tree), shape, _pace(tree), requests=len(rows), warmup=0)
    return Level(plan, repeat=0, began=0.0, seconds=float(tree.get("duration") or 0.0), rows=rows)


def _totals(tree: Mapping[str, Any]) -> Level:
    """The level from sums and statistics of all requests."""
    good, failed = int(number(tree.get("completed")) or 0), int(number(tree.get("failed")) or 0)
    prompt, output = (number(tree.get(f"total_{side}_tokens")) or 0.0 for side in ("input", "output"))
    shape = Single(fixed_length(prompt / max(good, 1)), fixed_length(output / max(good, 1)))
    sent = max(int(number(tree.get("num_prompts")) or 0), good + failed)
    plan = LevelPlan(_name(tree), shape, _pace(tree), requests=max(sent, 1), warmup=0)
    totals = Totals(sent, good, int(output), {"error": failed} if failed else {})
    seconds, stated = number(tree.get("duration")) or 0.0, known_figures(_stated(tree, good))
    return Level(plan, repeat=0, began=0.0, seconds=seconds, stated=stated, totals=totals)


def _stated(tree: Mapping[str, Any], good: int) -> Iterator[StatedFigures | None]:
    """The figures as the tool states them. good: requests that they are of."""
    for name, word in _TIMES.items():
        found = {ours: tree.get(f"{theirs}_{word}_ms") for ours, theirs in _STATISTICS.items()}
        # A request of one token has no time between tokens: the tool writes 0 then.
        made = statement(name, found, MS, good) if found["mean"] or found["median"] else None
        yield made
        if name == "tpot":
            yield decode_of(made)
    yield from (single_figure(name, tree.get(word)) for name, word in _RATES.items())


def _name(tree: Mapping[str, Any]) -> str:
    most = tree.get("max_concurrency")
    return f"c{most}" if most else f"rate {tree.get('request_rate', 'inf')}"


def _pace(tree: Mapping[str, Any]) -> Pace:
    """The pace of the requests: at a rate, or, where that is `inf`, each as soon as one of so many had ended."""
    rate, concurrency = tree.get("request_rate"), int(tree.get("max_concurrency") or 0)
    if not isinstance(rate, int | float):
        return Pace(Arrival.CLOSED, concurrency)
    return Pace(Arrival.POISSON, concurrency, float(rate))


def _row(session: int, sent: float, request: Sequence[Any]) -> Row:
    """One request; what it was intended for is not in the file, so that is when it was sent."""
    ttft, itls, prompt, output, error = request
    if error:
        return Row(session, 0, sent, sent, kind="error", error=str(error)[-300:], planned_prompt=prompt)
    at = tuple(accumulate((ttft, *itls)))
    reads = Reads(at, _shared(output, len(at)), exact=output == len(at))
    first = {"first": ttft, "end": at[-1]} if output else {}
    return Row(session, 0, sent, sent, **first, reads=reads, prompt_tokens=prompt, output_tokens=output)


def _shared(tokens: int, chunks: int) -> tuple[int, ...]:
    """Tokens over chunks, as even as may be: which chunk had how many is unknown."""
    each, more = divmod(tokens, chunks)
    return tuple(each + (place < more) for place in range(chunks))
