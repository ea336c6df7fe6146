"""Options of llama.cpp's server, from the help that its parser prints."""

import re
from typing import Any

TEXT_AT = 40  # column of the explanations (common/arg.cpp, n_leading_spaces)
_FLAGS = re.compile(r"((?:-[^\s,]+,\s*)*-[^\s,]+)(?:\s+(\S.*))?$")
_ENV = re.compile(r"\(env: (\w+)\)")
_ALLOWED = re.compile(r"allowed values: ([\w., ]+?)(?: \(|$)")


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
