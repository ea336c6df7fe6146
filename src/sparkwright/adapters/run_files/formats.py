"""Which format a file has, and the way in and out of each; vLLM's own results.

`vllm bench serve --save-result --save-detailed`: names as vLLM 0.21 to 0.33 writes them: ttfts, itls (between chunks)
and start_times in seconds, errors '' when well.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import orjson

from sparkwright.adapters.run_files import llama_benchy, scores, tables
from sparkwright.domain.codec import Unreadable
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Conditions, Level, Reads, Row, Run
from sparkwright.domain.workload import Arrival, Length, LevelPlan, Pace, Single, Workload

VLLM = "vllm bench serve"


def is_vllm(tree: Mapping[str, Any]) -> bool:
    return "request_throughput" in tree and "model_id" in tree


def read_vllm(tree: Mapping[str, Any]) -> Run:
    """Raises UsageError."""
    if not isinstance(tree.get("ttfts"), list):
        hint = "measure again with: vllm bench serve --save-result --save-detailed"
        raise UsageError("the file has totals only, and figures are computed from requests here", hint)
    starts: Sequence[float] = tree.get("start_times") or [0.0] * len(tree["ttfts"])
    began = min(starts, default=0.0)
    lists = (tree.get(name) or [] for name in ("ttfts", "itls", "input_lens", "output_lens", "errors"))
    told = zip(starts, *lists, strict=False)
    rows = tuple(_row(place, start - began, one) for place, (start, *one) in enumerate(told))
    places = tree.get("max_concurrency")
    name = f"c{places}" if places else f"rate {tree.get('request_rate', 'inf')}"
    plan = LevelPlan(name, _shape(tree), _pace(tree), len(rows), 0)
    level = Level(plan, 0, 0.0, float(tree.get("duration") or 0.0), rows)
    terms = Conditions("", str(tree["model_id"]), tokenizer=str(tree.get("tokenizer_id") or ""), client=VLLM)
    workload = Workload(VLLM, VLLM, (plan,), repeats=1)
    return Run("", 0.0, workload, terms, "done", levels=(level,), imported=VLLM, note=f"of {tree.get('date', '?')}")


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


WRITERS: Mapping[str, Callable[[Run], bytes]] = {
    "json": tables.write_json,
    "csv": tables.write_csv,
    "parquet": tables.write_parquet,
    "llama-benchy": llama_benchy.write,
    "llama-benchy-table": llama_benchy.write_table,
}
_ENDS = {"json": ".json", "csv": ".csv", "parquet": ".parquet", "llama-benchy-table": ".md"}
# Each format that can be written -> the usual end of a file's name, '' without one.
FORMS = {form: _ENDS.get(form, "") for form in WRITERS}
_PARQUET = b"PAR1"
_ID = re.compile(r"[a-z]-[A-Za-z0-9-]{1,60}", re.ASCII)
_KNOWN = "a run of sparkwright (JSON, CSV, Parquet), llama-benchy (JSON, Markdown table), vllm bench serve (JSON), "
_KNOWN += "or scores of tool-eval-bench, lm-eval (JSON) and IFEval (JSONL)"
# What a JSON file of another tool is, and what reads it.
_TREES: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Run]], ...] = (
    (llama_benchy.is_it, llama_benchy.read),
    (is_vllm, read_vllm),
    (scores.is_tool_eval, scores.read_tool_eval),
    (scores.is_lm_eval, scores.read_lm_eval),
)


def bytes_of(run: Run, form: str) -> bytes:
    """form: of FORMS. Raises UsageError where the run does not fit into it, or what it needs is not installed."""
    return WRITERS[form](run)


def form_of(path: str) -> str:
    """By the path's end; without a file JSON, which alone holds everything and needs nothing. Raises UsageError."""
    if not path:
        return "json"
    found = next((form for form, end in FORMS.items() if end and path.lower().endswith(end)), "")
    if not found:
        raise UsageError(f"{path}: in which format?", f"--format {' | '.join(FORMS)}")
    return found


def write(content: bytes, path: str) -> None:
    """All of it or what was there before; into a device or pipe as it is. Raises UsageError."""
    part = Path(f"{path}.part")
    try:
        if Path(path).exists() and not Path(path).is_file():
            Path(path).write_bytes(content)
            return
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}", "name another file") from None


def read(path: str) -> Run:
    """Of any known format, found by its content; with an id made of that where it has none. Raises UsageError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    return of_content(data, path)


def of_content(data: bytes, path: str) -> Run:
    """As `read`; path: how messages name it. Raises UsageError."""
    try:
        run = _read(data, path)
    except Unreadable as error:
        raise UsageError(f"{path}: {error}") from None
    except UsageError as error:
        told = error.message if error.message.startswith(f"{path}:") else f"{path}: {error.message}"
        raise UsageError(told, error.hint) from None
    if run.id and not _ID.fullmatch(run.id):
        raise UsageError(f"{path}: {run.id!r} is no run's id")
    return run if run.id else replace(run, id=f"i-{sha256(data).hexdigest()[:8]}")


def _read(data: bytes, name: str) -> Run:
    """By its content; its name does not matter. Raises UsageError, Unreadable."""
    if data.startswith(_PARQUET):
        return tables.read_parquet(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"this is not text, nor Parquet; {_KNOWN} can be imported") from None
    if text.lstrip().startswith(("{", "[")):
        return _of_json(text)
    if llama_benchy.is_table(text):
        return llama_benchy.read_table(text)
    if "," in text.partition("\n")[0]:
        return tables.read_csv(text, name)
    raise UsageError(f"unknown format; {_KNOWN} can be imported")


def _of_json(text: str) -> Run:
    try:
        tree: Any = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _of_lines(text, str(error))
    if isinstance(tree, dict):
        if tree.get("kind") == tables.KIND:
            return tables.read_json(tree)
        if read_it := next((read for is_it, read in _TREES if is_it(tree)), None):
            return _understood(read_it, tree)
        if scores.is_ifeval([tree]):
            return _understood(scores.read_ifeval, [tree])
    raise UsageError(f"unknown format; {_KNOWN} can be imported")


def _understood(read_it: Callable[[Any], Run], tree: Any) -> Run:
    try:
        return read_it(tree)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"a value is missing or odd: {error!r}") from None


def _of_lines(text: str, why: str) -> Run:
    """A JSON value in each line: IFEval's judged answers. why: it is no JSON as a whole. Raises UsageError."""
    rows: list[Any] = []
    for place, line in enumerate(text.splitlines(), 1):
        try:
            rows += [orjson.loads(line)] if line.strip() else []
        except orjson.JSONDecodeError:
            cut = f"line {place} is no JSON: was the file cut?"
            raise UsageError(cut if scores.is_ifeval(rows) else f"no JSON: {why}") from None
    if scores.is_ifeval(rows):
        return _understood(scores.read_ifeval, rows)
    if scores.is_samples(rows):
        hint = "import the file that lm-eval wrote next to it: results_*.json"
        raise UsageError("these are samples of lm-eval, without its scores", hint)
    raise UsageError(f"unknown format; {_KNOWN} can be imported")
