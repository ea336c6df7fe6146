"""Words that healthy logs are full of, and how many of ten thousand lines have them: bad to search for.

Counted in own recordings of vLLM 0.21.0 and llama.cpp that went well or failed (a tenth of the weight), logs of the
simulator, and serving lines in the real formats; the commonest words of errors by guess (scripts/common_words.py).
"""

from importlib.resources import files

_PAIRS = iter((files("sparkwright.logscan") / "common.txt").read_text(encoding="utf-8").split())
COMMON: dict[str, int] = {word: int(count) for word, count in zip(_PAIRS, _PAIRS, strict=True)}
