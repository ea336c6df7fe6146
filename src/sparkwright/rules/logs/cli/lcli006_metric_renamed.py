"""A metric has another name in this release.

Detects: A dashboard, client or scaler that reads a metric which the engine no longer has.
Why: vLLM V1 renamed and removed series (gpu_cache_usage_perc, gpu_prefix_cache_hit_rate,
  time_per_output_token_seconds, num_requests_swapped), SGLang changed its prefix; the panel is empty, the engine is
  fine.
Evidence: The old name next to `not present`, `no data` or an error.
Remedy: Read the new name, or compute the value from the counters.
References: https://docs.vllm.ai/en/latest/design/metrics
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LCLI006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a metric has another name in this release"
CAUSE = "metric-renamed-or-removed"
SIGNS = (
    line(
        r"(?P<metric>gpu_(?:prefix_)?cache_\w++|time_per_output_token_seconds\w*+|num_requests_swapped"
        r"|cpu_cache_usage_perc|avg_prompt_throughput).{0,120}(?:not present|no longer|not found|removed"
        r"|renamed|missing|deprecated|does not exist|absent|no data|gone)",
        LIKELY,
    ),
    line(
        r"(?:not found|no data|missing|cannot find|no such|removed|renamed|KeyError)"
        r".{0,100}(?P<metric>vllm:\w+|sglang:\w+|gpu_(?:prefix_)?cache_\w+|num_requests_swapped)",
        LIKELY,
    ),
    line(
        r"(?P<metric>(?-i:(?:vllm|sglang|trtllm)[:_][a-z]\w++)).{0,80}(?:is not present|no longer (?:exists|emitted"
        r"|exposed)|was removed|was renamed|has been (?:removed|renamed)|not (?:exported|emitted|exposed))",
        LIKELY,
    ),
    near(
        r"\bgauge\b|dashboard|grafana|prometheus|/metrics\b",
        r"\brenamed\b|\bremoved\b|no longer (?:emitted|exposed|present)|No data\b",
        sure=POSSIBLE,
        within=1,
    ),
    line(
        r"vllm:gpu_cache_usage_perc|vllm:gpu_prefix_cache\w*|vllm:time_per_output_token_seconds.{0,60}(?:r"
        r"enamed|gone|removed|missing)|vllm:.{0,60}(?:is now|renamed to|was renamed|replaced by|no longer)",
        LIKELY,
    ),
)
FIX = (
    (
        "curl -s http://{head}:<port>/metrics | grep -E '^(vllm|sglang)[:_]' | cut -d'{{' -f1 | sort -u   # "
        "the names of this release"
    ),
    "gpu_cache_usage_perc -> kv_cache_usage_perc; hit rate = prefix_cache_hits_total / prefix_cache_queries_total",
)
EXPLAINS = ()
