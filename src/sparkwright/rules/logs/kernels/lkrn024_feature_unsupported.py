"""A feature is not implemented for this model or GPU.

Detects: options and code paths that the engine does not have for this architecture.
Why: hybrid (GDN, Mamba) models, sparse attention and SM 12.x lack some features that others have; the check is in
  the engine and comes after the weights or at the first prompt.
Evidence: the refusal, which names feature and model.
Remedy: switch the feature off, or take an engine that has it.
References: vLLM v1/attention/selector.py and kv_cache_utils.py; field guide E43
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line

CODE = "LKRN024"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a feature is not implemented for this model or GPU"
CAUSE = "feature-unsupported-for-architecture"
SIGNS = (
    line(r"batch[_ -]?invariant mode is not supported"),
    line(r"batch invariance not supported", LIKELY),
    line(r"Invalid prefix_match_unit"),
    line(r"cuda \w+ prefill failed", LIKELY),
    line(
        r"not (?:yet )?supported for (?:this |the )?(?:model )?architecture"
        r"|not (?:yet )?implemented for architecture",
        LIKELY,
    ),
    line(
        r"(?:is|are) not (?:yet )?(?:supported|implemented) (?:for|on|by|with) .{0,30}(?:GDN|mamba|hybrid"
        r"|linear attention|MLA models|the CUDA backend)",
        LIKELY,
    ),
    line(r"cross-node TP is supported only on MNNVL"),
    line(
        r"(?:DCP|PCP|decode context parallel\w*|EPLB|DBO|sleep mode|cascade attention"
        r"|sequence parallel\w*|LoRA|async scheduling|prefix caching|CPU offload\w*) (?:is"
        r"|are) (?:only supported|not (?:yet |currently )?supported) (?:for|on|with|by) .{0,60}",
        LIKELY,
        unless=r"disabl|fall\w* back|INFO|WARNING",
    ),
    line(
        r"does not support (?:LoRA|pipeline parallel|prefix caching|chunked prefill|context parallel"
        r"|tensor parallel)\w*",
        LIKELY,
        unless=r"disabl|fall\w* back|INFO|WARNING",
    ),
    line(
        r"NotImplementedError: .{0,100}(?:not (?:yet )?(?:supported|implemented)"
        r"|does not (?:yet )?support)",
        HINT,
        unless=r"MoE|speculative|FlashMLA|capability",
    ),
    line(
        r"(?:ValueError|NotImplementedError|AssertionError): .{0,60}(?:requires|needs) (?:SM ?_?(?:90"
        r"|100)|sm_(?:90|100|10x)|Hopper|B200|GB200)",
        LIKELY,
        unless=r"MoE|MLA|MHA|FMHA|KV|DeepGEMM|flash_?attn",
    ),
    line(
        r"(?:not supported|unsupported) (?:for|by|on|with) (?:this|the|your) (?:model|GPU|device|backend"
        r"|platform|hardware)",
        POSSIBLE,
        unless=r"INFO|WARNING|DEBUG|fall\w* back",
    ),
    line(
        r"Model(?: class)? (?:\w+ )?does not support (?:BitsAndBytes|LoRA|\w+ quantization|pipeline"
        r"|tensor) ?.{0,30}(?:yet|quantization|\.)",
        LIKELY,
    ),
    line(r"(?:ForCausalLM|ForConditionalGeneration|\wModel)\b.{0,20} does(?: not|n.t) support \w+", LIKELY),
    line(
        r"\b(?:requires?|needs?|supports?) (?:only )?(?:CUDA |an? |NVIDIA )?(?:SM ?_?(?:90|100)|compute"
        r" capability (?:>= ?)?(?:9|10)\.\d)"
        r".{0,60}(?:\bgot\b|\bfound\b|reports|excluding|unsupported)",
        0.6,
        unless=r"MoE|\bMLA|MHA|FMHA|KV|DeepGEMM|flash_?attn|attention",
    ),
)
FIX = (
    (
        "the message names the feature: unset it (VLLM_BATCH_INVARIANT, --prefix-match-unit, LoRA, DCP ...) for this "
        "model"
    ),
    "prefix_match_unit: leave it empty, or a divisor of every KV group's block size",
    "Lamport collectives off MNNVL: LAMPORT_RS_SCONV=0",
)
EXPLAINS = ()
