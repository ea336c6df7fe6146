"""A multimodal model's checkpoint has no vision weights.

Detects: loaders that miss tensors of the vision part, and llama.cpp without its projector file.
Why: some quantized uploads keep the text part only while config.json still names a vision tower; GGUF has the
  projector in a file of its own.
Evidence: uninitialized weights whose names begin with visual or vision.
Remedy: serve text only, or take a checkpoint with these weights.
References: https://github.com/vllm-project/vllm/issues/15536; https://github.com/Blaizzy/mlx-vlm/pull/1963;
  https://github.com/ggml-org/llama.cpp/blob/master/docs/multimodal.md
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LFIL006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "checkpoint lacks the vision weights"
CAUSE = "checkpoint-missing-vision-weights"
SIGNS = (
    line(r"not initialized from checkpoint.{0,600}['\".](visual|vision)", CERTAIN),
    line(
        r"missing \d+ parameters.{0,80}(visual|vision)|missing key\(s\) in state_dict.{0,200}(visual|vision)", CERTAIN
    ),
    line(
        r"KeyError: ['\"][\w.]*(visual|vision_tower|vision_model|vit\.|mm_projector|multi_modal_projector)",
        LIKELY,
        unless=r"scale|qweight|packed",
    ),
    line(
        r"\b(no|without|lacks?|missing|strip\w*|drop\w*|omit\w*) (the |its |all |any )?(visual|vision|image"
        r"|ViT)[\w. -]{0,16}(weights|tensors|tower|encoder|parameters|keys|shards?)",
        POSSIBLE,
        unless=r"language-(model-)?only",
    ),
    line(
        r"(visual|vision)[\w.* -]{0,20}(weights|tensors|tower|encoder|parameters|keys)\W{0,3} (are |is "
        r"|were )?(missing|absent|not (in|present|part|included|shipped)|stripped)",
        LIKELY,
    ),
    line(r"image input is not supported.{0,80}mmproj|failed to load (mmproj|clip)|provide the mmproj", LIKELY),
)
FIX = (
    "serve text only: vllm serve ... --language-model-only (older: --limit-mm-per-prompt '{{\"image\": 0}}')",
    (
        'python3 -c "import json; print([k for k in '
        "json.load(open('model.safetensors.index.json'))['weight_map'] if 'vis' in k][:3])\"   # empty: not "
        "there"
    ),
    "llama.cpp: --mmproj FILE.gguf",
)
EXPLAINS = (
    "quantized-layer-unsupported-by-model-code",
    "prequantized-checkpoint-loader-keyerror",
)
