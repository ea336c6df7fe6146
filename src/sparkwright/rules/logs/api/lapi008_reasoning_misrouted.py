"""The reasoning parser puts the answer into the wrong field.

Detects: answers that ended by themselves with all text in `reasoning` and none in `content`, and thinking text
  inside `content`.
Why: parsers that start inside the thinking wait for its end mark. A model that answers without it (thinking
  switched off, a call inside the thinking, another template) has its whole answer taken for reasoning; without a
  parser, or with a wrong one, the thinking stays in the answer.
Evidence: finish_reason stop with null content and a filled reasoning field, or an open mark in content.
Remedy: the parser of the model's family, and the same thinking setting in template and parser.
References: https://github.com/vllm-project/vllm/issues/48645; https://github.com/vllm-project/vllm/issues/21130
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LAPI008"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "reasoning parser misroutes the answer"
CAUSE = "reasoning-parser-misroutes-answer"
SIGNS = (
    line(
        r"\bcontent\W{1,4}(null|none)\b.{0,60}\breasoning(_content)?\W{1,5}[\w<].{0,3000}finish_reason\W{1,6}stop\b",
        LIKELY,
        unless=r"(stop_reason|matched_stop)\W{0,3}[:=] ?\\?['\"]\w",
    ),
    line(
        r"finish_reason\W{1,6}stop\b.{0,300}\bcontent\W{1,4}(null|none)\b.{0,300}\breasoning(_content)?\W{1,5}[\w<]",
        LIKELY,
        unless=r"(stop_reason|matched_stop)\W{0,3}[:=] ?\\?['\"]\w",
    ),
    near(
        r"finish_reason\W{1,16}stop\b",
        r"\bcontent\W{1,16}(null|none)\b",
        r"\breasoning(_content)?\W{1,16}['\"][^'\"]{2}",
        sure=LIKELY,
        within=14,
        unless=r"(stop_reason|matched_stop)\W{0,3}[:=] ?\\?['\"]\w",
    ),
    near(
        r"--reasoning-(parser|config)|reasoning[-_ ]parser",
        r"content\W{0,4} ?(is |stays |always |comes back |returns? |= ?)*`?(null|none|empty)\b",
        r"\breasoning\b.{0,80}(trace|field|all|every|whole|entire|goes|answer)"
        r"|(all|every|whole|entire|answer).{0,60}\breasoning\b",
        sure=LIKELY,
        within=3,
        unless=r"finish_reason\W{1,6}length|stop (string|sequence)",
    ),
    line(r"content.{0,12}(null|空).{0,40}(内容|答案|回答|输出|回复).{0,10}(全|都).{0,8}reasoning", LIKELY),
    line(
        r"answer.{0,30}(placed|put|returned|landed|lands|filed|ends up) (in|into|under|as) .{0,12}(reasoning"
        r"|chain[- ]of[- ]thought)",
        LIKELY,
    ),
    line(r"\bcontent\W{1,4}<think(ing)?>", LIKELY),
    near(
        r"reasoning[-_ ]parser|</think>|\breasoning(_content)?\b`? field|message\.reasoning",
        r"(final |whole |entire |full |visible |actual )(answer|reply|response|output|text)"
        r"|reasoning.{0,12}(里面|中[，。、 ])",
        r"(into|inside|in|as|under|to) (the )?`?(message\.)?reasoning|content.{0,16}\b(null|none|empty)\b"
        r"|misclassif|misrout|content.{0,8}(null|空)",
        sure=LIKELY,
        within=3,
        unless=r"max_tokens|finish_reason\W{1,6}length|stop (string|sequence)",
    ),
    near(
        r"<think>",
        r"(leaks?|appears?|shows? up|stays?|left|ends? up|visible|inside) (in|into)? ?(the )?`?(message\.)?content",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"enable_thinking.{1,6}false|thinking (is )?(off|disabled)",
        r"content.{0,16}\b(null|none|empty)\b",
        r"reasoning|reason_content",
        sure=LIKELY,
        within=3,
        unless=r"max_tokens",
    ),
    line(
        r"(?:all|every|whole|entire|complete|final)\b.{0,30}(?:output|answer|reply|response"
        r"|text).{0,40}\b(?:in|into|inside) `?(?:message\.)?reasoning(?:_content)?\b",
        0.7,
        unless=r"finish_reason\W{1,6}length|max_tokens|stop (?:string|sequence)",
    ),
    line(r"Reasoning parser .{0,30} not found\. Available|invalid reasoning parser", POSSIBLE),
    line(r"\bcontent\W{1,4}[^\"]{1,2000}</think>", LIKELY),
)
FIX = (
    (
        "serve with --reasoning-parser of the model's family (qwen3, deepseek_r1, deepseek_v4, glm45, "
        "openai_gptoss, ...), not a similar one"
    ),
    "with thinking switched off in the template, use a parser that knows it (qwen3), or none",
)
EXPLAINS = ()
