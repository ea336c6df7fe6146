"""The result file of `vllm bench serve --save-result --save-detailed`, read.

Names as vLLM 0.21 to 0.33 writes them: ttfts, itls (between chunks) and start_times in seconds, errors '' when well.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Conditions, Level, Reads, Row, Run
from sparkwright.domain.workload import Arrival, Length, LevelPlan, Pace, Single, Workload

TOOL = "vllm bench serve"


def is_it(tree: Mapping[str, Any]) -> bool:
    return "request_throughput" in tree and "model_id" in tree


def read(tree: Mapping[str, Any]) -> Run:
    """Raises UsageError."""
    if not isinstance(tree.get("ttfts"), list):
        raise UsageError(
            "the file has totals only, and figures are computed from requests here",
            "measure again with: vllm bench serve --save-result --save-detailed",
        )
    starts: Sequence[float] = tree.get("start_times") or [0.0] * len(tree["ttfts"])
    began = min(starts, default=0.0)
    lists = (tree.get(name) or [] for name in ("ttfts", "itls", "input_lens", "output_lens", "errors"))
    told = zip(starts, *lists, strict=False)
    rows = tuple(_row(place, start - began, one) for place, (start, *one) in enumerate(told))
    plan = LevelPlan(_name(tree), _shape(tree), _pace(tree), len(rows), 0)
    level = Level(plan, 0, 0.0, float(tree.get("duration") or 0.0), rows)
    terms = Conditions("", str(tree["model_id"]), tokenizer=str(tree.get("tokenizer_id") or ""), client=TOOL)
    workload = Workload(TOOL, TOOL, (plan,), repeats=1)
    return Run("", 0.0, workload, terms, "done", levels=(level,), imported=TOOL, note=f"of {tree.get('date', '?')}")


def _name(tree: Mapping[str, Any]) -> str:
    places = tree.get("max_concurrency")
    return f"c{places}" if places else f"rate {tree.get('request_rate', 'inf')}"


def _pace(tree: Mapping[str, Any]) -> Pace:
    rate, places = tree.get("request_rate"), int(tree.get("max_concurrency") or 0)
    if not isinstance(rate, int | float):
        return Pace(Arrival.CLOSED, places)
    return Pace(Arrival.POISSON, places, float(rate))


def _shape(tree: Mapping[str, Any]) -> Single:
    prompt, output = tree.get("input_lens") or [0], tree.get("output_lens") or [0]
    return Single(Length(min(prompt), max(prompt)), Length(min(output), max(output)))


def _row(place: int, sent: float, told: Sequence[Any]) -> Row:
    ttft, itls, prompt, output, error = told
    if error:
        return Row(place, 0, sent, sent, kind="error", error=str(error)[-300:], planned_prompt=prompt)
    at = tuple(accumulate((ttft, *itls)))
    reads = Reads(at, _shared(output, len(at)), exact=output == len(at))
    first = {"first": ttft, "end": at[-1]} if output else {}
    return Row(place, 0, sent, sent, **first, reads=reads, prompt_tokens=prompt, output_tokens=output)


def _shared(tokens: int, chunks: int) -> tuple[int, ...]:
    """Tokens over chunks, as even as may be: which chunk had how many is unknown."""
    each, more = divmod(tokens, chunks)
    return tuple(each + (place < more) for place in range(chunks))
