"""`bench` against servers that lack something or fail: one clear message, or a run with its failures counted."""

from __future__ import annotations

import json

import pytest

from fakes.ports import free_port
from functional.bench.conftest import BenchShell, Start, endpoint_url
from functional.bench.odd import MODEL, OddServer, served


def test_nothing_listens(bench_shell: BenchShell) -> None:
    """A refused connection is reported at once, with exit code 5 and what to inspect."""
    code, _, err = bench_shell.run("bench", f"http://127.0.0.1:{free_port()}")
    assert (code, "connection refused" in err, "hint:" in err) == (5, True, True)
    assert len(err.splitlines()) == 2


def test_a_wrong_model_name(bench_shell: BenchShell) -> None:
    """The names that are served are listed; nothing is measured."""
    with served(OddServer()) as odd:
        code, _, err = bench_shell.run("bench", odd.url, "--model", "other")
    assert code == 2
    assert f"does not serve 'other'; it serves: {MODEL}" in err


@pytest.mark.full
def test_several_models(bench_shell: BenchShell) -> None:
    """The user names the model if there are several."""
    with served(OddServer(models=("a", "b"))) as odd:
        code, _, err = bench_shell.run("bench", odd.url)
    assert (code, "several models: a, b" in err, "--model NAME" in err) == (2, True, True)


def test_a_key_is_wanted(bench_shell: BenchShell) -> None:
    """A missing and a wrong key are distinguished; the right one never shows anywhere."""
    with served(OddServer(key="k-right-4711")) as odd:
        code, _, err = bench_shell.run("bench", odd.url)
        assert (code, "401" in err, "it wants a key" in err, "--key-file" in err) == (2, True, True, True)
        code, _, err = bench_shell.run("bench", odd.url, SPARKWRIGHT_API_KEY="k-wrong")
        assert (code, "not one of its" in err, "k-wrong" in err) == (2, True, False)
        (bench_shell.folder / "key").write_text("k-right-4711\n")
        _, out, err = bench_shell.run("bench", odd.url, "--key-file", "key", "--profile", bench_shell.workload())
    assert "one" in out
    left = [path for path in bench_shell.folder.rglob("*") if path.is_file() and path.name != "key"]
    assert "k-right" not in out + err
    assert not [path for path in left if b"k-right" in path.read_bytes()]


@pytest.mark.full
def test_the_general_key_goes_only_to_who_asks(bench_shell: BenchShell) -> None:
    """A key for another service is not shown to a server that wants none."""
    with served(OddServer()) as odd:
        bench_shell.run("bench", odd.url, "--dry-run", OPENAI_API_KEY="k-general")
        assert not any(odd.keys)
    with served(OddServer(key="k-general")) as odd:
        code, _, err = bench_shell.run("bench", odd.url, "--dry-run", OPENAI_API_KEY="k-general")
        assert (code, odd.keys[0], "Bearer k-general" in odd.keys) == (0, "", True), err


def test_a_key_file_without_a_key(bench_shell: BenchShell) -> None:
    """An empty file, or one with more than a key, is refused before anything is asked."""
    (bench_shell.folder / "key").write_text("")
    code, _, err = bench_shell.run("bench", "http://127.0.0.1:1", "--key-file", "key")
    assert (code, "0 words" in err) == (2, True)


@pytest.mark.full
def test_sent_away_at_first(bench_shell: BenchShell) -> None:
    """A 429 that reports when to come again is waited for."""
    with served(OddServer(away=1)) as odd:
        code, out, err = bench_shell.run("bench", odd.url, "--dry-run")
    assert (code, MODEL in out) == (0, True), err


@pytest.mark.full
def test_sent_away_for_too_long(bench_shell: BenchShell) -> None:
    """Nobody waits an hour: it is reported, with the server's own text."""
    with served(OddServer(away=99, retry_after="3600")) as odd:
        code, _, err = bench_shell.run("bench", odd.url)
    assert (code, "slow down" in err, "3600 s" in err) == (5, True, True), err


@pytest.mark.full
def test_sent_away_in_a_level(bench_shell: BenchShell) -> None:
    """Requests that get 429 inside a level are counted as what they are, and the run goes on."""
    with served(OddServer(late_away=1)) as odd:
        _, told, _ = bench_shell.json(odd.url, "--profile", bench_shell.workload())
    errors = [level["errors"] for level in told["runs"][0]["levels"]]
    assert {"http-429": 1} in errors


@pytest.mark.parametrize("field", ["continuous_usage_stats", "ignore_eos", "chat_template_kwargs"])
def test_a_server_that_refuses_an_option(bench_shell: BenchShell, field: str) -> None:
    """A refused option is found beforehand and left out: no measured request fails of it."""
    with served(OddServer(refused=(field,))) as odd:
        _, told, err = bench_shell.json(odd.url, "--profile", bench_shell.workload())
    assert all(not level["errors"] for level in told["runs"][0]["levels"]), err
    assert sum(level["good"] for level in told["runs"][0]["levels"]) == 7


