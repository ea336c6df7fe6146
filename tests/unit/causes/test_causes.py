"""Every cause that logs show: its file is right, its examples are named first, and healthy logs cost little."""

from collections import Counter
from pathlib import Path

import pytest

from sparkwright import causes
from sparkwright.causes.diagnose import line_causes, log_book
from sparkwright.causes.load import families, read, whole_log
from sparkwright.causes.whole_log.rules import WHOLE_LOG
from sparkwright.domain.finding import Severity
from sparkwright.logscan.book import lowered
from unit.causes.naming import named_causes

FOLDER = Path(causes.__path__[0])
DATA = Path(__file__).resolve().parents[2] / "data"
CAPTURES, HEALTHY = DATA / "captures_logs", DATA / "healthy"
SERVING = HEALTHY / "serving.log"
WELL = ["b-8b-graphs", "m2-head", "m2-worker", "s-ngram", "v4-1m-s6", "llama-ready"]


@pytest.mark.full
def test_every_pattern_compiles_and_has_a_word_to_look_for() -> None:
    """Guards what loading leaves to this test, because it takes seconds: the message names file and line."""
    assert sum(map(len, read(FOLDER, patterns=True).values())) == len(line_causes()) > 300


def test_codes_are_in_order_and_each_family_has_its_own() -> None:
    """Guards that a code is never used twice, and that a cause is found where its code reports."""
    codes = [[cause.code for cause in found] for found in families().values()]
    assert codes == [sorted(found) for found in codes]
    prefixes = [{code[:4] for code in found} for found in codes]
    assert all(len(found) == 1 for found in prefixes) and len(set.union(*prefixes)) == len(prefixes)


def test_what_is_harmless_is_called_so() -> None:
    """Guards the blame: only what is INFO is never blamed, and its key reports it."""
    harmless = {cause.code for cause in line_causes().values() if cause.severity is Severity.INFO}
    # What nvidia-smi cannot report on a GB10 is no defect, but asked about so often that it has a cause of its own.
    assert harmless == {cause.code for cause in line_causes().values() if cause.key.startswith("benign-")} | {"LUMA002"}


@pytest.mark.full
def test_examples_are_named_first_and_look_alikes_are_not() -> None:
    """Guards each cause by the examples next to its patterns: `fires` names it first, `silent` does not name it."""
    wrong = []
    for cause in line_causes().values():
        for text in cause.fires:
            bad, harmless = named_causes(text)
            if [one.key for one in (*bad, *harmless)[:1]] != [cause.key]:
                wrong.append(f"{cause.code} is not named first: {text}")
        for text in cause.silent:
            if cause.code in [one.code for both in named_causes(text) for one in both]:
                wrong.append(f"{cause.code} is named: {text}")
    assert not wrong, "\n".join(wrong)


def test_whole_log_rules_name_causes_that_are_known() -> None:
    """Guards their consequences, which no file is checked for."""
    keys = {cause.key for cause in (*line_causes().values(), *whole_log().values())}
    assert [key for cause in whole_log().values() for key in cause.consequences if key not in keys] == []
    assert [rule.code for rule in WHOLE_LOG] == list(whole_log())
    assert not set(whole_log()) & set(line_causes())


def looked_at(data: bytes) -> tuple[float, float, str]:
    """(words that are hit, lines that are inspected) for each line, and the words that are hit most."""
    shape, lines = lowered(data), data.count(b"\n")
    found = [words for _, _, words in log_book().lines_with_words(shape)]
    often = Counter(log_book().needles[word] for words in found for word in words)
    return often.total() / lines, len(found) / lines, str(often.most_common(8))


def test_words_of_patterns_are_seldom_on_lines_of_good_starts() -> None:
    """Guards the speed: what costs is each word that makes the matcher look closer."""
    starts = [CAPTURES / f"{name}.log" for name in WELL] + sorted(set(HEALTHY.glob("*.log")) - {SERVING})
    words, lines, worst = looked_at(b"".join(path.read_bytes() for path in starts))
    assert words <= 1.02 and lines <= 0.45, worst


def test_words_of_patterns_are_hardly_ever_on_lines_of_serving() -> None:
    """Guards the speed where logs grow long: engines that serve for days."""
    words, lines, worst = looked_at(SERVING.read_bytes())
    assert words <= 0.1 and lines <= 0.08, worst
