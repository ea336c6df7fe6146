"""llama-server's options, from the help that the parser compiled into the xllamacpp wheel prints."""

import ctypes
import hashlib
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

PARSE = "_Z19common_params_parseiPPcR13common_params13llama_examplePFviS0_E"
EXAMPLES = range(8, 20)  # enum llama_example: the server's number moves between versions; its help has --port
HEADER = 16  # CommonParams holds the C++ struct right after Python's object header
TEXT_AT = 40  # column of the explanations (common/arg.cpp, n_leading_spaces)
_FLAGS = re.compile(r"((?:-[^\s,]+,\s*)*-[^\s,]+)(?:\s+(\S.*))?$")
_ENV = re.compile(r"\(env: (\w+)\)")
_ALLOWED = re.compile(r"allowed values: ([\w., ]+?)(?: \(|$)")


def print_help(example: int) -> None:
    """Calls the C++ parser with `--help`, which prints and exits: only ever run in a process of its own."""
    import xllamacpp.xllamacpp as wheel

    parse = getattr(ctypes.CDLL(wheel.__file__), PARSE)
    params = wheel.CommonParams()
    words = (ctypes.c_char_p * 3)(b"llama-server", b"--help", None)
    parse(2, words, ctypes.c_void_p(id(params) + HEADER), example, None)


def llama_options() -> tuple[str, str, str, dict[str, dict[str, Any]], list[str]]:
    """(version, wheel name, sha256 of the compiled module, options, environment variables)."""
    found = importlib.metadata.distribution("xllamacpp")
    module = next(Path(str(f.locate())) for f in found.files or [] if str(f).endswith(".so"))
    wheel = next((line for line in (found.read_text("WHEEL") or "").splitlines() if line.startswith("Tag:")), "Tag: ")
    name = f"xllamacpp-{found.version}-{wheel.removeprefix('Tag: ')}.whl"
    options = parse_help(_help())
    env = sorted({str(row["env"]) for row in options.values() if "env" in row})
    return found.version, name, hashlib.sha256(module.read_bytes()).hexdigest(), options, env


def _help() -> str:
    for example in EXAMPLES:
        done = subprocess.run([sys.executable, __file__, str(example)], capture_output=True, text=True, check=False)
        if "--port PORT" in done.stdout and "--api-key-file" in done.stdout:
            return done.stdout
    raise SystemExit("the wheel's parser printed no server help: has its layout changed?")


def parse_help(text: str) -> dict[str, dict[str, Any]]:
    """Options by their first long name. An option begins at the margin; its text goes on indented."""
    blocks = [b.splitlines() for b in re.split(r"\n(?=-)", text) if b.startswith("-") and not b.startswith("-----")]
    return dict(_row(*_head(block)) for block in blocks)


def _head(block: list[str]) -> tuple[str, str]:
    """(flags with the value's name, text): the text is next to the flags when these leave it room."""
    first, rest = block[0], [line.strip() for line in block[1:]]
    if len(first) > TEXT_AT and not first[TEXT_AT - 3 : TEXT_AT].strip():
        return first[:TEXT_AT].strip(), " ".join([first[TEXT_AT:], *rest])
    return first.strip(), " ".join(rest)


def _row(head: str, text: str) -> tuple[str, dict[str, Any]]:
    match = _FLAGS.match(head)
    flags, meta = (re.split(r",\s*", match[1]), match[2] or "") if match else ([head], "")
    positive, negative = _signs(flags)
    name = next((f for f in positive if f.startswith("--")), positive[0])
    row: dict[str, Any] = {"kind": "value", **_value(meta, text)} if meta else {"kind": "bool" if negative else "flag"}
    row |= {"kind": "list"} if re.fullmatch(r"[A-Z]+ [A-Z]+", meta) else {}
    row |= {"negatives": negative} if negative else {}
    row |= {"aliases": aliases} if (aliases := [f for f in positive if f != name]) else {}
    row |= {"env": env[1]} if (env := _ENV.search(text)) else {}
    row |= {"deprecated": text.split("(env")[0].strip()} if re.search(r"DEPRECATED|has been removed", text) else {}
    return name.removeprefix("--"), row


def _signs(flags: list[str]) -> tuple[list[str], list[str]]:
    """(--x, and what switches it off): only where both `--x` and `--no-x` are listed."""
    if not any(f"--no-{f.removeprefix('--')}" in flags for f in flags if f.startswith("--")):
        return flags, []
    start = next(i for i, f in enumerate(flags) if f.startswith(("-n", "--no-")))
    return flags[:start], flags[start:]


def _value(meta: str, text: str) -> dict[str, Any]:
    listed = re.fullmatch(r"[\[{<]([\w|,-]+)[\]}>]", meta)
    if listed and not re.search(r"\d,|dev", meta):
        return {"type": "str", "choices": re.split(r"[|,]", listed[1])}
    if allowed := _ALLOWED.search(text):
        return {"type": "str", "choices": [v.strip() for v in allowed[1].split(",")]}
    if meta in ("MODE", "TYPE", "FORMAT"):
        bullets = re.findall(r"- ([\w+-]+)(?: \(default\))?:", text)
        return {"type": "str", "known" if meta == "FORMAT" else "choices": bullets}
    words = re.search(r"'auto', or 'all'|either an exact number", text)
    return {"type": "number" if meta == "N" and not words else "int" if meta == "PORT" else "str"}


if __name__ == "__main__":
    print_help(int(sys.argv[1]))
