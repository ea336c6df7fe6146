"""An engine plugin does not fit the engine's version.

Detects: A plugin of vLLM that fails to load or does not bring its flags.
Why: plugins are made for one minor release of the engine; with another they are skipped and their flags do not exist.
Evidence: The plugin's traceback, or its own flag that is unknown.
Remedy: The plugin release with the engine's minor version.
References: https://docs.vllm.ai/projects/vllm-omni
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LVER018"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "an engine plugin does not fit the engine's version"
CAUSE = "plugin-version-mismatch"
SIGNS = (
    line(r"unrecognized arguments:.{0,900}--omni\b", LIKELY),
    near(
        r"\bvllm[-_]omni\b",
        r"unrecognized arguments: --omni|cannot import name|has no attribute|incompatib|mismatch",
        sure=CERTAIN,
        within=8,
    ),
    near(
        r"site-packages/(?:vllm_\w+|lmcache)/|dist-packages/(?:vllm_\w+|lmcache)/",
        r"cannot import name '\w+' from 'vllm|No module named 'vllm\.|module 'vllm[\w.]*' has no attribute",
        sure=CERTAIN,
        within=4,
    ),
    line(r"Failed to load (?:general |platform )?plugin (?P<plugin>[\w-]+)", LIKELY),
    line(
        r"\bplugin\b.{0,120}(?:does(?:n't| not) match|same minor|incompatib\w*|mismatch).{0,60}(?:vllm"
        r"|sglang|version)",
        LIKELY,
    ),
    line(
        r"vllm-(?:omni|ascend|gaudi|spyre|metal) \d.{0,80}(?:does(?:n't| not) match|needs|requires"
        r"|incompatib\w*|expects).{0,40}vllm",
        LIKELY,
    ),
    near(
        r"platform plugin \w+ is activated|Loading plugin \w+|plugins? (?:group )?vllm\.(?:platform|general)_plugins",
        r"No module named 'vllm\.|cannot import name '\w+' from 'vllm",
        sure=0.9,
        within=60,
    ),
)
FIX = (
    "pip list | grep -i vllm   # engine and plugin need the same minor version",
    "pip install vllm-omni==<the engine's minor version>.*   # or the engine that the plugin was made for",
)
EXPLAINS = (
    "cli-flag-renamed-or-removed",
    "image-overlay-version-skew",
)
