"""The TensorRT engine was built on another kind of GPU.

Detects: TensorRT that refuses a plan file of another compute capability.
Why: a plan holds machine code for the GPU on which it was built; GB10 (12.1) runs none from another chip.
Evidence: TensorRT's line with the expected and the found capability.
Remedy: Rebuild the engine on this GPU, or use the PyTorch backend, which needs none.
References: https://docs.nvidia.com/deeplearning/tensorrt (engine compatibility)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LVER014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the TensorRT engine was built on another kind of GPU"
CAUSE = "trt-engine-built-for-other-gpu"
SIGNS = (
    line(
        r"engine plan file is generated on an incompatible device(?:, expecting compute (?P<have>[\d.]+) g"
        r"ot compute (?P<built>[\d.]+))?",
        CERTAIN,
    ),
    line(r"Using an engine plan file across different models of devices is not", POSSIBLE),
    line(
        r"engine.{0,60}(?:built on|built for|compiled for|generated on|generated for) (?:a |another "
        r"|an? other )?(?:different |another |other )?(?:gpu|compute capability|device|architecture)\b",
        LIKELY,
    ),
    line(r"incompatible device, expecting compute", LIKELY),
)
FIX = (
    "trtllm-build --checkpoint_dir <checkpoint> --output_dir <engine>   # on this node",
    "or serve the checkpoint itself: trtllm-serve <model> --backend pytorch",
)
EXPLAINS = ()
