"""The image's metrics library does not know its web framework.

Detects: errors of the Prometheus instrumentator about routes, and /health with status 500.
Why: FastAPI 0.137 nests routers in a class without `path`; the instrumentator of that image reads it on every
  request.
Evidence: the attribute error.
Remedy: another image of the series.
References: gb10.md E60 (nvcr.io/nvidia/vllm:26.06-py3)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LIMG023"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "metrics library and FastAPI in the image do not fit"
CAUSE = "image-fastapi-instrumentator-mismatch"
SIGNS = (
    line(r"'_IncludedRouter' object has no attribute", CERTAIN),
    near(r"prometheus_fastapi_instrumentator", r"AttributeError|Internal Server Error", sure=LIKELY, within=12),
)
FIX = (
    "use nvcr.io/nvidia/vllm 26.02, 26.05 or 26.07 instead of 26.06",
    "or in the image: pip install 'fastapi<0.137'",
)
EXPLAINS = ()
