"""Clocks of several ranks on one line: what all ranks reach together happened at one moment."""

from collections.abc import Mapping, Sequence
from statistics import median

from sparkwright.logscan.story import Story

# Ends of collective steps: no rank prints them before the last one is there.
BARRIERS = {
    "barrier nccl": r"comm 0x[0-9a-f]+ .{0,160}Init COMPLETE",
    "barrier sglang init": r"Init torch distributed ends",
    "barrier vllm profile": r"Available KV cache memory: ",
    "barrier vllm graphs": r"Graph capturing finished in ",
    "barrier sglang graphs": r"Capture (?:cuda|device) graph end",
}
LEAST = 2.0  # seconds; ranks leave a barrier up to about that far apart
_SPREAD = 10.0  # barriers that disagree by more tell nothing


def shifts(stories: Sequence[Story]) -> Mapping[str, float]:
    """Source -> seconds to add to its times so that they are those of the first source that has barriers."""
    met = {story.source: _met(story) for story in stories}
    reference = next((times for times in met.values() if times), {})
    return {source: _shift(reference, times) for source, times in met.items()}


def _met(story: Story) -> dict[str, float]:
    seen = ((name, story.marks[name].first.at) for name in BARRIERS if name in story.marks)
    return {name: at for name, at in seen if at is not None}


def _shift(reference: Mapping[str, float], times: Mapping[str, float]) -> float:
    apart = [reference[name] - times[name] for name in reference if name in times]
    if not apart or max(apart) - min(apart) > _SPREAD:
        return 0.0
    middle = median(apart)
    return middle if abs(middle) >= LEAST else 0.0
