"""vLLM 0.21.0's real lines, understood: recordings under tests/data/captures_logs."""

import json
import re
from functools import cache
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.deployment import PHASE_ORDER, LogEvent, Phase
from sparkwright.engines.catalog import ENGINES, engine
from sparkwright.engines.dialect import log_read_up_to, make_dialect
from sparkwright.engines.tables import phase_times
from sparkwright.facts.engine_log import LogStory, read_log
from sparkwright.logscan.envelope import Unwrap
from unit.engines.samples import DATA
from unit.for_each import for_each

LOGS = DATA / "captures_logs"
READ = cache(engine("vllm").read)  # several tests read the same recordings


def capture_lines(name: str) -> list[str]:
    return (LOGS / f"{name}.log").read_bytes().decode().split("\n")


def read_story(name: str) -> LogStory:
    return read_log(capture_lines(name), READ)


def read_event(line: str) -> LogEvent:
    found = READ(line)
    assert found is not None
    return found


# name: seconds from the first stamp to ready (read off the recording), KV tokens, KV GiB, weights GiB, concurrency
READY = {
    "m1-head": (62, "21656944", "41.31", "0.03", "1321.83"),
    "m2-head": (83, "814848", "48.18", "62.76", "4.14"),
    "v4-1m-s6": (359, "4047815", "26.72", "74.08", "3.86"),
    "b-8b-graphs": (70, "754608", "51.81", "15.27", "23.03"),
    "s-ngram": (39, "138320", "0.53", "0.06", "4.22"),
    "n1-head": (44, "21665136", "41.32", "0.03", "1322.33"),  # weights from a file; started by `sparkwright up`
}
FAILED = {
    "f-bad-flag": "ambiguous option: --kv-cache-dtyp",
    "f-bad-tp": "World size (3) is larger than the number of available GPUs (1)",
    "f-kv-too-small": "5.62 GiB KV cache is needed",
    "f-max-len": "User-specified max_model_len (400000)",
    "f-no-blocks": "No available memory for the cache blocks",
    "f-no-model": "Repo id must be in the form",
    "n2-gloo-head": "Gloo connectFullMesh failed",  # the worker's Gloo listens on lo
}


@for_each("name", READY)
def test_a_good_start_gives_its_figures(name: str) -> None:
    """Time to ready, KV pool, weights and concurrency come out as the engine printed them."""
    told = read_story(name)
    facts = dict(told.facts)
    figures = tuple(facts[key] for key in ("kv_tokens", "kv_gib", "weights_gib", "max_concurrency"))
    assert (told.ready_after, *figures) == READY[name]
    assert facts["version"] == "0.21.0"


@for_each("name", sorted(path.stem for path in LOGS.glob("[!dl]*.log")))
def test_phases_come_in_order_and_ready_only_where_it_was(name: str) -> None:
    """No recording goes back a phase before it is ready, and only those that served report it."""
    told = read_story(name)
    assert [p for p, _ in told.phases] == sorted((p for p, _ in told.phases), key=PHASE_ORDER.index)
    seen = [e.phase for line in capture_lines(name) if (e := READ(line)) and not e.error and not e.alive]
    before = seen[: seen.index(Phase.SERVER)] if Phase.SERVER in seen else seen
    if name != "v4-1m-s6":  # both of its ranks write into one log
        assert before == sorted(before, key=PHASE_ORDER.index)
    assert (told.ready_after is not None) == (name in READY)


# Recordings of 0.32.0 (CPUs) and 0.33.0 (H100): their phases after the load, and what they printed of the KV cache.
NEWER = {
    "vllm-0.32.0/healthy-tp1-compiled": ("compile warmup server", "262144", "8.00", "32768", "1.0"),
    "vllm-0.32.0/healthy-tp1-131072": ("warmup server", "262144", "2.00", "131072", "1.0"),
    "vllm-0.32.0/healthy-tp2": ("warmup server", "524288", "16.00", "32768", "1.0"),
    "vllm-0.33.0/h-8b": ("compile warmup graphs server", "357520", "10.91", "32768", "49.1"),
    "vllm-0.33.0/h-dsv2": ("warmup server", "569472", "17.38", "32768", "16.5"),
}


