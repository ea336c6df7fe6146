"""Print the options that an installed engine's own parser takes, as one line of JSON.

    python engine_options.py vllm|sglang|llama-cpp

It runs in the engine's own Python and starts no model. The line is {"version", "build", "options", "env"}, or "help" in
place of "options" where the parser only prints a help text. `build` is the SHA-256 of what pip recorded of the package.
It is self-contained: Python >= 3.10, nothing but its library.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import signal
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

LONGEST = 300  # seconds
PACKAGES = {"vllm": "vllm", "sglang": "sglang", "llama-cpp": "xllamacpp"}
# Variables that the sources read are names in quotes; SGLang's own tests and other programs are left out.
VARIABLES = {"vllm": r"VLLM_[A-Z0-9_]+", "sglang": r"SGL(?:ANG)?_[A-Z0-9_]+"}
OTHER_PROGRAMS = frozenset({"multimodal_gen", "test", "benchmark"})
SENTENCE = re.compile(r"(.{20,140}?\.)(?:\s|$)", re.DOTALL)
# The C++ parser of xllamacpp.
PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
EXAMPLES = range(8, 20)  # enum llama_example: the server's number moves between versions; its help has --port
LONGEST_HELP = 1 << 20
HEADER = 16  # CommonParams holds the C++ struct right after Python's object header
Row = dict[str, Any]


def vllm_parser() -> argparse.ArgumentParser:
    """The parser as on a CUDA machine without a visible device: the platform decides which options exist."""
    platforms = importlib.import_module("vllm.platforms")
    if platforms.current_platform.is_unspecified():  # an image for GPUs that was started without one
        cuda = importlib.import_module("vllm.platforms.cuda")
        platforms._current_platform = cuda.NonNvmlCudaPlatform()  # type: ignore[attr-defined]
    serve = importlib.import_module("vllm.entrypoints.cli.serve")
    made: argparse.ArgumentParser = serve.make_arg_parser(serve.FlexibleArgumentParser(prog="vllm serve"))
    return made


def sglang() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="launch_server.py")
    importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return parser


def option_rows(parser: argparse.ArgumentParser, keys: dict[str, Any], known: dict[str, list[str]]) -> dict[str, Row]:
    """Option name without dashes -> kind, type, choices and spellings."""
    actions = {id(action): action for action in parser._option_string_actions.values()}.values()
    found = {}
    for action in actions:
        if isinstance(action, argparse._HelpAction | argparse._VersionAction):
            continue
        first, *others = sorted(action.option_strings, key=lambda text: not text.startswith("--"))
        negative = [text for text in others if _negates(text, action.option_strings)] if action.nargs == 0 else []
        aliases = [text for text in others if text not in negative]
        name, row = first.removeprefix("--"), kind_of(action, bool(negative))
        row |= {"negatives": negative} if negative and negative != [f"--no-{name}"] else {}
        row |= {"aliases": aliases} if aliases else {}
        names = known.get(name) or (action.metavar if isinstance(action.metavar, list) else [])
        row |= {"known": sorted(map(str, names))} if names and "choices" not in row else {}
        row |= {"keys": keys[action.dest]} if row["kind"] == "json" and keys.get(action.dest) else {}
        found[name] = row | deprecation(action)
    return found


def _negates(text: str, spellings: typing.Sequence[str]) -> bool:
    """True if the spelling switches off what another one switches on."""
    pairs = (("--no-", "--"), ("--disable-", "--enable-"), ("--enable-", "--disable-"))
    first = min(spellings, key=lambda one: not one.startswith("--"))
    return any(text.startswith(off) and first == on + text.removeprefix(off) for off, on in pairs) or any(
        text == f"--no-{one.removeprefix('--')}" for one in spellings
    )


def kind_of(action: argparse.Action, paired: bool) -> Row:
    """The kind of value after the option: none, one, several, or JSON."""
    if action.nargs == 0:
        return {"kind": "bool" if paired else "flag"}
    kind, text = "value", type_of(action.type)
    if text == "json" and action.nargs is None:
        return {"kind": "json"}
    if action.nargs == "?":
        kind = "maybe"
    elif action.nargs is not None:
        kind = "list"
    elif isinstance(action, argparse._AppendAction):
        kind = "append"
    row: Row = {"kind": kind, "type": "str" if text == "json" else text}
    choices = list(action.choices or ())
    plain = [one for one in choices if isinstance(one, str | int | float) and not isinstance(one, bool)]
    if choices and len(plain) == len([one for one in choices if one is not None]):
        row["choices"] = plain
    if "choices" in row and folds_case(action.type, row["choices"]):
        row["folded"] = True
    return row


def folds_case(convert: Any, choices: list[Any]) -> bool:
    """True if case and dashes of a value are ignored."""
    text = next((one for one in choices if isinstance(one, str) and one.lower() != one.upper()), "")
    return bool(text) and callable(convert) and _tried(convert, text.swapcase()) in choices


def type_of(convert: Any) -> str:
    """The kind of value that a converter takes, from what it makes of samples."""
    if convert is None or convert is str or not callable(convert):
        return "str"
    empty = _tried(convert, "{}")
    if not isinstance(empty, Mapping) and not dataclasses.is_dataclass(empty):
        word, thousand = _tried(convert, "x"), _tried(convert, "1k")
        if word != "x" and thousand == 1000:
            return "human-int" if _tried(convert, "1K") == 1024 else "si-int" if _tried(convert, "1Ki") else "str"
        number, part = _tried(convert, "8"), _tried(convert, "0.5")
        if isinstance(number, bool) or word is not None:
            return "str"
        return "float" if part == 0.5 else "int" if number == 8 else "str"
    return "json-or-str" if _tried(convert, "x") == "x" else "json"


def _tried(convert: Callable[[str], Any], text: str) -> Any:
    """None where the converter refuses the text."""
    with suppress(Exception):
        return convert(text)
    return None


def deprecation(action: argparse.Action) -> Row:
    """The parser's own words: the engine ends at some of these options, and only warns at others."""
    text = str(getattr(action, "error_message", "") or action.help or "")
    named = type(action).__name__.startswith("Deprecated") or bool(getattr(action, "deprecated", False))
    if not named and not re.match(r"[\[(]?deprecated", text, re.IGNORECASE):
        return {}
    first = SENTENCE.match(text)
    new = str(getattr(action, "new_flag", "") or "")
    return {
        "deprecated": (first[1] if first else text[:140]).strip() or "deprecated",
        **({"replaced-by": new} if new else {}),
        **({"refused": True} if getattr(action, "error_message", "") else {}),
    }


