"""Keys of well-known kinds in text that people are shown."""

import re

PREFIXES = r"(?:hf_|ghp_|github_pat_|glpat-|xox[abp]-|AKIA|nvapi-|sk-)"
"""Pattern of how keys begin."""
_KEY = re.compile(rf"(?<![A-Za-z0-9])({PREFIXES})([A-Za-z0-9_-]{{12,500}})", re.ASCII)
_BEARER = re.compile(r"(\bbearer[ \t]{1,4})[A-Za-z0-9._~+/=*-]{8,}", re.ASCII | re.IGNORECASE)
_WORDS = "hf_", "AKIA"
"""Prefixes of keys that are one run of letters and digits: `hf_quant_config.json` is none."""
_RUN = re.compile(r"[A-Za-z0-9]{12}", re.ASCII)
MASK = "***"


def mask_keys(text: str) -> str:
    """The text with keys (`hf_...`, `sk-...`, `Bearer ...`) masked; their first letters stay. Linear in its length."""
    return _BEARER.sub(rf"\g<1>{MASK}", _KEY.sub(_masked, text))


def _masked(found: re.Match[str]) -> str:
    """A key has digits, unlike names made of words."""
    prefix, rest = found.groups()
    is_key = any(map(str.isdigit, rest)) and (prefix not in _WORDS or _RUN.match(rest))
    return f"{prefix}{MASK}" if is_key else found[0]
