"""Admission now, waiting, and the view of others."""

from dataclasses import replace
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.live import DeploymentState, Live, LiveNode
from sparkwright.gateway import decide
from sparkwright.gateway.decide import (
    CROWD,
    HOLD,
    AdmissionRequest,
    Hold,
    admitted,
    broken,
    matcher,
    refused,
    retry_after,
    unavailable,
)
from unit.for_each import for_each

NOW = 1_000_000.0
LIVE = Live(NOW - 1, "big", DeploymentState.LOADING, NOW - 65, refusing=True, why="rank 1 exited with 137.")
GOOD = AdmissionRequest("POST", "/v1/chat/completions", known=True, shown=True, length=10)
ROUTES = matcher(("POST /v1/chat/completions", "GET /v1/models/{path}", "POST /v1/responses/{id}/cancel"))


@for_each("path", ["/", "/metrics", "/v1", "/v1x", "/V1/models", "", "//v1/models"])
def test_nothing_next_to_v1(path: str) -> None:
    """Guards that also the key check, and not Caddy alone, knows what is served; a key changes nothing."""
    answer = refused(replace(GOOD, path=path), 100, ROUTES)
    assert answer == decide.NO_SUCH_PATH


PLAIN = set(ascii_letters + digits + "._~@:+=-")


@given(st.text(max_size=40) | st.text("ab0./%2F2fe;\\", max_size=12))
def test_nothing_next_to_the_list(text: str) -> None:
    """Guards that a path is served only as it is listed, with segments that no server reads in another way."""
    parts = text.replace("%2F", "/").split("/")
    plain = all(part and set(part) <= PLAIN and not part.startswith(".") for part in parts)
    asked = replace(GOOD, method="GET", path=f"/v1/models/{text}")
    assert (refused(asked, 100, ROUTES) is None) is plain


@for_each(
    "call, served",
    [
        ("GET /v1/models/org/name-7B.v1", True),
        ("HEAD /v1/models/a%2Fb", True),
        ("GET /v1/models/", False),
        ("GET /v1/models/..", False),
        ("GET /v1/models/a/../b", False),
        ("GET /v1/models/a%2F..%2Fb", False),
        ("GET /v1/models/a%2fb", False),
        ("POST /v1/responses/resp_1/cancel", True),
        ("POST /v1/responses/a/b/cancel", False),
        ("POST /v1/responses//cancel", False),
        ("GET /v1/chat/completions", False),
        ("POST /v1/chat/completions/", False),
        ("POST /v1/chat/completions;x", False),
        ("POST /v1/chat/completions\n", False),
    ],
)
def test_placeholders_hold_plain_segments_only(call: str, served: bool) -> None:
    """Guards `{id}` and `{path}` against steps up, empty segments and anything encoded but a slash."""
    assert bool(ROUTES.fullmatch(call)) is served


def test_an_empty_list_serves_nothing() -> None:
    """Guards a setting that an older `up` has written: without a list nothing is let through."""
    assert refused(GOOD, 100, matcher(())) == decide.no_such_route("POST /v1/chat/completions")


def test_keys_that_cannot_be_read_are_not_called_unknown() -> None:
    """Guards that a client with a good key reads 503 and not 401 while its key cannot be checked."""
    assert refused(replace(GOOD, known=False, readable=False), 100, ROUTES) == decide.KEYS_UNREADABLE
    assert refused(replace(GOOD, readable=False), 100, ROUTES) is None, "the engine's own key is no matter of the file"


def test_the_key_comes_before_all_that_reports_something() -> None:
    """Guards that strangers learn neither limits nor the engine's state."""
    stranger = replace(GOOD, known=False, length=10**9)
    assert refused(stranger, 100, ROUTES) == decide.key_missing(shown=True)
    assert refused(replace(stranger, shown=False), 100, ROUTES) == decide.key_missing(shown=False)
    assert refused(replace(GOOD, length=101), 100, ROUTES) == decide.too_large(100)
    assert refused(GOOD, 100, ROUTES) is refused(replace(GOOD, length=None), 100, ROUTES) is None


def test_what_is_not_refusing_lets_in() -> None:
    """Guards that only a fresh word of the supervisor closes the gateway."""
    assert admitted(None, NOW, 0.0) is None
    assert admitted(replace(LIVE, refusing=False), NOW, 0.0) is None
    assert admitted(replace(LIVE, at=NOW - 60), NOW, 0.0) is None
    assert admitted(replace(LIVE, at=NOW + 60), NOW, 0.0) is None
    assert isinstance(admitted(LIVE, NOW, 0.0), decide.GatewayAnswer)


def test_a_short_gap_is_waited_for_and_no_longer() -> None:
    """Guards the limit of ten seconds a request, and that a crowd does not pile up."""
    soon = replace(LIVE, back_at=NOW + 6)
    assert admitted(soon, NOW, 0.0) == Hold(6.0)
    assert admitted(soon, NOW, 3.9) == Hold(6.0)
    assert isinstance(admitted(soon, NOW, 4.1), decide.GatewayAnswer)
    assert isinstance(admitted(soon, NOW, 0.0, CROWD + 1), decide.GatewayAnswer)
    assert isinstance(admitted(replace(soon, back_at=NOW + HOLD + 1), NOW, 0.0), decide.GatewayAnswer)


