"""Captured graphs read stale metadata and garble the text.

Detects: windows of garbled text with CUDA graphs, often after a fall of the acceptance rate.
Why: strides or block tables are fixed at capture and differ later (long maximal context, speculation), so replays
  read wrong rows. Reports disagree on which versions are repaired.
Evidence: reports; the metrics show acceptance falling some 30 s before.
Remedy: piecewise graphs or a newer version.
References: vLLM issues 51318, 52836, 52492; field guide E99, E100
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, near

CODE = "LOUT004"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "captured graphs read stale metadata and garble the text"
CAUSE = "captured-graph-metadata-stale-garbage"
SIGNS = (
    near(
        r"metadata.{0,20}(?:desync|stale)|baked (?:in )?at capture|armed window|captured (?:stride"
        r"|metadata)",
        r"garbl|garbage|gibberish|token salad|\bNaN\b.{0,20}token|acceptance",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"max[-_]model[-_]len|1M (?:lane|context)",
        r"token salad|NaN BOS|garbled",
        r"captured|at capture|graph capture|graph replay|graph metadata",
        sure=POSSIBLE,
        within=4,
    ),
)
FIX = (
    '--compilation-config \'{{"cudagraph_mode": "PIECEWISE"}}\' or --enforce-eager to make sure',
    "a vLLM newer than 0.27.1; --max-model-len near what is used",
    "restart the deployment when the acceptance falls all at once ({deployment})",
)
EXPLAINS = ()
