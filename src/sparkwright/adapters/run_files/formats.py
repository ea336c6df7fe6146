"""The formats of run files, and the reader and writer of each."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from sparkwright.adapters.run_files import (
    aiperf,
    guidellm,
    llama_bench,
    llama_benchy,
    llama_benchy_table,
    scores,
    sparkrun_results,
    tables,
    totals,
    vllm_bench,
)
from sparkwright.domain.codec import Unreadable
from sparkwright.domain.errors import RecipeError, UsageError
from sparkwright.domain.run import Run

WRITERS: Mapping[str, Callable[[Run], bytes]] = {
    "json": tables.write_json,
    "csv": tables.write_csv,
    "llama-benchy": llama_benchy.write,
    "llama-benchy-table": llama_benchy_table.write_table,
}
_ENDS = {"json": ".json", "csv": ".csv", "llama-benchy-table": ".md"}
# Each format that can be written -> the usual end of a file's name, '' without one.
FORMS = {form: _ENDS.get(form, "") for form in WRITERS}
_PARQUET = b"PAR1"
_SPARKRUN = re.compile(rf"^{sparkrun_results.KEY}:|\A(?:csv|json):(?=(?s:.*)^stdout:)", re.MULTILINE)
_ID = re.compile(r"[a-z]-[A-Za-z0-9-]{1,60}", re.ASCII)
_KNOWN = "a run of sparkwright (JSON, CSV), llama-benchy and llama-bench (JSON, Markdown table), vllm bench "
_KNOWN += "serve, guidellm and aiperf (JSON), sparkrun benchmark (YAML), or scores of tool-eval-bench, lm-eval (JSON) "
_KNOWN += "and IFEval (JSONL)"
# What a JSON file of another tool is, and what reads it.
_TREES: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Run]], ...] = (
    (llama_benchy.is_llama_benchy, llama_benchy.read),
    (guidellm.is_guidellm, guidellm.read),
    (vllm_bench.is_vllm_bench, vllm_bench.read),
    (aiperf.is_aiperf, aiperf.read),
    (scores.is_tool_eval, scores.read_tool_eval),
    (scores.is_lm_eval, scores.read_lm_eval),
)


def bytes_of(run: Run, form: str) -> bytes:
    """form: of FORMS. Raises UsageError where the run does not fit into it."""
    return WRITERS[form](run)


def form_of(path: str) -> str:
    """The format by the path's end; without a file JSON, which alone holds everything and needs nothing. Raises
    UsageError."""
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
    """The run in a file of any known format, found by its content; a missing id is derived from it. Raises
    UsageError."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    return of_content(data, path)


def of_content(data: bytes, path: str) -> Run:
    """The run in these bytes, like `read`; path: its name in messages. Raises UsageError."""
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


# What a text that is not JSON looks like, and what reads it; the name is for messages.
_TEXTS: tuple[tuple[Callable[[str], bool], Callable[[str, str], Run]], ...] = (
    (llama_bench.is_table, lambda text, _: _understood(llama_bench.read_table, text)),
    (llama_benchy_table.is_table, lambda text, _: _understood(llama_benchy_table.read_table, text)),
    (llama_benchy_table.is_csv_text, lambda text, _: _understood(llama_benchy_table.read_csv, text)),
    (lambda text: bool(_SPARKRUN.search(text)), lambda text, name: _of_yaml(text, name)),
    (tables.is_csv_text, tables.read_csv),
)


def _read(data: bytes, name: str) -> Run:
    """The run, its format found by content; the name does not matter. Raises UsageError, Unreadable."""
    if data.startswith(_PARQUET):
        raise UsageError("Parquet is not read any more", "export the run as JSON with the sparkwright that wrote it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"this is not text; {_KNOWN} can be imported") from None
    if text.lstrip().startswith(("{", "[")):
        return _of_json(text)
    if read_it := next((read for is_it, read in _TEXTS if is_it(text)), None):
        return read_it(text, name)
    raise UsageError(f"unknown format; {_KNOWN} can be imported")


def _of_yaml(text: str, name: str) -> Run:
    from sparkwright.recipes.values import plain_value  # pydantic, which other formats can do without
    from sparkwright.recipes.yaml_lines import read_yaml

    try:
        tree = plain_value(read_yaml(text, name).value)
    except RecipeError as error:
        raise UsageError(error.message, error.hint) from None
    if not sparkrun_results.is_sparkrun(tree):
        raise UsageError(f"`{sparkrun_results.KEY}:` is no mapping: was the file cut?")
    return _understood(sparkrun_results.read, tree)


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
    if isinstance(tree, list) and llama_bench.is_llama_bench(tree):
        return _understood(llama_bench.read, tree)
    if isinstance(tree, dict) and llama_bench.is_llama_bench([tree]):
        return _understood(llama_bench.read, [tree])
    raise UsageError(f"unknown format; {_KNOWN} can be imported")


def _understood(read_it: Callable[[Any], Run], tree: Any) -> Run:
    try:
        return totals.in_range(read_it(tree))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"a value is missing or odd: {error!r}") from None


def _of_lines(text: str, why: str) -> Run:
    """A JSON value in each line: IFEval's judged answers, llama-bench's tests. Raises UsageError.

    why: it is no JSON as a whole.
    """
    rows: list[Any] = []
    for place, line in enumerate(text.splitlines(), 1):
        try:
            rows += [orjson.loads(line)] if line.strip() else []
        except orjson.JSONDecodeError:
            cut = f"line {place} is no JSON: was the file cut?"
            raise UsageError(cut if scores.is_ifeval(rows) else f"no JSON: {why}") from None
    if scores.is_ifeval(rows):
        return _understood(scores.read_ifeval, rows)
    if llama_bench.is_llama_bench(rows):
        return _understood(llama_bench.read, rows)
    if scores.is_samples(rows):
        hint = "import the file that lm-eval wrote next to it: results_*.json"
        raise UsageError("these are samples of lm-eval, without its scores", hint)
    raise UsageError(f"unknown format; {_KNOWN} can be imported")
