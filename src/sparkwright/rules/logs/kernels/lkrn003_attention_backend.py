"""The attention backend has no kernels for SM 12.x.

Detects: an attention backend that refuses the device, or none that is left.
Why: FlashAttention 3 and 4, TRT-LLM MHA/MLA and CUTLASS MLA are written for SM 9.0 or 10.x. GB10 is SM 12.1: also
  called Blackwell, but without the instructions that they use, so a gate stops them.
Evidence: the assertion or ValueError of the backend; it names the generations that it knows.
Remedy: choose Triton or FlashInfer, or a version whose kernel covers SM 12.x.
References: vLLM platforms/cuda.py and flash_attn/cute; SGLang attention hooks; field guide E57
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the attention backend has no kernels for SM 12.x"
CAUSE = "attention-backend-unsupported-sm12x"
SIGNS = (
    line(r"(?:paged kv|split ?kv|block sparsity|score_mod|mask_mod) not supported on SM ?12"),
    line(
        r"TRT-?LLM (?:MHA|MLA|FMHA)\w* (?:backend|prefill|decode).{0,80}(?:only supported|requires"
        r"|does not support)"
    ),
    line(
        r"(?:trtllm_mha|trtllm_mla|cutlass_mla|cutedsl_mla|fa3|fa4)\W.{0,60}(?:only supported"
        r"|is not supported|requires|only supports).{0,60}(?:SM ?\d|Blackwell|Hopper|GPU)"
    ),
    line(
        r"(?:FlashAttention v?[34]|\bFA[34]) .{0,40}(?:is only supported|requires SM|is not supported)",
        LIKELY,
        unless=r"fall\w* back|Cannot use FA version|INFO|DEBUG",
    ),
    line(
        r"(?:CuteDSL MLA|CUTLASS MLA|CUTLASS FMHA|XQA MLA|MLA decode kernel).{0,60}(?:requires"
        r"|only supported|not supported).{0,60}"
    ),
    line(
        r"Selected backend .{0,80}is not valid for this configuration.{0,200}compute capability not "
        r"supported",
        unless=r"sparse not supported|FLASH_?MLA|', '",
    ),
    line(
        r"No valid attention backend found",
        LIKELY,
        unless=r"head_size not supported",
    ),
    line(r"No valid attention backend found", POSSIBLE),
    line(r"Selected backend .{0,80}is not valid for this configuration", POSSIBLE),
    line(r"sinks? (?:setting )?not supported", POSSIBLE),
    line(r"backends are supported on Blackwell GPUs"),
    line(r"attention sinks? (?:is|are) only supported on SM", LIKELY),
    line(
        r"tilelang \w+ .{0,40}kernels only support|SM ?12\d.{0,40}no usable .{0,20}attention"
        r"|no usable .{0,20}attention backend",
        LIKELY,
    ),
    line(r"No valid attention backend found.{0,3000}compute capability not supported", LIKELY),
    line(r"unsupported arch.{0,40}fmha|fmhaRunner|fmha\w*\.cuh?\b.{0,80}unsupported", LIKELY),
    line(r"page size >= ?\d+ requires trtllm"),
    line(r"kv_cache_dtype not supported", POSSIBLE),
    line(r"Unsupported compute capability", POSSIBLE),
    near(
        r"FLASH_ATTN|FLASHINFER|trtllm_m[hl]a|TRTLLM_(?:GEN|MLA|MHA)|FlashAttention[- ]?[34]"
        r"|flash[- ]attn[- ]?[34]|\bfa[34] (?:backend|path|kernel)|attention-backend|attention_backend"
        r"|attention backend",
        r"rejected|not supported|unsupported|no (?:sm_?12|kernel)|has no .{0,30}(?:path|implementation)"
        r"|only (?:for|on) SM",
        r"sm_12[01]|sm12[0x1]|SM ?12\.\d|SM 12[01x]|\bGB10\b|capability 12|consumer Blackwell",
        sure=0.65,
        within=0,
        unless=r"potential backends",
    ),
    line(
        r"^(?=.*(?:Flash ?Attention|flash_attn|FLASHMLA|CUTLASS_MLA|trtllm_m[lh]a|\bFA[34]\b"
        r"|attention backend)).*(?:capability not supported|capability 9\.x|only supported on (?:devices"
        r"|SM ?\d)|requires? Blackwell|not support SM ?12|requires SM ?(?:90|100)"
        r"|not supported on (?:SM ?12|GB10|this GPU))",
        LIKELY,
        unless=r"Sparse Attention Forward|potential backends|head_size",
    ),
    line(
        r"attn-backend \w+ requires (?:an? )?(?:SM ?\d|DeepSeek-V4\S* on SM)"
        r"|requires (?:an? )?SM ?100/SM ?103|requires SM ?100\b.{0,20}attention",
        LIKELY,
    ),
    line(
        r"indexer_kv_dtype=\S+ requires Blackwell datacenter|requires Blackwell datacenter GPUs .{0,80}sm_120", LIKELY
    ),
    line(
        r"Only SM (?:\d+\.x,? (?:and )?)+(?:are|is) supported|Only .{0,60}Blackwell \(1[01]\.x.{0,20}\) ar"
        r"e supported",
        0.7,
    ),
    line(r"FlashAttention ?\d? only supports? (?:SM|Ampere|Hopper)", LIKELY),
    line(r"Sinks? (?:is|are) only supported in FlashAttention 3", LIKELY),
    line(
        r"(?:NotImplementedError|AssertionError|RuntimeError|ValueError): .{0,60}(?:attention|attn|FMHA"
        r"|MLA|Block sparsity|paged KV).{0,60}(?:not supported|unsupported|not implemented) (?:on|for"
        r"|in) (?:SM ?12|sm_12|compute capability 12)",
        LIKELY,
    ),
    line(
        r"\b(?:trtllm_m[hl]a|cutlass_mla|flashmla|fa3|fa4|FlashAttention[- ]?[34])\b.{0,60}(?:refused"
        r"|rejected|gated|excluded|not (?:allowed|available|built)).{0,60}(?:GB10|Spark|sm_?12|SM ?12|SM ?100)",
        LIKELY,
    ),
)
FIX = (
    (
        'vLLM: --attention-backend TRITON_ATTN (or FLASHINFER); for a drafter "attention_backend": "TRITON_ATTN" in '
        "--speculative-config"
    ),
    (
        "SGLang: --attention-backend triton, or --prefill-attention-backend flashinfer --decode-attention-backend "
        "flashinfer"
    ),
    "leave the backend unset where the engine version chooses by the device",
)
EXPLAINS = ()
