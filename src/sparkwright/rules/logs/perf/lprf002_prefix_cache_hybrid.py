"""Prefix caching has no effect on this hybrid model.

Detects: a prefix cache that is on and never hits, on a model with recurrent layers.
Why: hybrid models keep the recurrent state only at block boundaries (mode `align`), in blocks of hundreds of
  tokens; with speculation, or when the boundary lies in the request's own part, nothing is found again.
Evidence: hits that stay 0 while queries grow; the log's hit rate alone is no proof, it is 0 without shared prefixes
  too.
Remedy: a fitting unit, no speculation, or a version without the regression.
References: vLLM issues 40696, 45238, 51198, 53749, 54360
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LPRF002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "prefix caching has no effect on this hybrid model"
CAUSE = "prefix-cache-noop-hybrid-model"
SIGNS = (
    near(
        r"prefix[- _]cach",
        r"never hits?|drops to 0|stays at 0|no-op\b|\binert\b|hits_total\W.{0,24}\b0\b|0% hit|0%-hit"
        r"|0 % hit|0% prefix|0% cache|zero hits|hit rate (?:stays?|is|of|remains?|drops?)\W.{0,12}\b0\b"
        r"|hits (?:stay|remain|drop)\W.{0,12}\b0\b|ineffective|to \*\*0|不命中|命中率为 ?0",
        r"mamba|hybrid|GDN model|GDN layer|GDN hybrid|GDN family|align[- ]mode|'align'|Qwen3[._]\d"
        r"|recurrent|Nemotron",
        sure=LIKELY,
        within=2,
        unless=r"Engine \d{3}: Avg prompt",
    ),
    near(
        r"prefix_cache_queries(?:_total)?(?:\{[^}]{0,200}\})? +[1-9]\d{2}",
        r"prefix_cache_hits(?:_total)?(?:\{[^}]{0,200}\})? +0(?:\.0)?\b",
        sure=POSSIBLE,
        within=6,
    ),
    line(
        r"^(?=.*(?:mamba|hybrid|\bGDN\b|Nemotron|Qwen3))(?=.*(?:prefix|\bAPC\b)).*(?:hit rate (?:of )?0"
        r"|0% hit|no effect|never hit|stays at 0|re-?prefill|silent no-op|\binert\b)",
        LIKELY,
    ),
    near(
        r"prefix[- _]cache hit rate(?:: | |=|: `)0(?:\.0+)?%|prefix cache hit rate (?:stays|is) (?:at )?0",
        r"Qwen3[-.](?:Next|5|6)|Nemotron|mamba|hybrid|Jamba|Granite-?4|Kimi-Linear",
        sure=0.65,
        within=2,
        unless=r"Avg prompt throughput",
    ),
    line(r"\breplay.{0,60}(?:\b0\b.{0,12}(?:hits|reused|cached|blocks)|hits? .{0,8}\b0\b)", POSSIBLE),
)
FIX = (
    "drop --speculative-config: on some versions it makes align-mode caching inert (vLLM 0.24 is fine)",
    "--prefix-match-unit <a divisor of the attention block> where the version has it",
    "prefixes shorter than one attention block (`Setting attention block size to N tokens`) can never hit",
)
EXPLAINS = ()
