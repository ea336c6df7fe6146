"""The compatibility table as it is written: one YAML file per engine in data/, checked when it is read."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from sparkwright.domain.version import bounds


def _range(text: str) -> str:
    bounds(text)
    return text


Range = Annotated[str, AfterValidator(_range)]
Text = Annotated[str, Field(min_length=1)]


class RowPart(BaseModel):
    """One thing known. What a row does not say holds for all: a recipe must meet everything that it does say.

    architectures: as config.json names them. formats: of weights or experts (fp8, nvfp4, ...), or the name of the
    quantization method. versions, nodes: ranges. image, model: regular expressions on the image and on the model's id
    or path. flags, env: name -> values of which one must be there; '' is a name that is not given, '*' any value.
    otherwise: what other sources say against it; such a row only informs.
    date: of the source where it tells, else when it was read.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    architectures: list[Text] = []
    formats: list[Text] = []
    engines: list[Text] = []
    versions: Range = ""
    chip: Text = "sm_121"
    nodes: Range = ""
    image: str = ""
    model: str = ""
    flags: dict[str, list[str]] = {}
    env: dict[str, list[str]] = {}
    kv: list[str] = []
    drafts: list[str] = []
    pull_request: int = 0
    verdict: Literal["works", "blocked", "degraded", "unknown"]
    reason: Text
    alternative: str = ""
    otherwise: str = ""
    source: Text
    date: Annotated[str, Field(pattern=r"^20\d\d-[01]\d(-[0-3]\d)?$")]

    @model_validator(mode="after")
    def _whole(self) -> "RowPart":
        if self.verdict in ("blocked", "degraded") and not self.alternative:
            raise ValueError(f"verdict {self.verdict} wants an alternative")
        if self.verdict == "blocked" and self.otherwise:
            raise ValueError("what other sources contradict is at most degraded")
        return self


class TablePart(BaseModel):
    """A file. vLLM's is also of vLLM on Ray: `engines` of a row tells them apart."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    engine: Text
    rows: list[RowPart]
