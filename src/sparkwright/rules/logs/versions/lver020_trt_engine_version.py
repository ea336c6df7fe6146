"""The TensorRT engine was built with another TensorRT version.

Detects: TensorRT that refuses a plan file whose serialization version is not its own.
Why: a plan is readable only by the TensorRT release that wrote it; builder and server containers differ.
Evidence: TensorRT's line with both versions.
Remedy: Serve with the container of the builder, or rebuild in the serving container.
References: https://docs.nvidia.com/deeplearning/triton-inference-server (support matrix)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line

CODE = "LVER020"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the TensorRT engine was built with another TensorRT version"
CAUSE = "trt-engine-version-mismatch"
SIGNS = (
    line(r"Serialization assertion \w+ == k?SERIALIZATION_VERSION failed", CERTAIN),
    line(
        r"Version tag does not match"
        r".{0,40}Current Version: (?P<have>\d+), Serialized Engine Version: (?P<built>\d+)",
        CERTAIN,
    ),
    line(r"engine plan file is not compatible with this version of TensorRT", CERTAIN),
    line(r"Serialization assertion \w+ == k?MAGIC_TAG failed|Magic tag does not match", LIKELY),
    line(
        r"\bengine\b.{0,60}(?:built with|built by|serialized with|serialized by|compiled with) (?:a "
        r"|an )?(?:different|another|newer|older|other) (?:version of )?(?:tensorrt|trt)",
        LIKELY,
    ),
    line(r"(?:Failed to deserialize cuda engine|Failed to deserialize TensorRT-LLM engine)", HINT),
    line(r"json\.exception\.out_of_range\.403\] key '\w+' not found", POSSIBLE),
)
FIX = (
    (
        "python3 -c 'import tensorrt, tensorrt_llm; print(tensorrt.__version__, tensorrt_llm.__version__)'   "
        "# in the builder and in the server"
    ),
    "rebuild in the serving container: trtllm-build --checkpoint_dir <checkpoint> --output_dir <engine>",
)
EXPLAINS = ()
