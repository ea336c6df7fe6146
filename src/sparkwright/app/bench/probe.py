"""What answers there: model, engine, limits, and how it counts. Asked before anything is measured."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparkwright.app.bench.engine_told import identify
from sparkwright.app.bench.target import SIMULATED, Target, patient, shown
from sparkwright.app.bench.trial import Trial, trial
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.probed import Probed, Reply
from sparkwright.engines.catalog import ENGINES, SEPARATE
from sparkwright.ports import Clock, Endpoint

_QUICK = 10.0


async def probe(asker: Endpoint, clock: Clock, target: Target) -> Probed:
    """Raises NotReady when it does not answer with tokens, UsageError for a wrong model or key."""
    listed = await patient(clock, target, lambda: asker.get(f"{target.root}/v1/models", target.key, _QUICK))
    entries = _entries(listed, target)
    model = _chosen(entries, target)
    inner = target.engine
    tried, told = await asyncio.gather(trial(asker, clock, target, model), identify(asker, inner.root, inner.key))
    entry = next((e for e in entries if e.get("id") == model), {})
    found = replace(
        told,
        url=target.root,
        model=model,
        models=tuple(str(e.get("id")) for e in entries),
        root=str(entry.get("root", "")),
    )
    return replace(
        _with_trial(found, tried),
        engine=told.engine or _owner(entry),
        context=_context(entry) or told.context,
        tokenize=await _tokenizes(asker, inner, model),
        simulated=tried.simulated or SIMULATED in listed.headers,
    )


def _entries(listed: Reply, target: Target) -> Sequence[Mapping[str, Any]]:
    """What /v1/models lists. A server without that route needs its model named."""
    try:
        rows = json.loads(listed.body)["data"] if listed.status == 200 else []
        found = [row for row in rows if isinstance(row, dict) and row.get("id")]
    except (ValueError, KeyError, TypeError):
        found = []
    if not found and not target.model:
        raise NotReady(
            f"{target.name}/v1/models: HTTP {listed.status}: {shown(listed)}: no list of models",
            "is this the address of an OpenAI-compatible server? If it has no such list, say --model NAME",
        )
    return found or [{"id": target.model}]


def _chosen(entries: Sequence[Mapping[str, Any]], target: Target) -> str:
    names = [str(entry["id"]) for entry in entries]
    if target.model:
        if target.model not in names:
            raise UsageError(
                f"{target.name} does not serve {target.model!r}; it serves: {', '.join(names)}", f"--model {names[0]}"
            )
        return target.model
    roots = {str(entry.get("root") or entry["id"]) for entry in entries}
    if len(roots) > 1:
        raise UsageError(f"{target.name} serves several models: {', '.join(names)}", "say which: --model NAME")
    return names[0]


def _context(entry: Mapping[str, Any]) -> int:
    """max_model_len: vLLM and SGLang; meta.n_ctx: newer llama.cpp, per slot."""
    meta = entry.get("meta")
    found = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else 0)
    return found if isinstance(found, int) else 0


def _owner(entry: Mapping[str, Any]) -> str:
    owner = str(entry.get("owned_by", "")).lower()
    return next((name for name in SEPARATE if ENGINES[name].traits.owned_by == owner), "")


def _with_trial(found: Probed, tried: Trial) -> Probed:
    return replace(
        found,
        usage=tried.usage,
        continuous=tried.continuous,
        cached=tried.cached,
        reasoning=tried.reasoning,
        thinking="chat_template_kwargs" in tried.accepted,
        ignore_eos="ignore_eos" in tried.accepted,
        seconds=tried.first,
    )


async def _tokenizes(asker: Endpoint, target: Target, model: str) -> bool:
    """Whether /tokenize counts: vLLM, SGLang and llama.cpp have it, each with its own words."""
    body = json.dumps({"model": model, "prompt": "one two three", "content": "one two three"})
    try:
        reply = await asker.post(f"{target.root}/tokenize", body, target.key, _QUICK)
        tokens = json.loads(reply.body).get("tokens") if reply.status == 200 else None
    except (NotReady, ValueError, AttributeError):
        return False
    return isinstance(tokens, list) and bool(tokens)
