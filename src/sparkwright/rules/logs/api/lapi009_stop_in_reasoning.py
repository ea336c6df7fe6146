"""A stop string of the client ends the reasoning.

Detects: answers that a stop string ended before the thinking closed.
Why: the server looks for stop strings in everything that is generated. Evaluation tools send ones such as
  `Question:` with each request, and a chain of thought says the same words, so it is cut and no answer follows.
Evidence: stop_reason or matched_stop is a string while content is null, or the report's words.
Remedy: no stop strings for thinking models, or a build that looks for them after the thinking only.
References: gb10.md E117; https://github.com/vllm-project/vllm/issues/52393;
  https://github.com/vllm-project/vllm/issues/53066
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LAPI009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "stop string fires inside the reasoning"
CAUSE = "stop-string-fires-in-reasoning"
SIGNS = (
    near(
        r"(stop_reason|matched_stop)\W{0,3}[:=] ?\\?['\"][^'\"]{1,60}['\"]",
        r"\bcontent\W{1,4}(null|none)\b",
        sure=LIKELY,
        within=6,
    ),
    near(
        r"stop[-_ ](strings?|sequences?|words?|parameter)|`stop`|\"stop\" parameter|\bstop\W{1,4}\[",
        r"reasoning|</?think|chain[- ]of[- ]thought|thought",
        r"content.{0,12}\b(null|none|empty)\b|truncat|cut off|decapitat|fires? (inside|in|mid)"
        r"|match(es)? (inside|in)|score (drops|collapses)|ends? (the )?(generation|reasoning)",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"\bstop (?:strings?|sequences?|words?)\b.{0,60}(?:match|hit|fire|trigger|appl).{0,40}(?:inside"
        r"|in|within|during) .{0,16}(?:reasoning|thinking|think)",
        LIKELY,
    ),
)
FIX = (
    (
        "send no stop strings to a thinking model (lm-eval: --gen_kwargs until=[] or set think_end_token), cut the "
        "text in the client"
    ),
    "or a vLLM that looks for stop strings after the thinking only",
)
EXPLAINS = (
    "reasoning-consumes-max-tokens-null-content",
    "reasoning-parser-misroutes-answer",
)
