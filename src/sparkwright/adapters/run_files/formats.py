"""Which format a file has, and the way in and out of each."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from sparkwright.adapters.run_files import columns, csv_file, llama_benchy, llama_benchy_table, parquet_file, vllm_bench
from sparkwright.domain.codec import Unreadable
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Run

WRITERS: Mapping[str, Callable[[Run], bytes]] = {
    "json": columns.write,
    "csv": csv_file.write,
    "parquet": parquet_file.write,
    "llama-benchy": llama_benchy.write,
    "llama-benchy-table": llama_benchy_table.write,
}
_ENDS = {"json": ".json", "csv": ".csv", "parquet": ".parquet", "llama-benchy-table": ".md"}
_PARQUET = b"PAR1"
_ID = re.compile(r"[a-z]-[A-Za-z0-9-]{1,60}", re.ASCII)
_KNOWN = "a run of sparkwright (JSON, CSV, Parquet), llama-benchy (JSON, Markdown table) or vllm bench serve (JSON)"


class DiskRunFiles:
    """Implements ports.RunFiles."""

    @property
    def forms(self) -> Mapping[str, str]:
        return {form: _ENDS.get(form, "") for form in WRITERS}

    def bytes_of(self, run: Run, form: str) -> bytes:
        return WRITERS[form](run)

    def write(self, content: bytes, path: str) -> None:
        part = Path(f"{path}.part")
        try:
            part.write_bytes(content)
            part.replace(path)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from None

    def read(self, path: str) -> Run:
        """With an id made of its content where it has none."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
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
        return parquet_file.read(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"this is not text, nor Parquet; {_KNOWN} can be imported") from None
    if text.lstrip().startswith(("{", "[")):
        return _of_json(text)
    if llama_benchy_table.is_it(text):
        return llama_benchy_table.read(text)
    if "," in text.partition("\n")[0]:
        return csv_file.read(text, name)
    raise UsageError(f"unknown format; {_KNOWN} can be imported")


def _of_json(text: str) -> Run:
    try:
        tree: Any = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise UsageError(f"no JSON: {error}") from None
    if isinstance(tree, dict):
        if tree.get("kind") == columns.KIND:
            return columns.read(tree)
        try:
            if llama_benchy.is_it(tree):
                return llama_benchy.read(tree)
            if vllm_bench.is_it(tree):
                return vllm_bench.read(tree)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"a value is missing or odd: {error!r}") from None
    raise UsageError(f"unknown format; {_KNOWN} can be imported")
