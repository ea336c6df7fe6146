"""Options and variables of an engine's versions, one file an engine.

scripts/engines/engine_data.py reads them from the wheels.
Only the file that is asked for is parsed, and only once.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.engines.findings import ENG
from sparkwright.engines.flag_values import Option
from sparkwright.engines.tables import DATA_OF, LOAD_FORMAT, engine_table
from sparkwright.engines.version import Key, version_key

# argparse takes the beginning of a name where only one name begins so (capture f-bad-flag: "ambiguous option").
ABBREVIATING = frozenset({"vllm", "sglang"})
# Parsers that read `_` in a name as `-`.
DASHING = frozenset({"vllm", "llama-cpp"})
_SAME = re.compile(r"\+cu\d+$")  # the same sources for another CUDA


@dataclass(frozen=True, slots=True)
class FlagData:
    """Options of one engine version. options: name without dashes -> Option; names: every spelling -> that name.

    wheel and sha256 are empty where the sources did not come from a wheel (the file's `source` names the origin).
    replaced: variables on their way out -> what the engine names instead. build: digest of the image or package that
    an owner had read. library: where the other versions are.
    """

    engine: str
    version: str
    wheel: str
    sha256: str
    options: Mapping[str, Option]
    names: Mapping[str, str]
    env: frozenset[str] = field(default_factory=frozenset)
    replaced: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)
    build: str = ""
    library: "FlagLibrary | None" = None

    @property
    def among(self) -> "FlagLibrary":
        return self.library or SHIPPED

    def find(self, spelled: str) -> Option | None:
        """The option of a spelling; of the beginning of one, where the engine's parser takes that."""
        if spelled in self.names:
            return self.options[self.names[spelled]]
        begun = self.begun(spelled)
        return self.options[self.names[begun[0]]] if len(begun) == 1 else None

    def begun(self, spelled: str) -> tuple[str, ...]:
        """Spellings that begin so, for engines whose parser takes abbreviations."""
        if self.engine not in ABBREVIATING or not spelled.startswith("--"):
            return ()
        return tuple(name for name in self.names if name.startswith(spelled))


def versions_in(text: str) -> dict[str, dict[str, Any]]:
    """A data file -> each version's own options and variables, oldest first.

    Raises ValueError or KeyError on a file that scripts/engines/engine_data.py did not write.
    """
    raw = json.loads(text)
    names = [head["version"] for head in raw["versions"]]
    found = {head["version"]: {"engine": raw["engine"], **head, "options": {}, "env": []} for head in raw["versions"]}
    for row in raw["options"]:
        own = {key: value for key, value in row.items() if key not in ("name", "since", "until")}
        for version in _held(names, row):
            found[version]["options"][row["name"]] = own
    for group in raw["env"]:
        for version in _held(names, group):
            found[version]["env"] += group["names"]
    for group in raw.get("env-deprecated", ()):
        for version in _held(names, group):
            found[version].setdefault("env-deprecated", {}).update(group["names"])
    for one in found.values():
        one["env"].sort()
    return found


def _held(names: Sequence[str], row: Mapping[str, Any]) -> Sequence[str]:
    """The versions from `since` to `until`, both included."""
    first = names.index(row["since"]) if "since" in row else 0
    return names[first : names.index(row["until"]) + 1 if "until" in row else None]


def _option(name: str, row: Mapping[str, Any], closed: bool) -> Option:
    listed = {key: tuple(row.get(key, ())) for key in ("choices", "known", "aliases", "negatives")}
    if closed and not listed["choices"]:
        listed |= {"choices": listed["known"], "known": ()}
    return Option(
        name,
        row["kind"],
        type=row.get("type", "str"),
        **listed,
        deprecated="deprecated" if row.get("deprecated") is True else row.get("deprecated", ""),
        replaced_by=row.get("replaced-by", ""),
        refused=row.get("refused", False),
        folded=row.get("folded", False),
        limits=row.get("range", {}),
        keys=row.get("keys", {}),
    )


@cache
def _file(engine: str) -> Mapping[str, Mapping[str, Any]]:
    path = files("sparkwright.engines") / "data" / f"{engine}.json"
    return versions_in(path.read_text(encoding="utf-8")) if path.is_file() else {}


def versions(engine: str) -> tuple[str, ...]:
    """Versions whose data ships, oldest first."""
    return tuple(_file(DATA_OF.get(engine, engine)))


def raw_data(engine: str, version: str) -> Mapping[str, Any]:
    """The rows of a version as the file has them. Raises KeyError for one without data."""
    return _file(DATA_OF.get(engine, engine))[version]


@cache
def read_data(engine: str, version: str) -> FlagData:
    """The shipped data of a version that has some. Raises KeyError otherwise."""
    return flag_data_of(raw_data(engine, version))


def flag_data_of(raw: Mapping[str, Any]) -> FlagData:
    """The flag data of rows in the files' form."""
    closed = engine_table(raw["engine"]).get("closed", ())
    options = {name: _option(name, row, name in closed) for name, row in raw["options"].items()}
    names = {spelling: option.name for option in options.values() for spelling in option.spellings}
    source = raw.get("source", {})
    return FlagData(
        raw["engine"],
        raw["version"],
        raw["wheel"],
        raw["sha256"],
        options,
        names,
        frozenset(raw.get("env", ())),
        raw.get("env-deprecated", {}),
        source if isinstance(source, Mapping) else {},
        raw.get("build", ""),
    )


@dataclass(frozen=True, slots=True)
class FlagLibrary:
    """All flag data that there is: what ships, and before it what an owner had read, the oldest first."""

    own: tuple[FlagData, ...] = ()

    def versions(self, engine: str) -> tuple[str, ...]:
        """Versions that have data, oldest first."""
        of = DATA_OF.get(engine, engine)
        shipped = versions(engine)
        added = {data.version for data in self.own if data.engine == of} - {*shipped}
        return tuple(sorted((*shipped, *added), key=lambda one: version_key(of, one))) if added else shipped

    def read(self, engine: str, version: str) -> FlagData:
        """The owner's newest data of that version, else what ships. Raises KeyError where there is none."""
        of = DATA_OF.get(engine, engine)
        own = [data for data in self.own if (data.engine, data.version) == (of, version)]
        return replace(own[-1], library=self) if own else replace(read_data(engine, version), library=self)

    def has_build(self, engine: str, version: str, build: str) -> bool:
        """True if an owner had this very build read."""
        key = (DATA_OF.get(engine, engine), version, build)
        return any((data.engine, data.version, data.build) == key for data in self.own)

    def for_builds(self, builds: Collection[str]) -> "FlagLibrary":
        """The same, with the data of these builds before that of others of the same version."""
        return FlagLibrary(tuple(sorted(self.own, key=lambda data: bool(data.build) and data.build in builds)))


SHIPPED = FlagLibrary()


def flag_data(engine: str, version: str, library: FlagLibrary = SHIPPED) -> tuple[FlagData | None, tuple[Finding, ...]]:
    """The data to use, and a finding about that choice: this version's, else the nearest version's."""
    known = library.versions(engine)
    if not known:
        title = f"no flag data for {engine} {version or '(no version given)'}"
        return None, (ENG["ENG006"].on("engine.version", "there is data for no version of it", title=title),)
    given = version.removeprefix("v")
    builds = (one for one in reversed(known) if one.partition("+")[0] == given)  # 0.32.0+cpu is a 0.32.0
    for same in (given, _SAME.sub("", given), *builds):
        if same in known:
            return library.read(engine, same), ()
    of = DATA_OF.get(engine, engine)
    near = nearest(of, version, known)
    mine, other = version_key(of, version), version_key(of, near)
    close = len(mine) == 1 or mine[:2] == other[:2]
    choice = ENG["ENG005"].on(
        "engine.version",
        f"no flag data for {version}; {_distance(mine, other, near)}"
        if version
        else f"the recipe names no version; {near} is the newest known",
        title=f"flags are checked against {of} {near}",
        severity=Severity.INFO if close else Severity.WARN,
    )
    return library.read(engine, near), (choice,)


def loaders_of(engine: str, version: str) -> Callable[[str], bool | None] | None:
    """The function that says if this version has a load-format, None if that was not read; None: the engine has no
    choice."""
    data, guessed = flag_data(engine, version)
    option = data.options.get(LOAD_FORMAT) if data else None
    if option is None:
        return None
    names = {str(name) for name in (*option.choices, *option.known)}
    return lambda name: name in names if names and not guessed else None


def nearest(engine: str, version: str, known: tuple[str, ...]) -> str:
    """The same series before others, then the fewest series away, of two the older; the newest for no version."""
    key = version_key(engine, version)
    if not key:
        return known[-1]
    keys = {v: version_key(engine, v) for v in known}
    older, newer = [v for v in known if keys[v] <= key], [v for v in known if keys[v] > key]
    return min((*older[-1:], *newer[:1]), key=lambda v: _apart(keys[v], key))


def _apart(one: Key, other: Key) -> tuple[int, ...]:
    if len(one) == 1:
        return (abs(one[0] - other[0]),)
    return (one[:2] != other[:2], one[0] != other[0], abs(one[1] - other[1]), abs(one[2] - other[2]))


def _distance(mine: Key, near: Key, name: str) -> str:
    """The distance to the version whose data is used, as text."""
    if not mine:
        return f"it is no version that can be compared, {name} is the newest known"
    if mine == near:
        return f"{name} is what it was built from"
    side = "older" if near < mine else "newer"
    if len(mine) == 1:
        return f"{name} is the nearest, {abs(mine[0] - near[0])} builds {side}"
    if mine[:2] == near[:2]:
        patches = abs(mine[2] - near[2])
        return f"{name} is the nearest of the same series" + (
            f", {patches} patch{'es' * (patches > 1)} {side}" if patches else ""
        )
    series = abs(mine[1] - near[1]) if mine[0] == near[0] else 0
    return f"{name} is the nearest known, " + (f"{series} series {side}" if series else f"a major version {side}")
