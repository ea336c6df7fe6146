"""Reads as bytes: small, and the same again to the microsecond."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.adapters.sqlite.run_records import pack_reads, unpack
from sparkwright.domain.run import Reads

MICROS = st.lists(st.integers(0, 10**7), max_size=50)


@given(MICROS, st.data(), st.booleans())
def test_reads_are_the_same_again(gaps: list[int], data: st.DataObject, exact: bool) -> None:
    """The reads are the same whatever the gaps and counts, in microseconds; packing once more changes nothing."""
    at = tuple(sum(gaps[: n + 1]) / 1e6 for n in range(len(gaps)))
    tokens = tuple(data.draw(st.lists(st.integers(0, 100_000), min_size=len(at), max_size=len(at))))
    reads = Reads(at, tokens, exact)
    assert unpack(pack_reads(reads)) == reads


def test_times_are_kept_to_the_microsecond() -> None:
    """No clock of a client is better than that."""
    told = unpack(pack_reads(Reads((0.1234564, 0.1234568), (1, 1)))).at
    assert tuple(told) == (0.123456, 0.123457)


@pytest.mark.parametrize("reads", [Reads((5000.0, 9999.0), (1, 2)), Reads((0.1,), (70_000,)), Reads((), (), False)])
def test_what_is_large_has_room(reads: Reads) -> None:
    """A prompt of a million tokens may take more than an hour; a read may carry a whole answer."""
    assert unpack(pack_reads(reads)) == reads


def test_no_reads_take_no_room() -> None:
    """Failed requests have none."""
    assert pack_reads(Reads()) is None
    assert unpack(None) == Reads()


def test_a_run_of_ten_million_tokens_fits_into_memory() -> None:
    """The unpacked reads take 8 bytes a token, and the fact that each read had one token is stored once."""
    blob = pack_reads(Reads(tuple(0.02 * n for n in range(1000)), (1,) * 1000))
    unpack(blob)
    tracemalloc.start()
    kept = [unpack(blob) for _ in range(50)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 10 * 1000 * len(kept)


def test_a_token_takes_four_bytes() -> None:
    """128 tokens, one a read: a million of them are 4 MB, not 200."""
    blob = pack_reads(Reads(tuple(0.02 * n for n in range(128)), (1,) * 128))
    assert blob is not None
    assert len(blob) < 4.1 * 128
