"""A fast weight loader fails where the plain one would not.

Detects: failures, freezes and memory blow-up below instanttensor, fastsafetensors, Run:ai and GPUDirect Storage.
Why: they open files by GPUDirect Storage, which the Spark has not, keep whole shards in the unified memory, or take
  the global rank for a device number, so that rank 1 of two one-GPU nodes asks for cuda:1.
Evidence: the loader's name beside the error or the standstill.
Remedy: --load-format safetensors (the default loader), or instanttensor instead of fastsafetensors.
References: gb10.md E79; https://github.com/sgl-project/sglang/issues/29272;
  https://github.com/eugr/spark-vllm-docker/issues/205
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LFIL004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "fast loader (InstantTensor, fastsafetensors) fails or hangs"
CAUSE = "fast-loader-unstable-multinode"
SIGNS = (
    near(
        r"(instant_?tensor|fast_?safetensors?)\b|runai_?(model_?)?streamer|run:ai streamer",
        r"std::exception|invalid device ordinal|cufile|gds (not|open|error|fallback)|GPUDirect Storage",
        sure=LIKELY,
        within=12,
        unless=r"load_format=",
    ),
    near(
        r"(instant_?tensor|fast_?safetensors?)\b|runai_?(model_?)?streamer|run:ai streamer",
        r"\bhangs|\bhanging|nothing after|(doesn't|does not|won't) load|freez|frozen|froze\b|\bstall|stuck|crash"
        r"|balloon|unstable|unsafe|blows|broadcasts? hang|never finish|fails (at|during|while|on|in)\b"
        r"|dies (at|during|while|on|in)\b|killed (at|during|while)|no progress|\bdeath\b|silently",
        sure=LIKELY,
        within=3,
        unless=r"load_format=|fail(s|ed)? over",
    ),
    line(r"_C\.open std::exception", LIKELY),
    line(
        r"(cuFile|nvidia-fs|libcufile).{0,80}(fail|error|not (supported|loaded|found|available))"
        r"|GDS (is )?not (supported|available)|no GPUDirect Storage",
        LIKELY,
    ),
    near(
        r"load[-_]format[= ]\W{0,2}(fastsafetensors|instanttensor|runai_streamer)",
        r"invalid device ordinal|std::exception|segfault|signal 9",
        sure=POSSIBLE,
        within=60,
    ),
    line(r"(site|dist)-packages/(fastsafetensors|instanttensor|runai_model_streamer)/\S+\", line", LIKELY),
    line(r"(fastsafetensors|instanttensor)\w*_weights_iterator", POSSIBLE),
    near(
        r"\bshards?\b",
        r"watchdog.{0,80}broadcast|broadcast.{0,30}time(?:d )?-?out|OpType=BROADCAST",
        sure=0.6,
        within=4,
    ),
    line(
        r"(?:RuntimeError|Exception|Error)\b.{0,20}(?:instant_?tensor|fastsafetensors|runai)"
        r"|(?:instant_?tensor|fastsafetensors)\b.{0,40}(?:failed|error:)",
        LIKELY,
    ),
)
FIX = (
    "serve with --load-format safetensors   # vLLM; SGLang: --load-format auto",
    "drop the page cache on every node before: sync; echo 3 | sudo tee /proc/sys/vm/drop_caches",
)
EXPLAINS = ()
