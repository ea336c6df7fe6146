"""The compatibility table: what is known of engine x version x architecture x quantization x chip.

Only the file of the engine that is asked for is parsed, and only once.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import yaml

from sparkwright.compat.combination import GB10, Combination
from sparkwright.compat.schema import Row, Table, table
from sparkwright.engines.catalog import ENGINES as DRIVEN
from sparkwright.engines.catalog import SEPARATE
from sparkwright.engines.tables import DATA_OF
from sparkwright.engines.version import within

ENGINES = tuple(name.replace("-", "_") for name in SEPARATE)


@cache
def read_table(name: str) -> Table:
    """The table of a file. Raises ValueError on one that does not keep the schema."""
    path = files("sparkwright.compat") / "data" / f"{name}.yaml"
    return table(yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader))


def rows_of(engine: str) -> tuple[Row, ...]:
    """All rows of an engine; none for one without a table (the simulator)."""
    found = DRIVEN.get(engine)
    name = DATA_OF.get(engine, engine).replace("-", "_")
    return read_table(name).rows if found and not found.traits.plays else ()


def known_of(combination: Combination) -> tuple[Row, ...]:
    """The rows that a combination meets, in the order of the file."""
    return tuple(row for row in rows_of(combination.engine) if meets(combination, row))


def unheard(combination: Combination) -> bool:
    """Nothing at all is known of this engine with this architecture on GB10; False where it has no architecture."""
    rows = rows_of(combination.engine) if combination.chip == GB10 else ()
    return bool(rows and combination.architecture) and not any(
        combination.architecture in row.architectures for row in rows
    )


def meets(one: Combination, row: Row) -> bool:
    """Whether the combination is one that the row speaks of."""
    return (
        row.chip in ("*", one.chip)
        and (not row.engines or one.engine in row.engines)
        and (not row.architectures or one.architecture in row.architectures)
        and (not row.formats or bool(one.formats & set(row.formats)))
        and within(one.engine, one.version, row.versions)
        and within("nodes", str(one.nodes), row.nodes)
        and _found(row.image, one.image)
        and _found(row.model, one.model)
        and _given(one, row)
    )


def _given(one: Combination, row: Row) -> bool:
    """Flags, variables, type of the KV cache, way of drafting, the pull request that an image is built from."""
    return (
        all(_one_of(values, one.flag(name)) for name, values in row.flags.items())
        and all(_one_of(values, one.env.get(name, "")) for name, values in row.env.items())
        and _one_of(row.kv, one.kv)
        and _one_of(row.drafts, one.drafts)
        and row.pull_request in (0, *one.pull_requests)
    )


def _one_of(values: Iterable[str], value: str) -> bool:
    wanted = [text.lower() for text in values]
    return not wanted or value.lower() in wanted or (bool(value) and "*" in wanted)


def _found(pattern: str, text: str) -> bool:
    return not pattern or re.search(pattern, text, re.IGNORECASE) is not None
