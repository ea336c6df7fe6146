"""llama.cpp is too old for this model.

Detects: llama.cpp or Ollama that meets an architecture, pre-tokenizer or tensor type it does not know.
Why: GGUF files name them by words and numbers; a build knows those of its day only.
Evidence: The loader's own line.
Remedy: A newer build of llama.cpp, llama-cpp-python or Ollama.
References: https://github.com/ggml-org/llama.cpp (src/llama-arch.cpp, src/llama-vocab.cpp)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line

CODE = "LVER007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "llama.cpp is too old for this model"
CAUSE = "llamacpp-too-old-for-architecture"
SIGNS = (
    line(r"(?:unknown|unsupported) (?:model )?architecture: '(?P<arch>[^']+)'", CERTAIN),
    line(r"unknown pre-tokenizer type: '(?P<arch>[^']+)'", CERTAIN),
    line(r"tensor '[^']+' has invalid ggml type \d+|invalid ggml type \d+ \(", LIKELY),
    line(r"missing tensor '", HINT),
    line(
        r"done_getting_tensors: wrong number of tensors"
        r"|error loading model hyperparameters: key not found in model",
        POSSIBLE,
    ),
    line(
        r"not supported by your version of Ollama|may need to upgrade .{0,20}ollama"
        r"|requires a newer version of Ollama",
        CERTAIN,
    ),
    line(r"hf-to-gguf:Model \S+ is not supported|NotImplementedError: Architecture '\S+' not supported", LIKELY),
    line(
        r"(?:llama\.?cpp|llama-server|llama-cpp-python|ollama|\bgguf\b).{0,120}(?:too old|predates"
        r"|does(?:n't| not) (?:know|recogni[sz]e|support) (?:the |this )?(?:\w+ )?(?:architecture|model))",
        LIKELY,
    ),
    line(
        r"(?:architecture|model type).{0,80}(?:unknown to|not (?:yet )?(?:known|supported) (?:in"
        r"|by)) (?:this |the )?(?:bundled )?(?:llama\.?cpp|ollama)",
        LIKELY,
    ),
)
FIX = (
    "llama-server --version   # needs the build in which {arch} was added",
    (
        "git -C llama.cpp pull && cmake -B build -DGGML_CUDA=ON && cmake --build build -j   # or: pip "
        "install -U llama-cpp-python; a newer Ollama"
    ),
)
EXPLAINS = ()
