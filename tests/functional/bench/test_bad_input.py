"""`bench` against servers that lack something or fail: one clear message, or a run with its failures counted."""

from __future__ import annotations

import json

import pytest

from fakes.ports import free_port
from functional.bench.conftest import Bench, Start, url
from functional.bench.odd import MODEL, Odd, served


def test_nothing_listens(shell: Bench) -> None:
    """A refused connection is reported at once, with exit code 5 and what to inspect."""
    code, _, err = shell.run("bench", f"http://127.0.0.1:{free_port()}")
    assert (code, "connection refused" in err, "hint:" in err) == (5, True, True)
    assert len(err.splitlines()) == 2


def test_a_wrong_model_name(shell: Bench) -> None:
    """The names that are served are listed; nothing is measured."""
    with served(Odd()) as odd:
        code, _, err = shell.run("bench", odd.url, "--model", "other")
    assert code == 2
    assert f"does not serve 'other'; it serves: {MODEL}" in err


@pytest.mark.full
def test_several_models(shell: Bench) -> None:
    """The user names the model if there are several."""
    with served(Odd(models=("a", "b"))) as odd:
        code, _, err = shell.run("bench", odd.url)
    assert (code, "several models: a, b" in err, "--model NAME" in err) == (2, True, True)


def test_a_key_is_wanted(shell: Bench) -> None:
    """A missing and a wrong key are distinguished; the right one never shows anywhere."""
    with served(Odd(key="k-right-4711")) as odd:
        code, _, err = shell.run("bench", odd.url)
        assert (code, "401" in err, "it wants a key" in err, "--key-file" in err) == (2, True, True, True)
        code, _, err = shell.run("bench", odd.url, SPARKWRIGHT_API_KEY="k-wrong")
        assert (code, "not one of its" in err, "k-wrong" in err) == (2, True, False)
        (shell.folder / "key").write_text("k-right-4711\n")
        _, out, err = shell.run("bench", odd.url, "--key-file", "key", "--profile", shell.workload())
    assert "one" in out
    left = [path for path in shell.folder.rglob("*") if path.is_file() and path.name != "key"]
    assert "k-right" not in out + err
    assert not [path for path in left if b"k-right" in path.read_bytes()]


@pytest.mark.full
def test_the_general_key_goes_only_to_who_asks(shell: Bench) -> None:
    """A key for another service is not shown to a server that wants none."""
    with served(Odd()) as odd:
        shell.run("bench", odd.url, "--dry-run", OPENAI_API_KEY="k-general")
        assert not any(odd.keys)
    with served(Odd(key="k-general")) as odd:
        code, _, err = shell.run("bench", odd.url, "--dry-run", OPENAI_API_KEY="k-general")
        assert (code, odd.keys[0], "Bearer k-general" in odd.keys) == (0, "", True), err


def test_a_key_file_without_a_key(shell: Bench) -> None:
    """An empty file, or one with more than a key, is refused before anything is asked."""
    (shell.folder / "key").write_text("")
    code, _, err = shell.run("bench", "http://127.0.0.1:1", "--key-file", "key")
    assert (code, "0 words" in err) == (2, True)


@pytest.mark.full
def test_sent_away_at_first(shell: Bench) -> None:
    """A 429 that reports when to come again is waited for."""
    with served(Odd(away=1)) as odd:
        code, out, err = shell.run("bench", odd.url, "--dry-run")
    assert (code, MODEL in out) == (0, True), err


@pytest.mark.full
def test_sent_away_for_too_long(shell: Bench) -> None:
    """Nobody waits an hour: it is reported, with the server's own text."""
    with served(Odd(away=99, retry_after="3600")) as odd:
        code, _, err = shell.run("bench", odd.url)
    assert (code, "slow down" in err, "3600 s" in err) == (5, True, True), err


@pytest.mark.full
def test_sent_away_in_a_level(shell: Bench) -> None:
    """Requests that get 429 inside a level are counted as what they are, and the run goes on."""
    with served(Odd(late_away=1)) as odd:
        _, told, _ = shell.json(odd.url, "--profile", shell.workload())
    errors = [level["errors"] for level in told["runs"][0]["levels"]]
    assert {"http-429": 1} in errors


@pytest.mark.parametrize("field", ["continuous_usage_stats", "ignore_eos", "chat_template_kwargs"])
def test_a_server_that_refuses_an_option(shell: Bench, field: str) -> None:
    """A refused option is found beforehand and left out: no measured request fails of it."""
    with served(Odd(refused=(field,))) as odd:
        _, told, err = shell.json(odd.url, "--profile", shell.workload())
    assert all(not level["errors"] for level in told["runs"][0]["levels"]), err
    assert sum(level["good"] for level in told["runs"][0]["levels"]) == 7


