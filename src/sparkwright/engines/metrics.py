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
# What tells that an engine moves: requests that ended, and steps that gave output (llama.cpp: decode calls).
FINISHED = "requests_finished_total"
STEPS = "engine_steps_total"

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
    FINISHED: "vllm:request_success_total",
    STEPS: "vllm:iteration_tokens_total_count",
}
# sglang/srt/observability/metrics_collector.py, the same from 0.5.10 to 0.5.23. Drafts are told as rates, not counted.
SGLANG_METRICS: Mapping[str, str] = {
    RUNNING: "sglang:num_running_reqs",
    WAITING: "sglang:num_queue_reqs",
    KV_USAGE: "sglang:token_usage",
    PROMPT_TOKENS: "sglang:prompt_tokens_total",
    GENERATION_TOKENS: "sglang:generation_tokens_total",
    PREEMPTIONS: "sglang:num_retracted_requests_total",
    PREFIX_HITS: "sglang:cached_tokens_total",
    TTFT: "sglang:time_to_first_token_seconds",
    INTER_TOKEN: "sglang:inter_token_latency_seconds",
    E2E: "sglang:e2e_request_latency_seconds",
    FINISHED: "sglang:num_requests_total",
}
# tensorrt_llm/metrics/collector.py; at /prometheus/metrics, with return_perf_metrics in the options file. Its time per
# output token is a mean per request, not the time between two tokens.
TRTLLM_METRICS: Mapping[str, str] = {
    RUNNING: "trtllm_num_requests_running",
    WAITING: "trtllm_num_requests_waiting",
    KV_USAGE: "trtllm_kv_cache_utilization",
    PROMPT_TOKENS: "trtllm_prompt_tokens_total",
    GENERATION_TOKENS: "trtllm_generation_tokens_total",
    PREFIX_HITS: "trtllm_prompt_cached_tokens_total",
    DRAFT_TOKENS: "trtllm_spec_decode_num_draft_tokens_total",
    ACCEPTED_TOKENS: "trtllm_spec_decode_num_accepted_tokens_total",
    TTFT: "trtllm_time_to_first_token_seconds",
    E2E: "trtllm_e2e_request_latency_seconds",
    FINISHED: "trtllm_request_success_total",
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
    STEPS: "llamacpp:n_decode_total",
}
