"""The distribution of large files to the connections of a copy."""

import pytest

from sparkwright.remote.programs.push_work import deal_ranges
from sparkwright.remote.programs.wire import PIECE

GAPS = [(0, 900_000_000), (900_000_000 + PIECE, 3_000_000_000)]


@pytest.mark.parametrize("many", [1, 8, 16])
def test_the_last_ranges_are_small(many: int) -> None:
    """A large one at the end would be waited for by all connections but one: eight would be no eight times one."""
    found = list(deal_ranges(GAPS, sum(to - begin for begin, to in GAPS), many))
    sizes = [to - begin for begin, to in found]
    assert max(sizes) == sizes[0] == 8 * PIECE
    assert max(sizes[-many:]) <= 2 * PIECE


def test_ranges_are_whole_pieces_and_cover_what_is_due() -> None:
    """A journal and a checksum are by piece: only the end of a file is shorter than one."""
    found = list(deal_ranges(GAPS, sum(to - begin for begin, to in GAPS), 8))
    for begin, to in GAPS:
        own = [one for one in found if begin <= one[0] < to]
        assert [a for a, _ in own] == [begin, *(b for _, b in own[:-1])] and own[-1][1] == to
        assert all((b - a) % PIECE == 0 for a, b in own[:-1])


def test_what_comes_again_is_dealt_out_by_piece() -> None:
    """Nothing is left of the copy by then, as far as it was counted."""
    assert list(deal_ranges([(0, 2 * PIECE)], -PIECE, 8)) == [(0, PIECE), (PIECE, 2 * PIECE)]
