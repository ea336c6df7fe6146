"""This speculative method is not supported here.

Detects: a start that is refused because of the speculative method.
Why: each model and runner knows some methods: MTP heads of one shape, EAGLE only where hidden states are passed
  out, n-grams not on recurrent state, no draft model in vLLM's new runner.
Evidence: the validation error, which names method and model.
Remedy: another method, another runner, or none.
References: vLLM config/vllm.py and config/speculative.py; intel/intel-xpu-backend-for-triton issue 7166; field
  guide E97
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LSPC003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "this speculative method is not supported here"
CAUSE = "spec-decode-method-unsupported"
SIGNS = (
    line(r"Model Runner V2 does not (?:yet )?support: .{0,120}(?:specul|draft|ngram|eagle|dflash)"),
    line(r"Unsupported speculative (?:method|algorithm)"),
    line(
        r"speculative decoding.{0,40} (?:is|are) (?:currently )?not (?:yet )?supported",
        LIKELY,
        unless=r"Custom logits|sampling",
    ),
    line(
        r"does not (?:yet )?support spec(?:ulative|[- _]decod)",
        LIKELY,
        unless=r"Grammar|lm format",
    ),
    line(
        r"(?:only|Only) .{0,60}speculative (?:algorithms?|methods?|decoding) .{0,30}(?:supported|allowed)"
        r"|speculative decoding supports only",
        LIKELY,
    ),
    line(r"object has no attribute 'drafter'", LIKELY),
    line(r"does not support EAGLE3? interface|EAGLE-?3 speculative decoding requires"),
    line(r"has no classic-MTP draft|checkpoint does not contain MTP weights|has only one trained MTP"),
    line(
        r"draft model vocab|draft and target (?:model )?vocab"
        r"|the target and draft vocabs are not compatible",
        LIKELY,
    ),
    line(r"target context does not support partial sequence removal", LIKELY),
    near(
        r"ngram|speculat",
        r"GDN model|GDN hybrid|GDN state|hybrid model|hybrid mamba|recurrent",
        r"corrupt|state rollback|not supported|roll ?back",
        sure=LIKELY,
        within=3,
        unless=r"prefix.cach",
    ),
    line(
        r"EAGLE-?3? is not supported|num_speculative_tokens was provided but without|draft vocab (?:type"
        r"|size) must|speculative_are_compatible",
        LIKELY,
    ),
    line(
        r"non-causal support, which is required for|topk > 1 speculative decoding"
        r"|speculative_eagle_topk\(\d+\) > 1 with page_size",
        LIKELY,
    ),
    line(
        r"'draft_tensor_parallel_size' and 'tensor_parallel_size' must be the same"
        r"|only supports --speculative-algorithm|is not a valid argument in the speculative_config",
        LIKELY,
    ),
    line(
        r"(?:speculative (?:decoding|algorithm|method)|spec(?:ulative)?[- ]decod\w*|\b(?:MTP|EAGLE-?3?"
        r"|DFLASH|DSPARK|NEXTN|NGRAM)\b).{0,60}(?:is |are )?(?:not (?:yet )?(?:supported|compatible"
        r"|implemented|available)|unsupported|incompatible) (?:with|for|on|by|in|yet)",
        LIKELY,
    ),
    line(r"speculative decoding with .{0,60}(?:does not|do not|doesn't|only) support", 0.9),
    line(r"draft model does not support multimodal", LIKELY),
    line(r"speculative decod\w+ (?:does not|doesn't|only) support|ReplaySSM speculative decoding requires", LIKELY),
    line(
        r"(?:method|algorithm) .{0,4}(?:mtp|eagle3?|dspark|dflash|ngram|medusa|suffix"
        r"|nextn)\W{1,3}(?:is )?only (?:supported|available|valid|works)",
        LIKELY,
    ),
    line(r"speculative decoding layer \S{1,8} weights (?:are )?missing from checkpoint", 0.9),
    line(r"(?:draft|target)\b.{0,40}(?:share one|identical|the same).{0,30}\bvocab", LIKELY),
    line(r"Unsupported model_type \S+ for \w*(?:eagle|speculator)", LIKELY),
    near(
        r"Pipeline parallelism is not supported for this model",
        r"speculative[-_]config|spec_decode|draft_model|num_speculative_tokens",
        sure=CERTAIN,
        within=60,
    ),
)
FIX = (
    (
        'the method that the model\'s card names, e.g. --speculative-config \'{{"method": "mtp", '
        '"num_speculative_tokens": 2}}\''
    ),
    "VLLM_USE_V2_MODEL_RUNNER=0   # for ngram and draft models in vLLM",
    "or start without --speculative-config",
)
EXPLAINS = ()