def test_no_usage(bench_shell: BenchShell) -> None:
    """There are latencies and no figure per token without usage; that is reported before and after."""
    with served(OddServer(usage=False)) as odd:
        _, out, err = bench_shell.run("bench", odd.url, "--profile", bench_shell.workload())
        assert "no `usage`: only latencies" in err
        assert "without usage" in out
        _, told, _ = bench_shell.json(odd.url, "--profile", bench_shell.workload())
    metrics = told["runs"][0]["levels"][0]["metrics"]
    assert "ttft" in metrics
    assert not {"tpot", "decode", "output_rate"} & set(metrics)


@pytest.mark.full
def test_no_tokenizer(bench_shell: BenchShell) -> None:
    """Lengths are estimates then, corrected by the server's own usage: within 15 %, and reported."""
    with served(OddServer()) as odd:
        _, _, err = bench_shell.run("bench", odd.url, "--profile", bench_shell.workload())
        assert "estimate" in err
        lengths = [
            sum(len(m["content"]) for m in body["messages"]) // 5 for body in odd.asked if body["max_tokens"] == 8
        ]
    assert all(0.8 * 64 <= length <= 1.2 * 96 for length in lengths[1:])


@pytest.mark.full
def test_too_long_for_the_server(bench_shell: BenchShell, simulator: Start) -> None:
    """Levels that do not fit are left out and named; the rest is measured."""
    served_by = simulator("--max-model-len", "100")
    _, out, err = bench_shell.run("bench", endpoint_url(served_by), "--profile", bench_shell.workload())
    assert "left out: two needs 104 tokens of context, and the server takes 100" in err
    assert "3" in out


@pytest.mark.full
def test_nothing_fits(bench_shell: BenchShell, simulator: Start) -> None:
    """A profile of which no level fits is refused."""
    code, _, err = bench_shell.run(
        "bench", endpoint_url(simulator("--max-model-len", "64")), "--profile", bench_shell.workload()
    )
    assert (code, "no level fits" in err) == (2, True)


def test_too_long_by_the_servers_own_word(bench_shell: BenchShell) -> None:
    """The refusal is counted and its message is shown if the limit is unknown beforehand."""
    with served(OddServer(too_long=390)) as odd:
        _, out, _ = bench_shell.run("bench", odd.url, "--profile", bench_shell.workload())
    assert "http-400" in out
    assert "maximum context length" in out


def test_it_dies_in_mid_run(bench_shell: BenchShell) -> None:
    """The run ends automatically, is kept, and reports how to go on; the requests that failed are in it."""
    with served(OddServer(dies=4)) as odd:
        code, _, err = bench_shell.run("bench", odd.url, "--profile", bench_shell.workload())
    assert code == 5, err
    assert "no longer answers" in err
    (run,) = bench_shell.saved()
    assert f"--resume {run['id']}" in err
    assert run["state"] == "stopped"
    assert run["errors"] > 0


def test_a_gate_is_read_before_anything_is_measured(bench_shell: BenchShell) -> None:
    """A mistake in the file of gates costs no measurement."""
    (bench_shell.folder / "gates").write_text("ttft.p99 is fine\n")
    code, _, err = bench_shell.run("bench", "http://127.0.0.1:1", "--gate", "gates")
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
    bench_shell: BenchShell, gates: bytes | None, words: tuple[str, ...], said: str
) -> None:
    """Anyone who forgot it, or misspelt its name, learns that at once."""
    if gates is not None:
        (bench_shell.folder / "gates").write_bytes(gates)
        words = (*words, "--gate", "gates")
    code, _, err = bench_shell.run("bench", "http://127.0.0.1:1", *words)
    assert (code, said in err, "Traceback" in err) == (2, True, False), err


@pytest.mark.full
def test_an_unknown_profile(bench_shell: BenchShell) -> None:
    """The nearest name is offered."""
    code, _, err = bench_shell.run("bench", "http://127.0.0.1:1", "--profile", "quik")
    assert (code, "did you mean `quick`?" in err) == (2, True)


@pytest.mark.full
def test_no_such_deployment(bench_shell: BenchShell) -> None:
    """Anything but a URL is a deployment, and that needs a cluster."""
    code, _, err = bench_shell.run("bench", "some-name")
    assert (code, "some-name: no URL" in err) == (2, True), err


@pytest.mark.full
def test_of_several_endpoints_all_are_asked_first(bench_shell: BenchShell) -> None:
    """Nobody measures one for an hour to learn then that the other is not there; a dry run of both is one document."""
    with served(OddServer()) as odd, served(OddServer()) as other:
        code, _, err = bench_shell.run("bench", odd.url, "http://127.0.0.1:1", "--profile", bench_shell.workload())
        assert (code, "refused" in err, bench_shell.saved()) == (5, True, []), err
        _, out, err = bench_shell.run(
            "bench", odd.url, other.url, "--profile", bench_shell.workload(), "--dry-run", "--json"
        )
        assert [plan["model"] for plan in json.loads(out)["plans"]] == [MODEL, MODEL], err
