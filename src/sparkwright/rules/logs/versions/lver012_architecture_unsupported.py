"""This engine release has no implementation of the model.

Detects: The engine's registry that does not have the architecture of the checkpoint.
Why: the architecture came with a later release, lives in a plugin, or was taken out again. The same line follows when
  an import fails while the model class is looked at; then the import error above it is the cause.
Evidence: The registry's own line.
Remedy: An engine release that lists the architecture; where the line names one, that release or plugin.
References: https://docs.vllm.ai/en/latest/models/supported_models.html; vllm/model_executor/models/registry.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LVER012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "this engine release has no implementation of the model"
CAUSE = "model-architecture-unsupported"
SIGNS = (
    line(r"Model architectures? .{0,120}(?:are|is) not supported for no", LIKELY),
    line(r"has no (?:vLLM|SGLang) implementation and the Transformers implementation is not compatible", LIKELY),
    line(r"Cannot find model module\. '(?P<arch>\w+)' is not a registered", LIKELY),
    line(r"Model architecture (?P<arch>\w+) (?:was supported in vLLM until|is not supported in-tree)", CERTAIN),
    line(
        r"Unknown architecture for AutoModelForCausalLM|Unsupported architectures: |Unsupported model architecture",
        LIKELY,
    ),
    line(r"GGUF model with architecture (?P<arch>\w+) is not supported", LIKELY),
    line(
        r"(?:vllm|sglang|tensorrt-llm|trt-?llm|engine)\b.{0,60}(?:has no implementation|does(?:n't"
        r"| not) (?:implement|support)|no support for).{0,60}(?:architecture|ForCausalLM"
        r"|ForConditionalGeneration)",
        LIKELY,
    ),
)
FIX = (
    (
        "docker exec <container> python3 -c 'from vllm import ModelRegistry as r; "
        "print(sorted(r.get_supported_archs()))' | tr , '\\n' | grep -i {arch}"
    ),
    "use an image of a release that lists it; `sparkwright recipes show {recipe}` says which ones are known to work",
)
EXPLAINS = ()
