"""Identification of the server: engine, version, limits, names of its figures, and its answer to a probe request."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sparkwright.app.bench.target import SIMULATED, BenchTarget, patient, server_message
from sparkwright.app.services import together
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.probed import Probed, Reply
from sparkwright.engines.catalog import ENGINES
from sparkwright.engines.definitions import shipped_definitions
from sparkwright.engines.tables import SEPARATE, metric_names
from sparkwright.evals.heard import events
from sparkwright.ports import Clock, Endpoint

# TensorRT-LLM has its figures at another path.
_PAGES = ("/metrics", "/prometheus/metrics")
_IDENTIFY_SECONDS = 10.0
_BUILD = re.compile(r"b?\d[\w.+-]*")


@cache
def vocabularies() -> Mapping[str, Mapping[str, str]]:
    """Engine -> our word -> the name on its page of figures."""
    described = {name: made.metrics for name, made in shipped_definitions().items() if made.metrics}
    return {**{name: metric_names(name) for name in SEPARATE}, **described}


async def identify(asker: Endpoint, root: str, key: Secret | None) -> Probed:
    """Engine, version, context and figures; what is unknown stays empty. Never raises."""

    async def page(path: str) -> str:
        try:
            reply = await asker.get(root + path, key, _IDENTIFY_SECONDS)
        except NotReady:
            return ""
        return reply.body if reply.status == 200 else ""

    told, props, info, *figures = await together(page(p) for p in ("/version", "/props", "/server_info", *_PAGES))
    version, props_tree, info_tree = _tree(told), _tree(props), _tree(info)
    named = (
        (path, engine)
        for path, text in zip(_PAGES, figures, strict=True)
        for engine, names in vocabularies().items()
        if any(name in text for name in names.values())
    )
    metrics, engine = next(named, ("", ""))
    engine = engine or next((n for n in SEPARATE if (own := ENGINES[n].traits.property) and own in props_tree), "")
    reported = str(version.get("version") or props_tree.get("build_info") or info_tree.get("version") or "")
    # llama.cpp's is of one slot.
    settings = props_tree.get("default_generation_settings")
    found = (settings.get("n_ctx") if isinstance(settings, dict) else 0) or info_tree.get("context_length") or 0
    return Probed(
        url=root,
        model="",
        engine=engine,
        engine_version=reported if _BUILD.match(reported) else "",  # a proxy may answer anything
        context=found if isinstance(found, int) else 0,
        metrics=metrics,
        names=vocabularies()[engine] if metrics else {},
    )


def _tree(text: str) -> Mapping[str, Any]:
    try:
        tree = read_json(text)
    except ValueError:
        return {}
    return tree if isinstance(tree, dict) else {}


_TOKENS = 8
_SECONDS = 300.0  # a first request may still compile
# What not every server takes; some refuse a body with a field that they do not know.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "include_usage": {"stream_options": {"include_usage": True}},
    "continuous_usage_stats": {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    "ignore_eos": {"ignore_eos": True},
    "chat_template_kwargs": {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
}
_REFUSED = (400, 422)
_COUNTS = ("content", "reasoning", "reasoning_content", "tool_calls")
Ask = Callable[[tuple[str, ...]], Awaitable[Reply]]


async def send_probe(asker: Endpoint, clock: Clock, target: BenchTarget, model: str) -> tuple[Reply, tuple[str, ...]]:
    """The answer, and which of OPTIONS are accepted.

    Raises NotReady for any answer but 200, UsageError when the key or the model is refused.
    """
    url = f"{target.root}/v1/chat/completions"

    async def ask(options: tuple[str, ...]) -> Reply:
        body = _body(model, options)
        return await patient(clock, target, lambda: asker.post(url, body, target.key, _SECONDS))

    accepted, reply = tuple(OPTIONS), await ask(tuple(OPTIONS))
    if reply.status in _REFUSED:
        # Each option for itself: what is taken alone is taken together
        taken = [name for name in OPTIONS if (await ask((name,))).status == 200]
        accepted, reply = tuple(taken), await ask(tuple(taken))
    if reply.status != 200:
        raise _refusal(target, model, reply)
    return reply, accepted


def _body(model: str, options: tuple[str, ...]) -> str:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "Write a short sentence."}]}
    body |= {"max_tokens": _TOKENS, "temperature": 0, "stream": True}
    for name in options:
        body |= OPTIONS[name]
    return json.dumps(body)


def _refusal(target: BenchTarget, model: str, reply: Reply) -> UsageError | NotReady:
    said = f"{target.name}: HTTP {reply.status} to a request of {_TOKENS} tokens of {model!r}: {server_message(reply)}"
    if reply.status in (404, *_REFUSED):
        return UsageError(said, "read the server's message; is the model's name right?")
    return NotReady(said, "read the engine's log; a server that lists models can still be unable to answer")


def _with_reply(found: Probed, target: BenchTarget, reply: Reply) -> Probed:
    """The findings extended by the probe's answer. Raises NotReady for an answer without tokens."""
    chunks = [event for event in events(reply.body) if isinstance(event, dict)]
    for chunk in chunks:
        if error := chunk.get("error"):
            raise NotReady(f"{target.name}: an error instead of tokens: {error}", "read the engine's log")
    deltas = [choice.get("delta") or {} for chunk in chunks for choice in chunk.get("choices") or ()]
    usages = [usage for chunk in chunks if (usage := chunk.get("usage"))]
    if not usages and not any(delta.get(name) for delta in deltas for name in _COUNTS):
        what = f"{target.name}: HTTP 200, but no token in {server_message(reply)!r}"
        raise NotReady(what, "is this an OpenAI-compatible API?")
    return replace(
        found,
        usage=any(usage.get("completion_tokens") for usage in usages),
        continuous=len(usages) > 1,
        cached=any((usage.get("prompt_tokens_details") or {}).get("cached_tokens") is not None for usage in usages),
        reasoning=any(delta.get("reasoning") or delta.get("reasoning_content") for delta in deltas),
        seconds=reply.first,
    )


