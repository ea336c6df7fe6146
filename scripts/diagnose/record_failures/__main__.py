"""`make record-failures`: provoke each scenario and record its log in tests/data/failures-fresh.

python -m record_failures [--seed N] [--only WORD ...] [--jobs N] [--out DIR] [--list]. Root; Linux. The programs are
the ones on PATH (RECORD_TOOLS: their folder, rewritten in the logs). A scenario whose explaining line does not appear
is reported and not recorded.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from record_failures.runner import RecordedFailure, cut_log, record, rewritten
from record_failures.scenario import HERE, Scenario, data_half, scenarios

OUT = HERE.parents[2] / "tests" / "data" / "failures-fresh"
WORK = Path("/tmp/record-failures")
PLAIN = 12_000  # bytes; longer ones are compressed
WRITING = threading.Lock()


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="record_failures", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], help="ids that begin with one of these")
    parser.add_argument("--jobs", type=int, default=2, help="scenarios at a time, but those that run alone")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--list", action="store_true", help="print the ids and exit")
    parser.add_argument("--missing", action="store_true", help="only scenarios without a recording")
    parser.add_argument("--raw", type=Path, help="also write each whole log here, provoked or not")
    parser.add_argument("--taken", type=Path, help="run nothing: take the logs that --raw wrote on another machine")
    chosen = parser.parse_args(words)
    wanted = [one for one in scenarios(chosen.seed) if not chosen.only or one.id.startswith(tuple(chosen.only))]
    if chosen.missing:
        wanted = [one for one in wanted if one.id not in recorded(chosen.out)]
    if chosen.list:
        print("\n".join(one.id for one in wanted))
        return 0
    (chosen.out / "develop").mkdir(parents=True, exist_ok=True)
    (chosen.out / "unseen").mkdir(exist_ok=True)
    if chosen.raw:
        chosen.raw.mkdir(parents=True, exist_ok=True)
    if chosen.taken:
        wanted = [one for one in wanted if (chosen.taken / f"{one.id}.version").exists()]

    def one(scenario: Scenario) -> bool:
        begun = time.monotonic()
        found = record_scenario(scenario, chosen.taken) if chosen.taken else record(scenario, WORK)
        mark = "recorded" if found.provoked else "NOT PROVOKED"
        print(f"{time.monotonic() - begun:5.1f} s {scenario.id}: {mark}", flush=True)
        if chosen.raw:
            for name, text in {**found.logs, f"{scenario.id}.version": found.version}.items():
                (chosen.raw / name).write_text(text)
        if found.provoked:
            store_record(found, chosen.out, chosen.seed)
        return found.provoked

    with ThreadPoolExecutor(chosen.jobs) as pool:
        results = list(pool.map(one, [scenario for scenario in wanted if not scenario.alone]))
    results += [one(scenario) for scenario in wanted if scenario.alone]
    print(f"{sum(results)} of {len(wanted)} recorded")
    return 0 if all(results) else 1


def record_scenario(scenario: Scenario, raw: Path) -> RecordedFailure:
    names = [f"{scenario.id}.{name}" for name in scenario.logs] or [f"{scenario.id}.log"]
    version = (raw / f"{scenario.id}.version").read_text()
    return RecordedFailure(scenario, version, {name: rewritten((raw / name).read_text()) for name in names})


def recorded(out: Path) -> dict[str, dict[str, object]]:
    """The rows of cases.jsonl by id."""
    path = out / "cases.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {str(row["id"]): row for row in rows}


def store_record(found: RecordedFailure, out: Path, seed: int) -> None:
    """The logs, and the row of cases.jsonl with what is true of them."""
    scenario = found.scenario
    names = [stored(out / data_half(scenario.id), name, cut_log(text, scenario)) for name, text in found.logs.items()]
    truth = {name: value for name, value in asdict(scenario).items() if name in ("id", "program", "line", "family")}
    row = truth | {"keys": list(scenario.keys), "version": found.version, "seed": seed, "half": data_half(scenario.id)}
    with WRITING:
        rows = recorded(out) | {scenario.id: row | {"logs": names}}
        write(out / "cases.jsonl", (rows[name] for name in sorted(rows)))


def stored(folder: Path, name: str, text: str) -> str:
    """The log's path below failures-fresh."""
    content = text.encode()
    for old in (folder / name, folder / f"{name}.gz"):
        old.unlink(missing_ok=True)
    if len(content) > PLAIN:
        name = f"{name}.gz"
        content = gzip.compress(content, 9, mtime=0)
    (folder / name).write_bytes(content)
    return f"{folder.name}/{name}"


def write(path: Path, rows: Iterable[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
