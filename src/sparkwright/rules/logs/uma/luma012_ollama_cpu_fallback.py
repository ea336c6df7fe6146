"""Ollama cannot open the GPU while it looks for it, and uses the CPU.

Detects: GPU discovery that fails with out of memory, followed by inference on the CPU.
Why: another engine or the page cache holds the unified memory in the moment when Ollama asks CUDA for the device.
  Ollama then goes on without GPU, at a tenth of the speed, without an error for the client.
Evidence: the discovery's failure in Ollama's log; `library=cpu`.
Remedy: free the memory, then restart Ollama: it looks only at its start.
References: https://github.com/NVIDIA/dgx-spark-playbooks/issues/16; https://github.com/ollama/ollama/issues/13308
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LUMA012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Ollama's GPU discovery runs out of memory: it uses the CPU"
CAUSE = "ollama-cpu-fallback-gpu-discovery-oom"
SIGNS = (
    near(
        r"failure during (?:llama-server )?GPU discovery|GPU bootstrap discovery|bootstrap discovery"
        r"|discovering available GPUs|unable to refresh free memory",
        r"out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY",
        sure=CERTAIN,
        within=10,
    ),
    line(r"ggml_cuda_init: failed to initialize CUDA: out of memory", CERTAIN),
    near(
        r"cuda_?(?:init|driver).{0,60}out of memory|cudaMemGetInfo.{0,40}out of memory|CUDA error: out of memory",
        r"library=cpu|id=cpu|\bollama\b",
        sure=LIKELY,
        within=20,
    ),
    near(
        r"\bollama\b",
        r"(?:fall(?:s|ing)? ?back|fell back|falls|fallback|running|runs|uses|100 ?%).{0,20}\bCPU|CPU.?only",
        r"out of memory| OOM\b|discovery|free GPU memory|unified memory|memory (?:is )?(?:full|held|taken)",
        sure=LIKELY,
    ),
    line(r"\bollama\b.{0,60}(?:显存不足|内存不足).{0,30}CPU", LIKELY),
    near(
        r"failure during (?:llama-server )?GPU discovery", r"inference compute.{0,20}id=cpu", sure=POSSIBLE, within=20
    ),
    line(r"\bollama\b.{0,80}(?:fall(?:s|ing)? ?back|fell back|fallback).{0,20}\bCPU", POSSIBLE),
    near(r"\bollama\b|PROCESSOR\s+CONTEXT|PROCESSOR\s+UNTIL", r"\d ?GB\s+100% CPU\b", sure=0.6, within=3),
)
FIX = (
    "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches; free -g   # on {node}; stop the engine that holds the memory",
    "sudo systemctl restart ollama   # or restart its container: the search for GPUs runs only then",
    "journalctl -u ollama | grep 'inference compute'   # library=CUDA is right, library=cpu is not",
)
EXPLAINS: tuple[str, ...] = ()
