"""Lines of a running command as they come."""

import codecs
import re
from collections.abc import Iterator

# A progress bar (tqdm, rsync) ends its states with a carriage return: each is a line for whoever watches.
# One at the very end of what came waits: a newline may follow it.
_BREAK = re.compile(r"\r\n|\n|\r")
LONGEST = 64 * 1024  # characters: what a line has more is given out as a line of its own


class Lines:
    """Cuts the output of a node script into lines and knows its mark. One use.

    begun, ended: the opening and closing mark were seen; before: what came before the opening mark, for messages.
    """

    def __init__(self, mark: str) -> None:
        self.begun = False
        self.ended = False
        self.before = ""
        self._mark = mark
        self._parts: list[str] = []  # of the line that has no end yet
        self._length = 0
        self._held = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Iterator[str]:
        """The lines that data completes, without the marks."""
        for line in self._cut(self._held + self._decoder.decode(data)):
            yield from self._between_marks(line)
            if self.ended:
                return

    def _cut(self, text: str) -> Iterator[str]:
        """What came before is not searched again."""
        self._held = "\r" if text.endswith("\r") else ""
        end, at = len(text) - len(self._held), 0
        for found in _BREAK.finditer(text, 0, end):
            yield from self._add(text[at : found.start()])
            # tqdm begins with a carriage return: nothing stands before it.
            if self._length or found[0] != "\r":
                yield self._take()
            at = found.end()
        yield from self._add(text[at:end])

    def _add(self, part: str) -> Iterator[str]:
        """Joins the line that has no end yet; gives out what of it is too long, and never a part of the mark."""
        self._parts.append(part)
        self._length += len(part)
        while self._length > LONGEST + len(self._mark):
            line = self._take()
            mark = line.find(self._mark, LONGEST - len(self._mark), LONGEST + len(self._mark))
            at = mark if 0 < mark < LONGEST else LONGEST
            yield line[:at]
            self._parts, self._length = [line[at:]], len(line) - at

    def _take(self) -> str:
        line = "".join(self._parts)
        self._parts, self._length = [], 0
        return line

    def _between_marks(self, line: str) -> Iterator[str]:
        if line == self._mark:
            self.begun = True
        elif not self.begun:
            self.before = (self.before + line + "\n")[-LONGEST:]
        elif self._mark not in line:
            yield line
        else:
            self.ended = True
            if last := line.partition(self._mark)[0]:
                yield last
