"""The cases of failures-*.jsonl: each log alone, and behind 1,200 lines of a healthy log of the same kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path

from sparkwright.app.diagnose.examine import examine
from sparkwright.domain.diagnosis import CONFIDENT, Cause, Diagnosis

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
HEALTHY = {
    "vllm": ("captures_logs/b-8b-graphs.log", "captures_logs/m2-head.log"),
    "sglang": ("healthy/sglang.log",),
    "trtllm": ("healthy/trtllm.log",),
    "llamacpp": ("captures_logs/llama-ready.log",),
    "nccl": ("captures_logs/m2-head.log", "captures_logs/m2-worker.log"),
    "ray": ("captures_logs/m2-head.log",),
    "client": ("captures_logs/b-8b-graphs.log",),
    "docker": ("healthy/docker.log",),
    "host": ("healthy/kernel.log",),
    "driver": ("healthy/kernel.log",),
}
AROUND = 2000
YEAR = 2026


@dataclass(frozen=True, slots=True)
class DiagnoseCase:
    """One row: what was logged, and the cause that its thread established."""

    id: str
    engine: str
    kind: str
    key: str
    family: str
    log: str


@dataclass(frozen=True, slots=True)
class Named:
    """The named causes: (key, confidence, code), the most likely first; harmless lines come after all causes."""

    case: DiagnoseCase
    ranked: tuple[tuple[str, float, str], ...]
    family: str = ""  # of the line that explains, where no cause has a sign

    @property
    def place(self) -> int | None:
        """The place of the true cause, from 1."""
        keys = [key for key, _, _ in self.ranked]
        return keys.index(self.case.key) + 1 if self.case.key in keys else None

    @property
    def confident_and_wrong(self) -> bool:
        return self.place != 1 and bool(self.ranked) and self.ranked[0][1] >= CONFIDENT


def load(path: Path) -> list[DiagnoseCase]:
    """Raises ValueError for a line that is no such row."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [_case(row, number) for number, row in enumerate(rows, 1)]


def _case(row: Mapping[str, str], number: int) -> DiagnoseCase:
    try:
        family = row.get("cause_family") or "?"
        return DiagnoseCase(row["id"], row["engine"], row.get("log_kind") or "?", row["cause_key"], family, row["log"])
    except KeyError as missing:
        raise ValueError(f"row {number} lacks {missing}") from None


def name_causes(case: DiagnoseCase, embedded: bool) -> Named:
    text = embed_log(case) if embedded else case.log
    return answer(case, examine([(case.id, [text.encode("utf-8", "replace")])], YEAR, {}))


def answer(case: DiagnoseCase, found: Diagnosis) -> Named:
    of_line = found.explanation.families[:1] if found.explanation else ()
    is_named = found.causes and not found.causes[0].resembles
    rows = tuple(_row(cause) for cause in (*found.causes, *found.harmless))
    return Named(case, rows, "" if is_named or not of_line else of_line[0])


def _row(cause: Cause) -> tuple[str, float, str]:
    return cause.key, cause.confidence, cause.code


def embed_log(case: DiagnoseCase) -> str:
    """The failure at the end of a long healthy log: one that is followed by a good start is over, and only a note."""
    return "\n".join([*healthy(case.engine)[: AROUND * 3 // 5], case.log]) + "\n"


@cache
def healthy(engine: str) -> tuple[str, ...]:
    """AROUND lines of the healthy log, repeated."""
    files = HEALTHY.get(engine, HEALTHY["vllm"])
    lines = [line for file in files for line in (DATA / file).read_text(encoding="utf-8").split("\n") if line.strip()]
    return tuple(islice(cycle(lines), AROUND))
