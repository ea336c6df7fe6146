"""--quantization does not fit the checkpoint.

Detects: A quantization method on the command line that differs from the one in the checkpoint's config, or does not
  apply to it.
Why: the method is a property of the checkpoint; a flag can choose another kernel for it but not another format. mxfp4
  expects the expert tensors of gpt-oss, and a GGUF with the original config.json still says fp8.
Evidence: The engine's comparison, or a loader that trips over shapes.
Remedy: Leave the flag out, or set it to the checkpoint's own method.
References: seed 002 (`Flags that break NGC containers`); vllm/config/model.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LCFG004"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "--quantization does not fit the checkpoint"
CAUSE = "quantization-flag-mismatch-checkpoint"
SIGNS = (
    line(r"Quantization method specified in the model config \((?P<config>[\w-]+)\) does not match", CERTAIN),
    line(r"does not match the quantization method specified in the `?quantization`? argument", CERTAIN),
    line(r"Unknown quantization method: (?P<flag>\w+)", LIKELY),
    line(r"Invalid quantization method: (?P<flag>\w+)", LIKELY),
    line(r"Cannot find the config file for (?P<flag>awq|gptq|fp8|marlin|bitsandbytes|\w+)", LIKELY),
    line(
        r"--quantization[= ](?P<flag>mxfp4|modelopt_fp4|modelopt|awq|gptq|fp8|gguf|nvfp4)\b"
        r".{0,160}(?:IndexError|KeyError|mismatch|error|fails|wrong|does not match)",
        LIKELY,
    ),
    line(r"(?:IndexError|KeyError|mismatch|fails?|crash).{0,120}--quantization[= ](?P<flag>\w+)", LIKELY),
    near(
        r"\bquantization(?:_config)?\b",
        r"--quantization|quantization (?:flag|argument|method)",
        r"mismatch|does not match|conflict|wrong|differs",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "leave out --quantization; the engine reads it from the checkpoint",
    "grep -A4 quantization_config <model>/config.json   # the checkpoint's own method",
    "GGUF with the original config.json: take the block quantization_config out of that file",
)
EXPLAINS = ()
