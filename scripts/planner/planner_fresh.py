"""`planner_fresh.py FILE [--half a|b] [--rows]`: today's planner on rows that were new when FILE was written.

FILE is one of scripts/planner/fresh/*.yaml, or any of their form (the keys: _ROW, _START). A source's repository or
site lies in half a or b by its name alone, so that one half can be looked at and the other scored later. --rows names
each figure. Facts about models come from ../shared/data where that is there, else from this folder only. own_memory:
true marks another machine, whose GPU has memory of its own: only weights and tokens in the engine's GiB are asked.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml
from planner_report import answered
from planner_report_answers import PlannerAnswer
from planner_report_dates import source
from planner_report_loads import TIMES, predicted
from planner_report_rows import SHARED, Row, models_for, of_rows
from planner_report_stats import TARGETS, figures, percentile

_RESULT = {"weights_gib_per_node", "kv_cache_gib", "kv_cache_tokens"}
_SETTINGS = {
    "id", "source", "date", "nodes", "model", "checkpoint_gb", "quant", "engine", "version", "tp", "pp", "ep",
    "gpu_memory_utilization", "max_model_len", "max_num_seqs", "max_num_batched_tokens", "kv_cache_dtype",
    "spec_decode", "attention_backend", "cuda_graphs", "notes", "own_memory",
}  # fmt: skip
_FAILED = {"fits", "failure"}  # false, and what the engine said
_SPEEDS = {"points", "prompts", "firsts", "gen"}
_ROW = _SETTINGS | _RESULT | _FAILED | _SPEEDS
_START = {"what", "source", "engine", "nodes", "gb", "layers", "total", "files", "state", "flags"}
_NEEDED = ("source", "engine", "nodes", "gb", "layers")


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="planner_fresh.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path, help="rows and starts, in YAML")
    parser.add_argument("--half", choices=("a", "b"), default="", help="only the sources of one half")
    parser.add_argument("--rows", action="store_true", help="name every figure")
    chosen = parser.parse_args(words)
    try:
        rows, starts = read(chosen.file, chosen.half)
    except (OSError, ValueError, yaml.YAMLError) as error:
        print(
            f"planner-fresh: {chosen.file}: {error}\nhint: scripts/planner/fresh/third.yaml has the form",
            file=sys.stderr,
        )
        return 2
    answers, bugs = answered(of_rows(rows, models_for(SHARED / "rows.jsonl")))
    for bug in bugs:
        print(f"planner-fresh: {bug}", file=sys.stderr)
    print(f"{len(rows)} rows of {len({source(row) for row in rows})} sources, {len(starts)} starts")
    print("\n".join((*summed(answers), *of_starts(starts, chosen.rows))))
    for said in every_answer(answers) if chosen.rows else ():
        print(said)
    return int(bool(bugs))


def half_of(row: Row) -> str:
    """a or b, by its source's name alone."""
    return "ab"[hashlib.sha256(source(row).encode()).digest()[0] % 2]


def read(path: Path, half: str = "") -> tuple[list[Row], list[Mapping[str, Any]]]:
    """Rows in the form of the shared ones, and starts. Raises ValueError on what the form does not have."""
    found = yaml.safe_load(path.read_text())
    if not isinstance(found, dict) or set(found) - {"rows", "starts"}:
        raise ValueError("expected rows and starts")
    rows = [_row(row) for row in found.get("rows") or ()]
    starts = [_start(start) for start in found.get("starts") or ()]
    if len({row["id"] for row in rows}) < len(rows):
        raise ValueError("two rows have the same id")
    return [r for r in rows if half in ("", half_of(r))], [s for s in starts if half in ("", half_of(s))]


def _row(row: Any) -> Row:
    name = row.get("id") if isinstance(row, dict) else row
    if not isinstance(row, dict) or not row.get("id") or not row.get("source") or not row.get("model"):
        raise ValueError(f"a row needs id, source and model: {str(name)[:80]}")
    if odd := sorted(set(row) - _ROW):
        raise ValueError(f"{name}: unknown key {odd[0]}")
    if row.get("own_memory") and (speeds := sorted(_SPEEDS & set(row))):
        raise ValueError(f"{name}: {speeds[0]} of a machine with own_memory: speeds are planned for GB10 only")
    result: dict[str, Any] = {key: row[key] for key in _RESULT if key in row}
    result["decode_tps"] = [_point(name, point, row.get("gen", 0)) for point in row.get("points") or ()]
    result["prefill_tps"] = [{"prompt": tokens, "tps": tps} for tokens, tps in row.get("prompts") or ()]
    result["ttft_s"] = [{"prompt": tokens, "ttft_s": seconds} for tokens, seconds in row.get("firsts") or ()]
    if any(result.values()):
        result["fits"] = True  # what was measured ran
    if _FAILED & set(row):
        if row.get("fits") is not False or not row.get("failure"):
            raise ValueError(f"{name}: a start that failed has fits: false and failure")
        result |= {"fits": False, "failure": str(row["failure"])}
    settings = {key: row[key] for key in _SETTINGS if key in row}
    return {**settings, "engine_version_or_image": str(row.get("version") or ""), "result": result}