def test_no_usage(shell: Bench) -> None:
    """There are latencies and no figure per token without usage; that is reported before and after."""
    with served(Odd(usage=False)) as odd:
        _, out, err = shell.run("bench", odd.url, "--profile", shell.workload())
        assert "no `usage`: only latencies" in err
        assert "without usage" in out
        _, told, _ = shell.json(odd.url, "--profile", shell.workload())
    metrics = told["runs"][0]["levels"][0]["metrics"]
    assert "ttft" in metrics
    assert not {"tpot", "decode", "output_rate"} & set(metrics)


@pytest.mark.full
def test_no_tokenizer(shell: Bench) -> None:
    """Lengths are estimates then, corrected by the server's own usage: within 15 %, and reported."""
    with served(Odd()) as odd:
        _, _, err = shell.run("bench", odd.url, "--profile", shell.workload())
        assert "estimate" in err
        lengths = [
            sum(len(m["content"]) for m in body["messages"]) // 5 for body in odd.asked if body["max_tokens"] == 8
        ]
    assert all(0.8 * 64 <= length <= 1.2 * 96 for length in lengths[1:])


@pytest.mark.full
def test_too_long_for_the_server(shell: Bench, simulator: Start) -> None:
    """Levels that do not fit are left out and named; the rest is measured."""
    served_by = simulator("--max-model-len", "100")
    _, out, err = shell.run("bench", url(served_by), "--profile", shell.workload())
    assert "left out: two needs 104 tokens of context, and the server takes 100" in err
    assert "3" in out


@pytest.mark.full
def test_nothing_fits(shell: Bench, simulator: Start) -> None:
    """A profile of which no level fits is refused."""
    code, _, err = shell.run("bench", url(simulator("--max-model-len", "64")), "--profile", shell.workload())
    assert (code, "no level fits" in err) == (2, True)


def test_too_long_by_the_servers_own_word(shell: Bench) -> None:
    """The refusal is counted and its message is shown if the limit is unknown beforehand."""
    with served(Odd(too_long=390)) as odd:
        _, out, _ = shell.run("bench", odd.url, "--profile", shell.workload())
    assert "http-400" in out
    assert "maximum context length" in out


def test_it_dies_in_mid_run(shell: Bench) -> None:
    """The run ends automatically, is kept, and reports how to go on; the requests that failed are in it."""
    with served(Odd(dies=4)) as odd:
        code, _, err = shell.run("bench", odd.url, "--profile", shell.workload())
    assert code == 5, err
    assert "no longer answers" in err
    (run,) = shell.saved()
    assert f"--resume {run['id']}" in err
    assert run["state"] == "stopped"
    assert run["errors"] > 0


def test_a_gate_is_read_before_anything_is_measured(shell: Bench) -> None:
    """A mistake in the file of gates costs no measurement."""
    (shell.folder / "gates").write_text("ttft.p99 is fine\n")
    code, _, err = shell.run("bench", "http://127.0.0.1:1", "--gate", "gates")
    assert (code, "gates:1" in err) == (2, True), err


@pytest.mark.parametrize(
    ("gates", "words", "said"),
    [
        (b"ttft <= 2 x baseline", (), "wants a baseline"),
        (b"ttft <= 2 x baseline", ("--baseline", "none-such"), "no run none-such"),
        (None, ("--baseline", "last"), "--gate FILE"),
        (b"\xff\xfe\x00", (), "cannot be read"),
    ],
)
def test_a_baseline_is_found_before_anything_is_measured(
    shell: Bench, gates: bytes | None, words: tuple[str, ...], said: str
) -> None:
    """Anyone who forgot it, or misspelt its name, learns that at once."""
    if gates is not None:
        (shell.folder / "gates").write_bytes(gates)
        words = (*words, "--gate", "gates")
    code, _, err = shell.run("bench", "http://127.0.0.1:1", *words)
    assert (code, said in err, "Traceback" in err) == (2, True, False), err


@pytest.mark.full
def test_an_unknown_profile(shell: Bench) -> None:
    """The nearest name is offered."""
    code, _, err = shell.run("bench", "http://127.0.0.1:1", "--profile", "quik")
    assert (code, "did you mean `quick`?" in err) == (2, True)


@pytest.mark.full
def test_no_such_deployment(shell: Bench) -> None:
    """Anything but a URL is a deployment, and that needs a cluster."""
    code, _, err = shell.run("bench", "some-name")
    assert (code, "some-name: no URL" in err) == (2, True), err


@pytest.mark.full
def test_of_several_endpoints_all_are_asked_first(shell: Bench) -> None:
    """Nobody measures one for an hour to learn then that the other is not there; a dry run of both is one document."""
    with served(Odd()) as odd, served(Odd()) as other:
        code, _, err = shell.run("bench", odd.url, "http://127.0.0.1:1", "--profile", shell.workload())
        assert (code, "refused" in err, shell.saved()) == (5, True, []), err
        _, out, err = shell.run("bench", odd.url, other.url, "--profile", shell.workload(), "--dry-run", "--json")
        assert [plan["model"] for plan in json.loads(out)["plans"]] == [MODEL, MODEL], err
