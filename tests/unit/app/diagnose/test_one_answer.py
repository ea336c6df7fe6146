"""`up`, the supervisor, `diagnose` and `diagnose --watch` name the same causes for the same lines."""

from pathlib import Path

import pytest

from fakes.rank_node import Exit
from sparkwright.app.diagnose.examine import examine
from sparkwright.app.diagnose.incident import Evidence, explain
from sparkwright.app.diagnose.log_watch import Watching
from sparkwright.app.serve.launch import Options, up
from sparkwright.domain.diagnosis import Cause, Diagnosis, Explanation, likely
from sparkwright.domain.errors import NotReady
from unit.app.scene import make_scene, request

LOGS = Path(__file__).resolve().parents[3] / "data"
RECORDED = [
    ("f-kv-too-small",),
    ("../logs-unknown/chained",),  # no known cause: the line that explains
    ("m4-head", "m4-worker"),
]
MORE = [("f-no-blocks",), ("d-port-in-use",), ("d-gloo-interface",), ("n2-gloo-head", "n2-gloo-worker")]
Answer = tuple[list[tuple[str, float]], str]


def answer(causes: tuple[Cause, ...], why: Explanation | None) -> Answer:
    """The shown answer: causes with their confidence, and the line that explains."""
    return [(cause.key, cause.confidence) for cause in causes], why.line.text if why else ""


async def answer_of_up(logs: dict[str, str]) -> Answer:
    here = make_scene()
    for node, text in zip(here.nodes, [*logs.values(), ""], strict=False):
        node.script = (*text.splitlines(), Exit(1)) if text else (60.0,)
    with pytest.raises(NotReady) as caught:
        await up(here.services, request(), Options())
    return answer(caught.value.causes, caught.value.explanation)


async def answer_of_supervisor(logs: dict[str, str]) -> Answer:
    found = await explain(make_scene().services, Evidence("twin", {}, logs, []), {})
    return answer(found.causes, found.explanation)


def answer_of_watching(logs: dict[str, str]) -> set[str]:
    watching = Watching(2026, {})
    found = [one for name, text in logs.items() for one in watching.feed(name, text.encode())]
    shown = [*found, *watching.close()]
    return {one.key if isinstance(one, Cause) else one.line.text for one in shown}


@pytest.mark.parametrize(
    "names", [*RECORDED, *(pytest.param(names, marks=pytest.mark.full) for names in MORE)], ids=lambda names: names[0]
)
async def test_all_give_the_same_answer(names: tuple[str, ...]) -> None:
    """Guards against an incident, or a failed start, that names another cause than `diagnose` does for its log."""
    logs = {
        f"rank {n} on spark-{n + 1}": (LOGS / "captures_logs" / f"{name}.log").read_text()
        for n, name in enumerate(names)
    }
    found: Diagnosis = examine([(name, [text.encode()]) for name, text in logs.items()], 2026, {})
    expected = answer(found.causes, found.explanation)
    assert expected != ([], "")
    assert await answer_of_up(logs) == expected
    assert await answer_of_supervisor(logs) == expected
    shown = {cause.key for cause in likely(found.causes)} or {expected[1]}
    assert shown <= answer_of_watching(logs)
