"""The model's folder has no usable tokenizer.

Detects: transformers that find neither tokenizer.json nor a vocabulary to convert.
Why: only the weights were copied, a download pattern left the file out, or a quantized upload never had it. The
  message asks for sentencepiece or tiktoken, which does not help then.
Evidence: the error, and ls on the folder.
Remedy: the tokenizer's files of the base model.
References: https://github.com/huggingface/transformers/blob/main/src/transformers/tokenization_utils_tokenizers.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LFIL014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the model's folder has no usable tokenizer"
CAUSE = "tokenizer-files-missing"
SIGNS = (
    line(r"couldn't instantiate the backend tokenizer from one of", LIKELY),
    line(r"can't load tokenizer for '", LIKELY),
)
FIX = (
    "ls -l MODEL | grep -i -E 'token|vocab|merges'   # tokenizer.json, or vocab and merges, or tokenizer.model",
    "hf download {model} --include 'tokenizer*' --local-dir MODEL",
    "if they are there: pip install sentencepiece tiktoken",
)
EXPLAINS = ()
