"""The sampler's warm-up does not fit beside the KV cache.

Detects: the out-of-memory error of the dummy sampler run, also when only torch's line with captured graphs is left.
Why: after the KV cache has taken its share, the sampler is tried with `max_num_seqs` rows of the whole vocabulary
  in float32; sorting them needs gigabytes.
Evidence: `warming up sampler with N dummy requests`, or `_dummy_sampler_run` in the trace.
Remedy: fewer sequences, or a smaller share for the engine.
References: https://github.com/vllm-project/vllm/issues/18022; gb10.md D4
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LSIZ004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the sampler's warm-up runs out of memory"
CAUSE = "sampler-warmup-oom"
SIGNS = (
    line(
        r"out of memory occurred when warming up (?:sampler|pooler).{0,40}?with (?P<seqs>\d+) dummy requests", CERTAIN
    ),
    line(r"warming up (?:sampler|pooler)\b.{0,60}dummy requests", CERTAIN),
    near(r"_dummy_(?:sampler|pooler)_run", r"out of memory|OutOfMemoryError", sure=CERTAIN, within=30),
    near(r"sampler warm-?up|warm(?:ing)? ?up (?:the )?sampler", r" OOM\b|out of memory", sure=LIKELY),
    line(
        r"OutOfMemoryError: CUDA out of memory\. .{0,300}allocated in private pools \(e\.g\., CUDA Graphs\)", POSSIBLE
    ),
)
FIX = (
    "--max-num-seqs 16   # the default of vLLM is 256 or 1024",
    "--gpu-memory-utilization lower by 0.03; the KV cache shrinks, the sampler fits",
)
EXPLAINS: tuple[str, ...] = ()
