"""OLLAMA_LLM_LIBRARY names a library that Ollama does not have.

Detects: A value of OLLAMA_LLM_LIBRARY for which there is no library directory.
Why: with CUDA 13 the library is called cuda_v13; another name leaves Ollama on the CPU without an error.
Evidence: Ollama's start line with its environment, or its complaint.
Remedy: Set it to cuda_v13 or leave it out.
References: https://github.com/ollama/ollama; https://github.com/NVIDIA/dgx-spark-playbooks
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LVER017"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "OLLAMA_LLM_LIBRARY names a library that Ollama does not have"
CAUSE = "ollama-llm-library-invalid"
SIGNS = (
    line(r"OLLAMA_LLM_LIBRARY[:=]\s*\"?(?P<value>cuda|gpu|nvidia|cublas|cuda1[0-9])(?!\w)", LIKELY),
    line(r"OLLAMA_LLM_LIBRARY[:=]\s*\"?(?P<value>cuda_v1[0-2]|vulkan|rocm\w*)(?!\w)", POSSIBLE),
    line(
        r"invalid OLLAMA_LLM_LIBRARY|OLLAMA_LLM_LIBRARY.{0,60}(?:not found|invalid|not a valid|unknown|wrong)",
        CERTAIN,
    ),
    near(r"OLLAMA_LLM_LIBRARY", r"100% CPU|falls? back to (?:the )?CPU|runs on (?:the )?CPU", sure=LIKELY, within=3),
    line(r"\bollama\b.{0,80}(?:fall(?:s|ing)? ?back|fell back|fallback).{0,20}\bCPU", POSSIBLE),
)
FIX = (
    "set OLLAMA_LLM_LIBRARY=cuda_v13 (or take the variable out) and recreate the container",
    "ollama ps   # the column PROCESSOR should say GPU",
)
EXPLAINS = ()
