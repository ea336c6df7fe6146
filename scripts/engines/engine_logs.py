"""Compare what a release of an engine can print and serve with our rules for its log, metrics and routes.

    python engine_data.py logs                        the newest version of each engine whose flags are known
    python engine_data.py logs vllm==0.33.0           one
    python engine_data.py logs --wheels FOLDER        take wheels from there before downloading

No engine is imported: every text in the wheel's Python sources is a template, with a slot for what it fills in. A rule
can match if one of the templates matches its pattern with numbers, words or nothing in the slots. A rule of
data/engines/ENGINE.toml whose text another program prints names that program in `by`, and is not looked for.
"""

import ast
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_message import SLOT, FoundMessage
from engine_messages import python_messages, template

from sparkwright.engines.dialect import LineRule, dialect
from sparkwright.engines.tables import metric_names, routes

# Sources that print, count or serve something; not models and kernels.
FILES = {
    "vllm": r"vllm/(?:v1|compilation|model_executor/(?:model_loader|warmup)|distributed|entrypoints|config|engine|utils"
    r"|platforms|logging_utils|[a-z_]+\.py)",
    "sglang": r"sglang/srt/(?:model_executor|managers|distributed|entrypoints|mem_cache|model_loader|observability"
    r"|utils|server_args|metrics)",
}
FILLERS = ("1", "word", "")
SHORTEST, LONGEST = 4, 1200
MOST_CHOICES = 8  # of one text with several conditions in it
# Sources whose lines tell how far a start is.
START = re.compile(
    r"vllm/(?:v1/(?:worker|engine|core|executor)|compilation|model_executor/(?:model_loader|warmup)|distributed/parallel_state"
    r"|entrypoints/(?:launcher|serve|openai/api_server))|sglang/srt/(?:model_executor|managers/scheduler|distributed"
    r"|entrypoints/(?:engine|http_server)|mem_cache/(?:memory_pool|kv_cache_conf)|model_loader)"
)
IMPORTANT = re.compile(
    r"(?i)load(?:ing|ed)|compil|warm|captur|memory|kv cache|profil|ready|download|init \w+ (?:begin|end)|tokens"
)
_PERCENT = re.compile(r"%(?:\(\w+\))?[-#0 +']*(?:\d+|\*)?(?:\.(?:\d+|\*))?[sdrfxXgGeEic]")
_ROUTE = re.compile(r"/v1/[a-zA-Z_/{}:]{2,60}")
_LEFT_OUT = re.compile(r"lora_adapter|/loads\b|/realtime|/load\b")  # on purpose, or a websocket

CONNECTORS = ("lmcache:",)
"""Metrics of programs of their own, which are on an engine's page while it uses them."""


@dataclass(frozen=True)
class LogReport:
    """Rules, metrics and routes of ours that the release cannot match; its own that none of ours reads."""

    engine: str
    version: str
    rules: tuple[str, ...]
    metrics: tuple[str, ...]
    routes: tuple[str, ...]
    unread: tuple[FoundMessage, ...]
    new_routes: tuple[str, ...]

    @property
    def dead(self) -> int:
        return len(self.rules) + len(self.metrics) + len(self.routes)

    def lines(self) -> Iterator[str]:
        yield f"{self.engine} {self.version}: {self.dead} of our rules, metrics and routes match nothing in it"
        for kind, names in (("rule", self.rules), ("metric", self.metrics), ("route", self.routes)):
            yield from (f"  {kind} matches nothing: {name}" for name in names)
        yield f"  {len(self.unread)} lines about a start that no rule reads"
        yield from (f"    {one.file} {one.function}: {one.text}" for one in self.unread)
        yield from (f"  route that the gateway does not pass: {name}" for name in self.new_routes)


