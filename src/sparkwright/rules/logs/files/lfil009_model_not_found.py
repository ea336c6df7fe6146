"""The model's path, name or revision does not exist.

Detects: loaders that find no such repository, revision, file or folder.
Why: a typing error, a path of the host that is not mounted in the container, a folder that exists on one node only,
  or a revision that was removed. The Hub answers 401 for a name that does not exist, so it may look like missing
  rights.
Evidence: the error with the name.
Remedy: check name and mount on every node.
References: captures f-no-model.log;
  https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/errors.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LFIL009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "model path, repository or revision not found"
CAUSE = "model-path-or-repo-not-found"
SIGNS = (
    line(r"invalid repository id or local directory", CERTAIN),
    line(r"not a local folder and is not a valid model identifier", LIKELY),
    line(r"RepositoryNotFoundError|repository not found for url", POSSIBLE),
    line(r"RevisionNotFoundError|revision not found for url", LIKELY),
    line(r"repo id must (be in the form|use alphanumeric|not)|HFValidationError", LIKELY),
    line(r"does not appear to have a file named (config\.json|\S+\.safetensors|pytorch_model)", LIKELY),
    line(r"404 client error.{0,160}huggingface\.co|EntryNotFoundError", LIKELY, unless=r"LocalEntryNotFound"),
    line(
        r"(model or revision not found|model path \S{1,200} (does not exist|not found)|config\.json not found)", LIKELY
    ),
    line(
        r"gguf_init_from_file: failed to open|failed to open gguf file"
        r"|failed to load model from '[^']{1,300}': no such file|error: failed to open \S+\.gguf",
        CERTAIN,
    ),
    line(r"no such file or directory.{0,80}(config\.json|tokenizer\.json|tokenizer_config|\.gguf)", LIKELY),
)
FIX = (
    "ls {path}/config.json   # on every node, and inside the container: docker exec {container} ls {path}",
    "hf models info {model}   # the name on the Hub",
)
EXPLAINS = ("prequantized-checkpoint-loader-keyerror",)
