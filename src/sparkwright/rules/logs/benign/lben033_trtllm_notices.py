"""Notices of TensorRT-LLM and SGLang at start.

Detects: levels of logging, default GPUs a node, workspaces that grow, backends chosen by default.
Why: they tell which default was taken; the start goes on.
Evidence: the notice.
Remedy: none.
References: https://github.com/NVIDIA/TensorRT-LLM/blob/main/tensorrt_llm/llmapi;
  https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/server_args.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN033"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "notices of TensorRT-LLM and SGLang"
CAUSE = "benign-engine-start-notices"
SIGNS = (
    line(r"logger level already set from environment", HINT),
    line(r"using default gpus_per_node", HINT),
    line(r"attention workspace size is not enough, increase the size", HINT),
    line(r"attention backend not (explicitly )?(set|specified)", HINT),
    line(r"ignore import error when loading \S+", HINT),
    line(r"(mpirun|prterun|orterun) has detected .{0,60}(slots|binding)|ompi_mca_\w+ is deprecated", HINT),
)
FIX = ()
EXPLAINS = ()
