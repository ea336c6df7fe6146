"""`recipes import` held to other people's sparkrun recipes: what is valid, what is lost, what is changed on the way.

The source is read a second time here, by other code than the importer's: holes filled, shell words split, options
named by the engine's tables. They are compared with the words that sparkwright would start the engine with.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sparkwright.cli.recipe_validate import rehearsed
from sparkwright.domain.engine import CUSTOM
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.recipe import Recipe
from sparkwright.engines import catalog
from sparkwright.engines.flag_data import read_data, versions
from sparkwright.engines.flags import parse
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe
from sparkwright.recipes.load import load_recipe

SEED = 36
# Written for each rank by the launcher, or always there; a source that has them loses nothing.
LAUNCHER = "host nnodes node-rank master-addr master-port headless distributed-executor-backend model model-path "
LAUNCHER += "dist-init-addr nccl-init-addr api-key hf-repo rpc enable-metrics metrics config slots"
ADDED = "served-model-name alias port revision enable-auto-tool-choice backend load-mode jinja dist-timeout "
ADDED += "watchdog-timeout speculative-eagle-topk extra-llm-api-options"
# One rank in a direction is what an engine does without the option.
SIZES = re.compile(r"(tensor|pipeline|data|expert)-parallel-size|(tp|pp|dp|ep)-size")
PER_RANK = re.compile(r"NCCL_IB_(HCA|GID_INDEX)|\w+_SOCKET_IFNAME|\w*HOST_IP|RAY_\w+|MASTER_\w+|(NODE_|LOCAL_)?RANK")
PROGRAM = re.compile(r"(\S*/)?(vllm|sglang|llama-server|trtllm-serve|python3?)$")
MODULES = ("sglang.launch_server", "vllm.entrypoints.openai.api_server")
# Keys that sparkrun has (RECIPES.md, and what its 0.4.2 reads besides); no other changes what it starts.
THEIRS = "runtime_config builder builder_config build_args mods pre_exec post_exec post_commands stop_after_post "
THEIRS += "distribution_config containers executor executor_config scheduler layout readiness pull_image volumes"
KEPT_AS = {"pre_exec": "mods", "volumes": "mounts"}
SECRET = re.compile(r".*(TOKEN|KEY|SECRET)$")
ALWAYS = {"gpus", "ipc", "network", "ulimit", "auto_remove", "restart_policy", "shm_size"}
HOSTS = ("0.0.0.0", "127.0.0.1", "localhost")
Options = dict[str, Any]


@dataclass
class ImportRow:
    """One file. state: valid, invalid, refused; lost: without a word; left: with a note; changed: corrupted options."""

    file: str
    state: str = "valid"
    reasons: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    seconds: float = 0.0


Comparison = Callable[[ImportRow, str, Recipe, tuple[str, ...]], None]


def read_row(path: Path, held_to: Comparison | None = None) -> ImportRow:
    """One file's row. held_to: compares source and recipe; sparkrun's reader without it."""
    row, text, begun = ImportRow(path.name), path.read_text(), time.perf_counter()
    try:
        made = import_recipe(text, path.name, ImportOptions())
    except RecipeError as error:
        row.state, row.reasons, row.seconds = "refused", [error.message], time.perf_counter() - begun
        return row
    row.seconds = time.perf_counter() - begun
    if made.errors:
        row.state, row.reasons = "invalid", list(made.errors)
        return row
    recipe = load_recipe(made.text, path.name)
    if errors := rehearsed([recipe], path.name).errors:
        row.state, row.reasons = "invalid", list(errors)
    (held_to or compare_sparkrun)(row, text, recipe, made.notes)
    return row


def compare_sparkrun(row: ImportRow, text: str, recipe: Recipe, notes: tuple[str, ...]) -> None:
    with contextlib.suppress(yaml.YAMLError):
        compare(row, yaml.safe_load(text), recipe, notes)


def compare(row: ImportRow, tree: Mapping[str, Any], recipe: Recipe, notes: tuple[str, ...]) -> None:
    said = " ".join(notes).replace("_", "-")
    if recipe.engine.name == CUSTOM:
        compare_words(row, tree, recipe)
    elif recipe.engine.name not in catalog.ENGINES:
        compare_defaults(row, tree, recipe)
    else:
        compare_options(row, whole_json(dict(source_options(tree, recipe.engine.name))), recipe, said)
    for name, value in (tree.get("env") or {}).items():
        if not PER_RANK.fullmatch(str(name)) and not SECRET.match(str(name)) and str(name) not in recipe.env:
            (row.left if str(name).replace("_", "-") in said else row.lost).append(f"env {name}={value}")
    for key, value in tree.items():
        if (
            key == "executor_config"
            and not {name for name in value or () if value[name] not in ("", False, None, [], {})} - ALWAYS
        ):
            continue
        if key in ("builder", "build_args", "runtime_config") and "built the image" in " ".join(recipe.notes):
            continue
        cache = key == "volumes" and all("huggingface" in str(row) for row in value)  # mounted for every engine
        if cache or (key in KEPT_AS and getattr(recipe, KEPT_AS[key])):
            continue
        if value and key in THEIRS.split() and not getattr(recipe, key, None):
            (row.left if key.replace("_", "-") in said else row.lost).append(f"{key}: {str(value)[:60]}")


def compare_words(row: ImportRow, tree: Mapping[str, Any], recipe: Recipe) -> None:
    """Any other server: each word of the source is one that it is started with, but for its address."""
    ranks = catalog.imagined_ranks(recipe)
    there = " ".join(ranks[0].engine_words) if ranks else ""
    program = (ranks[0].entrypoint or ()) if ranks else ()
    missing = [w for w in filled_command(tree) if w not in there and w.strip("'\"") not in HOSTS and not w.isdigit()]
    row.lost += [f"word {word}" for word in missing if word.rpartition("/")[2] not in program]


def compare_defaults(row: ImportRow, tree: Mapping[str, Any], recipe: Recipe) -> None:
    """An engine that a file describes: each of the source's defaults is among its words, by value or as a switch."""
    words = catalog.imagined_ranks(recipe)[0].engine_words
    numbers = {float(word) for word in words if re.fullmatch(r"\d+(\.\d+)?", word)} | {float(recipe.serving.port), 1.0}
    for name, value in (tree.get("defaults") or {}).items():
        switch = isinstance(value, bool) and (not value or f"--{name.replace('_', '-')}" in words)
        number = isinstance(value, int | float) and not isinstance(value, bool) and float(value) in numbers
        if not (switch or number or str(value) in words or value in HOSTS):
            row.lost.append(f"default {name}: {value}")


