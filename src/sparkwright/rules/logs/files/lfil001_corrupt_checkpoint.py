"""A weight file is cut off or is no weight file.

Detects: readers of safetensors, torch archives and GGUF that find a broken header or less data than it promises.
Why: a download or copy was cut off, the disk was full, or git cloned pointers instead of files.
Evidence: the reader's error; where it names no file, sizes and hashes tell.
Remedy: remove that file and fetch it again, on the node that has it.
References: https://github.com/huggingface/safetensors;
  https://github.com/ggml-org/llama.cpp/blob/master/src/llama-model-loader.cpp;
  https://github.com/sgl-project/sglang
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LFIL001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "checkpoint file truncated or corrupt"
CAUSE = "checkpoint-file-truncated-or-corrupt"
SIGNS = (
    line(r"error while deserializing header", CERTAIN),
    line(
        r"metadataincompletebuffer|headertoolarge|headertoosmall|invalidheaderdeserialization"
        r"|incomplete metadata, file not fully covered",
        CERTAIN,
    ),
    line(r"consistency check failed: file should be of size", CERTAIN),
    line(r"not within the file bounds|model is corrupted or incomplete", CERTAIN),
    line(r"pytorchstreamreader failed|failed finding central directory|invalid load key, 'v'", LIKELY),
    line(r"unexpected eof, expected \d+ more bytes|file might be corrupted", CERTAIN),
    line(
        r"corrupted (safetensors|pytorch bin|model|shard) files?|model files are corrupted"
        r"|incomplete checkpoint headers",
        CERTAIN,
    ),
    line(
        r"gguf_init_from_file\w*: (invalid magic|failed to read)|invalid magic (number|characters)|not a gguf file",
        LIKELY,
    ),
    line(
        r"(sha-?256|checksum|hash|digest) (mismatch|does not match|verification failed).{0,80}(shard|safetensors"
        r"|gguf|model|blob|weights?)",
        LIKELY,
    ),
    line(
        r"(safetensors|gguf|shard|checkpoint).{0,80}(truncated|corrupt(ed)?\b|checksum mismatch|sha-?256 mismatch"
        r"|incomplete download|lfs pointer)",
        POSSIBLE,
        unless=r"output|token|kv cache|not corrupt",
    ),
    line(r"version https://git-lfs", LIKELY),
    line(r"config file at '[^']{1,300}' is not a valid JSON file", LIKELY),
    line(r"unable to load weights from pytorch checkpoint file", LIKELY),
    line(
        r"(?:download|upload|copy|copied|rsync|transfer)\b.{0,40}(?:silently )?truncat\w.{0,80}(?:c"
        r"heckpoint|model|shard|safetensors|gguf|weight|GB)",
        LIKELY,
    ),
    line(r"truncated (?:download|checkpoint|shard|safetensors|gguf|weight file|model file)", LIKELY),
    line(
        r"digest mismatch, file must be downloaded again|(?:sha256|digest) mismatch",
        LIKELY,
        unless=r"image|manifest|layer|registry|\.whl|pip ",
    ),
    near(
        r"JSONDecodeError|Expecting value: line 1",
        r"index\.json|config\.json|tokenizer(?:_config)?\.json",
        sure=0.65,
        within=8,
    ),
)
FIX = (
    (
        "ls -lL on the shards of all nodes: the odd size is the broken one (a file of about 130 bytes is a git-lfs "
        "pointer: git lfs pull)"
    ),
    "rm the file and its blob, then: hf download {model} --force-download --include 'SHARD'",
    "sparkwright up {recipe}   # fetches what is missing on a node before it starts",
)
EXPLAINS = ("prequantized-checkpoint-loader-keyerror",)
