"""A model's listing from its hub: configuration, index, and headers of a few weight files, by ranges; never weights.

Written as remote.staging lists a folder, so that facts.checkpoint reads both. Tensors whose names differ in numbers
only are alike: of the shards that the index names only so many are read that each kind of tensor is met once. Where
their sum is not the index's own, all are read, up to a limit.
"""

import asyncio
import base64
import gzip
import heapq
import json
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.facts import gguf
from sparkwright.facts.safetensors import INDEX
from sparkwright.remote.staging import LONGEST_HEADER

# (file, first byte, how many) -> bytes; fewer at the end of the file
Get = Callable[[str, int, int], Awaitable[bytes]]
_FIRST, _LONGEST = 64 * 1024, LONGEST_HEADER
_MOST_SHARDS, _AT_ONCE = 64, 8
_WHOLE = 32 * 1024 * 1024
_NUMBER = re.compile(r"(?<=\.)\d+(?=\.|$)", re.ASCII)
_TOLERANCE = 0.005
_ID = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)
_BYTES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "U32": 4, "BF16": 2, "F16": 2, "I16": 2,
          **dict.fromkeys(("U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "BOOL"), 1)}  # fmt: skip
# Which files engines load, the first pattern that any file matches.
_LOADED = (r"model[^/]*\.safetensors", r"(?!consolidated)[^/]+\.safetensors", r"[^/]+\.safetensors")
_GGUF = (r"(?i).*q4_k_m.*\.gguf", r"(?i).*q4.*\.gguf", r".*\.gguf")
_LATER = re.compile(r"-0*(?!1-of)\d+-of-\d+\.gguf")  # not the first part of several
_Groups = Mapping[tuple[str, str], tuple[int, int]]  # (name, type) -> bytes, how many


async def listing(get: Get, files: Mapping[str, int], name: str) -> str:
    """name: of the model. Raises ValueError for an answer that is none of what was asked for."""
    rows = [f"path\t/{name}", f"root\t/{name}", "revision\t"]
    chosen, weights = _loaded(files), _packed(files)
    if weights and not chosen:
        files = {path: size for path, size in files.items() if path in weights or not path.endswith(".gguf")}
        head = base64.b64encode(gzip.compress(await _gguf_head(get, weights[0], files[weights[0]]), 1)).decode()
        return "\n".join((*rows, *_files({path: files[path] for path in weights}), f"gguf\t{head}"))
    rows += _files(files)
    for kind in ("config", "hf_quant_config"):
        if (path := f"{kind}.json") in files:
            text = (await get(path, 0, min(files[path], _WHOLE))).decode("utf-8", "replace")
            line = text.replace("\n", "").replace("\t", "").replace("\r", "")
            rows.append(f"{kind}\t{line}")
    index = _mapping(await get(INDEX, 0, _WHOLE)) if INDEX in files else {}
    rows += _index_rows(index)
    groups = await _tensors(get, files, chosen, index)
    rows += [f"head\t{path}\t{files[path]}\t0" for path in chosen]
    rows += [f"tensor\t{kind}\t{dtype}\t{size}\t{count}" for (kind, dtype), (size, count) in groups.items()]
    return "\n".join(rows)


def _files(files: Mapping[str, int]) -> Iterator[str]:
    return (f"file\t{size}\t{path}" for path, size in files.items() if not re.search(r"[\t\n]", path))


def _loaded(files: Mapping[str, int]) -> list[str]:
    found = ([path for path in files if re.fullmatch(pattern, path)] for pattern in _LOADED)
    return sorted(next(filter(None, found), []))


def _packed(files: Mapping[str, int]) -> list[str]:
    """The GGUF file that engines would be given, and its other parts; of several quantizations one of four bits."""
    first = [path for path in sorted(files) if path.endswith(".gguf") and not _LATER.search(path)]
    one = next((path for pattern in _GGUF for path in first if re.fullmatch(pattern, path)), "")
    stem = re.sub(r"-\d+-of-\d+\.gguf$", "", one)
    return [path for path in sorted(files) if one and (path == one or path.startswith(f"{stem}-"))]


async def _gguf_head(get: Get, path: str, size: int) -> bytes:
    """The beginning of a GGUF file, long enough for metadata and the table of tensors."""
    for length in (1 << 20, 4 << 20, gguf.MOST):
        data = await get(path, 0, min(length, size))
        header = gguf.parse(data)
        if header is None or header.whole or len(data) >= size:
            break
    return data


def _mapping(data: bytes) -> dict[str, Any]:
    found = read_json(data)
    if not isinstance(found, dict):
        raise ValueError("no JSON object")
    return found


def _index_rows(index: Mapping[str, Any]) -> Iterator[str]:
    named = _named(index)
    yield from (f"shard\t{json.dumps(path)}" for path in sorted(set(named.values())))
    if named:
        yield f"index\t{INDEX}\t{_total(index) or ''}\t{len(named)}"


def _named(index: Mapping[str, Any]) -> dict[str, str]:
    """Tensor -> file."""
    found = index.get("weight_map")
    return {str(k): v for k, v in found.items() if isinstance(v, str)} if isinstance(found, dict) else {}


def _total(index: Mapping[str, Any]) -> int:
    part = index.get("metadata")
    total = part.get("total_size") if isinstance(part, dict) else 0
    return total if isinstance(total, int) else 0


async def _tensors(get: Get, files: Mapping[str, int], chosen: list[str], index: Mapping[str, Any]) -> _Groups:
    """Tensors by name and type; {} if there are too many files to read and the ones that were read do not add up."""
    named, there = _named(index), [path for path in chosen if path in files]
    if not named:
        return _added(await _headers(get, there)) if len(there) <= _MOST_SHARDS else {}
    kinds = Counter(_NUMBER.sub("#", tensor) for tensor in named)
    some = await _headers(get, list(islice(_cover(named, files), _MOST_SHARDS)))
    scaled = _scaled(_added(some), kinds)
    total = _total(index) or sum(files[path] for path in set(named.values()) if path in files)
    if abs(sum(size for size, _ in scaled.values()) - total) <= _TOLERANCE * total:
        return scaled
    every = sorted({path for path in named.values() if path in files})
    return _added(await _headers(get, every)) if len(every) <= _MOST_SHARDS else {}


def _cover(named: Mapping[str, str], files: Mapping[str, int]) -> Iterator[str]:
    """Files that together have a tensor of each kind, the one with most kinds that are missing first.

    Each pair of file and kind is looked at twice at most: a repository may name as many files as it likes.
    """
    holds: dict[str, set[str]] = defaultdict(set)
    held_by: dict[str, set[str]] = defaultdict(set)
    for tensor, path in named.items():
        if path in files:
            kind = _NUMBER.sub("#", tensor)
            holds[path].add(kind)
            held_by[kind].add(path)
    lacks = {path: len(kinds) for path, kinds in holds.items()}
    queue = [(-lacks[path], -number, path) for number, path in enumerate(sorted(holds))]
    heapq.heapify(queue)
    while queue:
        before, number, best = heapq.heappop(queue)
        if not lacks[best]:
            continue
        if lacks[best] != -before:
            heapq.heappush(queue, (-lacks[best], number, best))
            continue
        yield best
        for kind in holds[best]:
            for path in held_by.pop(kind, ()):
                lacks[path] -= 1


def _scaled(seen: _Groups, kinds: Mapping[str, int]) -> dict[tuple[str, str], tuple[int, int]]:
    """The sizes scaled to the index's count of each kind, if all that were seen are of one type."""
    alike = {name for name, many in Counter(name for name, _ in seen).items() if many == 1 and name in kinds}
    return {
        (name, dtype): (size * kinds[name] // count, kinds[name]) if name in alike else (size, count)
        for (name, dtype), (size, count) in seen.items()
    }


async def _headers(get: Get, paths: Iterable[str]) -> list[Mapping[str, Any]]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(path: str) -> Mapping[str, Any]:
        async with gate:
            return await _header(get, path)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(path)) for path in paths]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def _header(get: Get, path: str) -> Mapping[str, Any]:
    """8 bytes of its length, little-endian, then JSON."""
    data = await get(path, 0, _FIRST)
    if len(data) < 8:
        raise ValueError(f"{path} does not begin with a safetensors header")
    (length,) = struct.unpack("<Q", data[:8])
    if length > _LONGEST:
        raise ValueError(f"{path} does not begin with a safetensors header")
    if length + 8 > len(data):
        data += await get(path, len(data), length + 8 - len(data))
    return _mapping(data[8 : 8 + length])


def _added(headers: Iterable[Mapping[str, Any]]) -> _Groups:
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for header in headers:
        for tensor, told in header.items():
            offsets = told.get("data_offsets") if isinstance(told, dict) else None
            if tensor == "__metadata__" or not isinstance(offsets, list) or len(offsets) != 2:
                continue
            begin, end = (int(one) for one in offsets)
            key = (re.sub(r"[\t\n]", " ", _NUMBER.sub("#", tensor)), re.sub(r"\W", "", str(told.get("dtype"))))
            size, count = found.get(key, (0, 0))
            found[key] = (size + max(0, end - begin), count + 1)
    return found


def quantized(answer: bytes) -> Iterator[str]:
    """`variant ID BYTES` for each model that the hub lists as a quantization, by its numbers of each type."""
    try:
        listed = read_json(answer)
    except ValueError:
        return
    for one in listed if isinstance(listed, list) else ():
        told = one.get("safetensors") if isinstance(one, dict) else None
        counts = told.get("parameters") if isinstance(told, dict) else None
        name = str(one.get("id")) if isinstance(one, dict) else ""
        if not isinstance(counts, dict) or not _ID.fullmatch(name):
            continue
        sizes = [n * _BYTES.get(str(dtype), 2) for dtype, n in counts.items() if isinstance(n, int) and n > 0]
        if sizes:
            yield f"variant\t{name}\t{sum(sizes)}"
