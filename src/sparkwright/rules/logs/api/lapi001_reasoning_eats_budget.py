"""The reasoning uses up the completion budget, and the content is null.

Detects: answers whose finish_reason is length with empty content, clients that complain of an empty answer,
  benchmarks whose runs end at the cap.
Why: the model's thinking is counted in max_tokens. With a small budget the generation ends before the thinking
  does, so the server has text for `reasoning` and none for `content`.
Evidence: the answer's finish_reason and content, the counts of reasoning and completion tokens, or the report's
  words.
Remedy: a larger max_tokens (1500 and more, 4096 with tools), or thinking switched off for short answers.
References: gb10.md E117; seed 002; https://github.com/vllm-project/vllm/issues/52640
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LAPI001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "reasoning uses up max_tokens before an answer comes"
CAUSE = "reasoning-consumes-max-tokens-null-content"
SIGNS = (
    line(r"finish_reason\W{1,6}length\b.{0,3000}\bcontent\W{1,4}(null|none)\b", CERTAIN),
    line(r"\bcontent\W{1,4}(null|none)\b.{0,3000}finish_reason\W{1,6}length\b", CERTAIN),
    near(
        r"finish_reason\W{1,6}length\b",
        r"\bcontent\W{1,6}(null|none|empty|\"\"|'')",
        sure=LIKELY,
        within=12,
        unless=r"finish_reason\W{1,6}(tool_calls|stop)\b",
    ),
    near(
        r"max_(completion_|new_|output_)?tokens|(token|output|completion|thinking) (budget|limit)"
        r"|finish_reason\W{1,6}length",
        r"reasoning|thinking|chain[- ]of[- ]thought|thought process",
        r"content.{0,12}\b(null|none|empty)\b|empty.{0,12} (content|assistant|response|answer|message|reply|text)"
        r"|null content|\bno (final|visible|actual) (answer|content|response|output|text|tokens?)|zero visible",
        sure=LIKELY,
        within=3,
        unless=r"stop (string|sequence|parameter|word)|finish_reason\W{1,6}(tool_calls|stop)\b",
    ),
    line(r"max_tokens.{0,80}(思考|推理).{0,60}(占满|耗尽|用完|用光|为空|空)", LIKELY),
    line(r"(思考|推理).{0,60}(占满|耗尽|用完|用光).{0,60}(max_tokens|content)", LIKELY),
    line(r"characters of (reasoning|thinking).{0,60}no actual response", CERTAIN),
    line(
        r"(thinking|reasoning|chain[- ]of[- ]thought).{0,60}(exhaust|consum| eats?\b|uses? up| burns?\b"
        r"| fills?\b).{0,40}(budget|max_tokens|completion tokens)",
        LIKELY,
    ),
    line(r"\br[au]n(s|ning)? out of (tokens|budget).{0,40}(thinking|reasoning)", LIKELY),
    line(r"budget.{0,40}(consumed|exhausted|used up|spent).{0,40}(thinking|reasoning)", LIKELY),
    line(
        r"(model|llm|assistant|provider|endpoint) (has )?(returned|produced|gave|sent) (an? )?(empty|null"
        r"|no) (response|content|message|answer|output|text)",
        POSSIBLE,
    ),
    line(r"have no response to give.{0,40}max_tool_iterations", LIKELY),
    line(r"truncated.{0,24}finish_reason\W{1,3}length", LIKELY),
    line(
        r"(runs?|requests?|samples?|answers?) (that )?(land|end|stop|hit)\w* exactly (at|on) (the )?(cap|max_tokens)",
        LIKELY,
    ),
    line(r"completion_tokens\W{1,4}(\d{2,})\b.{0,400}\breasoning_tokens\W{1,4}\1\b", LIKELY),
    line(r"length limit was reached.{0,60}(reasoning_tokens|completion_tokens)", POSSIBLE),
    line(
        r"IncompleteDetails\(reason=.max_output_tokens|incomplete_details\W{1,6}reason\W{1,5}max_output_tokens", LIKELY
    ),
    near(r"reasoning[ _]tokens", r"finish_reason\W{1,6}length|capped", sure=LIKELY, within=6),
)
FIX = (
    (
        "ask again with max_tokens 4096 (at least 1500 with thinking); the cut text is in message.reasoning or "
        "message.reasoning_content"
    ),
    (
        'for short answers without thinking: add "chat_template_kwargs": {{"enable_thinking": false}} to the '
        "request (Qwen: /no_think)"
    ),
)
EXPLAINS = ()