def _point(name: object, point: Any, written: int) -> Mapping[str, Any]:
    """Depth, streams and tokens/s of all streams, and perhaps what was written."""
    if (
        not isinstance(point, list)
        or len(point) not in (3, 4)
        or not all(isinstance(n, int | float) for n in point[:3])
    ):
        raise ValueError(f"{name}: a point is [depth, streams, tokens/s, text]: {point}")
    depth, streams, tps, *text = point
    said = {"depth": depth, "concurrency": streams, "tps": tps, "aggregate": streams > 1, "gen": written}
    return {**said, "note": str(text[0]) if text else ""}


def _start(start: Any) -> Mapping[str, Any]:
    if not isinstance(start, dict) or any(not start.get(key) for key in _NEEDED) or not {"total", "files"} & set(start):
        raise ValueError(f"a start needs {', '.join(_NEEDED)} and total or files: {str(start)[:80]}")
    if odd := sorted(set(start) - _START):
        raise ValueError(f"{start.get('what')}: unknown key {odd[0]}")
    return start


def summed(answers: Sequence[PlannerAnswer]) -> Iterator[str]:
    """One line a quantity: figures and rows, median and 90 % of the errors' size, share inside and width."""
    found: dict[str, list[PlannerAnswer]] = defaultdict(list)
    for answer in answers:
        found[answer.quantity].append(answer)
    for quantity, target in TARGETS.items():
        mine = figures(found[quantity])
        if quantity == "fits" and mine.count:
            yield f"{target.title}: {mine.unsafe} unsafe, {mine.refused} of {mine.ran} refused that ran"
        elif mine.median is not None and mine.ninety is not None:
            width = f"{mine.inside:.0%} inside (x{mine.width:.2f})" if mine.inside is not None else ""
            counts = f"{mine.answered} figures of {mine.rows} rows"
            yield f"{target.title}: {mine.median:.1%}, {mine.ninety:.1%}, {width}, {counts}"
    unanswered = sorted({(a.id, a.quantity, a.reason) for a in answers if a.predicted is None and a.quantity != "fits"})
    for name, quantity, reason in unanswered:
        yield f"not predicted: {name} {quantity}: {reason}"


def of_starts(starts: Sequence[Mapping[str, Any]], every: bool) -> Iterator[str]:
    """Both kinds of a start's seconds, and each one if asked."""
    for kind, title in TIMES.items():
        found = [(start, float(start[kind]), predicted(start, kind)) for start in starts if kind in start]
        if not found:
            continue
        sizes = sorted(abs(one.value - published) / published for _, published, one in found)
        inside = sum(one.low <= published <= one.high for _, published, one in found)
        width = median(one.high / one.low for *_, one in found)
        errors = f"{median(sizes):.1%}, {percentile(sizes, 0.9):.1%}"
        yield f"Starts, {title}: {errors}, {inside} of {len(found)} inside (x{width:.1f})"
        for start, published, one in found if every else ():
            mark = "" if one.low <= published <= one.high else "  OUTSIDE"
            range_ = f"{one.low:.0f} to {one.high:.0f}"
            yield f"  {start['what']} ({start.get('state', '')}): {published:g} s, {one.value:.0f}, {range_}{mark}"


def every_answer(answers: Sequence[PlannerAnswer]) -> Iterator[str]:
    for one in answers:
        if one.predicted is None or one.error is None:
            continue
        inside = "" if one.inside is None or one.inside else "  OUTSIDE"
        edges = "" if one.low is None or one.high is None else f" {one.low:.4g} to {one.high:.4g}"
        said = " ".join(f"{name} {value}" for name, value in one.conditions.items())
        figures_ = f"{one.published:.5g}, {one.predicted:.4g}{edges} {one.error:+.0%}{inside}"
        yield f"{one.id} {one.quantity} {said}: {figures_}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
