"""The tokenizers library is older than tokenizer.json.

Detects: The tokenizers library that cannot read a part of tokenizer.json.
Why: the file was written by a newer library; the older one has no such variant. Often a second, older copy in the
  user's site-packages is the one that is imported.
Evidence: The library's `untagged enum` line.
Remedy: Upgrade tokenizers and transformers where they are really imported from.
References: https://github.com/huggingface/tokenizers
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LVER013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the tokenizers library is older than tokenizer.json"
CAUSE = "tokenizers-too-old-for-tokenizer-json"
SIGNS = (
    line(r"data did not match any variant of untagged enum (?P<part>\w+)", CERTAIN),
    line(r"unknown variant `\w+`, expected one of .{0,120}(?:BPE|Unigram|WordPiece|ByteLevel)", LIKELY),
    line(r"tokenizer\.json.{0,120}(?:newer (?:format|version)|too new|cannot be (?:parsed|read))", LIKELY),
    line(r"\btokenizers\b.{0,80}(?:too old|outdated|older than).{0,80}tokenizer", LIKELY),
    near(r"'list' object has no attribute 'keys'", r"tokeniz|special_tokens", sure=LIKELY, within=8),
    line(r"Tokenizer class TokenizersBackend", 0.7),
)
FIX = (
    (
        "docker exec <container> python3 -c 'import tokenizers; print(tokenizers.__version__, "
        "tokenizers.__file__)'   # which copy is imported"
    ),
    (
        "pip install -U tokenizers transformers   # in that environment; PYTHONNOUSERSITE=1 leaves a copy in "
        "~/.local out"
    ),
)
EXPLAINS = ()
