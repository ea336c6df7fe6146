"""The limit of open files is not raised.

Detects: the notice about ulimit at the start.
Why: vLLM asks for 65,535 descriptors and lives with fewer, until hundreds of connections come.
Evidence: the notice.
Remedy: none; for many clients: --ulimit nofile=65535:65535.
References: captures (all starts); https://github.com/vllm-project/vllm/blob/main/vllm/utils/system_utils.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN016"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "limit of open files below vLLM's wish"
CAUSE = "benign-ulimit-notice"
SIGNS = (line(r"found ulimit of \d+ and failed to automatically increase", HINT),)
FIX = ()
EXPLAINS = ()
