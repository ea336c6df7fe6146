"""The engine that a command starts, and its words: `vllm serve`, `python -m sglang.launch_server` and the like."""

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.definitions import program_words, shipped_definitions
from sparkwright.recipes.importers.shell import Script, Simple

_PYTHON = re.compile(r"(?:.*/)?python3?(?:\.\d+)?")
# Modules and programs of engines, and the options of their command lines: commands.toml.
KNOWN: Mapping[str, Any] = tomllib.loads(
    (files("sparkwright.recipes.importers") / "commands.toml").read_text(encoding="utf-8")
)
PROGRAMS: Mapping[str, Any] = KNOWN["programs"]
# An image's own program in front of vLLM: `dsv4-vllm-entrypoint serve MODEL`.
_OWN = re.compile(r"(?:.*/)?[\w.-]*(vllm|sglang)[\w.-]*")
_BESIDE = ("exec", "env", "nohup", "time", "sudo", "uv", "run", "command", "-E", "--")
_SHELLS = re.compile(r"(?:.*/)?(?:ba|da|z)?sh")
# Commands that change nothing for the engine.
SILENT = ("set", "echo", "printf", "true", ":", "trap", "exit", "sleep", "ulimit", "shift", "[", "[[", "test")
# An option that names what an engine serves; a bare word behind it does not.
_NAMES_MODEL = re.compile(r"(?:-m|-hf|-hfr|-mu|--(?:model|hf-repo|model-url|models-dir))(?:=.*)?")
CONTAINER = ("docker", "podman", "nerdctl")


@dataclass(frozen=True, slots=True)
class Started:
    """words: model and options. program: as written, when it is not what sparkwright would start anyway.

    env: assignments before the program. prefix: words before it that belong to another program (`numactl ...`).
    others: what else the same shell runs. by_name: how the engine is known where no program is named.
    """

    engine: str
    words: tuple[str, ...]
    program: str = ""
    env: tuple[tuple[str, str], ...] = ()
    prefix: tuple[str, ...] = ()
    at: Simple | None = None
    others: tuple[str, ...] = ()
    by_name: str = ""


def find_start(words: Sequence[str]) -> Started | None:
    """The engine that the words of one simple command start; None when they start none."""
    for at, word in enumerate(words):
        name = word.rpartition("/")[2]
        if _PYTHON.fullmatch(word) and (found := _by_module(words, at)):
            engine, begin, program = found
        elif name in PROGRAMS and (found_engine := _by_name(name, words, at)):
            engine, begin = found_engine
            program = word if "/" in word else ""
        elif described := _described(name, words, at):
            engine, begin = described
            program = word if "/" in word else ""
        elif _OWN.fullmatch(name) and tuple(words[at + 1 : at + 2]) == ("serve",):
            engine, begin, program = _OWN.fullmatch(name)[1], at + 2, word  # type: ignore[index]
        else:
            continue
        before = [w for w in words[:at] if w not in _BESIDE]
        if not _starts_here(words, at, begin, before):
            return None
        env = tuple((w.partition("=")[0], w.partition("=")[2]) for w in before if re.match(r"[A-Za-z_]\w*=", w))
        prefix = tuple(w for w in before if not re.match(r"[A-Za-z_]\w*=", w))
        return Started(engine, tuple(words[begin:]), program, env, prefix)
    return None


def _starts_here(words: Sequence[str], at: int, begin: int, before: Sequence[str]) -> bool:
    """True if the program's name is no argument of another command: `cmake --target llama-server` starts nothing."""
    others = [word for word in before if not re.match(r"[A-Za-z_]\w*=", word)]
    if not others:
        return True
    if others[0] in SILENT:
        return False
    rest = words[begin:]
    named = bool(rest[:1]) and not rest[0].startswith("-") and "llama" not in words[at]
    return begin > at + 1 or named or any(_NAMES_MODEL.fullmatch(word) for word in rest)


def _described(name: str, words: Sequence[str], at: int) -> tuple[str, int] | None:
    """The engine of a shipped definition, and the place behind its program's words."""
    for definition in shipped_definitions().values():
        own = program_words(definition)
        if (name, *words[at + 1 : at + len(own)]) == own:
            return definition.name, at + len(own)
    return None


def _by_module(words: Sequence[str], at: int) -> tuple[str, int, str] | None:
    rest = list(words[at + 1 : at + 6])
    if "-m" not in rest:
        return None
    place = at + 1 + rest.index("-m") + 1
    module = KNOWN["modules"].get(words[place]) if place < len(words) else None
    end = _behind_words(module, words, place + 1) if module else None
    return None if module is None or end is None else (module["engine"], end, "")


def _by_name(name: str, words: Sequence[str], at: int) -> tuple[str, int] | None:
    program = PROGRAMS[name]
    end = _behind_words(program, words, at + 1)
    return None if end is None else (program["engine"], end)


def _behind_words(program: Mapping[str, Any], words: Sequence[str], at: int) -> int | None:
    """The place behind the words that must follow the program; None if they do not."""
    more = program.get("words", [])
    end = at + len(more)
    if list(words[at:end]) != more:
        return None
    return end + (list(words[end : end + 1]) == [program.get("optional")])


def starts_in(script: Script, source: str) -> list[Started]:
    """Every engine that a script starts, also inside `bash -c '...'`."""
    found, others = list[Started](), list[str]()
    for command in script.commands:
        inner = inner_shell(command.words)
        if inner is not None:
            nested = Script(inner, source, {**script.variables, **command.assigned}, command.line)
            script.exported |= nested.exported
            found += starts_in(nested, source)
        elif start := find_start(command.words):
            env = (*script.exported.items(), *command.assigned.items(), *start.env)
            found.append(Started(start.engine, start.words, start.program, env, start.prefix, command))
        elif command.words[0] not in SILENT:
            others.append(shlex.join(command.words))
    return [one if one.others else replace(one, others=tuple(others)) for one in found]


def inner_shell(words: Sequence[str]) -> str | None:
    """The text of `bash -lc 'TEXT'`."""
    bare = [word for word in words if word not in _BESIDE]
    if len(bare) > 2 and _SHELLS.fullmatch(bare[0]) and re.fullmatch(r"-[a-z]*c", bare[1]):
        return bare[2]
    return None


def one_start(starts: Sequence[Started], source: str) -> Started:
    """The only one. Raises RecipeError for none and for several."""
    if not starts:
        raise RecipeError(
            f"{source}: no engine is started in it; known: vllm serve, python -m sglang.launch_server, trtllm-serve, "
            "llama-server, also inside docker run",
            hint="give the line that starts the engine",
        )
    if len(starts) > 1:
        lines = ", ".join(str(one.at.line) for one in starts if one.at)
        raise RecipeError(f"{source}: {len(starts)} engines are started, in lines {lines}", hint="give one of them")
    return starts[0]
