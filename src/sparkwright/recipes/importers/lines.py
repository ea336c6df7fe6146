"""A command line, a shell script, a systemd unit: the one engine that it starts, in a container or without one."""

import configparser
import getopt
import re
from collections.abc import Callable, Mapping
from typing import Any

from sparkwright.domain.engine import CUSTOM
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import replace
from sparkwright.recipes.importers.commands import CONTAINER, SILENT, Started, one_start, starts_in
from sparkwright.recipes.importers.container import docker_run, put_container, started_by
from sparkwright.recipes.importers.draft import Draft, ImportOptions, put_engine, put_env, put_nodes, put_program
from sparkwright.recipes.importers.flags import put_command
from sparkwright.recipes.importers.settle import Told, settle
from sparkwright.recipes.importers.shell import OUTPUT, Script, Simple, env_file

Beside = Callable[[str], str | None]
_UNIT_SECTION = "Service"


def from_script(text: str, source: str, options: ImportOptions, beside: Beside, given: Script | None = None) -> Draft:
    """A line or a script. Raises RecipeError with file and line for a pipe, `$(...)`, and several engines or none."""
    script = given or Script(text, source, fixed=options.values)
    draft = Draft()
    _unfold(script, source, draft)
    runs = [(command, words) for command in script.commands if (words := _container_words(command.words)) is not None]
    starts = [one for one in starts_in(script, source) if one.at and _container_words(one.at.words) is None]
    if not runs and not starts and script.branches.decided:
        lines = ", ".join(map(str, script.branches.decided))
        why = f"starts no engine when it runs without arguments and variables (branches in line {lines})"
        hint = "--set 1=VALUE gives its first argument, --set NAME=VALUE a variable"
        raise RecipeError(f"{source}: {why}", hint=hint)
    if runs and not starts:
        if len(runs) > 1:
            runs = [(command, words) for command, words in runs if _starts_engine(command, words, source)] or runs
        if len(runs) > 1:
            lines = ", ".join(str(command.line) for command, _ in runs)
            raise RecipeError(f"{source}: docker run is called in lines {lines}", hint="give one of them")
        command, words = runs[0]
        _plain(command, source)
        files = _env_files(words, beside, source)
        put_container(draft, docker_run(words, files, source, command.line), source, options)
    else:
        started = one_start(starts, source)
        command = started.at or script.commands[0]
        _plain(command, source)
        _put_process(draft, started if command not in script.commands else replace(started, others=()), options)
    if lines := ", ".join(map(str, script.branches.decided)):
        draft.note(
            f"line {lines}: branches are followed as the script runs without arguments and variables; check them"
        )
    for other in script.commands:
        if other is not command and other.words[0] not in (*SILENT, "cd"):
            draft.note(f"line {other.line}: {' '.join(other.words)[:60]!r} is left out; only the engine is started")
    return draft


def _unfold(script: Script, source: str, draft: Draft) -> None:
    """Puts the commands that `ssh HOST 'TEXT'` and `eval TEXT` run into their places."""
    found = list[Simple]()
    for command in script.commands:
        over_ssh = _text_over_ssh(command.words)
        text = over_ssh or (" ".join(command.words[1:]) if command.words[:1] == ("eval",) else "")
        inner = Script(text, source, script.variables, command.line).commands if text else [command]
        found += (replace(one, in_branch=one.in_branch or command.in_branch) for one in inner)
        if over_ssh:
            draft.note(f"line {command.line}: runs over ssh; sparkwright reaches the nodes by its cluster file")
    script.commands[:] = found


def _text_over_ssh(words: tuple[str, ...]) -> str:
    """Text that `ssh [OPTIONS] HOST TEXT` runs on HOST; empty for another command."""
    if words[:1] != ("ssh",):
        return ""
    try:
        _, rest = getopt.getopt(list(words[1:]), "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:")
    except getopt.GetoptError:
        return ""
    return " ".join(rest[1:])


def _starts_engine(command: Simple, words: tuple[str, ...], source: str) -> bool:
    """True if a container starts an engine that is known: a script may start a dashboard beside it."""
    try:
        container = docker_run(words, {}, source, command.line)
        return started_by(container.image, container.words, source).engine != CUSTOM
    except RecipeError:
        return False


def _container_words(words: tuple[str, ...]) -> tuple[str, ...] | None:
    """The words after `docker run`; None for another command."""
    bare = [word for word in words[:3] if word in ("sudo", "exec")]
    rest = words[len(bare) :]
    if rest and rest[0].rpartition("/")[2] in CONTAINER:
        rest = rest[2:] if rest[1:2] == ("container",) else rest[1:]
        return rest[1:] if rest[:1] == ("run",) else None
    return None