def test_a_gap_of_unknown_length_is_waited_for_while_it_is_young() -> None:
    """Guards that a dead rank is refused within a second of its detection, not after ten."""
    young = replace(LIVE, phase=DeploymentState.DRAINING, since=NOW - 0.4)
    assert admitted(young, NOW, 0.0) == Hold(pytest.approx(0.6))
    assert isinstance(admitted(young, NOW + 0.7, 0.7), decide.GatewayAnswer)


@pytest.mark.parametrize("phase", [DeploymentState.FAILED, DeploymentState.NEEDS_REBOOT, DeploymentState.READY])
def test_what_does_not_pass_by_itself_is_not_waited_for(phase: DeploymentState) -> None:
    """Guards that nobody is held for a person to come, nor for memory to be freed."""
    assert isinstance(admitted(replace(LIVE, phase=phase, back_at=NOW + 2), NOW, 0.0), decide.GatewayAnswer)


def test_the_words_report_what_since_when_and_until_when() -> None:
    """Guards the sentence that users of coding agents will read."""
    answer = unavailable(replace(LIVE, back_at=NOW + 200), NOW)
    assert answer.message == "big is loading since 65 s: rank 1 exited with 137; it should be back in about 3 min 20 s."
    assert (answer.status, answer.retry_after, answer.code) == (503, 200, "deployment_loading")
    assert unavailable(LIVE, NOW).message.endswith("; it is not known when it will be back.")
    assert unavailable(replace(LIVE, back_at=NOW - 50), NOW).message.endswith("; it should have been back 50 s ago.")
    due = unavailable(replace(LIVE, back_at=NOW - 1, usual=4.5), NOW).message
    assert due.endswith("; it should be back at any moment; a start usually takes 4.5 s.")
    person = unavailable(replace(LIVE, phase=DeploymentState.NEEDS_REBOOT, simulated=True), NOW)
    assert person.message.startswith("(simulated) big is needs reboot") and "rebooted first" in person.message


def test_what_it_waits_for_is_in_the_refusal() -> None:
    """Guards that a client learns of a deliberate back-off, of its end, and of how long a start takes."""
    waiting = replace(LIVE, phase=DeploymentState.BACKING_OFF, awaited="back-off before launch 3", due=NOW + 27)
    answer = unavailable(replace(waiting, back_at=NOW + 31.5, usual=4.5), NOW)
    back = "it should be back in about 32 s; a start usually takes 4.5 s."
    assert f"; back-off before launch 3 until 13:47:07 UTC; {back}" in answer.message
    assert answer.retry_after == 32
    docker = unavailable(replace(LIVE, awaited="Docker on spark-2", usual=4.5), NOW)
    said = "; waiting for Docker on spark-2; it is not known when it will be back; a start usually takes 4.5 s."
    assert docker.message.endswith(said) and docker.retry_after == 5


def test_a_request_waits_for_what_it_starts_and_is_refused_with_what_the_plan_has() -> None:
    """Guards both bounds of a wait on demand, that a crowd does not grow, and that only a request may start it."""
    asleep = replace(LIVE, phase=DeploymentState.ON_DEMAND, why="stopped after 15 min without a request", usual=90)
    for live in (asleep, replace(LIVE, phase=DeploymentState.DRAINING), LIVE):
        assert isinstance(admitted(live, NOW, 599, CROWD, 600), Hold)
        for over in (admitted(live, NOW, 600, 0, 600), admitted(live, NOW, 0, CROWD + 1, 600), admitted(live, NOW, 0)):
            assert over == unavailable(live, NOW)
    said = "big is on demand, stopped since 65 s: stopped after 15 min without a request; the next request starts it"
    assert unavailable(asleep, NOW).message == f"{said}; a start usually takes 90 s."
    declined = admitted(replace(asleep, declined=NOW - 10, why="MEM001 a: no room"), NOW, 0, 0, 600)
    assert isinstance(declined, decide.GatewayAnswer) and declined.retry_after == 20
    assert "MEM001 a: no room; in 20 s a request starts it" in declined.message
    assert isinstance(admitted(replace(LIVE, phase=DeploymentState.FAILED), NOW, 0, 0, 600), decide.GatewayAnswer)


@given(back=st.floats(-1e5, 1e5), phase=st.sampled_from(DeploymentState))
def test_retry_after_is_a_sensible_number(back: float, phase: DeploymentState) -> None:
    """Guards that clients neither hammer (0) nor stay away for hours."""
    assert 1 <= retry_after(replace(LIVE, phase=phase, back_at=NOW + back), NOW) <= 600


def test_an_engine_that_broke_off_is_recognized_by_what_is_known() -> None:
    """Guards three different answers: refused meanwhile, not seen yet, and nobody looks after it."""
    assert broken(LIVE, NOW) == unavailable(LIVE, NOW)
    assert "its supervisor examines it" in broken(replace(LIVE, refusing=False), NOW).message
    assert "has not reported for 60 s" in broken(replace(LIVE, at=NOW - 60), NOW).message
    assert "does not run" in broken(None, NOW).message


def test_a_supervisor_that_cannot_write_is_not_called_silent() -> None:
    """Guards the reason of an outage on a read-only file system: the node is named, to clients too."""
    live, why = replace(LIVE, at=NOW - 60, nodes=(LiveNode("spark-1", NOW, True),)), "read-only file system"
    for answer in (broken(live, NOW, why), decide.unattended(live, NOW, 23.0, why)):
        assert answer.status == 503 and answer.retry_after == 15
        assert "read-only file system on spark-1" in answer.message and "has not reported" not in answer.message
    said = decide.unattended(live, NOW, 23.0).message
    assert "the engine has given nothing for 23 s, and its supervisor has not reported for 60 s" in said
