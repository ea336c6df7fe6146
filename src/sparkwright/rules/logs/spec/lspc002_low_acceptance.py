"""The drafter's weights do not fit: nearly every draft is rejected.

Detects: an acceptance rate far below what the drafter's source states.
Why: the draft layers were skipped or left in another format when the checkpoint was requantised, or the loader does
  not know their names; they load, and predict nonsense. The text stays right, only speed is lost.
Evidence: skipped draft weights in the log; acceptance near zero for all positions in the metrics.
Remedy: the right drafter, or none.
References: vLLM v1/spec_decode/metrics.py; field guide E63
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LSPC002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the drafter's weights do not fit: nearly every draft is rejected"
CAUSE = "spec-decode-low-acceptance-broken-drafter"
SIGNS = (
    line(r"Skipping unknown (?:DSpark|MTP|draft\w*|eagle\w*|dflash) \w*\s?weight", LIKELY),
    line(
        r"Per-position acceptance rate: 0\.0\d\d\b",
        POSSIBLE,
        times=2,
    ),
    line(
        r"accept len: 1\.0\d, accept rate: 0\.0",
        POSSIBLE,
        times=5,
    ),
    line(r"Drafted: \d{3,} tokens, .{0,240}Avg Draft acceptance rate: \d\.\d%", POSSIBLE),
    near(
        r"acceptance\W.{0,60}?\b(?:\d|1\d)(?:\.\d+)?\W{0,3}%|(?:low|poor) (?:draft )?acceptance"
        r"|acceptance (?:rate )?(?:collapse|is 0|of 0|near zero)",
        r"published|model card|vendor|reference (?:figure|value)|speculation \W{0,2}on|below the same"
        r"|slower than (?:without|off)|half (?:the )?speed|wrong weights|source format|not converted"
        r"|requant",
        sure=LIKELY,
        within=4,
    ),
    line(
        r"(?:acceptance|accept(?:ed)? rate)\W.{0,40}\b0?\.?(?:\d|1\d)(?:\.\d+)?\W{0,3}%.{0,80}(?:drafter"
        r"|draft model|[ (/-]MTP)",
        POSSIBLE,
    ),
    line(r"acceptance length (?:is|of|stays at|only) 1\.0\d", LIKELY),
    line(
        r"\bacceptance\b.{0,80}\b(?:half|a third|a fraction|far below|well below|much lower than"
        r"|lower than)\b.{0,30}(?:expected|published|reference|normal|usual|it should|claimed|advertised)",
        0.7,
    ),
    line(r"drafter expects \d+ concatenated aux hidden features|target_layer_ids reference layers", LIKELY),
    line(r"accept len: 1\.0[0-4]?, accept rate: 0\.0|draft acceptance(?: rate)? = 0\.0[0-9]", POSSIBLE),
    near(
        r"quantized (?:MTP|draft|head)|\bdrafter\b|draft model|NVFP4 MTP|NVFP4 draft|converted (?:MTP"
        r"|draft|head)|slower than (?:no|without)|wrong draft",
        r"accept(?:ance)? ?(?:length|len|rate)\W.{0,16}\b(?:1\.[0-3]\d?|0\.[01]\d?|\d(?:\.\d)? ?%"
        r"|1\d(?:\.\d)? ?%)",
        sure=0.7,
        within=0,
        unless=r"Per-position|Drafted:",
    ),
    line(
        r"(?:MTP|draft\w*|eagle\w*)\b.{0,160}(?:random(?:ly)? (?:initiali[sz]ed|weights)|weights (?:are|is|were)"
        r" (?:never|not|silently) (?:loaded|skipped))",
        LIKELY,
    ),
    line(
        r"\b0(?:\.0+)? ?% (?:speculative |draft )?(?:token )?acceptance"
        r"|acceptance (?:rate )?(?:of|is|stays at) 0(?:\.0+)? ?%",
        LIKELY,
    ),
)
FIX = (
    "compare with the model card: curl -s http://{node}:{port}/metrics | grep spec_decode",
    "a checkpoint whose draft layers were converted too, or the drafter's original",
    "until then start without --speculative-config: it is faster than a rejected draft",
)
EXPLAINS = ()
