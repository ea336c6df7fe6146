"""Lets one engine's own argument parser read command lines, without a GPU. Run by engine_parsers.py, in its venv.

    PYTHONPATH=SITE python engine_parser.py vllm|sglang < [["--model", "m"], ...]  > {"options": ..., "refused": [...]}

What the engine imports and is not installed here is an empty module: a parser needs none of it.
"""

import argparse
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import io
import json
import os
import sys
import types
from typing import Any

ABSENT = "SPARKWRIGHT_ABSENT"
STUBS = frozenset(filter(None, os.environ.get(ABSENT, "").split(",")))
VERSION = "99.0"


class Anything(type):
    """A class whose attributes are such classes."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


class Empty(types.ModuleType):
    __version__ = VERSION

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything(name, (), {})


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes the modules of STUBS, and what is below them."""

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if not any(name == stub or name.startswith(f"{stub}.") for stub in STUBS):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run."""


def vllm_parser() -> argparse.ArgumentParser:
    """The parser as on a CUDA machine: the platform decides which options there are."""
    platforms = importlib.import_module("vllm.platforms")
    cuda = importlib.import_module("vllm.platforms.cuda")
    platforms._current_platform = cuda.NonNvmlCudaPlatform()  # type: ignore[attr-defined]
    place = "vllm.entrypoints.openai.cli_args"  # 0.33.0 has it in `common`
    place = place if importlib.util.find_spec(place) else "vllm.entrypoints.common.cli_args"
    make = importlib.import_module(place).make_arg_parser
    flexible = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
    made: argparse.ArgumentParser = make(flexible(prog="vllm serve"))
    return made


def sglang() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch_server.py")
    importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return parser


def refused(parser: argparse.ArgumentParser, words: list[str]) -> str:
    """The parser's last line; '' where it accepts them."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parser.parse_args(words)
    except SystemExit as stop:
        return (said.getvalue().strip() or f"exit {stop.code}").splitlines()[-1]
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def listed(parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Every spelling -> the choices of its option, as text, or None."""
    actions = parser._option_string_actions.items()
    return {name: sorted(map(str, action.choices)) if action.choices else None for name, action in actions}


def main() -> None:
    sys.meta_path.append(StubFinder())
    commands = json.load(sys.stdin)
    real = importlib.metadata.version

    def version(distribution_name: str) -> str:
        return VERSION if distribution_name in STUBS else real(distribution_name)

    importlib.metadata.version = version
    out, sys.stdout = sys.stdout, sys.stderr  # imports may print
    try:
        parser = {"vllm": vllm_parser, "sglang": sglang}[sys.argv[1]]()
    except ModuleNotFoundError as error:
        if error.name in STUBS or not error.name:
            raise
        json.dump({"absent": error.name}, out)
        return
    json.dump({"options": listed(parser), "refused": [refused(parser, words) for words in commands]}, out)


if __name__ == "__main__":
    main()