_QUICK = 10.0


async def probe_server(asker: Endpoint, clock: Clock, target: BenchTarget) -> Probed:
    """Raises NotReady when it does not answer with tokens, UsageError for a wrong model or key."""
    listed = await patient(clock, target, lambda: asker.get(f"{target.root}/v1/models", target.key, _QUICK))
    entries = _entries(listed, target)
    model = _chosen(entries, target)
    inner = target.engine
    probing = send_probe(asker, clock, target, model)
    (reply, accepted), told = await asyncio.gather(probing, identify(asker, inner.root, inner.key))
    entry = next((e for e in entries if e.get("id") == model), {})
    return replace(
        _with_reply(told, target, reply),
        url=target.root,
        model=model,
        models=tuple(str(e.get("id")) for e in entries),
        root=str(entry.get("root", "")),
        engine=told.engine or _owner(entry),
        context=_context(entry) or told.context,
        thinking="chat_template_kwargs" in accepted,
        ignore_eos="ignore_eos" in accepted,
        tokenize=await _tokenizes(asker, inner, model),
        simulated=SIMULATED in {**reply.headers, **listed.headers},
    )


def _entries(listed: Reply, target: BenchTarget) -> Sequence[Mapping[str, Any]]:
    """The entries of /v1/models. A server without that route needs its model named."""
    try:
        rows = read_json(listed.body)["data"] if listed.status == 200 else []
        found = [row for row in rows if isinstance(row, dict) and row.get("id")]
    except (ValueError, KeyError, TypeError):
        found = []
    if not found and not target.model:
        hint = "is this the address of an OpenAI-compatible server? If it has no such list, add --model NAME"
        raise NotReady(
            f"{target.name}/v1/models: HTTP {listed.status}: {server_message(listed)}: no list of models", hint
        )
    return found or [{"id": target.model}]


def _chosen(entries: Sequence[Mapping[str, Any]], target: BenchTarget) -> str:
    names = [str(entry["id"]) for entry in entries]
    if target.model:
        if target.model not in names:
            served = f"it serves: {', '.join(names)}"
            raise UsageError(f"{target.name} does not serve {target.model!r}; {served}", f"--model {names[0]}")
        return target.model
    roots = {str(entry.get("root") or entry["id"]) for entry in entries}
    if len(roots) > 1:
        raise UsageError(f"{target.name} serves several models: {', '.join(names)}", "add --model NAME")
    return names[0]


def _context(entry: Mapping[str, Any]) -> int:
    """max_model_len: vLLM and SGLang; meta.n_ctx: newer llama.cpp, per slot."""
    meta = entry.get("meta")
    found = entry.get("max_model_len") or (meta.get("n_ctx") if isinstance(meta, dict) else 0)
    return found if isinstance(found, int) else 0


def _owner(entry: Mapping[str, Any]) -> str:
    owner = str(entry.get("owned_by", "")).lower()
    owners = {ENGINES[name].traits.owned_by: name for name in SEPARATE}
    owners |= {made.owned_by: name for name, made in shipped_definitions().items()}
    return owners.get(owner, "") if owner else ""


async def _tokenizes(asker: Endpoint, target: BenchTarget, model: str) -> bool:
    """True if /tokenize counts: vLLM, SGLang and llama.cpp have it, each with its own fields."""
    body = json.dumps({"model": model, "prompt": "one two three", "content": "one two three"})
    try:
        reply = await asker.post(f"{target.root}/tokenize", body, target.key, _QUICK)
        tokens = read_json(reply.body).get("tokens") if reply.status == 200 else None
    except (NotReady, ValueError, AttributeError):
        return False
    return isinstance(tokens, list) and bool(tokens)