@for_each("name", NEWER)
def test_a_newer_start_passes_its_phases_with_its_figures(name: str) -> None:
    """The compiler's lines begin with `[backbone] ` since 0.32.0; size and concurrency of the KV cache are one line."""
    told = read_log((DATA / f"captures/{name}.log").read_text().splitlines(), READ)
    facts = dict(told.facts)
    phases = [str(phase) for phase, _ in told.phases]
    figures = tuple(facts[key] for key in ("kv_tokens", "max_concurrency", "context", "kv_gib"))
    assert (" ".join(phases[phases.index("load") + 1 :]), *figures) == NEWER[name]
    assert (facts["version"], told.root) == (name[5:11], "") and told.ready_after
    assert facts["model"].startswith("/") and not facts["fraction"].endswith(",")


def test_host_memory_counts_into_the_kv_cache() -> None:
    """HiSparse of 0.33.0 names both pools in one line (vllm/v1/core/kv_cache_utils.py)."""
    line = "GPU + host KV cache size: 1,048,576 tokens, Maximum concurrency for 131,072 tokens per request: 8.00x"
    found = read_event(f"(EngineCore pid=7) INFO 11-27 19:30:00 [kv_cache_utils.py:1147] {line}")
    assert dict(found.facts) == {"kv_tokens": "1048576", "max_concurrency": "8.00", "context": "131072"}


def as_json(line: str) -> str:
    """A line in the form of `--logging-config '{"formatter": "json"}'` (vllm/logging_utils/formatter.py, 0.33.0)."""
    found = re.match(r"\(([\w-]+) pid=(\d+)\) (\w+) (\d\d-\d\d [\d:]+) \[(\S+?)\.py:\d+\] (.*)", line)
    if not found:
        return line
    process, pid, level, at, name, message = found.groups()
    fields = {"asctime": f"2026-{at},123", "levelname": level, "name": f"vllm.{name}", "processName": process}
    return json.dumps({**fields, "process": int(pid), "message": message})


@for_each("name", NEWER)
def test_the_log_as_json_is_read_like_text(name: str) -> None:
    """Phases and figures are the same, and so is the text of a whole file for `diagnose`."""
    lines = (DATA / f"captures/{name}.log").read_text().splitlines()
    told = [read_log(form, READ) for form in (lines, [as_json(line) for line in lines])]
    assert told[0] == told[1] and any(line.startswith('{"asctime"') for line in map(as_json, lines))
    unwrap, whole = Unwrap(), "\n".join(map(as_json, lines)).encode()
    text = b"".join([*(unwrap.feed(whole[at : at + 700]) for at in range(0, len(whole), 700)), unwrap.close()])
    assert b"asctime" not in text and text.count(b"\n") == len(lines) - 1
    assert read_log(text.decode().split("\n"), READ) == told[0]


@for_each(
    "engine_name, version, newest",
    [
        ("vllm", "0.33.0", ""), ("vllm", "0.33.0+cu130.gabc", ""), ("vllm", "0.26.0", ""), ("vllm", "0.34.0", "0.33.0"),
        ("vllm", "nightly", "0.33.0"), ("vllm", "", "0.33.0"), ("vllm-ray", "0.40.0", "0.33.0"),
        ("simulator", "9.0", ""),
        ("sglang", "0.5.23", ""), ("sglang", "0.5.99", "0.5.23"), ("sglang", "main", "0.5.23"),
        ("llama-cpp", "b11549", ""), ("llama-cpp", "b12500", "2026.10.11549"), ("unknown", "1", ""),
    ],
)  # fmt: skip
def test_a_version_whose_log_nobody_read_is_known_as_such(engine_name: str, version: str, newest: str) -> None:
    """A version newer than the newest one read, or none at all, is known as such; the simulator's log is ours."""
    assert log_read_up_to(engine_name, version) == newest


