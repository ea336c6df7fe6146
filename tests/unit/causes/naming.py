"""The causes that `diagnose` names for a text."""

from sparkwright.causes.diagnose import Reader, line_causes, log_book
from sparkwright.causes.ranking import found_by_signs, found_by_stories, ranked
from sparkwright.causes.whole_log.rules import WHOLE_LOG
from sparkwright.domain.diagnosis import Cause


def named_causes(text: str) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """(causes, harmless), the most likely first."""
    reader = Reader(log_book(), "log", 2026)
    reader.feed(text.encode())
    reader.close()
    found = [*found_by_signs(reader.hits, line_causes()), *found_by_stories(WHOLE_LOG, (reader.story(),))]
    return ranked(found, {})
