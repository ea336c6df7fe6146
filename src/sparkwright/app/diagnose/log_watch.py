"""`diagnose --watch`: a log that grows, or a deployment's; each cause is reported once, when its line comes."""

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field

from sparkwright.app import queries
from sparkwright.app.diagnose.diagnosing import name_of, words_of, year_of
from sparkwright.app.services import Services
from sparkwright.causes.diagnose import Reader, diagnosis, log_book, with_explanation
from sparkwright.domain.diagnosis import Cause, Explanation, likely
from sparkwright.logscan.book import Book

QUIET = 60.0  # seconds of silence after which a log counts as waiting


@dataclass(slots=True)
class Watching:
    """Sources that grow. words: about the cluster, for the fixes' commands."""

    year: int
    words: Mapping[str, str]
    rules: Book = field(default_factory=log_book)
    readers: dict[str, Reader] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)

    def feed(self, name: str, chunk: bytes) -> Iterator[Cause]:
        """Causes that this chunk is the first to show."""
        reader = self.readers.setdefault(name, Reader(self.rules, name, self.year))
        reader.ended = False
        if reader.feed(chunk):
            yield from self.new()

    def quiet(self) -> Iterator[Cause]:
        """Causes that only silence shows: nothing has come for QUIET seconds."""
        for reader in self.readers.values():
            reader.ended = True
        yield from self.new()

    def close(self) -> Iterator[Cause | Explanation]:
        """The results at the end; without any cause, the explaining line and the similar logs."""
        readers = tuple(self.readers.values())
        for reader in readers:
            reader.close()
        yield from self.quiet()
        if readers and not self.told:
            found = with_explanation(diagnosis(readers, self.words), readers, self.words)
            yield from (found.explanation,) if found.explanation else ()
            yield from found.causes

    def new(self) -> Iterator[Cause]:
        found = diagnosis(tuple(self.readers.values()), self.words)
        for cause in likely(found.causes):
            if cause.key not in self.told:
                self.told.add(cause.key)
                yield cause


async def watch_deployment(services: Services, deployment: str) -> AsyncIterator[Cause | Explanation]:
    """Watches each rank from its beginning until the ranks end. Raises UsageError if there is no such deployment."""
    watching = Watching(year_of(services), words_of(await queries.chosen(services, deployment, None)))
    async for rank, line in queries.logs(services, deployment, None, 0, True):
        for cause in watching.feed(name_of(rank), f"{line}\n".encode("utf-8", "replace")):
            yield cause
    for one in watching.close():
        yield one