@for_each("name", FAILED)
def test_a_failed_start_names_its_root(name: str) -> None:
    """The line that explains comes first, not the exceptions that follow from it."""
    assert FAILED[name] in read_story(name).root


def test_a_dead_peer_is_the_root_not_the_cancelled_step() -> None:
    """Capture m1: of nine error lines the NCCL error of the lost worker explains the rest."""
    told = read_story("m1-head")
    assert "remote process exited" in told.root
    assert len(told.errors) > 3


@pytest.mark.parametrize("name", ["m3-head-alone", "m4-head", "m4-worker", "n2-gloo-worker"])
def test_a_missing_or_deaf_peer_leaves_the_rank_at_the_rendezvous(name: str) -> None:
    """Nothing is printed while a peer is missing, so the last phase must be the one with the short patience."""
    assert read_story(name).phases[-1][0] is Phase.RENDEZVOUS
    assert phase_times("vllm")[Phase.RENDEZVOUS].stuck_after == 90


def test_a_worker_leaves_the_rendezvous_when_all_have_joined() -> None:
    """A worker is silent for the whole load: it must wait there with the patience of a load."""
    joined = next(line for line in capture_lines("m1-worker") if "rank 1 in world size 2" in line)
    assert read_event(joined).phase is Phase.LOAD


def test_a_worker_ends_at_server() -> None:
    """Its last line reports that it is warm; afterwards its silence is no sign of trouble."""
    assert read_story("m1-worker").phases[-1][0] is Phase.SERVER


def test_progress_bars_count() -> None:
    """Graphs, kernels and shards come as done and total, also glued by carriage returns."""
    graphs = [e for line in capture_lines("m1-head") if (e := READ(line)) and e.unit == "graphs"]
    assert [(e.done, e.total) for e in graphs if "PIECEWISE" in e.text][-1] == (51.0, 51.0)
    bars = [f"Capturing CUDA graphs (decode, FULL):  {n}%|##3  | {n}/51 [00:00<00:00]" for n in (12, 24)]
    glued = "\r".join(bars)
    assert (read_event(glued).done, read_event(glued).total, read_event(glued).phase) == (24.0, 51.0, Phase.GRAPHS)
    shards = read_event("Loading safetensors checkpoint shards:  10% Completed | 5/48 [00:07<01:02,  1.45s/it]")
    assert (shards.phase, shards.done, shards.total, shards.unit) == (Phase.LOAD, 5.0, 48.0, "shards")


def test_slow_is_not_stuck() -> None:
    """The shared-memory line proves life but is no progress, and does not hide the bar that it is glued to."""
    alone = next(
        line for line in capture_lines("v4-1m-s6") if line.startswith("(EngineCore") and "shm_broadcast" in line
    )
    assert read_event(alone).alive
    glued = next(line for line in capture_lines("v4-1m-s6") if "it/s](EngineCore" in line)
    assert (read_event(glued).phase, read_event(glued).alive, read_event(glued).done) == (Phase.WARMUP, False, 205.0)


def test_checkpoint_size_is_the_total_of_the_load() -> None:
    """The GiB to be read are known before the first shard."""
    stamp = "(EngineCore pid=153) INFO 08-01 00:40:44 [weight_utils.py:904] "
    line = f"{stamp}Filesystem type for checkpoints: EXT4. Checkpoint size: 66.97 GiB. Available RAM: 50.16 GiB."
    assert (read_event(line).total, read_event(line).unit, dict(read_event(line).facts)) == (
        66.97,
        "GiB",
        {"checkpoint_gib": "66.97"},
    )


def test_a_pinned_kv_cache_is_a_figure_too() -> None:
    """No profiling line comes with kv_cache_memory_bytes; the reserved size is in another one."""
    line = (
        "(Worker_TP0 pid=543) INFO 08-01 00:40:44 [gpu_worker.py:490] Initial free memory 111.01 GiB, reserved 18.63 "
        "GiB memory for KV Cache as specified by kv_cache_memory_bytes config and skipped memory profiling."
    )
    assert dict(read_event(line).facts) == {"kv_gib": "18.63"}


