"""How long one request is, of a distribution of lengths."""

import math
from random import Random

from sparkwright.domain.workload import Length

_REACH = 2.5  # standard deviations to each end: 99 % lie between the ends without being cut


def sample(length: Length, dice: Random) -> int:
    """Tokens: fixed, uniform, or log-normal about the median, as prompts of many users are."""
    if length.low >= length.high:
        return length.low
    if not length.median:
        return dice.randint(length.low, length.high)
    turn = dice.gauss(0, 1) / _REACH
    end = length.high if turn > 0 else length.low
    value = length.median * math.exp(math.log(max(end, 1) / length.median) * abs(turn))
    return min(max(round(value), length.low), length.high)