def compare_options(row: ImportRow, wanted: Options, recipe: Recipe, said: str) -> None:
    ranks = catalog.imagined_ranks(recipe)
    there = whole_json(dict(options_of(recipe.engine.name, ranks[0].engine_words))) if ranks else {}
    there["port"] = [float(recipe.serving.port)]  # these ranks are imagined ones, on a port of their own
    for name, value in wanted.items():
        bare = name.partition(".")[0]
        if bare in LAUNCHER.split() or needless(name, value, recipe):
            continue
        noted = bare in said
        if name not in there:
            (row.left if noted else row.lost).append(f"--{name} {value}")
        elif not is_same(there[name], value):
            (row.left if noted else row.changed).append(f"--{name} {value} -> {there[name]}")
    if ranks and wanted:
        extra = set(there) - set(wanted) - set(LAUNCHER.split()) - set(ADDED.split())
        renamed = row.left if "is written as" in said else row.changed
        renamed += [f"added: --{name} {there[name]}" for name in sorted(extra)]


def needless(name: str, value: Any, recipe: Recipe) -> bool:
    """One rank in a direction, and experts spread over one rank: engines do the same without the option."""
    return (bool(SIZES.fullmatch(name)) and value == [1.0]) or (name == "enable-expert-parallel" and recipe.nodes == 1)


def filled_command(tree: Mapping[str, Any]) -> list[str]:
    values = {"model": tree.get("model"), **(tree.get("defaults") or {})}
    text = str(tree.get("command") or "")
    for _ in range(8):
        text = re.sub(r"\{(?:config\.)?([\w.-]+)\}", lambda m: str(values.get(m[1], m[0])), text)
    return re.sub(r"\\[ \t]*\n", " ", text).split()


def source_options(tree: Mapping[str, Any], engine: str) -> Iterator[tuple[str, Any]]:
    values = {"model": tree.get("model"), **(tree.get("defaults") or {})}
    text = str(tree.get("command") or "")
    for _ in range(8):
        text = re.sub(r"\{(?:config\.)?([\w.-]+)\}", lambda m: str(values.get(m[1], m[0])), text)
    if "{{" in text:
        text = text.replace("{{", "{").replace("}}", "}")
    text = re.sub(r"^\s*#.*$", "", re.sub(r"\\[ \t]*\n", " ", text), flags=re.M)
    with contextlib.suppress(ValueError):
        words = shlex.split(text)
        for at, word in enumerate(words):
            if PROGRAM.match(word) and any(
                w in (*MODULES, "serve") or "llama-server" in word for w in words[at : at + 3]
            ):
                end = next((n for n in range(at, len(words)) if words[n] in ("&&", ";", "|", "||")), len(words))
                yield from options_of(engine, words[at:end])
                return


