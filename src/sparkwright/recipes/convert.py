"""The validated file -> the domain's frozen dataclasses."""

from sparkwright.domain.recipe import (
    EngineChoice,
    Expose,
    Figure,
    Model,
    Parallelism,
    Parsers,
    PhaseTime,
    Recipe,
    RecipeState,
    Runtime,
    Serving,
    Speculation,
)
from sparkwright.recipes.schema import EnginePart, PhasesPart, RecipePart, ServingPart, SpeculationPart
from sparkwright.recipes.values import plain


def to_recipe(part: RecipePart, source: str) -> Recipe:
    """The recipe without profile and hash, which only the loader knows."""
    return Recipe(
        name=part.name,
        title=part.title,
        model=Model(**part.model.model_dump()),
        engine=_engine(part.engine),
        nodes=part.nodes,
        state=RecipeState(part.state),
        state_reason=part.state_reason,
        license_note=part.license,
        conditions=tuple(part.conditions),
        references=tuple(part.references),
        parallelism=Parallelism(**part.parallelism.model_dump()),
        serving=_serving(part.serving),
        speculation=_speculation(part.speculation),
        parsers=Parsers(**part.parsers.model_dump()),
        env=dict(part.env),
        flags=plain(part.flags),
        mounts=tuple(part.mounts),
        shm_bytes=part.shm,
        phases=_phases(part.phases),
        published=tuple(Figure(**figure.model_dump()) for figure in part.published),
        notes=tuple(part.notes),
        source=source,
    )


def _engine(part: EnginePart) -> EngineChoice:
    fields = part.model_dump(exclude={"runtime", "entrypoint"})
    entry = None if part.entrypoint is None else tuple(part.entrypoint)
    return EngineChoice(**fields, runtime=Runtime(part.runtime), entrypoint=entry)


def _serving(part: ServingPart) -> Serving:
    return Serving(**part.model_dump(exclude={"expose"}), expose=Expose(part.expose))


def _speculation(part: SpeculationPart | None) -> Speculation:
    return Speculation(part.method, part.tokens, plain(part.options)) if part else Speculation()


def _phases(part: PhasesPart) -> dict[str, PhaseTime]:
    return {name: PhaseTime(**value) for name, value in part.model_dump(exclude_unset=True).items()}
