"""llama-server's real lines: recordings of the server in the xllamacpp wheel 2026.10.11549."""

from sparkwright.domain.deployment import Phase
from sparkwright.engines.catalog import engine
from sparkwright.facts.engine_log import read_log
from unit.engines.samples import DATA

READ = engine("llama-cpp").read


def capture_lines(name: str) -> list[str]:
    return (DATA / "captures_logs" / f"{name}.log").read_text().splitlines()


def test_a_good_start_ends_ready_with_its_slots() -> None:
    """Phases in order, ready where it listens, and the slots as the server made them."""
    told = read_log(capture_lines("llama-ready"), READ)
    assert [p for p, _ in told.phases] == [Phase.START, Phase.LOAD, Phase.WARMUP, Phase.SERVER]
    assert told.ready_after == 0.016
    facts = dict(told.facts)
    assert (facts["max_concurrency"], facts["context"], facts["url"]) == ("2", "512", "http://127.0.0.1:18131")


def test_a_missing_model_names_the_file() -> None:
    """The first error line is the cause; it is never ready."""
    told = read_log(capture_lines("llama-no-model"), READ)
    assert told.ready_after is None
    assert "failed to open GGUF file '/models/absent.gguf'" in told.root


def test_older_builds_are_ready_too() -> None:
    """Their listening line has no prefix."""
    event = READ("main: server is listening on http://0.0.0.0:30000 - starting the main loop")
    assert event is not None
    assert event.ready


def test_the_buffers_of_this_node_add_up() -> None:
    """Each device and cache has its own line; what an RPC worker holds is not this node's memory."""
    log = (
        "0.00.000.300 I srv          init: build_info: b9000-abc",
        "0.00.100.000 I load_tensors:        CUDA0 model buffer size =  4000.00 MiB",
        "0.00.100.001 I load_tensors:   CPU_Mapped model buffer size =   250.50 MiB",
        "0.00.100.002 I load_tensors: RPC0[192.168.100.11:50052] model buffer size =  4100.00 MiB",
        "0.00.200.000 I llama_kv_cache:      CUDA0 KV buffer size =   512.00 MiB",
        "0.00.200.001 I llama_kv_cache: size =  512.00 MiB (  4096 cells,  32 layers,  1/1 seqs), K (f16):  256.00 MiB",
        "0.00.200.002 I llama_kv_cache:      CUDA0 KV buffer size =    64.00 MiB",
        "0.00.200.003 I llama_memory_recurrent:      CUDA0 RS buffer size =    30.00 MiB",
    )
    facts = dict(read_log(log, READ).facts)
    assert (facts["weights_mib"], facts["kv_mib"]) == ("4250.50", "606.00")
