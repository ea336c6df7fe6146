"""No tuned MoE configuration for this GPU.

Detects: the notice that no tuned file exists for the device.
Why: tuned tables exist for a few GPUs; the default works, somewhat slower in prefill.
Evidence: the notice with the file's name.
Remedy: none; benchmarks/kernels/benchmark_moe.py can make a table.
References: captures b-dsv2-lite.log;
  https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/fused_moe/fused_moe.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN019"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "default MoE kernel configuration"
CAUSE = "benign-default-moe-config"
SIGNS = (
    line(r"using default (moe|mamba SSU) (kernel )?config", HINT),
    line(r"using default w8a8 block fp8 kernel config", HINT),
    line(r"config file not found at \S+device_name=", HINT),
)
FIX = ()
EXPLAINS = ()
