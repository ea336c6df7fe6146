"""Many words in one pass over bytes: an Aho-Corasick automaton, or plain search where that package is not there.

The supervisor runs on a node's own Python, where nothing compiled is installed. Its logs are a few lines a second.
"""

from collections.abc import Iterable, Sequence

COMPILED = True
try:
    from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind
except ImportError:
    COMPILED = False

Hit = tuple[int, int, int]
_PLAIN = 40_000  # bytes
_FEW = 2000  # words; of more, the table of all steps is no quicker than the automaton in one piece
_MANY = 1 << 22  # bytes after which it pays to make the table (7 ms of CPU for 916 words)


class WordSearch:
    """(number of the word, start, end) of all that are there, also where they overlap, by their ends.

    Tries every place where a word may begin: some MB/s with the words of all rules; the automaton has 100.
    """

    def __init__(self, words: Sequence[bytes]) -> None:
        self._length = min(4, *map(len, words))
        self._by_start: dict[bytes, list[tuple[int, bytes]]] = {}
        for number, word in enumerate(words):
            self._by_start.setdefault(word[: self._length], []).append((number, word))

    def hits(self, block: bytes) -> Iterable[Hit]:
        starts, length = self._by_start, self._length
        places = [at for at in range(len(block) - length + 1) if block[at : at + length] in starts]
        tried = ((at, number, word) for at in places for number, word in starts[block[at : at + length]])
        found = ((number, at, at + len(word)) for at, number, word in tried if block.startswith(word, at))
        return sorted(found, key=lambda hit: (hit[2], hit[1]))


class Finder:
    """Plain search at first (to build the automaton takes as long as _PLAIN bytes), and where nothing is compiled.

    many: bytes after which few words are looked up in a table.
    """

    def __init__(self, words: Sequence[bytes], plain: int = _PLAIN, many: int = _MANY) -> None:
        self._words, self._plain, self._left, self._many = words, WordSearch(words), plain, many
        self._made: BytesAhoCorasick | None = None
        self._is_final = len(words) > _FEW  # then no table is made

    def hits(self, block: bytes) -> Iterable[Hit]:
        self._left -= len(block)
        if self._left >= 0 or not COMPILED:
            return self._plain.hits(block)
        if self._left < -self._many and not self._is_final:
            self._made, self._is_final = BytesAhoCorasick(self._words, MatchKind.Standard, Implementation.DFA), True
        self._made = self._made or BytesAhoCorasick(self._words, MatchKind.Standard, Implementation.ContiguousNFA)
        return self._made.find_matches_as_indexes(block, overlapping=True)
