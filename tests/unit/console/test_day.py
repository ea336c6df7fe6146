"""The last day as a strip, the requests page, and latency on the first page."""

import re
from pathlib import Path

import pytest

from sparkwright.console import requests
from sparkwright.console.board import ReportBoard
from sparkwright.console.overview import day_strips
from sparkwright.console.requests import RequestFilter, latency, wanted
from sparkwright.console.strip import SPAN, STEP, day_strip
from sparkwright.domain.history import MINUTE, Minute, NodeMinute, RequestRecord, RequestSpan

NOW = 1_800_000_000.0
EVIL = "<script>alert(1)</script>"


def minute(ago: int, state: str = "ready", decode: float | None = 40.0) -> Minute:
    """ago: minutes."""
    node = NodeMinute("spark-1", 40.0 * 1024**3, 120.0 * 1024**3, 50.0, 30.0)
    return Minute("chat", int(NOW) - ago * MINUTE, state, 1.0, decode, None, 1.0, 0.5, (node,))


def test_a_gap_is_drawn_as_a_gap() -> None:
    """Guards a strip of what was recorded: two hours away are no line between the ends, and no state."""
    minutes = [minute(ago) for ago in range(600, 0, -1) if not 240 <= ago < 360]
    text = str(day_strip("chat", minutes, (), NOW))
    line = re.findall(r'aria-label="tokens/s.*?</svg>', text)[0]
    parts = re.findall(r'points="([^"]+)"', line)
    assert len(parts) == 2
    last, first = float(parts[0].split()[-1].split(",")[0]), float(parts[1].split(",")[0])
    assert first - last == pytest.approx(120 * MINUTE / STEP, abs=1.5)
    assert len(re.findall(r'<rect class="good"', text)) == 2
    assert "power of all GPUs" in text and "peak 30 W" in text and "low 40.0 GiB" in text
    assert "first token" not in text, "nothing is drawn of what is not known"


def test_an_outage_is_seen_and_told() -> None:
    """Guards the worst state of five minutes, what a mouse points at, and the table for who has none."""
    spans = (RequestSpan(int(NOW) - 3600, 9, 1, 2, 0.25, 0.02),)
    text = str(
        day_strip("chat", [minute(ago, "failed" if ago == 60 else "ready") for ago in range(180, 0, -1)], spans, NOW)
    )
    assert len(re.findall(r'<rect class="bad"', text)) == 1
    assert re.search(r'title="[^"]* ago: failed; tokens/s 40 tokens/s; first token 0.2 s', text), text
    assert text.count("<i title=") == SPAN // 900 and 'scope="row">1 to 2</th><td>' in text
    assert "Nothing is recorded yet" in day_strip("chat", (), (), NOW)


def test_a_day_is_small_enough_to_send() -> None:
    """Guards a slow line: a whole day with eight nodes has a few dozen kilobytes."""
    node = NodeMinute("spark-1", 1e10, 1.3e11, 50.0, 30.0)
    day = [
        Minute("chat", int(NOW) - ago * MINUTE, "ready", 1.0, ago % 97.0, 1.0, 1.0, 0.5, (node,) * 8)
        for ago in range(1440, 0, -1)
    ]
    spans = [RequestSpan(int(NOW - NOW % STEP) - n * STEP, 9, 1, 2, n % 7 / 10, 0.02) for n in range(288, 0, -1)]
    assert len(day_strip("chat", day, spans, NOW).encode()) < 60_000
    assert len(day_strip("chat", day, spans, NOW, pointed=False).encode()) < 32_000, "four of them fit on a page"


def record(**changed: object) -> RequestRecord:
    fields: dict[str, object] = {
        "at": NOW - 9,
        "key": "agent",
        "model": "tiny",
        "path": "/v1/chat/completions",
        "status": 200,
        "outcome": "finished",
        "seconds": 3.0,
        "first": 1.0,
        "prompt": 900,
        "cached": 400,
        "completion": 101,
    }
    return RequestRecord(**(fields | changed))  # type: ignore[arg-type]


REFUSED = record(outcome="refused", status=429, first=None, prompt=None, cached=None, completion=None, seconds=0.0)


