"""A captured collective deadlocks between the nodes.

Detects: a hang at or after graph capture with more than one node.
Why: a collective inside a captured graph waits for the peer, which waits too: both GPUs are busy without memory
  traffic. The ranks left step at capture, or NCCL and torch versions replay wrongly.
Evidence: capture that stays at its first sizes, `sm 96 mem 0` in nvidia-smi dmon, both ranks in cuGraphLaunch,
  `sample_tokens` timed out. A dead peer looks alike: see whether its process lives.
Remedy: no full graphs across nodes, or the versions that replay rightly.
References: SGLang issues 3547, 19991, 29548; vLLM issues 13552, 17167, 46253, 52504; seed 001; field guide E67, E89
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line, near

CODE = "LGRA001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a captured collective deadlocks between the nodes"
CAUSE = "cuda-graph-multinode-collective-deadlock"
SIGNS = (
    line(r"broke CUDA graphs", LIKELY),
    line(r"^\s*#? ?\d+\s+(?:9\d|100) 0 0 0\b", POSSIBLE),
    line(r"^\s*\d+(?:\s+[\d-]+){0,3}\s+(?:9\d|100)      0      0      0", POSSIBLE),
    near(
        r"cuGraphLa|cudaGraphLa|graph capture|graph replay|graph loading|with CUDA graph"
        r"|without CUDA graphs|during CUDA graph|disable CUDA graph|disabling CUDA graph|captured graph"
        r"|full CUDA graph|the CUDA graph|replay of the graph|capture cuda graph|CUDA 图|CUDA图",
        r"\bhangs?\b|hanging|\bhung\b|stuck|deadlock|wedge[sd]?\b|spins? (?:forever|at)|卡住|卡死|卡在|挂起",
        r"multi-?node|two nodes|2 nodes|both (?:ranks?|nodes?|TP|gpus)|cross-?node|inter-?node|TP ranks"
        r"|one (?:node|rank)|nnodes|two machines|tensor[- ]parallel|collective|NCCL (?:2|all)|多机|两机|双机|双节点",
        sure=LIKELY,
        within=4,
        unless=r"\b590\b|driver 590|SharedExperts",
    ),
    near(
        r"100 ?% forever|spins? forever",
        r"one (?:node|rank) (?:drops|leaves|exits)|other (?:gpu|rank|node)|broke CUDA",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"^(?=.*(?:CUDA graph|cudagraph|graph capture|graph loading|Capturing batches)).*(?:\bhangs?\b"
        r"|hanging|\bhung\b|stuck|freez|deadlock)",
        POSSIBLE,
        unless=r"\b590\b|driver 590|SharedExperts",
    ),
    line(
        r"^(?=.*(?:CUDA graph|cudagraph|graph capture))(?=.*(?:multi-?node|two nodes|2 nodes"
        r"|both (?:ranks|nodes)|cross-?node|inter-?node|multiple node|nnodes|TP\d)).*(?:\bhangs?\b"
        r"|hanging|\bhung\b|stuck|freez|deadlock|卡住)",
        LIKELY,
        unless=r"\b590\b|driver 590",
    ),
    near(
        r"^(?=.*Captur\w+ (?:batches|CUDA)).*(?:\| 0/|\| 1/)",
        r"watchdog timeout|Watchdog caught|timed out",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"sample_tokens timed out|execute_model timed out",
        r"cross-?node|with cuda graph|CUDA-graph",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"^(?=.*enforce[-_]eager)(?=.*(?:multi-?node|multiple nodes?|two nodes|both nodes|cross-?node"
        r"|two Sparks)).*(?:\bhangs?\b|hanging|\bhung\b|stuck|deadlock)",
        LIKELY,
    ),
    line(r"RPC call to (?:sample_tokens|execute_model) timed out", HINT),
    line(
        r"^(?=.*(?:both (?:ranks|nodes|gpus)|two[- ]node|multi-?node|across nodes|cross-?node|TP=2|nnodes"
        r"|two Sparks|2 Sparks))(?=.*(?:cuGraphLaunch|cudaGraphLaunch|graph capture|graph replay"
        r"|disable-cuda-graph|Capturing.CUDA.graphs)).*(?:\bhangs?\b|hanging|stuck|spins?\b|freez"
        r"|nothing moves|deadlock|never finish|\bsit in\b)",
        LIKELY,
        unless=r"\b590\b|driver 590",
    ),
    near(
        r"Capturing CUDA graphs?\b|[Cc]apture cuda graph|CUDA graph capture|during (?:graph )?capture",
        r"collective operation timeout|WorkNCCL\(|waits? in nccl|both (?:GPUs|ranks|nodes) (?:at|spin|hang"
        r"|wait)|then nothing|never (?:finish|complet|return)",
        sure=0.7,
        within=6,
        unless=r"INFO.{0,40}Capture cuda graph end|finished in",
    ),
    line(
        r"(?:enforce[-_]eager|disable-cuda-graph|without (?:CUDA )?graphs?|eager mode)\b.{0,40}\b(?:works"
        r"|is fine|is stable|runs)\b.{0,60}(?:hang|deadlock|stuck|freez)|(?:hang|deadlock|stuck"
        r"|freez).{0,80}(?:two|both|multi|2)[ -]?nodes?.{0,80}(?:enforce[-_]eager"
        r"|disable-cuda-graph) (?:works|fixes|helps)",
        0.7,
    ),
    line(
        r"(?:only|just) with (?:CUDA )?graphs\b.{0,80}(?:eager|hang|deadlock)|(?:hang|deadlock|stuck"
        r"|100 ?%).{0,80}with CUDA graphs\b.{0,60}eager",
        0.7,
        unless=r"garbage|slow",
    ),
)
FIX = (
    "SGLang: --disable-cuda-graph as a flag (SGLANG_DISABLE_CUDA_GRAPH is ignored in 0.5.12)",
    'vLLM: --compilation-config \'{{"cudagraph_mode": "PIECEWISE"}}\', --enforce-eager as the check',
    "NCCL 2.30.4 or later, the same on both nodes; torch 2.9.1 or 2.11 instead of 2.10.0",
)
EXPLAINS = ()
