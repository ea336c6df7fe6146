"""Decoding, prefill and first tokens of a row: each published point is one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import planner_report_words as words
from planner_report_answers import PlannerAnswer, attention_kind
from planner_report_rows import PlannerCase
from planner_report_words import number

from sparkwright.domain.facts import Unknown
from sparkwright.domain.verdict import Estimate, Load, Speed
from sparkwright.planner.speed import Measured, estimate_speed

Point = Mapping[str, Any]
DECODE, CONCURRENT, DRAFTED = "decode_tps", "decode_tps_concurrent", "decode_tps_speculative"
CALIBRATED = "decode_tps_calibrated"
_OTHER_DRAFT = "this figure's speculation is not the row's"
_CURVE = 3  # depths that make one
PREFILL, PREFILL_CONCURRENT, FIRST = "prefill_tps", "prefill_tps_concurrent", "ttft_s"
LOADING = "load_s"


def answers(case: PlannerCase) -> Iterator[PlannerAnswer]:
    for point in case.result.get("decode_tps") or ():
        yield from _decode(case, point)
    yield from _calibrated(case)
    for point in case.result.get("prefill_tps") or ():
        yield from _prefill(case, point)
    for point in case.result.get("ttft_s") or ():
        yield from _first(case, point)
    yield from _loaded(case)


def _loaded(case: PlannerCase) -> Iterator[PlannerAnswer]:
    """Seconds from the start to a server that answers, where the source measured them."""
    published = number(case.result.get("load_s"))
    if published > 0:
        found = _speed(case, Load())
        yield _answer(case, LOADING, published, found if isinstance(found, str) else found.loading, Load())


def _decode(case: PlannerCase, point: Point) -> Iterator[PlannerAnswer]:
    published, streams = number(point.get("tps")), _count(point, "concurrency", 1)
    if published <= 0:
        return
    drafted, said = bool(case.recipe.speculation.method), str(point.get("note") or "")
    quantity = DRAFTED if drafted or words.drafts(said) else CONCURRENT if streams > 1 else DECODE
    load = Load(depth=_count(point, "depth"), concurrency=streams, text=words.text_kind(said))
    found = _speed(_as(case, said), load) if drafted or quantity != DRAFTED else _OTHER_DRAFT
    together = streams > 1 and bool(point.get("aggregate"))
    answer = found if isinstance(found, str) else _of(found, together)
    if not isinstance(found, str) and together:
        answer = _served(case, found, load, _request(case, point))
    yield _answer(case, quantity, published, answer, load)


def _request(case: PlannerCase, point: Point) -> tuple[int, int]:
    """Tokens of the prompt and of the answer, where the source measured whole requests; else 0 of one."""
    prompt, written = words.lengths(str(case.row.get("notes") or ""))
    return (_count(point, "depth") or prompt, _count(point, "gen") or written)


def _served(case: PlannerCase, found: Speed, load: Load, request: tuple[int, int]) -> Estimate:
    """Tokens/s of requests that begin together, each with its own prompt: what such benchmarks call their aggregate.

    From the first one's first token to the last token of all: the others' prompts are read meanwhile. An engine may
    read them with the first one's, so the high end counts them as read by then.
    """
    prompt, written = request
    prompts = _speed(case, Load(concurrency=load.concurrency, prompt=prompt)) if prompt and written else ""
    if isinstance(prompts, str) or not prompts.prefill.known or not found.decode.known:
        return found.decode_all
    waited, streams = (load.concurrency - 1) * prompt, load.concurrency
    read, wrote = prompts.prefill, found.decode
    value = streams * written / (waited / read.value + written / wrote.value)
    low = streams * written / (waited / read.low + written / wrote.low)
    return Estimate(value, low, streams * wrote.high)


def _calibrated(case: PlannerCase) -> Iterator[PlannerAnswer]:
    """One stream over several depths: the shallowest point calibrates, the others are predicted from it."""
    alone = [
        p for p in case.result.get("decode_tps") or () if _count(p, "concurrency", 1) == 1 and _depth(p) is not None
    ]
    curve = sorted(alone, key=lambda p: _depth(p) or 0)
    if isinstance(case.shape, Unknown) or len({_depth(p) for p in curve}) < _CURVE or number(curve[0].get("tps")) <= 0:
        return
    anchor = Measured(number(curve[0]["tps"]), _depth(curve[0]) or 0)
    for point in curve[1:]:
        published, load = number(point.get("tps")), Load(depth=_depth(point) or 0)
        if published > 0 and load.depth > anchor.depth:
            found = estimate_speed(case.recipe, case.shape, case.loaded, load, anchor)
            yield _answer(case, CALIBRATED, published, found.decode, load)


def _depth(point: Point) -> int | None:
    """None where the source does not report at which depth."""
    return None if point.get("depth") is None else _count(point, "depth")


def _prefill(case: PlannerCase, point: Point) -> Iterator[PlannerAnswer]:
    published, streams = number(point.get("tps")), _count(point, "concurrency", 1)
    if published <= 0:
        return
    depth, prompt = _count(point, "depth"), _count(point, "prompt")
    if words.whole_context(str(case.row.get("notes") or "")):
        depth, prompt = 0, depth + prompt
    load = Load(depth=depth, concurrency=streams, prompt=prompt)
    found = _speed(case, load) if load.prompt else "the source does not state how long the prompt was"
    answer = found if isinstance(found, str) else found.prefill
    yield _answer(case, PREFILL_CONCURRENT if streams > 1 else PREFILL, published, answer, load)


def _first(case: PlannerCase, point: Point) -> Iterator[PlannerAnswer]:
    published, streams = number(point.get("ttft_s")), _count(point, "concurrency", 1)
    if published <= 0 or streams > 1:
        return
    load = Load(concurrency=streams, prompt=_count(point, "prompt"))
    found = _speed(case, load) if load.prompt else "the source does not state how long the prompt was"
    yield _answer(case, FIRST, published, found if isinstance(found, str) else found.ttft, load)


def _as(case: PlannerCase, said: str) -> PlannerCase:
    """The case of one figure whose remark names another network than the row."""
    network = words.network(said)
    return case if network is None else replace(case, recipe=replace(case.recipe, env=network))


def _speed(case: PlannerCase, load: Load) -> Speed | str:
    if isinstance(case.shape, Unknown):
        return case.shape.why
    if not case.row.get("nodes"):
        return "the source does not state how many nodes"
    return estimate_speed(case.recipe, case.shape, case.loaded, load)


def _of(found: Speed, together: bool) -> Estimate:
    return found.decode_all if together else found.decode


def _answer(case: PlannerCase, quantity: str, published: float, found: Estimate | str, load: Load) -> PlannerAnswer:
    said: dict[str, float | str] = {"depth": load.depth, "concurrency": load.concurrency, "prompt": load.prompt}
    said["text"] = load.text
    if case.recipe.speculation.method:
        said["speculation"] = f"{case.recipe.speculation.method} {case.recipe.speculation.tokens or ''}".strip()
    conditions = {name: value for name, value in said.items() if value}
    if isinstance(found, str) or not found.known:
        why = found if isinstance(found, str) else " ".join(found.why) or "no estimate"
        return PlannerAnswer(case.id, quantity, attention_kind(case), published, reason=why, conditions=conditions)
    return PlannerAnswer(
        case.id, quantity, attention_kind(case), published, found.value, found.low, found.high, conditions=conditions
    )  # fmt: skip


def _count(point: Point, name: str, default: int = 0) -> int:
    return int(number(point.get(name))) or default
