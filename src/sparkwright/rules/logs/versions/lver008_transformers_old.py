"""The installed transformers does not know this model.

Detects: transformers, or the engine through it, that has no class for the checkpoint's model type, tokenizer or
  config.
Why: the model is newer than the transformers release in the image; the engine reads config and tokenizer through it.
Evidence: The line that names the model type or the class.
Remedy: A newer engine image, or transformers of the version that the model card asks for.
References: https://huggingface.co/docs/transformers (AutoConfig)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LVER008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the installed transformers does not know this model"
CAUSE = "transformers-too-old-for-architecture"
SIGNS = (
    line(r"model type `(?P<type>[^`]+)` but Transformers does not recogni[sz]e this architecture", CERTAIN),
    line(
        r"KeyError: ['\"](?P<type>(?:qwen|glm|deepseek|gemma|mistral|ministral|mixtral|llama|phi|minimax"
        r"|kimi|nemotron|gpt_oss|granite|ernie|hunyuan|hy_|seed_oss|longcat|step|bailing|ling|olmo|exaone"
        r"|falcon|mimo|internvl|smollm|cohere|dots|laguna|inkling)[a-z0-9_]*)['\"]",
        LIKELY,
    ),
    line(r"Unrecognized configuration class|unrecognized model type|unknown model[_ ]type", LIKELY),
    line(r"Tokenizer class \w+ does not exist or is not currently imported", LIKELY),
    line(
        r"cannot import name '(?P<type>\w+(?:Config|ForCausalLM|ForConditionalGeneration|Processor"
        r"|VideoProcessor|Tokenizer|TokenizerFast))' from 'transformers",
        LIKELY,
    ),
    line(
        r"module '?transformers'? has no attribute '?(?P<type>\w+(?:Config|ForCausalLM"
        r"|ForConditionalGeneration|Processor|Model))",
        LIKELY,
    ),
    line(
        r"requires? `?transformers ?(?:>=|==)|Please upgrade (?:your )?transformers"
        r"|transformers version .{0,40}(?:too old|not supported)",
        LIKELY,
    ),
    line(r"`?rope_scaling`? must be a dictionary with", POSSIBLE),
    line(r"Unrecognized model in .{0,200}Should have a `?model_type`? key", POSSIBLE),
    line(r"transformers.{0,40}(?:太旧|过旧|版本过低|不支持|不识别)", LIKELY),
    line(
        r"\btransformers\b.{0,80}(?:too old|predates|does(?:n't| not) (?:know|recogni[sz]e|support"
        r"|have)).{0,80}(?:architecture|model type|model_type|\bmodel\b|class)",
        LIKELY,
    ),
    line(
        r"transformers \W{0,2}(?:==)?[45]\.\d+(?:\.\d+)?\b.{0,60}(?:does not know|doesn.t know|too old"
        r"|lacks|has no|unknown|no support|predates|is needed|needed)",
        LIKELY,
    ),
)
FIX = (
    "docker exec <container> python3 -c 'import transformers; print(transformers.__version__)'",
    (
        "use an image of the engine release that names this model, or derive one: pip install -U "
        "transformers   # the version in the model card"
    ),
)
EXPLAINS = ()
