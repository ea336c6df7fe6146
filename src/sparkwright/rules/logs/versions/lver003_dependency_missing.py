"""A Python package that this setting needs is not in the image.

Detects: A whole top-level package that Python cannot find, or a request to install one.
Why: images carry only what the default path needs; a load format, a model's own code or a kernel backend needs more.
Evidence: `No module named` with one plain name, or the engine's own request to install it.
Remedy: Drop the setting that needs it, or derive an image with the package.
References: seed 002 (`Flags that break NGC containers`); field guide E 79
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LVER003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a Python package that this setting needs is not in the image"
CAUSE = "optional-dependency-missing-in-image"
SIGNS = (
    line(
        r"No module named '?(?P<module>scipy|fastsafetensors|cutlass|instanttensor|runai_model_streamer"
        r"|librosa|soundfile|timm|bitsandbytes|einops|decord|av|cv2|mamba_ssm|flash_attn|deep_gemm"
        r"|deep_ep|nixl|lmcache|mooncake|tilelang|modelscope|ray|sentencepiece|mistral_common|accelerate"
        r"|peft|datasets|pandas|cuda|cupy)'?(?:[\s,;)`\"*]|\.?$|\. |\.Please)",
        LIKELY,
    ),
    line(
        r"ModuleNotFoundError: (?:No module named )?[`']?(?P<module>(?!No )[a-zA-Z]\w+)[`']?(?:[\s,;)`\"*]"
        r"|\.?$|\. )",
        LIKELY,
        unless=r"\b(?:vllm|sglang|torch|triton|triton_kernels|vllm_omni)\b",
    ),
    line(
        r"(?:ImportError|ModuleNotFoundError).{0,120}(?:is not installed|please install|pip install"
        r"|to be installed)",
        LIKELY,
    ),
    line(r"No module named '(?P<module>vllm|sgl_kernel|torch|triton)'(?!\.)", POSSIBLE),
    line(r"requires the following packages that were not found in your environment: (?P<module>[\w-]+)", CERTAIN),
    line(r"Please install vllm\[(?P<module>\w+)\] for", CERTAIN),
    line(
        r"(?P<module>fastsafetensors|scipy|instanttensor|runai|bitsandbytes|librosa)\b"
        r".{0,60}(?:ImportError|ModuleNotFoundError)",
        CERTAIN,
    ),
    line(
        r"(?P<module>fastsafetensors|scipy|instanttensor|runai|cutlass-dsl|bitsandbytes|librosa)"
        r".{0,100}(?:not installed|is missing|not in the (?:stock |base |official )?image)",
        LIKELY,
    ),
    line(
        r"\b(?:image|container|base|wheel)s? (?:lacks?|omits?|misses|does not (?:ship|contain|include"
        r"|have)) (?:the )?(?:python package|python module|dependency|scipy|fastsafetensors|librosa)",
        LIKELY,
    ),
    near(r"nvidia[-_]cutlass[-_]dsl", r"must be installed|lacks them|not installed", sure=LIKELY, within=1),
    line(
        r"RuntimeError: NIXL is not available|requested but its dependencies are not available"
        r"|; please install (?:flashinfer|nixl|deep_?gemm|fastsafetensors|ray|bitsandbytes)",
        LIKELY,
    ),
)
FIX = (
    "docker exec <container> python3 -c 'import {module}'   # does the image have it?",
    "leave out the flag that needs it (for example --load-format fastsafetensors), or derive an image:",
    "printf 'FROM <image>\\nRUN pip install {module}\\n' | docker build -t <image>-{module} -",
)
EXPLAINS = ()
