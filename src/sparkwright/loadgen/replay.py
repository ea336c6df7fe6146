"""Requests of a file, sent again: with their texts, or texts made up to a trace's lengths and shared blocks."""

import json
import math
from collections.abc import Mapping
from itertools import takewhile
from random import Random

from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Session, Turn
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import Api, Arrival, Length, LevelPlan, Replay, Workload
from sparkwright.loadgen.profiles import shipped_file
from sparkwright.loadgen.prompts import Making, asking, written
from sparkwright.loadgen.recorded import BLOCK, Recorded, parse

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


_OUTPUT = 128  # where neither the file nor the workload says how long an answer is


def replayed(shape: Replay, making: Making) -> tuple[Session, ...]:
    """The sessions of the file, or the level's limit of them; with the file's own times if the level is `timed`."""
    recorded = making.texts.recorded[shape.path][: shape.limit or None]
    first = min((one.at for one in recorded if one.at is not None), default=0.0)
    made = _Made(shape, making)
    found = [Session(number, (made.turn(number, one),)) for number, one in enumerate(recorded)]
    if making.level.pace.arrival is Arrival.RECORDED:
        return tuple(replace(s, at=(r.at or first) - first) for s, r in zip(found, recorded, strict=True))
    return tuple(found)


def with_counts(workload: Workload, files: Mapping[str, str]) -> Workload:
    """Levels that replay, with the number of requests of their files. files: path -> text. Raises UsageError."""
    return replace(workload, levels=tuple(_with_count(level, files) for level in workload.levels))


def _with_count(level: LevelPlan, files: Mapping[str, str]) -> LevelPlan:
    if not isinstance(level.shape, Replay):
        return level
    path = level.shape.path
    text = shipped_file(path)
    found = parse(files[path] if text is None else text, path, level.shape.limit)
    if level.shape.timed and any(one.at is None for one in found):
        raise UsageError(f"{path}: `timed: true` needs a time in every record", "leave it out, and give a rate instead")
    return replace(level, requests=len(found))


@dataclass(frozen=True, slots=True)
class _Made:
    """Turns of one repeat of a replay; blocks that requests share are made once."""

    shape: Replay
    making: Making
    known: dict[int, str] = field(default_factory=dict)

    def turn(self, number: int, one: Recorded) -> Turn:
        dice, shape = self.making.lengths(number), self.shape
        output = sample(shape.output, dice) if shape.output else one.output_tokens or _OUTPUT
        # Blocks that an earlier request of this repeat has sent; the last block is never shared whole.
        known = BLOCK * len(list(takewhile(lambda block: block in self.known, one.blocks[:-1])))
        planned = self.making.turn(one.input_tokens, output, known)
        if one.input_tokens:
            return self.making.asking(planned, self._blocks(number, one))
        if one.messages:
            return self._messages(planned, json.loads(one.messages))
        return self.making.asking(planned, one.prompt)

    def _messages(self, planned: Turn, messages: list[object]) -> Turn:
        if self.making.workload.api is Api.CHAT:
            return replace(planned, new=",".join(json.dumps(one) for one in messages))
        contents = (one.get("content") for one in messages if isinstance(one, dict))
        return self.making.asking(planned, "\n".join(content for content in contents if isinstance(content, str)))

    def _blocks(self, number: int, one: Recorded) -> str:
        texts, dice = self.making.texts, self.making.dice
        for block in one.blocks[:-1]:
            if block not in self.known:
                self.known[block] = written(texts, BLOCK, dice("block", block))
        whole = "".join(self.known[block] for block in one.blocks[:-1])
        left = one.input_tokens - BLOCK * max(len(one.blocks) - 1, 0) - texts.frames.user
        return whole + asking(texts, left, dice("last", number))