def _plain(command: Simple, source: str) -> None:
    """Raises RecipeError where the words alone do not tell what runs."""
    where = f"{source}:{command.line}"
    if "|" in (command.before, command.after) or "|&" in (command.before, command.after):
        raise RecipeError(
            f"{where}: the engine is part of a pipe", hint="give its command alone, without `|` and the rest"
        )
    if any(OUTPUT in word for word in (*command.words, *command.assigned.values())):
        hint = "write the result in its place"
        raise RecipeError(
            f"{where}: `$(...)` or `` ` ` `` is the output of a command, which is not run here", hint=hint
        )
    if command.in_branch:
        raise RecipeError(f"{where}: the engine is started under a condition or in a loop", hint="give the line alone")


def _env_files(words: tuple[str, ...], beside: Beside, source: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for at, word in enumerate(words):
        if word == "--env-file" or word.startswith("--env-file="):
            name = word.partition("=")[2] or (words[at + 1] if at + 1 < len(words) else "")
            text = beside(name.removeprefix("./"))
            if text is None:
                raise RecipeError(f"{source}: --env-file {name}: is not next to it", hint="copy it there")
            found |= dict(env_file(text, name))
    return found


def _put_process(draft: Draft, started: Started, options: ImportOptions) -> None:
    """Writes a start without a container: a virtual environment's program, or one on the node's PATH."""
    put_engine(draft, started.engine, "")
    draft.put("engine.runtime", "process")
    venv = re.fullmatch(r"((?:/|~/)\S*)/bin/[\w.-]+", started.program)
    if venv:
        draft.put("engine.venv", venv[1])
    put_program(draft, replace(started, program="" if venv else started.program))
    draft.note("engine.runtime: process, the line names no image; give engine.image to run it in a container")
    put_env(draft, {name: value for name, value in started.env if name != "PATH"})
    put_command(draft, started.engine, started.words)
    put_nodes(draft, options.nodes)
    settle(draft, Told(options.version))


class _Repeated(dict[str, Any]):
    """A section of a unit: a key that is there again adds to what it has."""

    def __setitem__(self, key: str, value: Any) -> None:
        if isinstance(value, list) and isinstance(self.get(key), list):
            self[key].extend(value)
        else:
            super().__setitem__(key, value)


def is_unit(text: str) -> bool:
    return re.search(r"(?m)^\[Service\]\s*$", text) is not None


def from_unit(text: str, source: str, options: ImportOptions, beside: Beside) -> Draft:
    """A systemd unit: ExecStart with Environment and EnvironmentFile. Raises RecipeError with file and line."""
    reader = configparser.RawConfigParser(
        dict_type=_Repeated, strict=False, delimiters=("=",), comment_prefixes=("#", ";"), empty_lines_in_values=False
    )
    reader.optionxform = str  # type: ignore[assignment, method-assign]
    try:
        reader.read_string(re.sub(r"\\\n\s*", " ", text), source)
    except configparser.Error as error:
        line = getattr(error, "lineno", 1)
        raise RecipeError(
            f"{source}:{line}: is no systemd unit: {str(error).splitlines()[0]}", hint="check it"
        ) from None
    service = dict(reader[_UNIT_SECTION])
    start = service.get("ExecStart", "").strip()
    if not start or "\n" in start:
        raise RecipeError(f"{source}: expected one ExecStart in [Service]", hint="give the unit that starts the engine")
    line = next((n for n, row in enumerate(text.splitlines(), 1) if row.startswith("ExecStart=")), 1)
    variables = _environment(service, beside, source)
    script = Script(re.sub(r"^[-@:+!]+", "", start).replace("%h", "$HOME"), source, variables, line, options.values)
    script.exported |= variables
    draft = from_script("", source, options, beside, script)
    for key in service:
        if key.startswith(("ExecStartPre", "ExecStartPost", "ExecStop")):
            draft.note(f"{key}: left out; only the engine is started")
    return draft


def _environment(service: Mapping[str, str], beside: Beside, source: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in service.get("Environment", "").splitlines():
        words = Script(f"env {row}", source).commands
        found |= dict(word.partition("=")[::2] for word in words[0].words[1:] if "=" in word)
    for row in service.get("EnvironmentFile", "").splitlines():
        name = row.strip().removeprefix("-")
        text = beside(name.rpartition("/")[2])
        if text is not None:
            found |= dict(env_file(text, name))
        elif not row.strip().startswith("-"):
            raise RecipeError(f"{source}: EnvironmentFile {name}: is not next to the unit", hint="copy it there")
    return found
