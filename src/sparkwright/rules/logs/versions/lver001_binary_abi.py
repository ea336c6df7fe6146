"""A compiled extension was built for another torch.

Detects: A shared object that lacks a C++ symbol of torch (c10, at, torch), or torchvision and xFormers built for
  another one.
Why: C++ extensions work only with the torch release and C++ ABI they were built with; pip replaces torch without
  rebuilding them. The engine often says only that the model is not supported.
Evidence: The loader's `undefined symbol` line with a mangled name of torch.
Remedy: Remove the foreign wheel or install the one built for this torch.
References: https://github.com/vllm-project/vllm/issues; https://github.com/Dao-AILab/flash-attention/releases
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LVER001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a compiled extension was built for another torch"
CAUSE = "binary-abi-mismatch-torch"
SIGNS = (
    line(
        r"(?P<lib>[\w.+-]{1,120}\.so\S{0,20}): undefined symbol: ?(?:_Z\w*(?:3c10|2at\d|5torch)"
        r"|torch_library|aoti_torch_|THP\w)",
        CERTAIN,
    ),
    line(r"undefined symbol: (?:torch_library|aoti_torch)_\w+", LIKELY),
    near(r"undefined symbol", r"\b_ZNK?3c10\w+|\b_ZNK?5torch\w+|\b_ZNK?2at\d\w+", sure=CERTAIN, within=2),
    line(
        r"(?:flash_attn|vllm/_\w*C|sgl_kernel|xformers|torchvision|causal_conv1d|mamba|deep_?ep"
        r"|nixl)\S{0,90}undefined symbol: ?_Z",
        LIKELY,
    ),
    line(r"operator torchvision::\w+ does not exist", LIKELY),
    line(r"PyTorch and torch(?:vision|audio) were compiled with different CUDA", LIKELY),
    line(r"xFormers can't load C\+\+/CUDA extensions|xFormers was built for", LIKELY),
    line(r"No module named 'vllm\._(?:moe_)?C'", POSSIBLE),
    line(r"'_OpNamespace' '_\w*C\w*' object has no attribute", POSSIBLE),
    line(
        r"torch\b.{0,80}\babi[ -](?:mismatch|incompatib|break)|\babi[ -](?:mismatch|incompatib|break)"
        r".{0,80}torch\b",
        LIKELY,
    ),
    line(
        r"torch.{0,80}binary incompatib|binary incompatib.{0,80}torch|flash.?attn.{0,60}(?:版本不兼容|版本不匹配)",
        LIKELY,
    ),
    line(
        r"(?:built|compiled) (?:for|against) (?:a different|another|torch|pytorch).{0,80}(?:symbol|\babi\b)",
        POSSIBLE,
    ),
    line(
        r"Could not run '_(?:C|moe_C|rocm_C)\w*::|torch\.ops\._(?:C|moe_C)\b.{0,60}(?:has no|not found"
        r"|missing)",
        0.7,
    ),
)
FIX = (
    "pip list | grep -iE 'torch|flash.?attn|vllm|sgl'   # which package brings {lib}",
    "pip uninstall -y flash-attn   # vLLM and SGLang bring their own attention kernels",
    (
        "or install the wheel of {lib} that names this torch version, or rebuild it: pip install "
        "--no-build-isolation --force-reinstall <package>"
    ),
)
EXPLAINS = (
    "model-architecture-unsupported",
    "optional-dependency-missing-in-image",
)
