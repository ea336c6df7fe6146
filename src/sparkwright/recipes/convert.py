"""The validated file -> the domain's frozen dataclasses."""

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import (
    Build,
    EngineChoice,
    Expose,
    Figure,
    Gateway,
    GatewayTls,
    Model,
    Parallelism,
    Parsers,
    PhaseTime,
    PythonPackages,
    Recipe,
    RecipeState,
    Runtime,
    Serving,
    Source,
    Speculation,
)
from sparkwright.recipes.schema import (
    BuildPart,
    EnginePart,
    GatewayPart,
    ModelPart,
    RecipePart,
    ServingPart,
    ShapePart,
    SourcePart,
    SpeculationPart,
)
from sparkwright.recipes.values import plain


def to_recipe(part: RecipePart, source: str) -> Recipe:
    """The recipe without profile and hash, which only the loader knows."""
    return Recipe(
        name=part.name,
        title=part.title,
        model=_model(part.model),
        engine=_engine(part.engine),
        nodes=part.nodes,
        state=RecipeState(part.state),
        state_reason=part.state_reason,
        instead=part.instead,
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
        build=_build(part.build),
        phases={name: PhaseTime(**value) for name, value in part.phases.model_dump(exclude_unset=True).items()},
        published=tuple(Figure(**figure.model_dump()) for figure in part.published),
        notes=tuple(part.notes),
        source=source,
    )


def _model(part: ModelPart) -> Model:
    return Model(**part.model_dump(exclude={"shape"}), shape=_shape(part.shape))


def _shape(part: ShapePart | None) -> ModelShape | None:
    if part is None:
        return None
    fields = part.model_dump(exclude={"compress", "kv_sources"})
    return ModelShape(**fields, compress=tuple(part.compress), kv_sources=tuple(part.kv_sources))


def _engine(part: EnginePart) -> EngineChoice:
    fields = part.model_dump(exclude={"runtime", "entrypoint", "extra_env", "extra_flags"})
    entry = None if part.entrypoint is None else tuple(part.entrypoint)
    env, flags = tuple(part.extra_env), tuple(part.extra_flags)
    return EngineChoice(**fields, runtime=Runtime(part.runtime), entrypoint=entry, extra_env=env, extra_flags=flags)


def _serving(part: ServingPart) -> Serving:
    return Serving(**part.model_dump(exclude={"expose", "door"}), expose=Expose(part.expose), door=_gateway(part.door))


def _gateway(part: GatewayPart) -> Gateway:
    fields = part.model_dump(exclude={"tls", "names", "routes"})
    return Gateway(**fields, tls=GatewayTls(part.tls), names=tuple(part.names), routes=tuple(part.routes))


def _speculation(part: SpeculationPart | None) -> Speculation:
    return Speculation(part.method, part.tokens, plain(part.options)) if part else Speculation()


def _build(part: BuildPart | None) -> Build | None:
    if part is None:
        return None
    lists = {"packages", "python", "sources", "steps"}
    return Build(
        **part.model_dump(exclude=lists),
        packages=tuple(part.packages),
        python=tuple(PythonPackages(tuple(group.packages), group.index) for group in part.python),
        sources=tuple(_source(source) for source in part.sources),
        steps=tuple(part.steps),
    )


def _source(part: SourcePart) -> Source:
    return Source(**part.model_dump(exclude={"prepare"}), prepare=tuple(part.prepare))
