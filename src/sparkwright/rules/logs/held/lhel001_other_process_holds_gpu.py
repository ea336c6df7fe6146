"""Another process holds the memory that this start needs.

Detects: a start that finds far less free memory than the device has, or an out-of-memory line that counts another
  process.
Why: another server, a previous run or a second container already took the memory. On unified memory the page cache
  and the host's services count as well.
Evidence: free and total in the engine's own line; the processes that torch's line counts.
Remedy: find the process, stop it, wait until the memory is free; or give each engine its share.
References: gb10.md A1, E70; https://github.com/vllm-project/vllm/issues/23192
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.logs.held.free_memory import ANY, EMPTY_CARD, HALF, LITTLE, UNIFIED, refused
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LHEL001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "another process holds the GPU's memory"
CAUSE = "other-process-holds-gpu-memory"
SIGNS = (
    line(refused(ANY, ANY, rf"{EMPTY_CARD}|{ANY}/{UNIFIED}|[4-9]\d(?:\.\d+)?/14[23]"), LIKELY),
    line(refused(HALF, UNIFIED), LIKELY),
    line(refused(LITTLE, UNIFIED), POSSIBLE),
    line(r"Process \d+ has [\d.]+ [GM]iB memory in use\. (?:Process \d+ has|Including non-PyTorch)", LIKELY),
    line(r"memory capacity is unbalanced.{0,20}Some GPUs may be occupied by other processes", POSSIBLE),
    line(r"min_per_gpu_memory[ =<].{0,60}unbalanced|unbalanced.{0,60}min_per_gpu_memory", LIKELY),
    line(r"on kv cache allocation is less than requested memory for kv", LIKELY),
    near(
        r"nvidia-smi|\bfuser\b|GPU memory|\bVRAM\b|GPU is",
        r"\banother (?:process|server|engine|instance|container|model|vLLM|user)|\bother process|\bsecond (?:server"
        r"|engine|instance|container)|\bprevious (?:server|engine|instance|container|run)|\bstale (?:process|server"
        r"|container)|\bold (?:server|container)",
        r"\bholds\b|holding|\boccup\w+|\bowns\b|still has|still (?:is )?runn?\w*|\bis using\b|\buses \d",
        sure=LIKELY,
    ),
    line(r"(?:GPU|VRAM|vLLM).{0,40}(?:其他|另一个|别的)(?:进程|程序).{0,20}(?:占用|占)", LIKELY),
    line(
        r"(?:ollama|ComfyUI|llama-server|another (?:process|server|container|model)|other (?:process"
        r"|server|container)|gnome-shell|Xorg|jupyter\w*)\b.{0,40}(?:still )?(?:holds?|holding|uses?|using"
        r"|takes?|occup\w+|keeps?)\b.{0,24}\d ?(?:GB|GiB|G|MiB)\b",
        LIKELY,
    ),
    line(r"\bC(?:\+G)?\s+\S*(?:ollama|python3?|vllm|sglang|llama-server|ComfyUI|jupyter)\S*\s+\d{5,6} ?MiB ", POSSIBLE),
    line(r"Error in memory profiling\. Initial free memory", POSSIBLE),
    line(
        r"\b(?:another|other|second|old) (?:vLLM|SGLang|engine|server|instance|container|process|model"
        r"|user)\b.{0,40}(?:occupies|holds|is using|uses|took|takes|still has|sits on) .{0,24}(?:GPU"
        r"|memory|VRAM)|(?:ComfyUI|ollama|llama-server|LM Studio|Open WebUI)\b.{0,30}(?:still|was"
        r"|is) (?:loaded|running|resident|up)\b.{0,80}(?:memory|GPU|VRAM|OOM)",
        LIKELY,
    ),
)
FIX = (
    "nvidia-smi --query-compute-apps=pid,process_name,used_gpu_memory --format=csv   # on {node}: who holds it",
    "sudo fuser -v /dev/nvidia*   # also what nvidia-smi does not show",
    "docker ps; docker stop <the other engine>   # or a lower share: --gpu-memory-utilization below {free}/{total}",
)
EXPLAINS = (
    "kv-cache-no-memory-left",
    "max-model-len-exceeds-kv-cache",
)
