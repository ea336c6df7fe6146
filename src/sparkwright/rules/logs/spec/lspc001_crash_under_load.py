"""Speculative decoding crashes under concurrent requests.

Detects: an engine that dies as soon as several requests are drafted at once.
Why: drafters and sparse indexers size their buffers for equal rows or for max_model_len without the draft's
  overhang; mixed batches then run out of bounds.
Evidence: a shape error or illegal access under drafter frames, or the condition `alone stable, with more requests
  dead`.
Remedy: fewer sequences or no draft; the fixed build.
References: vLLM issue 40756; eugr/spark-vllm-docker issue 308; field guide E61, E101
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, anywhere, line, near

CODE = "LSPC001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "speculative decoding crashes under concurrent requests"
CAUSE = "spec-decode-crash-under-concurrency"
SIGNS = (
    line(r"requires uniform flattened per-request inputs"),
    line(r"_trim_rejected_target_context"),
    near(
        r"concurren",
        r"expanded size of the",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"expanded size of the",
        r"indexer|spec_decode|block_table|_proposer|speculator",
        sure=LIKELY,
        within=15,
    ),
    line(r"expanded size of the tensor \(\d+\) must match the existing size \(\d+\)", POSSIBLE),
    near(
        r"concurren\w+|parallel requests|two requests|requests overlap|overlapping requests"
        r"|max[-_]num[-_]seqs|under load",
        r"engine dies|engine died|engine is dead|server dies|server died|EngineCore died|crash(?:es|ed)?\b",
        r"speculative (?:decod|draft|token|method|sampl)|speculation|spec[- ]decod|drafter|DSpark|dflash"
        r"|\beagle|MTP spec|MTP draft|MTP head|MTP token|MTP crash|with MTP|num_speculative",
        sure=LIKELY,
        within=3,
        unless=r"SpeculativeConfig\(|non-default args",
    ),
    near(
        r"single-stream|single stream|one request|single request|concurrency (?:of )?1\b",
        r"(?:three|four|\b[34])\W{0,3} or more|or more\W{0,3} concurrent|concurrent requests"
        r"|concurrency (?:of )?[2-9]",
        r"engine dies|engine died|server dies|server died|EngineCore died|crash",
        sure=0.65,
        within=4,
    ),
    near(
        r"/spec_decode/|_proposer\.py|rejection_sampler|eagle_worker|/speculator\.py|deepseek_mtp|_mtp\.py",
        r"illegal memory access|cudaErrorIllegalAddress|IndexError|index out of",
        sure=LIKELY,
        within=25,
    ),
    near(
        r"_proposer\.py|rejection_sampler|/speculator\.py",
        r"AssertionError",
        sure=POSSIBLE,
        within=12,
    ),
    anywhere(
        r"speculative_config=SpeculativeConfig|speculative_algorithm='?[A-Z]",
        r"illegal memory access was encountered",
        sure=POSSIBLE,
    ),
    near(
        r"synchronize_input_prep|prepare_inputs_event|_prepare_inputs\b",
        r"illegal memory access",
        sure=POSSIBLE,
        within=8,
    ),
    line(
        r"\b(?:MTP|EAGLE-?3?|DFlash|DSpark|speculative decoding"
        r"|spec[- ]decod\w*)\b.{0,80}illegal memory access",
        LIKELY,
    ),
    line(
        r"^(?=.*(?:\bMTP\b|speculat|spec[- ]decod|dflash|dspark|eagle|drafter)).*(?:\bcrash|engine dies"
        r"|engine died|EngineCore dead|EngineCore dies|Xid 31|shape mismatch)",
        POSSIBLE,
        unless=r"SpeculativeConfig\(",
    ),
    near(
        r"size of tensor a \(\d+\) must match the size of tensor b",
        r"eagle\.py|speculat|proposer|_mtp\.py|dflash|drafter",
        sure=0.7,
        within=15,
    ),
    near(
        r"illegal memory access|device-side assert|\bXid (?:13|31|43)\b",
        r"(?:with|when|enabling|using|has|via) (?:\w+ )?(?:MTP|EAGLE|speculati\w+|spec[- ]decod\w*|NEXTN"
        r"|DFlash)|\bMTP (?:is )?(?:on|enabled)|num_speculative_tokens",
        r"concurren\w*|parallel|simultaneous|batch size|under load|max[-_]num[-_]seqs",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "--max-num-seqs 2, or no --speculative-config, until the build is repaired",
    '"num_speculative_tokens": 3 or fewer',
    "headroom below --max-model-len: near the limit the draft overhangs by one block",
    "DSpark images: the ragged-context patches (VLLM_DSPARK_GPU_REJECTED_CONTEXT_MASK=1)",
)
EXPLAINS = ()
