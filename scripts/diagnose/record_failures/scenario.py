"""The tables of scenarios: how each is provoked, and what is true of it."""

from __future__ import annotations

import hashlib
import random
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEYS = {"id", "run", "line", "family", "keys", "limit", "tail", "alone", "values", "logs"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """keys: the causes of the catalogue that are right, none when it has none; line: part of the line that explains it.

    run: bash; limit: seconds; tail: only the last lines, as users paste them; alone: no other scenario runs meanwhile;
    logs: files written by `run`, where there is one log a rank; version: a command that prints the program's.
    """

    id: str
    program: str
    version: str
    run: str
    line: str
    family: str
    keys: tuple[str, ...] = ()
    limit: float = 60
    tail: int = 0
    alone: bool = False
    logs: tuple[str, ...] = ()


def scenarios(seed: int, folder: Path = HERE / "scenarios") -> list[Scenario]:
    """All of all tables. Each @name@ becomes one of its `values`, drawn by the seed. Raises ValueError."""
    found = [one for path in sorted(folder.glob("*.toml")) for one in _table(path, seed)]
    twice = {one.id for one in found if sum(one.id == other.id for other in found) > 1}
    if twice:
        raise ValueError(f"the same id twice: {', '.join(sorted(twice))}")
    return found


def data_half(identity: str, seed: int = 1) -> str:
    """`develop` or `unseen`, by the hash of the id."""
    digest = hashlib.sha256(f"{seed}:{identity}".encode()).digest()
    return "unseen" if digest[0] & 1 else "develop"


def _table(path: Path, seed: int) -> list[Scenario]:
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return [_scenario(row, table, path, seed) for row in table["scenario"]]


def _scenario(row: dict[str, Any], table: dict[str, Any], path: Path, seed: int) -> Scenario:
    identity = f"{path.stem}-{row['id']}"
    if unknown := row.keys() - KEYS:
        raise ValueError(f"{path.name}: {identity}: unknown {', '.join(sorted(unknown))}")
    drawn = random.Random(f"{seed}:{identity}")
    values = {name: str(drawn.choice(choices)) for name, choices in row.get("values", {}).items()}

    def filled(text: str) -> str:
        return re.sub(r"@(\w+)@", lambda found: values.get(found[1], found[0]), text)

    return Scenario(
        identity,
        table.get("program", path.stem),
        table.get("version", ""),
        f"{table.get('prelude', '')}\n{filled(row['run'])}",
        filled(row["line"]),
        row["family"],
        tuple(row.get("keys", ())),
        row.get("limit", table.get("limit", 60)),
        row.get("tail", 0),
        row.get("alone", table.get("alone", False)),
        tuple(row.get("logs", ())),
    )
