"""What `diagnose` names for a text."""

from sparkwright.causes.diagnose import book, known
from sparkwright.causes.ranking import found_by_signs, found_by_stories, ranked
from sparkwright.causes.whole_log.rules import WHOLE_LOG
from sparkwright.domain.diagnosis import Cause
from sparkwright.logscan.matcher import Scan


def named(text: str) -> tuple[tuple[Cause, ...], tuple[Cause, ...]]:
    """(causes, harmless), the most likely first."""
    scan = Scan(book(), "log", 2026)
    scan.feed(text.encode())
    scan.close()
    found = [*found_by_signs(scan.hits.values(), known()), *found_by_stories(WHOLE_LOG, (scan.story(),))]
    return ranked(found, {})
