"""MTP garbles the text above some number of requests.

Detects: text that is right for one request and broken for many, with MTP.
Why: above some batch shape the drafter's state is mixed up between requests.
Evidence: reports that name concurrency, MTP and broken text together.
Remedy: fewer sequences or no draft.
References: vLLM issue 35288
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LSPC005"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "MTP garbles the text above some number of requests"
CAUSE = "mtp-garbage-at-concurrency"
SIGNS = (
    near(
        r"\bMTP (?:spec|draft|at|with|decod|enabled|is|on|corrupt|output)|speculative (?:decod|draft"
        r"|token|method|sampl)|speculation|drafter",
        r"concurren|batch (?:size|shape)|mixed[- ]batch|多并发|并发",
        r"garbage|gibberish|garbled|duplicated? (?:spans?|text|token)|repetition loop|corrupt|乱码"
        r"|token salad|incoherent",
        sure=LIKELY,
        within=1,
    ),
    line(
        r"^(?=.*(?:\bMTP\b|speculat|drafter))(?=.*(?:users|concurren|requests|batch|并发)).*(?:mixed up"
        r"|garbage|garbled|gibberish|loops? until|repetition|corrupt|乱码|token salad|incoherent|duplicated)",
        0.65,
        unless=r"SpeculativeConfig\(|FSM",
    ),
    near(
        r"\bMTP (?:and|at|with|on|enabled|spec)|with MTP\b|MTP=|num_speculative|speculative|NEXTN|EAGLE",
        r"parallel requests|concurren\w+|max[-_]num[-_]seqs|batch(?:ed|es)? (?:size )?(?:>|of [2-9]|larger)",
        r"garbage|gibberish|garbled|repeated tokens|repeats|corrupt\w*|nonsense|wrong tokens|!!!!",
        sure=0.7,
        within=2,
        unless=r"crash",
    ),
)
FIX = (
    "--max-num-seqs 2, or another --max-num-batched-tokens",
    "or no --speculative-config: the same prompts are clean then",
)
EXPLAINS = ()