def json_keys(module: str, name: str) -> dict[str, dict[str, Any]]:
    """Field of the engine's arguments -> keys of the dataclass that it is read into, with values where limited."""
    found: dict[str, dict[str, Any]] = {}
    with suppress(Exception):
        for field in dataclasses.fields(getattr(importlib.import_module(module), name)):
            for part in (field.type, *typing.get_args(field.type)):
                if isinstance(part, type) and dataclasses.is_dataclass(part):
                    found[field.name] = dict(_limits(part))
    return found


def _limits(owner: type) -> Iterator[tuple[str, list[Any] | None]]:
    hints: dict[str, Any] = {}
    with suppress(Exception):
        hints = typing.get_type_hints(owner)
    for field in dataclasses.fields(owner):
        if not field.name.startswith("_") and field.init:
            hint = hints.get(field.name)
            yield field.name, list(typing.get_args(hint)) if typing.get_origin(hint) is typing.Literal else None


def vllm_names() -> dict[str, list[str]]:
    """Built-in names of options that plugins may add to."""
    found = {}
    for option, module, manager in (
        ("tool-call-parser", "vllm.tool_parsers", "ToolParserManager"),
        ("reasoning-parser", "vllm.reasoning", "ReasoningParserManager"),
    ):
        with suppress(Exception):
            found[option] = sorted(getattr(importlib.import_module(module), manager).list_registered())
    with suppress(Exception):
        methods = importlib.import_module("vllm.model_executor.layers.quantization").QUANTIZATION_METHODS
        found["quantization"] = sorted(methods)
    return found


def variables(engine: str) -> list[str]:
    """Names in quotes anywhere in the package's Python sources, as for the data that ships."""
    if engine not in VARIABLES:
        return []
    quoted = re.compile(rf"""["']({VARIABLES[engine]})["']""")
    spec = importlib.util.find_spec(PACKAGES[engine])
    names: set[str] = set()
    for root in spec.submodule_search_locations or () if spec else ():
        for folder, folders, files in os.walk(root):
            folders[:] = [one for one in folders if one not in OTHER_PROGRAMS or engine == "vllm"]
            for file in files:
                if file.endswith(".py"):
                    with suppress(OSError):
                        names.update(quoted.findall(Path(folder, file).read_text(errors="replace")))
    return sorted(names)


def build(package: str) -> tuple[str, str]:
    """(version, SHA-256 of pip's record of the package's files); ('', '') where pip knows nothing of it."""
    found = importlib.metadata.distributions()
    same = (one for one in found if (one.metadata["Name"] or "").lower().replace("_", "-").startswith(package))
    best = min(same, key=lambda one: len(one.metadata["Name"]), default=None)
    record = (best.read_text("RECORD") or "") if best else ""
    return (best.version if best else "", hashlib.sha256(record.encode()).hexdigest() if record else "")


def print_help(example: int) -> None:
    """Call llama.cpp's C++ parser with `--help`, which prints and exits: only ever run in a process of its own."""
    import ctypes

    wheel = importlib.import_module("xllamacpp.xllamacpp")
    parse = getattr(ctypes.CDLL(wheel.__file__), PARSE)
    params = wheel.CommonParams()
    words = (ctypes.c_char_p * 3)(b"llama-server", b"--help", None)
    parse(2, words, ctypes.c_void_p(id(params) + HEADER), example, None)


def llama_help() -> str:
    for example in EXAMPLES:
        text = _in_a_child(lambda example=example: print_help(example))  # type: ignore[misc]
        if "--port PORT" in text and "--api-key-file" in text:
            return text
    raise SystemExit("the parser in xllamacpp printed no server help: has its layout changed?")


def _in_a_child(work: Callable[[], None]) -> str:
    """The output of a function that ends or breaks its process."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        os.dup2(writer, 1)
        os.close(reader)
        with suppress(BaseException):
            work()
        os._exit(1)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read(LONGEST_HELP)
    os.waitpid(child, 0)
    return text.decode(errors="replace")


def answer(engine: str) -> Row:
    version, digest = build(PACKAGES[engine])
    head = {"version": version, "build": digest, "env": variables(engine)}
    if engine == "llama-cpp":
        return head | {"help": llama_help()}
    parser = {"vllm": vllm_parser, "sglang": sglang}[engine]()
    keys = json_keys("vllm.engine.arg_utils", "EngineArgs") if engine == "vllm" else {}
    known = vllm_names() if engine == "vllm" else {}
    return head | {"options": option_rows(parser, keys, known)}


def main() -> None:
    signal.alarm(LONGEST)
    out, sys.stdout = sys.stdout, sys.stderr  # imports may print
    found = answer(sys.argv[1])
    out.write(f"\n{json.dumps(found)}\n")
    out.flush()
    os._exit(0)  # threads that an engine's import leaves behind


if __name__ == "__main__":
    main()