def test_a_wrong_request_is_no_engine_error() -> None:
    """A client's mistake is logged with a traceback; the engine is well."""
    assert (
        READ("(APIServer pid=764) vllm.exceptions.VLLMValidationError: This model's maximum context length is") is None
    )


@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    """Reading continues, whatever a log holds."""
    for known in ENGINES.values():
        known.read(text)


@given(st.data())
def test_no_broken_line_raises(data: st.DataObject) -> None:
    """Real lines cut, joined and with odd characters between are read or passed over."""
    some = [line for line in capture_lines("m1-head")[:200] if line]
    first, second = data.draw(st.sampled_from(some)), data.draw(st.sampled_from(some))
    cut = data.draw(st.integers(0, len(first)))
    odd = data.draw(st.text(max_size=5))
    for known in ENGINES.values():
        known.read(first[:cut] + odd + second)


def test_a_padded_line_is_read_at_once() -> None:
    """A bar that wipes a terminal with 3,000 blanks once took seconds; quadratic work on these takes hours."""
    for known in ENGINES.values():
        known.read(f"x{' ' * 300_000}y")


def test_a_talkative_log_reports_what_the_pool_was_made_of() -> None:
    """The lines of VLLM_LOGGING_LEVEL=DEBUG are read; the wording is that of the wheels 0.21.0 and 0.33.0."""
    begin = "(EngineCore pid=7) DEBUG 11-21 04:05:27 [gpu_worker.py:304] "
    took = "Memory profiling takes 3.1 seconds. Total non KV cache memory: 17GiB; torch peak memory increase: 1.52GiB; "
    said = (
        f"{begin}worker init memory snapshot: torch_peak=0.0GiB, free_memory=108.2GiB, total_memory=121.69GiB, auto=1",
        f"{begin}{took}non-torch forward increase memory: 0.31GiB; weights memory: 15.27GiB.",
    )
    facts = dict(read_log(said, READ).facts)
    assert (facts["total_gib"], facts["activations_gib"], facts["other_gib"]) == ("121.69", "1.52", "0.31")
    later = f"{begin}{took}total consumed (from mem_get_info): 17.9GiB; weights memory: 15.27GiB."
    assert dict(read_event(later).facts) == {"activations_gib": "1.52"}


@pytest.mark.full
def test_every_fact_has_a_documented_name() -> None:
    """Others look facts up by name: none is invented that the module's docstring does not list."""
    names = {name for log in LOGS.glob("*.log") for name, _ in read_log(capture_lines(log.stem), READ).facts}
    file = (files("sparkwright.engines") / "data/engines/vllm.toml").read_text()
    head = file.partition("# vLLM's log")[2].partition("\n\n")[0]
    assert names <= set(re.findall(r"\w+", head))


RULE = {"phase": "load", "pattern": "^Loading (?P<m>.*)"}


@for_each(
    "wrong, named",
    [
        [{"begins": "x", "rule": [RULE | {"fact": {"model": "m"}}]}, "rule '^Loading (?P<m>.*)': .*'fact'"],
        [{"begins": "x", "rule": [RULE | {"phase": "laod"}]}, "rule '^Loading (?P<m>.*)': 'laod' is not a valid Phase"],
        [{"begins": "x", "rule": [RULE | {"pattern": "(a"}]}, "rule '(a': missing "],
        [{"begins": "x", "prefixes": "y", "rule": [RULE]}, "its head: .*'prefixes'"],
        [{"rule": [RULE]}, "its head: .*'begins'"],
    ],
)
def test_a_mistake_in_a_log_table_names_file_and_rule(wrong: dict[str, object], named: str) -> None:
    """Guards that the author of a line of data sees which one is wrong."""
    what, _, why = named.partition(": ")
    with pytest.raises(ValueError, match=f"log-x.toml: {re.escape(what)}: {why}"):
        make_dialect("log-x.toml", wrong)
