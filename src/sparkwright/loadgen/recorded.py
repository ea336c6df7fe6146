"""Requests that somebody recorded, in four formats. The first record decides the format.

ours            JSONL {"prompt": text | "messages": [...], "output_tokens": n, "at": seconds}
OpenAI batch    JSONL {"custom_id", "method", "url", "body": {"messages" | "prompt", "max_tokens"}}
Mooncake trace  JSONL {"timestamp": ms, "input_length", "output_length", "hash_ids": [...]}: no texts, but which blocks
                of 512 tokens two requests have in common (each id is a block and all that come before it)
ShareGPT        JSON [{"conversations": [{"from": "human" | "gpt", "value": text}, ...]}]
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.workload import LevelPlan, Replay, Workload
from sparkwright.loadgen.profiles import shipped_file

BLOCK = 512
_HINT = "docs/reference/workloads.md shows the formats that can be replayed"
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Recorded:
    """messages: JSON text of a list, or '' where `prompt` holds the text of one user. at: seconds after the first.

    answer: what was answered then; output_tokens: 0 where only that text is known. input_tokens, blocks: instead of
    a text, how long it was and which blocks of it others share.
    """

    prompt: str = ""
    messages: str = ""
    output_tokens: int = 0
    answer: str = ""
    at: float | None = None
    input_tokens: int = 0
    blocks: tuple[int, ...] = ()


def parse(text: str, source: str, limit: int = 0) -> tuple[Recorded, ...]:
    """The recorded requests, at most `limit` (0: all). Raises UsageError: `FILE:LINE: ...`."""
    found = []
    for line, record in _records(text, source):
        made = _recorded(record, f"{source}:{line}")
        found += [made] if made else []
        if len(found) == (limit or _MOST):
            break
    if not found:
        raise UsageError(f"{source}: no request in it that could be sent", _HINT)
    return tuple(found)


def _records(text: str, source: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """(line, record); a JSON list counts as its first line."""
    whole = text.lstrip().startswith("[")
    for number, part in enumerate([text] if whole else text.splitlines(), 1):
        where = f"{source}:{number}"
        try:
            records = read_json(part) if whole else [read_json(part)] if part.strip() else []
        except ValueError as error:
            raise UsageError(f"{where}: this is no JSON: {error}", _HINT) from None
        for record in records:
            if not isinstance(record, Mapping):
                raise UsageError(f"{where}: a request is a JSON object, found {type(record).__name__}", _HINT)
            yield number, record


def _recorded(record: Mapping[str, Any], where: str) -> Recorded | None:
    if "conversations" in record:
        return _sharegpt(record, where)
    if "input_length" in record:
        return _mooncake(record, where)
    body = record.get("body", record)
    if isinstance(body, Mapping) and ("messages" in body or "prompt" in body):
        return _plain(body, record, where)
    raise UsageError(f"{where}: neither prompt, messages, body, conversations nor input_length in it", _HINT)


def _plain(body: Mapping[str, Any], record: Mapping[str, Any], where: str) -> Recorded:
    output = body.get("max_completion_tokens") or body.get("max_tokens") or record.get("output_tokens") or 0
    at = _seconds(record.get("at"), where)
    prompt, messages = body.get("prompt"), body.get("messages")
    if "messages" in body:
        if not isinstance(messages, list) or not messages:
            raise UsageError(f"{where}: `messages` is a list of at least one", _HINT)
        return Recorded(messages=json.dumps(messages), output_tokens=_tokens(output, where), at=at)
    if not isinstance(prompt, str) or not prompt:
        raise UsageError(f"{where}: `prompt` is a text that is not empty", _HINT)
    return Recorded(prompt=prompt, output_tokens=_tokens(output, where), at=at)


def _sharegpt(record: Mapping[str, Any], where: str) -> Recorded | None:
    """The first question and its answer, as other benchmarks take it; None without both."""
    said = record["conversations"]
    turns = [turn for turn in said if isinstance(turn, Mapping)] if isinstance(said, list) else []
    values = [turn.get("value") for turn in turns[:2] if isinstance(turn.get("value"), str)]
    if len(values) < 2 or not all(values) or turns[0].get("from") not in ("human", "user"):
        return None
    return Recorded(prompt=str(values[0]), answer=str(values[1]))


def _mooncake(record: Mapping[str, Any], where: str) -> Recorded:
    blocks = record.get("hash_ids", [])
    if not isinstance(blocks, list) or not all(isinstance(block, int) for block in blocks):
        raise UsageError(f"{where}: `hash_ids` is a list of whole numbers", _HINT)
    tokens = _tokens(record["input_length"], where)
    if blocks and not len(blocks) - 1 <= tokens / BLOCK <= len(blocks):
        raise UsageError(f"{where}: {len(blocks)} blocks of {BLOCK} tokens are not {tokens} tokens", _HINT)
    at = _seconds(record.get("timestamp"), where)
    return Recorded(
        input_tokens=tokens,
        output_tokens=_tokens(record.get("output_length", 0), where),
        blocks=tuple(blocks),
        at=None if at is None else at / 1000,
    )


def _tokens(value: Any, where: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise UsageError(f"{where}: tokens are a whole number, found {str(value)[:40]}", _HINT)


def _seconds(value: Any, where: str) -> float | None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value >= 0):
        return value
    raise UsageError(f"{where}: a time is a number that is not negative, found {str(value)[:40]}", _HINT)


def with_counts(workload: Workload, files: Mapping[str, str]) -> Workload:
    """Levels that replay, with the number of requests of their files. files: path -> text. Raises UsageError."""
    return replace(workload, levels=tuple(_with_count(level, files) for level in workload.levels))


def _with_count(level: LevelPlan, files: Mapping[str, str]) -> LevelPlan:
    if not isinstance(level.shape, Replay):
        return level
    path = level.shape.path
    text = shipped_file(path)
    found = parse(files[path] if text is None else text, path, level.shape.limit)
    if level.shape.timed and any(one.at is None for one in found):
        raise UsageError(f"{path}: `timed: true` needs a time in every record", "leave it out, and give a rate instead")
    return replace(level, requests=len(found))