def report(engine: str, version: str, wheel: Path) -> LogReport:
    """Read one wheel; half a minute of CPU for vLLM."""
    with zipfile.ZipFile(wheel) as opened:
        texts = frozenset(_texts(opened, FILES[engine]))
        logged = python_messages(opened, START.pattern)
    rules = [rule for rule in dialect(engine).rule if not rule.by]
    filled = [_filled(texts, filler) for filler in FILLERS]
    dead = [rule.pattern.pattern for rule in rules if not _can_match(rule, filled)]
    quoted = "\n".join(texts)
    plain = (name.partition("{")[0] for name in metric_names(engine).values())
    names = {name.removesuffix("_count").removesuffix("_total") for name in plain}
    own = [name for name in sorted(names) if ":" in name and not name.startswith(CONNECTORS)]
    metrics = [name for name in own if name.partition(":")[2] not in quoted]
    served = {_plain(text) for text in texts if _ROUTE.fullmatch(text)}
    known = {_plain(call.partition(" ")[2]) for call in routes(engine).calls}
    missing = [path for path in sorted(known) if path not in served and not _under_a_prefix(path, texts)]
    starts = [one for one in sorted(logged) if one.level == "I" and IMPORTANT.search(one.text)]
    unread = [one for one in starts if not _is_read(engine, one.text)]
    new = [path for path in sorted(served - known) if not _LEFT_OUT.search(path)]
    return LogReport(engine, version, tuple(dead), tuple(metrics), tuple(missing), tuple(unread), tuple(new))


def _texts(wheel: zipfile.ZipFile, files: str) -> Iterator[str]:
    """Every text of the sources, one line each, with a slot for what is filled in."""
    for name in wheel.namelist():
        if name.endswith(".py") and re.match(files, name) and "/tests/" not in name:
            try:
                tree = ast.parse(wheel.read(name))
            except SyntaxError:
                continue
            nodes = list(ast.walk(tree))
            values = {node.targets[0].id: node.value for node in nodes if _names_a_choice(node)}  # type: ignore[attr-defined]
            for node in nodes:
                if isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp):
                    for text in _choices(node, values):
                        found = _PERCENT.sub(SLOT, text).replace("%%", "%")
                        yield from (line for line in found.split("\n") if SHORTEST <= len(line) <= LONGEST)


def _names_a_choice(node: ast.AST) -> bool:
    """`name = "a" if ... else "b"`, filled into a text a few lines later."""
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.IfExp)


def _choices(node: ast.expr, values: Mapping[str, ast.expr]) -> Sequence[str]:
    """The text of an expression, once for each text that stands in a slot of it by a condition."""
    if not isinstance(node, ast.JoinedStr):
        return (template(node),)
    found = [""]
    for part in node.values:
        filled = part.value if isinstance(part, ast.FormattedValue) else part
        filled = values.get(filled.id, filled) if isinstance(filled, ast.Name) else filled
        if isinstance(filled, ast.IfExp):
            options = [template(filled.body) or SLOT, template(filled.orelse) or SLOT]
        else:
            options = [SLOT if isinstance(part, ast.FormattedValue) else template(filled)]
        found = [f"{text}{option}" for text in found for option in options][:MOST_CHOICES]
    return found


def _filled(texts: frozenset[str], filler: str) -> str:
    """All templates as lines of a log, with the same text in each slot; a text that begins with a slot comes bare, too.

    vLLM puts `[backbone] ` there (`%sDynamo bytecode transform time`), which the prefix of the dialect takes off.
    """
    bare = (text.removeprefix(SLOT) for text in texts if text.startswith(SLOT))
    return "\n".join(text.replace(SLOT, filler) for text in (*texts, *bare))


def _can_match(rule: LineRule, filled: Sequence[str]) -> bool:
    pattern = re.compile(rule.pattern.pattern, re.MULTILINE)
    return any(pattern.search(text) for text in filled)


def _is_read(engine: str, text: str) -> bool:
    bare = (text, text.removeprefix(SLOT))
    return any(dialect(engine).read(one.replace(SLOT, filler)) for one in bare for filler in FILLERS)


def _plain(path: str) -> str:
    """`/v1/responses/{}` for every name of the part that varies."""
    return re.sub(r"\{[^}]*\}", "{}", path).rstrip("/.")


def _under_a_prefix(path: str, texts: frozenset[str]) -> bool:
    """True if a router may put `/v1` before it."""
    rest = re.escape(path.removeprefix("/v1")).replace(r"\{\}", r"\{[^}]*\}")
    return any(re.fullmatch(rest, text) for text in texts)
