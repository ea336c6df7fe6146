"""A flag does not exist in this engine release.

Detects: An argument that the engine does not know, because it was renamed, removed, or comes with a newer release.
Why: flags change between releases and differ between engines; SGLang, for instance, says --mem-fraction-static,
  --context-length and --dist-init-addr where vLLM says --gpu-memory-utilization, --max-model-len and --master-addr.
Evidence: The argument parser's line.
Remedy: The name in this release; where it was removed, its successor.
References: seed 000 (`Old flag, New flag`); field guide E 12
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LCLI002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a flag does not exist in this engine release"
CAUSE = "cli-flag-renamed-or-removed"
SIGNS = (
    line(
        r"unrecognized arguments?: (?P<flag>--[a-z][\w.-]*)",
        LIKELY,
        unless=r"unrecognized arguments?: (?:(?:.* )?--omni\b|--(?:host|port|model|config|dtype|seed"
        r"|served-model-name|tensor-parallel-size|trust-remote-code)\b)|(?:vllm|vllm serve"
        r"|api_server\.py): error: unrecognized arguments?: --(?:max-model-len|gpu-memory-utilization"
        r"|max-num-seqs|kv-cache-dtype|quantization|load-format|enable-prefix-caching|tool-call-parser"
        r"|enable-auto-tool-choice)\b",
    ),
    line(r"no such option:? '?(?P<flag>--?[\w-]+)", LIKELY, unless=r"nvcc|ptxas|gcc|cmake"),
    line(r"unknown (?:flag|option|argument):? '?(?P<flag>--[\w-]+)", LIKELY, unless=r"nvcc|ptxas|gcc|cmake"),
    line(r"unexpected argument '?(?P<flag>--[\w-]+)", LIKELY, unless=r"nvcc|ptxas|gcc|cmake"),
    line(r"error: invalid argument: (?P<flag>--?[\w-]+)", LIKELY),
    line(r"error while handling argument \"(?P<flag>--[\w-]+)\".{0,40}removed", LIKELY),
    line(r"the argument has been removed", LIKELY),
    line(
        r"__init__\(\) got an unexpected keyword argument '(?P<flag>task|guided_\w+|device|swap_space"
        r"|num_scheduler_steps|use_v2_block_manager|speculative_model|rope_scaling|enable_reasoning"
        r"|disable_log_requests|worker_use_ray|max_seq_len_to_capture|disable_async_output_proc"
        r"|enable_metrics)'",
        LIKELY,
    ),
    line(
        r"(?:EngineArgs|AsyncEngineArgs|ServerArgs|LLM|SamplingParams"
        r"|LlmArgs)\S{0,12}\(\) got an unexpected keyword argument '(?P<flag>\w+)'",
        LIKELY,
    ),
    line(r"SamplingParams.{0,80}Unexpected keyword argument '(?P<flag>\w+)'", LIKELY),
    line(
        r"vllm[-:=_]?v?0\.(?:1[3-9]|[2-9]\d)\b.{0,500} (?P<flag>--task[= ](?:embed|embedding|classify"
        r"|score|reward|generate)|--guided-decoding-backend|--num-scheduler-steps|--enable-reasoning)",
        LIKELY,
    ),
    line(
        r"(?:flag|option|argument|parameter) `?(?P<flag>--?[a-z][\w-]+)`? (?:was|has been|is) (?:removed"
        r"|renamed|dropped|not (?:known|recognized|registered|supported by this))",
        LIKELY,
    ),
    line(
        r"(?P<flag>--[a-z][\w-]+)\b.{0,60}(?:was|has been|were|is now) (?:removed|renamed|replaced by|dropped)",
        LIKELY,
    ),
    line(r"renamed `?(?P<flag>--[a-z][\w-]+)`?.{0,20} to `?--[a-z]", LIKELY),
    line(
        r"(?:removed|renamed) (?:in|since|from) (?:vllm|sglang|v?0\.\d+).{0,80}--[a-z][\w-]+"
        r"|--[a-z][\w-]+.{0,100}(?:removed|renamed) (?:in|since|from) (?:vllm|sglang|v?0\.\d+)",
        LIKELY,
    ),
    # A switch that takes a value now swallows the flag behind it.
    line(r"unkn?own value for (?P<flag>--?[\w-]+): '--?[a-z]", LIKELY),
    line(
        r"error while handling argument \"(?P<flag>--flash-attn|-fa)\": (?:expected value|error: unkn?own value)",
        LIKELY,
    ),
    line(r"error while handling argument \"(?P<flag>--[\w-]+)\": expected value for argument", POSSIBLE),
    line(r"should provide the model as a positional argument", LIKELY),
    line(r"Removed server argument\(s\):?", LIKELY),
    line(
        r"(?:method|backend|option|argument|variable|kernel|_cls) (?:is )?no longer support(?:ed|s)\b"
        r".{0,120}(?:use|unset|pass|upgrade)",
        0.7,
    ),
)
FIX = (
    "vllm serve --help=all | grep -- {flag}   # or: sglang serve --help, trtllm-serve --help, llama-server --help",
    "SGLang's words: --nnodes, --dist-init-addr HOST:PORT, --mem-fraction-static, --context-length, --fp8-gemm-backend",
    "take {flag} out of the recipe or use its new name; `sparkwright plan {recipe}` knows the flags of each release",
)
EXPLAINS = ()
