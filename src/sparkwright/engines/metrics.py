"""One vocabulary for the numbers that engines expose in /metrics.

vLLM's names are those of the captured 0.21.0 pages (`vllm-0.21.0-1node/metrics-*.txt`), llama.cpp's those of the server
in the xllamacpp wheel 2026.10.11549. A name that an engine does not have is absent, never approximated.
"""

from collections.abc import Mapping

RUNNING = "requests_running"
WAITING = "requests_waiting"
KV_USAGE = "kv_cache_usage"
PROMPT_TOKENS = "prompt_tokens_total"
GENERATION_TOKENS = "generation_tokens_total"
PREEMPTIONS = "preemptions_total"
PREFIX_QUERIES = "prefix_cache_queries_total"
PREFIX_HITS = "prefix_cache_hits_total"
DRAFT_TOKENS = "draft_tokens_total"
ACCEPTED_TOKENS = "accepted_tokens_total"
DRAFTS = "drafts_total"
TTFT = "time_to_first_token_seconds"
INTER_TOKEN = "inter_token_latency_seconds"
E2E = "e2e_request_latency_seconds"

VLLM_METRICS: Mapping[str, str] = {
    RUNNING: "vllm:num_requests_running",
    WAITING: "vllm:num_requests_waiting",
    KV_USAGE: "vllm:kv_cache_usage_perc",
    PROMPT_TOKENS: "vllm:prompt_tokens_total",
    GENERATION_TOKENS: "vllm:generation_tokens_total",
    PREEMPTIONS: "vllm:num_preemptions_total",
    PREFIX_QUERIES: "vllm:prefix_cache_queries_total",
    PREFIX_HITS: "vllm:prefix_cache_hits_total",
    DRAFT_TOKENS: "vllm:spec_decode_num_draft_tokens_total",
    ACCEPTED_TOKENS: "vllm:spec_decode_num_accepted_tokens_total",
    DRAFTS: "vllm:spec_decode_num_drafts_total",
    TTFT: "vllm:time_to_first_token_seconds",
    INTER_TOKEN: "vllm:inter_token_latency_seconds",
    E2E: "vllm:e2e_request_latency_seconds",
}
LLAMA_CPP_METRICS: Mapping[str, str] = {
    RUNNING: "llamacpp:requests_processing",
    WAITING: "llamacpp:requests_deferred",
    PROMPT_TOKENS: "llamacpp:prompt_tokens_total",
    GENERATION_TOKENS: "llamacpp:tokens_predicted_total",
    PREFIX_HITS: "llamacpp:prompt_tokens_cached_total",
    DRAFT_TOKENS: "llamacpp:spec_decode_num_draft_tokens_total",
    ACCEPTED_TOKENS: "llamacpp:spec_decode_num_accepted_tokens_total",
    DRAFTS: "llamacpp:spec_decode_num_drafts_total",
}
