"""Asks the argument parsers of real engines about every recipe's command and about the flag data. No GPU is needed.

    python engine_parsers.py setup FOLDER     a venv (2 GB: torch for CPUs), and the engines' Python files
    python engine_parsers.py FOLDER           a report; exit code 1 where parser and flag data disagree

Each recipe and profile is rendered as `up` renders it, for the tested version, and read by that version's own parser;
the flag data's verdict must be the same. Every spelling of an option, and every choice, is compared as well.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))
from engine_data import download
from engine_parser import ABSENT

from sparkwright.domain.cluster import NodePaths
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.plan import Placement
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext
from sparkwright.engines.flag_data import read_data
from sparkwright.engines.flags import check_flags
from sparkwright.engines.tables import DATA_OF
from sparkwright.recipes.load import load_recipe

ENGINES = (
    *(("vllm", version) for version in ("0.21.0", "0.26.0", "0.33.0")),
    *(("sglang", version) for version in ("0.5.12", "0.5.17", "0.5.23")),
)
# SGLang imports one release of these only.
PINNED = {
    "0.5.12": ("transformers==5.6.0", "tokenizers==0.22.2", "huggingface_hub==1.5.0"),
    "0.5.17": ("transformers==5.12.1", "tokenizers==0.22.2", "huggingface_hub==1.5.0"),
    "0.5.23": ("transformers==5.19.0",),
}
NEEDS = Path(__file__).with_suffix(".txt")
REFUSES = frozenset({"ENG001", "ENG002", "ENG003", "ENG004"})
Command = tuple[str, tuple[str, ...]]
"""The recipe, its profile and rank; the words after the program."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", metavar="[setup] FOLDER")
    words = parser.parse_args().words
    folder = Path(words[-1]).resolve()
    if words[0] == "setup" and len(words) == 2:
        unpack_wheels(folder)
        return 0
    return 1 if sum([_compared(name, version, folder) for name, version in ENGINES]) else 0


def unpack_wheels(folder: Path) -> None:
    """Wheels are unpacked, not installed: what they need of a GPU is not installed."""
    python = folder / "venv/bin/python"
    if not python.exists():
        venv.create(folder / "venv", with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", NEEDS], check=True)
    for name, version in ENGINES:
        site = folder / f"{name}-{version}"
        if site.exists():
            continue
        with tempfile.TemporaryDirectory() as wheels, zipfile.ZipFile(download(name, version, Path(wheels))) as wheel:
            wheel.extractall(site, [one for one in wheel.namelist() if not one.endswith(".so")])
        if pinned := PINNED.get(version):
            subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--target", site, *pinned], check=True)


def _compared(name: str, version: str, folder: Path) -> int:
    """Prints one engine's part of the report; how often parser and flag data disagree."""
    commands = list(_commands(name, version))
    said = _asked(name, version, folder, [list(words) for _, words in commands])
    differs = list(_differences(name, version, said["options"]))
    print(f"\n{name} {version}: {len(said['options'])} spellings of options, {len(commands)} commands of ranks")
    for (what, words), refused in zip(commands, said["refused"], strict=True):
        found = [f for f in check_flags(name, version, words) if f.code in REFUSES]
        # What is inside a JSON value is read after the command line, when the engine makes its configuration.
        ours = [f"{f.code} {f.title}" for f in found if refused or not _in_json(name, version, f.subject)]
        if bool(ours) != bool(refused):
            differs.append(f"{what}: the parser {refused or 'accepts it'}; flag data: {'; '.join(ours) or 'accepted'}")
        elif refused:
            print(f"  refused by both: {what}: {ours[0]}")
    accepted = said["refused"].count("")
    print(f"  {accepted} accepted, {len(commands) - accepted} refused, {len(differs)} differences")
    for line in differs:
        print(f"  DIFFERS {line}")
    return len(differs)


def _in_json(name: str, version: str, subject: str) -> bool:
    option = read_data(name, version).find(subject.partition(".")[0])
    return option is not None and option.kind == "json"


def _commands(name: str, version: str) -> Iterator[Command]:
    """The commands of every shipped recipe of this engine and each of its profiles, as if its version were this one."""
    for file in sorted(files("sparkwright.recipes").joinpath("shipped").iterdir(), key=lambda entry: entry.name):
        text = file.read_text(encoding="utf-8")
        for profile in ("", *yaml.safe_load(text).get("profiles", ())):
            recipe = load_recipe(text, file.name, profile)
            if DATA_OF.get(recipe.engine.name, recipe.engine.name) == name:
                of = f"{recipe.name}{'@' * bool(profile)}{profile} (written for {recipe.engine.version})"
                yield from _ranks(of, replace(recipe, engine=replace(recipe.engine, version=version)))


def _ranks(of: str, recipe: Recipe) -> Iterator[Command]:
    nodes = tuple(f"spark-{number + 1}" for number in range(recipe.nodes))
    fabric = {
        node: FabricChoice(f"192.168.100.{at}", "enp1s0f0np0", ("rocep1s0f0",)) for at, node in enumerate(nodes, 10)
    }
    paths = dict.fromkeys(nodes, NodePaths("/models", "/hub", "/cache", "/state"))
    context = RenderContext(paths, dict.fromkeys(nodes, "/models/any"), bind="192.168.100.10", port=8000)
    for spec in engine(recipe.engine.name).render(recipe, Placement(nodes, fabric), context):
        words = spec.engine_words
        yield f"{of} rank {spec.rank}", words[words.index("serve") + 1 :] if "serve" in words else words


def _asked(name: str, version: str, folder: Path, commands: Sequence[Sequence[str]]) -> dict[str, Any]:
    """The answer of engine_parser.py; modules that are not there are left empty, one after the other."""
    absent: list[str] = []
    program = [str(folder / "venv/bin/python"), str(Path(__file__).with_name("engine_parser.py")), name]
    while True:
        env = {**os.environ, "PYTHONPATH": str(folder / f"{name}-{version}"), ABSENT: ",".join(absent)}
        done = subprocess.run(program, env=env, input=json.dumps(commands), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{name} {version}: its parser cannot be imported:\n{done.stderr[-2000:]}")
        said: dict[str, Any] = json.loads(done.stdout)
        if "absent" not in said:
            return said
        absent.append(said["absent"])


def _differences(name: str, version: str, theirs: dict[str, list[str] | None]) -> Iterator[str]:
    """Spellings that only one side has, and choices that are not the same."""
    data = read_data(name, version)
    ours = {spelled: data.options[of] for spelled, of in data.names.items()}
    alike = {"--help", "-h"}
    yield from (f"option {one}: only the parser has it" for one in sorted(theirs.keys() - ours.keys() - alike))
    yield from (f"option {one}: only the flag data has it" for one in sorted(ours.keys() - theirs.keys() - alike))
    for spelled in sorted(ours.keys() & theirs.keys()):
        choices = sorted(map(str, ours[spelled].choices))
        limited = [one for one in theirs[spelled] or [] if one != "None"]
        if not choices and limited:
            print(f"  {spelled}: the flag data does not limit its values: {limited}")
        elif limited != choices:
            yield f"choices of {spelled}: parser {theirs[spelled]}, flag data {choices}"


if __name__ == "__main__":
    sys.exit(main())
