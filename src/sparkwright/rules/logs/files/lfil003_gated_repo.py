"""The Hub refuses a gated or private repository.

Detects: 401 and 403 of huggingface.co, and the errors that its libraries make of them.
Why: the licence was not accepted with that account, or the container has no token, or the token has not the right
  for gated repositories.
Evidence: the error of huggingface_hub, transformers or llama.cpp, with the address.
Remedy: accept the terms on the model's page, give the token to every node.
References: https://huggingface.co/docs/hub/models-gated;
  https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/utils/_http.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LFIL003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "no access to a gated or private model"
CAUSE = "hf-gated-repo-no-access"
SIGNS = (
    line(r"GatedRepoError|cannot access gated repo|trying to access a gated repo|is a gated repository", CERTAIN),
    line(r"access to model \S+ is restricted|awaiting a review from the repo|not in the authorized list", CERTAIN),
    line(r"(401|403) client error.{0,120}huggingface\.co", 0.85),
    line(r"model is private or does not exist", LIKELY),
    near(
        r"401 client error",
        r"repository not found for url|RepositoryNotFoundError|private or gated repo",
        sure=LIKELY,
        within=5,
    ),
    line(r"access a private or gated repo", 0.6),
    line(r"huggingface\.co.{0,200}(\b401\b|\b403\b|unauthorized|forbidden)", LIKELY),
    line(r"invalid (user token|credentials in authorization header)|invalid username or password\.$", POSSIBLE),
    near(
        r"gated (model|repo\w*|weights)|HF_TOKEN|huggingface token|HUGGING_FACE_HUB_TOKEN",
        r"(not|never|isn't) (being )?(set in|set for|passed|given|accepted)|HF_TOKEN (is )?(not set|unset|empty)"
        r"|missing|without|access (denied|request)|accept(ed)? the (licen[cs]e|terms)|\b401\b.{0,20}unauth"
        r"|unauthorized|forbidden",
        sure=LIKELY,
        within=2,
        unless=r"rate limit|set a HF_TOKEN",
    ),
    line(r"\b40[13]\b.{0,120}(?:url|for):? \S{0,3}https://huggingface\.co/\S+/resolve/", LIKELY),
)
FIX = (
    "open https://huggingface.co/{model} with the account of the token and accept the terms",
    "export HF_TOKEN=...; hf auth whoami   # then pass it on: docker run -e HF_TOKEN",
)
EXPLAINS = (
    "hf-cache-incomplete-offline",
    "model-path-or-repo-not-found",
)
