"""The estimator in use elsewhere, for comparison: sparkrun 0.2.40's arithmetic as its readers describe it.

Weights are parameters times bytes, or the files, divided by all ranks. Every layer of every model caches keys and
values of all KV heads; the sum for one sequence is divided by all ranks and compared with 121 GiB, whatever the memory
fraction is. The pool is 121 GiB x fraction - weights. It reports nothing of speed. Its bytes of a number: 2 unless the
cache's type is named with 8 or 4 bits; of weights by the format's name.
"""

from __future__ import annotations

from planner_report_rows import PlannerCase

from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.units import GIB

_POOL = 121.0 * GIB
_WEIGHTS = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5, "nvfp4": 0.5, "mxfp4": 0.5}


def weights(case: PlannerCase) -> float | None:
    """Bytes of one rank."""
    shape = case.shape
    written = "" if isinstance(shape, Unknown) else shape.expert_format or shape.format
    size = case.size or case.parameters * _WEIGHTS.get(written, 0.0)
    return size / _ranks(case) if size else None


def tokens(case: PlannerCase, kv_bytes: float) -> float | None:
    """Tokens in so many bytes of one rank."""
    each = _token(case)
    return kv_bytes * _ranks(case) / each if each else None


def kv_pool_bytes(case: PlannerCase) -> float | None:
    """Bytes of KV on one rank."""
    held = weights(case)
    return _POOL * case.recipe.serving.memory_fraction - held if held and case.recipe.serving.memory_fraction else None


def context_fits(case: PlannerCase) -> bool | None:
    held, each = weights(case), _token(case)
    if held is None or not each:
        return None
    context = case.recipe.serving.context or (0 if isinstance(case.shape, Unknown) else case.shape.positions)
    return held + each * context / _ranks(case) <= _POOL


def _ranks(case: PlannerCase) -> int:
    return case.recipe.parallelism.tp * case.recipe.parallelism.pp


def _token(case: PlannerCase) -> float:
    """Bytes of KV a token over all ranks; 0 when the model is not known."""
    if isinstance(case.shape, Unknown):
        return 0.0
    heads, width = _heads(case.shape)
    return 2.0 * case.shape.layers * heads * width * _number(case.recipe.serving.kv_dtype)


def _heads(shape: ModelShape) -> tuple[int, int]:
    """KV heads and their width as config.json names them: latent attention's files name as many as queries."""
    if shape.latent:
        return shape.heads, shape.hidden // shape.heads
    return shape.window_kv_heads or shape.kv_heads, shape.window_head_dim or shape.head_dim


def _number(kv_dtype: str) -> float:
    return 1.0 if "fp8" in kv_dtype or "8" in kv_dtype[:5] else 0.5 if "4" in kv_dtype else 2.0
