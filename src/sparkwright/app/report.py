"""Reports of runs that are kept: one, or several laid over each other, in the form that is asked for."""

import json
from collections.abc import Sequence
from enum import StrEnum

from sparkwright.app.runs import LAST, chosen
from sparkwright.domain.summary import Comparison, RunSummary
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.stats import summarize
from sparkwright.ports import RunStore
from sparkwright.report.html import page
from sparkwright.report.markdown import markdown
from sparkwright.report.tree import tree


class Form(StrEnum):
    HTML = "html"
    MARKDOWN = "md"
    JSON = "json"


async def named(runs: RunStore, wanted: Sequence[str]) -> tuple[str, ...]:
    """The ids of the runs that are asked for, each once; without any, the newest. Raises UsageError."""
    return tuple(dict.fromkeys([(await chosen(runs, word)).id for word in wanted or (LAST,)]))


async def report(runs: RunStore, names: Sequence[str], form: Form, maker: str) -> str:
    """The whole text. The first run is what the others are compared with. Raises UsageError, StoreError."""
    summaries = [summarize(await runs.load(name)) for name in names]
    return written(summaries, compared(summaries), form, maker)


def compared(summaries: Sequence[RunSummary]) -> list[Comparison]:
    """Each with the first. One that cannot be compared is there with the reason."""
    return [compare(summaries[0], other) for other in summaries[1:]]


def written(summaries: Sequence[RunSummary], comparisons: Sequence[Comparison], form: Form, maker: str) -> str:
    match form:
        case Form.HTML:
            return page(summaries, comparisons, maker)
        case Form.MARKDOWN:
            return markdown(summaries, comparisons)
        case Form.JSON:
            return json.dumps(tree(summaries, comparisons), indent=2, ensure_ascii=False) + "\n"
