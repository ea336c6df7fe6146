"""Every cause that logs tell: complete, in the catalog, named first on its own fixtures, silent on healthy logs."""

import re
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.finding import Severity
from sparkwright.rules import logs
from sparkwright.rules.book import lowered
from sparkwright.rules.diagnose import book
from sparkwright.rules.logs.catalog import FAMILIES, LOG_RULES
from sparkwright.rules.matcher import Scan
from sparkwright.rules.ranking import found_by_signs, found_by_stories, ranked

HEADINGS = ["Detects", "Why", "Evidence", "Remedy", "References"]
FOLDER = Path(logs.__path__[0])
FIXTURES = Path(__file__).resolve().parents[2] / "data" / "rules" / "logs"
CAPTURES, HEALTHY = (FIXTURES.parents[1] / name for name in ("captures_logs", "healthy"))
SERVING = HEALTHY / "serving.log"
WELL = ["b-8b-graphs", "m2-head", "m2-worker", "s-ngram", "v4-1m-s6", "llama-ready"]
QUICK = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def name(rule: object) -> str:
    assert isinstance(rule, ModuleType)
    return rule.__name__.rpartition(".")[2]


def named(text: str) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    scan = Scan(book(), "log", 2026)
    scan.feed(text.encode())
    scan.close()
    return ranked([*found_by_signs(scan.hits.values()), *found_by_stories(book().stories, (scan.story(),))], {})


def lacking(rule: Any) -> list[str]:
    there = {
        "headings": re.findall(r"^([A-Z][a-z]+):", rule.__doc__, re.MULTILINE) == HEADINGS,
        "code": re.fullmatch(r"L[A-Z]{3}[0-9]{3}", rule.CODE) and name(rule).startswith(rule.CODE.lower() + "_"),
        "status": rule.STATUS in ("stable", "preview"),
        # What nvidia-smi cannot tell on a GB10 is no defect, but asked about so often that it has a cause of its own.
        "cause": rule.CAUSE.startswith("benign-") or rule.SEVERITY is not Severity.INFO or rule.CODE == "LUMA002",
        "title": rule.TITLE and not rule.TITLE.endswith("."),
        "severity": isinstance(rule.SEVERITY, Severity),
        "fix": rule.FIX or rule.SEVERITY is Severity.INFO,
        "steps": all(step.format_map(_Anything()) for step in rule.FIX),
    }
    return [what for what, good in there.items() if not good]


def test_every_rule_is_complete() -> None:
    """Guards that a rule has what the documentation and the diagnosis need."""
    assert {name(rule): lacks for rule in LOG_RULES if (lacks := lacking(rule))} == {}


class _Anything(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return key


def test_every_file_is_in_the_catalog_once() -> None:
    """Guards that no rule is written and forgotten, and that no code names two causes."""
    files = sorted(path.stem for path in FOLDER.glob("*/l*_*.py"))
    assert sorted(name(rule) for rule in LOG_RULES) == files
    assert len({rule.CODE for rule in LOG_RULES}) == len(LOG_RULES)
    assert all(rule.CODE[:4].lower() == name(rule)[:4] for rules in FAMILIES.values() for rule in rules)


@pytest.mark.parametrize("rule", LOG_RULES, ids=name)
def test_fixtures_fire_and_stay_silent(rule: Any) -> None:
    """Guards that a rule's own log names its cause first, and that the look-alike does not name it at all."""
    cases = yaml.load((FIXTURES / f"{rule.CODE}.yaml").read_text(), QUICK)
    assert cases["fires"] and cases["silent"]
    for text in cases["fires"]:
        causes, harmless = named(text)
        first = (*causes, *harmless)[:1]
        assert [cause.key for cause in first] == [rule.CAUSE], text
    for text in cases["silent"]:
        assert rule.CODE not in [cause.code for both in named(text) for cause in both], text


def looked_at(data: bytes) -> tuple[float, float, str]:
    """(words that are hit, lines that are looked at) for each line, and the words that are hit most."""
    shape, lines = lowered(data), data.count(b"\n")
    found = [words for _, _, words in book().lines_with_words(shape)]
    often = Counter(book().words[word] for words in found for word in words)
    return often.total() / lines, len(found) / lines, str(often.most_common(8))


def test_words_of_patterns_are_seldom_on_lines_of_good_starts() -> None:
    """Guards the speed: what costs is each word that makes the matcher look closer."""
    starts = [CAPTURES / f"{name}.log" for name in WELL] + sorted(set(HEALTHY.glob("*.log")) - {SERVING})
    words, lines, worst = looked_at(b"".join(path.read_bytes() for path in starts))
    assert words <= 1.0 and lines <= 0.45, worst


def test_words_of_patterns_are_hardly_ever_on_lines_of_serving() -> None:
    """Guards the speed where logs grow long: engines that serve for days."""
    words, lines, worst = looked_at(SERVING.read_bytes())
    assert words <= 0.1 and lines <= 0.08, worst
