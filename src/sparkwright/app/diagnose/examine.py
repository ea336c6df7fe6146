"""A diagnosis of logs that are given as bytes; apart from diagnose.py, so that `diagnose FILE` starts quickly."""

from collections.abc import Iterable, Mapping, Set

from sparkwright.causes.diagnose import Reader, diagnosis, log_book, with_explanation
from sparkwright.domain.diagnosis import Cause, Diagnosis
from sparkwright.domain.finding import Finding
from sparkwright.domain.values import dataclass
from sparkwright.logscan.book import Book

Named = tuple[str, Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Examined:
    """findings: what is known to be wrong with the nodes; trouble: sentences about what could not be asked.

    since: epoch seconds from which on lines can show what is wrong now, None for all; answered: a probe request was
    answered then, else its ranks were started. earlier: causes that only lines from before show. serves: it is ready.
    """

    diagnosis: Diagnosis
    findings: tuple[Finding, ...] = ()
    trouble: tuple[str, ...] = ()
    simulated: bool = False
    since: float | None = None
    answered: bool = False
    earlier: tuple[Cause, ...] = ()
    serves: bool = False


def examine(
    sources: Iterable[Named],
    year: int,
    words: Mapping[str, str],
    impossible: Set[str] = frozenset(),
    described: bool = True,
) -> Diagnosis:
    """Logs given as (name, bytes). described: a few lines may be somebody's sentence about a failure."""
    rules = log_book()
    readers = [read(rules, name, chunks, year) for name, chunks in sources]
    found = diagnosis(readers, words, impossible=impossible)
    return with_explanation(found, readers, words, impossible, described)


def read(rules: Book, name: str, chunks: Iterable[bytes], year: int) -> Reader:
    reader = Reader(rules, name, year)
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    return reader
