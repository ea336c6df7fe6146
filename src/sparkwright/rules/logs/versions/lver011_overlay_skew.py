"""Files laid over the engine come from another revision.

Detects: A name or module of the engine itself that one of its own files cannot find.
Why: mounted or copied files (mods, hot fixes, kernels) were made for another commit than the engine beneath them.
Evidence: The ImportError or AttributeError for a name inside vllm or sglang.
Remedy: Take overlay and engine from the same commit, the same on every node.
References: field guide E 85; https://github.com/vllm-project/vllm
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line

CODE = "LVER011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "files laid over the engine come from another revision"
CAUSE = "image-overlay-version-skew"
SIGNS = (
    line(
        r"cannot import name '(?P<name>\w+)' from '(?:vllm|sglang)(?:\.[\w.]+)?'",
        LIKELY,
        unless=r"vllm_omni|partially initialized",
    ),
    line(r"No module named '?(?P<name>(?:vllm|sglang)\.(?!_C\b|_moe_C\b|_version\b)[\w.]+)", LIKELY),
    line(r"module '(?:vllm|sglang)[\w.]*' has no attribute '(?P<name>\w+)'", LIKELY),
    line(r"ImportError: cannot import name '(?P<name>\w+)'(?! from)", POSSIBLE),
    line(r"NameError: name '(?P<name>\w+)' is not defined", HINT),
    line(
        r"TypeError: (?P<name>\w+(?:\.\w+)?)\(\) got an unexpected keyword argument",
        HINT,
        unless=r"EngineArgs|ServerArgs|\bLLM\b|SamplingParams|LlmArgs",
    ),
    line(r"ModuleNotFoundError: (?P<name>(?:vllm|sglang)\.\w+)", LIKELY),
    line(
        r"(?:overlay|bind-?mount|mounted files?|patched files?|vendored|hot-?fix|mod files?)"
        r".{0,120}(?:different|another|other|mismatched|newer|older) (?:upstream )?(?:revision|commit"
        r"|version|base|build)",
        LIKELY,
    ),
    line(
        r"(?:different|mismatched) (?:upstream )?(?:revisions|commits).{0,120}(?:overlay|mount|import|kernel|file)",
        LIKELY,
    ),
)
FIX = (
    (
        "docker inspect -f '{{{{range .Mounts}}}}{{{{.Source}}}} -> "
        "{{{{.Destination}}}}{{{{println}}}}{{{{end}}}}' <container>   # what lies over the engine"
    ),
    "start once without these mounts; if that works, take the files of the engine's own commit for {name}",
    "on every node: sha256sum <overlay files>   # the same everywhere?",
)
EXPLAINS = ()
