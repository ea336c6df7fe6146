"""A run as CSV: a line for each request."""

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.adapters.run_files import columns
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Reads, Run

_READS = ("reads_at", "reads_tokens", "reads_exact")
_KINDS = {**columns.HEAD, **columns.ROW}
_WORDS = {"true": True, "false": False, "1": True, "0": False}


def write(run: Run) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*columns.HEAD, *columns.ROW, *_READS])
    writer.writeheader()
    for record in columns.records(run):
        reads: Reads = record.pop("reads")
        told = {name: _said(value) for name, value in record.items()}
        at, tokens = " ".join(f"{at:.6f}" for at in reads.at), " ".join(map(str, reads.tokens))
        writer.writerow({**told, "reads_at": at, "reads_tokens": tokens, "reads_exact": _said(reads.exact)})
    return text.getvalue().encode()


def _said(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def read(text: str, name: str) -> Run:
    """Raises UsageError with the line."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    return columns.run_of(list(_records(reader, name)), "csv")


def _records(reader: "csv.DictReader[str]", name: str) -> Iterator[Mapping[str, Any]]:
    for line in reader:
        try:
            told = {key: _value(key, line[key]) for key in _KINDS if line.get(key) not in (None, "")}
            at = tuple(map(float, (line.get("reads_at") or "").split()))
            tokens = tuple(map(int, (line.get("reads_tokens") or "").split()))
            if len(at) != len(tokens):
                raise ValueError(f"{len(at)} times of reads, and tokens of {len(tokens)}")
            yield {**told, "reads": Reads(at, tokens, (line.get("reads_exact") or "true") == "true")}
        except ValueError as error:
            raise UsageError(f"{name}:{reader.line_num}: {error}") from None


def _value(key: str, text: str) -> Any:
    kind = _KINDS[key]
    try:
        return _WORDS[text.strip().lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise ValueError(f"{key}: {text!r} is no {kind.__name__}") from None
