"""A Python package has another version than the engine needs.

Detects: A package that is there but lacks a module or name, or says itself that a version does not fit.
Why: pip replaced one package, or newer engine source was laid over an older image; the pins no longer hold.
Evidence: The line that names the package and what it lacks.
Remedy: Install the version that the engine pins.
References: vllm/requirements/common.txt; python/pyproject.toml of SGLang
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LVER019"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a Python package has another version than the engine needs"
CAUSE = "python-dependency-version-mismatch"
SIGNS = (
    line(
        r"No module named '(?P<package>(?!vllm\b|sglang\b|cutlass\b|triton_kernels\b"
        r"|torch\._C)[a-zA-Z]\w+)\.[\w.]+'",
        LIKELY,
    ),
    line(
        r"cannot import name '\w+' from '(?P<package>(?!vllm\b|sglang\b|cutlass\b|__main__)[a-zA-Z]\w+)[\w.]*'",
        LIKELY,
        unless=r"partially initialized|name '\w+(?:Config|ForCausalLM|ForConditionalGeneration"
        r"|Processor)' from 'transformers",
    ),
    line(r"is required for a normal functioning of this module, but found (?P<package>\w+)", CERTAIN),
    line(
        r"(?P<package>[\w-]{2,60}) is installed with version \S+, which is less than the minimum required version",
        CERTAIN,
    ),
    line(
        r"(?P<package>numpy)\.(?:dtype|ufunc) size changed|compiled using NumPy 1\.x cannot be run in"
        r"|Numba needs NumPy",
        CERTAIN,
    ),
    line(r"Descriptors cannot (?:not )?be created directly|incompatible Protobuf Gencode/Runtime", CERTAIN),
    line(
        r"pkg_resources\.(?:VersionConflict|ContextualVersionConflict|DistributionNotFound)"
        r"|PackageNotFoundError: No package metadata was found for (?P<package>\S+)",
        LIKELY,
    ),
    line(
        r"AttributeError: module '(?P<package>torch|transformers|numpy|triton|flashinfer|pydantic"
        r"|huggingface_hub|xgrammar|compressed_tensors|tokenizers)[\w.]*' has no attribute",
        LIKELY,
        unless=r"transformers' has no attribute '\w+(?:Config|ForCausalLM|ForConditionalGeneration|Processor"
        r"|Model)",
    ),
    line(r"requires (?P<package>[\w-]+)[<>=!~][^,]{0,60}, but you have \S+ \S+ which is incompatible", POSSIBLE),
    line(
        r"(?P<package>compressed[-_]tensors|xgrammar|outlines|numpy|protobuf|pydantic|fastapi"
        r"|huggingface[-_]hub|mistral[-_]common)\b.{0,100}(?:older than|too old|too new|version mismatch"
        r"|incompatible (?:with|version)|pinned)",
        LIKELY,
    ),
    line(
        r"(?:trtllm_\w{4,60}|\w{0,40}flashinfer\w{0,40}|(?:mm|bmm)_(?:fp[48]|bf16)|cutlass_fused_moe"
        r"|xgrammar\w*|batch_decode_with\w+|BatchMLA\w+)\(\) got an unexpected keyword argument",
        LIKELY,
    ),
    near(
        r"(?:site|dist)-packages/(?P<package>flashinfer|transformers|xgrammar|torch|triton"
        r"|compressed_tensors|tokenizers|huggingface_hub|mistral_common|llguidance|outlines|pydantic"
        r"|starlette|fastapi|peft|timm)/",
        r"TypeError: .{0,80}(?:got an unexpected keyword argument|missing \d+ required positional"
        r"|takes \d+ positional)",
        sure=0.6,
        within=3,
    ),
    line(r"'(?:FieldInfo|ModelField)' object has no attribute", LIKELY),
    line(
        r"TokenizersBackend has no attribute|has no attribute '?(?:all_special_tokens_extended"
        r"|_added_tokens_encoder)\b",
        LIKELY,
    ),
    near(
        r"Failed to import transformers\.\S+ because of the following error",
        r"object has no attribute|cannot import name|No module named|undefined symbol|unexpected keyword",
        sure=0.65,
        within=3,
        unless=r"flash_attn|torchvision",
    ),
    line(
        r"requires FlashInfer (?:>= ?)?v?\d+\.\d+|check flashinfer version"
        r"|requires FlashInfer.s .{0,40} API|upgrade to FlashInfer|requires (?:transformers|torch|triton"
        r"|xgrammar|compressed-tensors|mistral[-_]common) ?(?:>=|version)",
        LIKELY,
    ),
    line(r"\w(?:MoEMethod|LinearMethod|QuantizeMethod|Experts)\.\w{2,30}\(\) got an unexpected keyword argument", 0.55),
    line(
        r"requires (?:a newer version of )?(?P<package>[\w-]{3,40}) ?>= ?\d\S{0,20},? but .{0,60}"
        r"(?:is installed|found|installed version)",
        LIKELY,
    ),
)
FIX = (
    "pip list | grep -i {package}; pip check",
    (
        "pip install '{package}==<the version in the engine'\"'\"'s requirements>'   # in an image of your "
        "own, the same on every node"
    ),
    "or take engine source and image of the same release",
)
EXPLAINS = ()