def options_of(engine: str, words: Any) -> Iterator[tuple[str, Any]]:
    """Canonical name (with what follows a dot) and value of each option."""
    tables = [read_data(engine, version) for version in reversed(versions(engine))]
    for given in parse(tables[0], tuple(words)):
        found = given.option
        for data in tables[1:]:
            found = found or next(iter(parse(data, (given.word, *given.values)))).option
        _, dot, tail = given.word.partition(".")
        name = found.name if found else given.word.lstrip("-").partition(".")[0]
        name = ("no-" if given.negated and found else "") + name.replace("_", "-") + dot + tail
        takes = 0 if found and (found.kind == "flag" or (found.kind == "bool" and not dot)) else None
        values = given.values if takes is None else ()
        if found and found.kind not in ("list", "append") and len(values) > 1:
            values = values[:1]
        yield name, [value_of(word) for word in values]


def value_of(word: str) -> Any:
    """A size as a number, JSON as what it holds, anything else as it is."""
    if sized := re.fullmatch(r"(\d+(?:\.\d+)?)([kKmMgG])(i?)", word):
        power = "kmg".index(sized[2].lower()) + 1
        base = 1024 if sized[2].isupper() or sized[3] else 1000
        return float(sized[1]) * base**power
    with contextlib.suppress(ValueError):
        return float(word) if re.fullmatch(r"-?[\d.]+", word) else json.loads(word)
    return word


def whole_json(found: dict[str, Any]) -> dict[str, Any]:
    """`--x.a 1 --x.b 2` and `--x '{"a":1,"b":2}'` as one mapping: the engine's parser reads both so."""
    merged: dict[str, Any] = {}
    for name, value in found.items():
        head, _, key = name.partition(".")
        inner = {key: value[0] if len(value) == 1 else value} if key else value[0] if len(value) == 1 else None
        if isinstance(inner, dict) and isinstance(merged.get(head, {}), dict):
            merged[head] = {**merged.get(head, {}), **inner}
        else:
            merged[name] = value
    return merged


def is_same(one: Any, other: Any) -> bool:
    return bool(one == other or json.dumps(one).lower() == json.dumps(other).lower())


def halves(folder: Path) -> dict[str, list[Path]]:
    """The same random half each time: `dev` to work with, `out` to be measured only."""
    files = sorted(folder.glob("*.yaml"))
    shuffled = random.Random(SEED).sample(files, len(files))
    return {"dev": sorted(shuffled[::2]), "out": sorted(shuffled[1::2]), "all": files}


def summary(rows: list[ImportRow]) -> str:
    states = Counter(row.state for row in rows)
    good = [row for row in rows if row.state == "valid"]
    drivable = [row for row in rows if row.state != "refused"]
    whole = sum(not (row.lost or row.left or row.changed) for row in drivable)
    silent = sum(bool(row.lost) for row in drivable)
    return (
        f"{len(rows)} recipes: {states['valid']} valid, {states['invalid']} written but not valid, {states['refused']} "
        f"refused\n{len(good) + states['refused']} of {len(rows)} valid or refused; of {len(drivable)} written, "
        f"{whole} lose nothing, {len(drivable) - silent} lose nothing without a note; "
        f"{sum(len(row.changed) for row in rows)} corrupted options; slowest {max(row.seconds for row in rows):.2f} s"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("../shared/data/wild-recipes"))
    parser.add_argument("--half", choices=("dev", "out", "all"), default="all")
    parser.add_argument("--list", action="store_true", help="each file that is not perfect")
    given = parser.parse_args()
    rows = [read_row(path) for path in halves(given.folder)[given.half]]
    for row in rows if given.list else ():
        if row.state != "valid" or row.lost or row.left or row.changed:
            print(f"{row.file}: {row.state}")
            for what in ("reasons", "changed", "lost", "left"):
                print(
                    *(f"    {what}: {line}" for line in getattr(row, what)),
                    sep="\n",
                    end="\n" * bool(getattr(row, what)),
                )
    print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
