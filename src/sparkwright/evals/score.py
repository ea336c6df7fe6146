"""Shares with their interval."""

from math import sqrt

from sparkwright.domain.evaluation import Score

_Z = 1.959964


def wilson_score(good: int, of: int) -> Score:
    """The share with the 95 % Wilson interval: https://doi.org/10.1080/01621459.1927.10502953"""
    if not of:
        return Score(0, 0, 0.0, 1.0)
    share, z2 = good / of, _Z * _Z
    middle = (share + z2 / (2 * of)) / (1 + z2 / of)
    half = _Z * sqrt(share * (1 - share) / of + z2 / (4 * of * of)) / (1 + z2 / of)
    return Score(good, of, max(0.0, middle - half), min(1.0, middle + half))
