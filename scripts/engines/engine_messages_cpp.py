"""The messages in C and C++ sources: the texts that their logging macros, `throw` and aborts are given."""

import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from engine_message import PERCENT, SLOT, FoundMessage, message_lines

# How a source reports: the pattern of the call before its arguments -> exception's name, or E, W, I as it is logged.
CALLS: Mapping[str, str] = {
    r"\bthrow\s+std::\w+\s*\(|\bthrow\s+\w*(?:[Ee]xception|error)\s*\(": "Exception",
    r"\b(?:\w+_)?LOG_(?:ERROR|ERR)\s*\(|\b(?:SRV|SLT|QUE|TSK|SPC)_ERR\s*\(": "E",
    r"\bGGML_ABORT\s*\(|\b(?:format|send|res)_err(?:or)?\w*\s*\(|\bfprintf\s*\(\s*stderr\s*,": "E",
    r"\b(?:\w+_)?LOG_(?:WARN|WRN)\s*\(|\b(?:SRV|SLT|QUE|TSK|SPC)_WRN\s*\(": "W",
    r"\b(?:\w+_)?LOG_(?:INFO|INF|DEBUG|DBG|CNT|TRACE)\s*\(|\b(?:SRV|SLT|QUE|TSK|SPC)_(?:INF|DBG|TRC)\s*\(": "I",
}
_CALL = re.compile("|".join(f"(?P<c{n}>{pattern})" for n, pattern in enumerate(CALLS)))
_LEVELS = tuple(CALLS.values())
_TOKEN = re.compile(
    r'"(?P<text>(?:[^"\\\n]|\\.)*)"|(?P<word>\bPRI\w+|[\w.>:\[\]-]+)|(?P<sign>[+,;()])|\s+|.', re.DOTALL
)
_FUNCTION = re.compile(
    r"^(?!\s|#|//|namespace|struct|class|enum|using|typedef)[^;={}\n]{0,200}?\b(?P<name>[\w:~]+)\s*\(", re.M
)
_ESCAPES = {r"\n": "\n", r"\t": " ", r"\"": '"', r"\\": "\\", r"\'": "'"}
_LONGEST = 900  # characters of a call's arguments


def source_messages(archive: Path, files: str) -> set[FoundMessage]:
    """Messages of the C and C++ sources in a source distribution."""
    found: set[FoundMessage] = set()
    with tarfile.open(archive) as sources:
        for member in sources:
            if member.isfile() and re.match(files, member.name) and (raw := sources.extractfile(member)):
                short = member.name.partition("/vendor/")[2] or member.name
                found |= cpp_messages(short, raw.read().decode("utf-8", "replace"))
    return found


def cpp_messages(file: str, source: str) -> set[FoundMessage]:
    """All messages of one source."""
    starts = [(match.start(), match["name"]) for match in _FUNCTION.finditer(source)]
    found: set[FoundMessage] = set()
    at = 0
    for call in _CALL.finditer(source):
        while at + 1 < len(starts) and starts[at + 1][0] < call.start():
            at += 1
        level = next(_LEVELS[n] for n in range(len(CALLS)) if call[f"c{n}"])
        function = starts[at][1] if starts and starts[at][0] < call.start() else ""
        text = _argument(source[call.end() : call.end() + _LONGEST])
        found |= {FoundMessage(line, level, file, function) for line in message_lines(text)}
    return found


def _argument(code: str) -> str:
    """The first text among a call's arguments, with {} for what is filled in; '' for none."""
    parts = list[str]()
    depth, inside = 0, 0  # of brackets; where the text is
    for token in _tokens(code):
        match token:
            case ("text", text):
                parts, inside = [*parts, text], depth if not parts else inside
            case ("sign", "("):
                depth += 1
            case ("sign", ")"):
                depth -= 1
                inside = min(inside, depth)
                if depth < 0:
                    break
            case ("sign", "," | ";") if parts and depth <= inside:
                break
            case ("sign", "+") if parts and parts[-1] != SLOT:
                parts.append(SLOT)
            case _:
                pass
    joined = re.sub(r"(?:\{\}){2,}", SLOT, _between("".join(parts)))
    return PERCENT.sub(SLOT, joined).replace("%%", "%")


def _between(text: str) -> str:
    """Its escapes as the characters that they stand for."""
    return re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], " "), text)


def _tokens(code: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(code):
        if found.lastgroup == "text":
            yield "text", found["text"]
        elif found.lastgroup == "sign":
            yield "sign", found["sign"]
        elif found.lastgroup == "word" and found["word"].startswith("PRI"):  # "%" PRIu64: a format in two parts
            yield "text", "d"