def test_a_request_is_a_row_with_its_figures() -> None:
    """Guards what is read off: 100 tokens in two seconds are 50 a second; what is not known is a dash."""
    text = str(requests.requests_table([record(key=EVIL)], RequestFilter(), NOW))
    for part in ("9.0 s ago", ">900<", ">400<", ">101<", ">1.0 s<", ">3.0 s<", ">50<", ">200<", "1 request<"):
        assert part in text, part
    assert EVIL not in text
    assert "429 refused" in requests.requests_table([REFUSED], RequestFilter(), NOW)
    assert "no answer from the engine" in requests.requests_table(
        [record(outcome="cut", status=0)], RequestFilter(), NOW
    )


def test_requests_are_filtered_and_bounded() -> None:
    """Guards the filter by key, model and result, and a page that a day of requests does not break."""
    found = [record(key="a"), record(model="big"), REFUSED, record(outcome="failed", status=500)]
    for filters, count in (
        (RequestFilter(key="a"), 1),
        (RequestFilter(model="big"), 1),
        (RequestFilter(result="refused"), 1),
        (RequestFilter(), 4),
    ):
        assert requests.requests_table(found, filters, NOW).count("<tr>") == count + 1
    assert requests.requests_table(found, RequestFilter(result="failed"), NOW).count("<tr>") == 2
    assert "No request matches" in requests.requests_table(found, RequestFilter(key="x"), NOW)
    assert wanted({"result": "x", "key": "k" * 999}) == RequestFilter("k" * 200)
    page = requests.requests_page([record()] * 5000, RequestFilter(), "key=", NOW)
    assert page.count("<tr>") == 101 and "The newest 100 of 5,000" in page and len(page) < 100_000


def test_latency_is_the_clients_median() -> None:
    """Guards the first page's figures: failed and refused requests have no latency, and are counted by kind."""
    found = [record(first=first / 10) for first in range(1, 21)]
    found += [REFUSED, record(outcome="refused", status=503), record(outcome="failed", status=500, first=99.0)]
    seen = latency(found)
    assert seen.first == (pytest.approx(1.05), 2.0) and (seen.requests, seen.failed) == (23, 1)
    assert seen.errors_text == "1 failed, 1 × 429, 1 × 503"
    assert latency([]).first is None and latency([]).errors_text == "no errors"


def test_the_pages_read_what_the_gateway_wrote(tmp_path: Path) -> None:
    """Guards the way from the gateway's database to the strip: sums by stretch, of the models that are asked for."""
    from sparkwright.adapters.sqlite.usage import UsageStore, spans_since

    store = UsageStore(tmp_path)
    for one in (record(at=NOW), record(at=NOW + 1, first=3.0), REFUSED, record(model="big"), record(at=NOW - 9000)):
        store.record(one)
    first = spans_since(tmp_path, {"tiny"}, NOW - 600, 300)
    assert [(one.requests, one.refused, one.failed) for one in first] == [(1, 1, 0), (2, 0, 0)]
    assert first[1].first == pytest.approx(2.0) and first[1].per_token == pytest.approx(0.01)
    assert spans_since(tmp_path, set(), 0.0, 300) == () and len(spans_since(tmp_path, {"tiny", "big"}, 0.0, 300)) == 3


def test_the_last_day_is_made_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the cost of fifty open pages: the strip is read and drawn once in a while, not for each."""
    at, asked = [NOW], list[str]()
    board = ReportBoard(tmp_path, lambda: at[0])
    for name in "abcdef":
        (tmp_path / "supervision" / name).mkdir(parents=True)
    board.refresh()
    monkeypatch.setattr(board, "day", lambda watch: asked.append(watch.name) or ((), ()))
    for _ in range(50):
        day_strips(board, "")
    assert asked == ["a", "b", "c", "d"]
    at[0] += 60
    day_strips(board, "")
    assert len(asked) == 8


def test_requests_are_read_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guards the cost of fifty open pages of requests: the database is read once in a while, not for each."""
    at, asked = [NOW], list[float]()

    def read(folder: Path, since: float, most: int) -> tuple[RequestRecord, ...]:
        asked.append(since)
        return (record(), record(model="big"))

    monkeypatch.setattr("sparkwright.adapters.sqlite.usage.requests_since", read)
    board = ReportBoard(tmp_path, lambda: at[0])
    for _ in range(50):
        assert len(board.requests("")) == 2 and board.requests("chat") == ()
    assert len(asked) == 1
    at[0] += 60
    board.requests("")
    assert len(asked) == 2
