"""Outages as the drills' clients see them: none is missed, and none comes out shorter than it was."""

from dataclasses import replace
from typing import Any

from drills.fate import Fate, SentRequest
from drills.outage import (
    Expected,
    MeasuredOutage,
    Observed,
    OutageSample,
    bad_answers,
    missed,
    outage_view,
    outages,
    state_story,
)
from unit.for_each import for_each


def client_request(
    sent: float, took: float, fate: Fate = Fate.ANSWERED, status: int = 200, retry: str = ""
) -> SentRequest:
    return SentRequest(sent, sent + took, fate, status, shaped=bool(retry), retry=retry, said="gone")


def refused_request(sent: float) -> SentRequest:
    return client_request(sent, 0.1, Fate.REFUSED, 503, "5")


GOOD = [client_request(100.0, 0.2), client_request(100.3, 0.2)]


def test_an_outage_lasts_from_the_first_useless_request_to_the_first_good_answer() -> None:
    """An outage begins when a request is sent in vain, and ends when a later answer is complete."""
    found = outages(
        [*GOOD, refused_request(101.0), refused_request(102.0), client_request(103.0, 0.5), client_request(104.0, 0.2)]
    )
    assert found == [MeasuredOutage(101.0, 103.5)]
    assert outages([*GOOD, refused_request(101.0)]) == [MeasuredOutage(101.0)] and MeasuredOutage(101.0).away is None
    assert outages(GOOD) == []


def test_a_request_that_hangs_until_it_is_answered_late_is_an_outage() -> None:
    """Twenty seconds without any answer are an outage. A queue in which others are served is not."""
    assert outages([*GOOD, client_request(101.0, 20.0), client_request(111.0, 10.2)]) == [MeasuredOutage(101.0, 121.0)]
    assert outages([*GOOD, client_request(101.0, 9.0), client_request(102.0, 2.0), client_request(103.0, 4.0)]) == []


def test_outages_with_service_between_are_two() -> None:
    """Two outages with seconds of answers between them stay two; less than a second apart they are one."""
    one = [refused_request(101.0), client_request(102.0, 0.1)]
    assert (
        len(
            outages(
                [
                    *one,
                    *[client_request(102.3 + n / 3, 0.1) for n in range(12)],
                    refused_request(107.0),
                    client_request(108.0, 0.1),
                ]
            )
        )
        == 2
    )
    assert outages([*one, refused_request(102.4), client_request(103.0, 0.1)]) == [MeasuredOutage(101.0, 103.1)]


def test_what_clients_got_is_counted() -> None:
    """Each kind of failure has a count of its own: a refusal without a reason, no connection, silence, a cut stream."""
    requests = [
        refused_request(101.0),
        client_request(102.0, 0.1, Fate.REFUSED, 503),
        client_request(103.0, 0.1, Fate.BROKEN, 0),
        client_request(104.0, 25.0, Fate.LOST, 0),
        client_request(105.0, 1.0, Fate.BROKEN),
        client_request(106.0, 12.0),
    ]
    words = bad_answers(Observed(100.0, 130.0, requests))
    assert "1 x 503 with reason and Retry-After" in words and "1 x 503 WITHOUT reason and Retry-After" in words
    assert "1 x no connection (gone)" in words and "1 x no answer in 25 s" in words
    assert "1 x stream ended early" in words and "answers after up to 12 s" in words


INCIDENT: dict[str, Any] = {"what": "rank 1 on spark-2 was killed", "cause": "a kill", "code": "X1", "away": 10.5}
REQUESTS = (*GOOD, refused_request(101.0), client_request(111.0, 0.2))
SEEN = Observed(
    at=101.0,
    end=120.0,
    requests=REQUESTS,
    samples=[
        OutageSample(100.5, 1.0, 0, "ready"),
        OutageSample(107.0, 1.0, 1, "draining", "disk full"),
        OutageSample(112.0, 1.0, 0, "ready"),
    ],
    incidents=[INCIDENT],
    record="the supervisor was restarted",
    start=2.5,
    restored=0.0,
    outages=outages(REQUESTS),
)
EXPECTED = Expected(8.0, cause="spark-2", status="disk", record="supervisor.*restarted", refusal="gone")


def test_a_good_way_back_meets_its_targets() -> None:
    """A drill passes if `status` shows the true state, and the incident has the right cause and the clients' time."""
    assert missed(EXPECTED, SEEN) == []
    assert outage_view(SEEN).away == (10.2,)
    assert state_story(SEEN.samples, 101.0) == "ready (exit 0) 0 s > draining (exit 1) 7 s > ready (exit 0) 12 s"


@for_each(
    "expected, seen, words",
    [
        ({"away": 5.0}, {}, "away for 10.2 s, target 7.5 s"),
        ({}, {"outages": [MeasuredOutage(101.0)]}, "clients are not served again"),
        ({}, {"samples": [OutageSample(107.0, 1.0, 0, "ready", "disk")]}, "status prints ready 7 s into the outage"),
        ({"status": "stalled"}, {}, "status never prints 'stalled'"),
        ({"incidents": 0}, {}, "1 incident(s), not 0"),
        ({"cause": "spark-1"}, {}, "the incident does not name 'spark-1'"),
        ({"never": "a kill"}, {}, "wrong words: a kill"),
        ({"never": "gone"}, {}, "wrong words: gone"),
        ({}, {"incidents": [INCIDENT | {"away": 4.0}]}, "the incident has 4 s, clients had 10 s"),
        (
            {},
            {"requests": (*REQUESTS, client_request(102.0, 0.1, Fate.REFUSED, 503))},
            "1 x 503 without reason or Retry-After: gone",
        ),
        ({"refusal": "disk"}, {}, "no refusal has 'disk'"),
        ({"record": "Caddy"}, {}, "nothing recorded of 'Caddy'"),
    ],
)
def test_each_target_can_be_missed(expected: dict[str, Any], seen: dict[str, Any], words: str) -> None:
    """Guards each check of a drill: one wrong observation or one stricter expectation fails it, with the reason."""
    assert words in missed(replace(EXPECTED, **expected), replace(SEEN, **seen))
