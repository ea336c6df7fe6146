"""The causes that `diagnose` names for a text."""

from sparkwright.causes.diagnose import Reader, book, known
from sparkwright.causes.ranking import found_by_signs, found_by_stories, ranked
from sparkwright.causes.whole_log.rules import WHOLE_LOG
from sparkwright.domain.diagnosis import Cause


def named(text: str) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """(causes, harmless), the most likely first."""
    reader = Reader(book(), "log", 2026)
    reader.feed(text.encode())
    reader.close()
    found = [*found_by_signs(reader.hits, known()), *found_by_stories(WHOLE_LOG, (reader.story(),))]
    return ranked(found, {})
