"""Lines of a running command as they come."""

import codecs
import re
from collections.abc import Iterator

# A progress bar (tqdm, rsync) ends its states with a carriage return: each is a line for whoever watches.
# One at the very end of what came waits: a newline may follow it.
_BREAK = re.compile(r"\r\n|\n|\r(?!\n|\Z)")


class Lines:
    """Cuts the output of a node script into lines and knows its mark. One use.

    begun, ended: the opening and closing mark were seen; before: what came before the opening mark, for messages.
    """

    def __init__(self, mark: str) -> None:
        self.begun = False
        self.ended = False
        self.before = ""
        self._mark = mark
        self._rest = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> Iterator[str]:
        """The lines that data completes, without the marks."""
        for line in self._cut(self._rest + self._decoder.decode(data)):
            yield from self._between_marks(line)
            if self.ended:
                return

    def _cut(self, text: str) -> list[str]:
        lines, at = [], 0
        for found in _BREAK.finditer(text):
            # tqdm begins with a carriage return: nothing stands before it.
            if found.start() > at or found[0] != "\r":
                lines.append(text[at : found.start()])
            at = found.end()
        self._rest = text[at:]
        return lines

    def _between_marks(self, line: str) -> Iterator[str]:
        if line == self._mark:
            self.begun = True
        elif not self.begun:
            self.before += line + "\n"
        elif self._mark not in line:
            yield line
        else:
            self.ended = True
            if last := line.partition(self._mark)[0]:
                yield last
