"""The common parts of the dialects' programs: their options, the simulator's settings made of them, the begin of a
rank."""

from __future__ import annotations

import argparse
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

from sparkwright.simulator import options
from sparkwright.simulator.log import LineForm, LogVoice, Voices
from sparkwright.simulator.model import find_model, read
from sparkwright.simulator.rank import SimulatedRank, rank_from
from sparkwright.simulator.settings import Faults, SimulatorSettings, settings_from

SIMULATED = "SIMULATED: this is sparkwright's simulator of {engine}; no model runs."


class NoStart(Exception):
    """The program ends before its rank begins. Its text is the last word, `code` the exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


class ConsoleParser(argparse.ArgumentParser):
    """argparse that refuses in the engine's words: a text with a place for the message, and an exit code."""

    refusal = ""
    code = 2

    def value(self, given: Namespace, flag: str) -> Any:
        """The flag's value, whichever of its names this version lists first; None if it has no such flag."""
        action = self._option_string_actions.get(f"--{flag}")
        return getattr(given, action.dest) if action else None

    def error(self, message: str) -> NoReturn:
        if not self.refusal:
            super().error(message)
        self.exit(self.code, self.refusal.format(message))


def parser(prog: str, data: str, refusal: str = "", code: int = 2, allow_abbrev: bool = True) -> ConsoleParser:
    """The parser with exactly the options of that version's data. Raises NoStart if there is none."""
    made = ConsoleParser(prog=prog, allow_abbrev=allow_abbrev)
    made.refusal, made.code = refusal, code
    try:
        rows = options.rows_of(data)
    except OSError as error:
        raise NoStart(f"sparkwright.simulator: error: no data of that version: {error.filename}", 2) from None
    options.add_options(made, [row for row in rows if row["flags"][0] not in ("--help", "-h")])
    return made


def canonical(model: str, **values: Any) -> Namespace:
    """vLLM's arguments, which the simulator's parts read, with these values; None leaves vLLM's default."""
    args = options.parse([model])
    for name, value in values.items():
        if value is not None:
            setattr(args, name, value)
    return args


def settings(env: Mapping[str, str], keys: tuple[str, ...] = ()) -> SimulatorSettings:
    """Raises NoStart."""
    try:
        return replace(settings_from(env), api_keys=keys)
    except ValueError as error:
        raise NoStart(f"sparkwright.simulator: error: {error}", 2) from None


def make_rank(args: Namespace, own: SimulatorSettings, form: LineForm) -> SimulatedRank:
    """Raises NoStart when the model cannot be read or a fault is unknown."""
    folder = find_model(str(args.model), own.hub)
    try:
        if folder is None:
            raise OSError(f"{args.model} does not appear to have a file named config.json")
        model = read(folder, str(args.model), own.weights_gib)
        faults = Faults(own.fault, own.control, args.node_rank)
    except (OSError, ValueError, KeyError) as error:
        raise NoStart(f"{type(error).__name__}: {error}") from None
    voice = LogVoice("", os.getpid(), sys.stdout, form)
    return replace(rank_from(args, model, own, faults), voices=Voices(voice, voice, voice, voice))
