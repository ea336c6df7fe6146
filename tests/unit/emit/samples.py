"""Plans for the emit tests: rendered by the real engines, with all that a rank can have."""

from dataclasses import replace

from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.command import Secret
from sparkwright.domain.plan import Plan, RankFile
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.emit.source import DeploymentSource
from sparkwright.engines.catalog import engine
from sparkwright.engines.engine import RenderContext, served_name
from unit.engines.samples import hub_context, node_paths, placement, shipped

KEY = "k-123"  # what hub_context gives as the API key
LAUNCHER = RankFile("start.py", 'print("$HOME")\n# the end\n')


def source(recipe: Recipe, context: RenderContext, nodes: int = 2) -> DeploymentSource:
    where = placement(nodes)
    driver = engine(recipe.engine.name)
    cluster = Cluster("lab", tuple(Node(n, f"ai@{n}") for n in where.nodes), where.head)
    plan = Plan(
        recipe.deployment, recipe, cluster, where, driver.render(recipe, where, context), (), (),
        context.bind, context.port, served_name(recipe),
    )  # fmt: skip
    return DeploymentSource(plan, driver.stop.signal, driver.stop.grace, {n: p.state for n, p in context.paths.items()})


def deepseek() -> DeploymentSource:
    """Two nodes with different HCAs, weights from the hub, an API key."""
    return source(shipped("deepseek-v4-flash", "1m"), hub_context())


def with_files() -> DeploymentSource:
    """A source like deepseek, in which each rank has a launcher and a secret file of its own."""
    one = deepseek()
    more = (LAUNCHER, RankFile("key", secret=Secret(KEY)))
    return replace(one, plan=replace(one.plan, specs=tuple(replace(s, files=more) for s in one.specs)))


def awkward() -> DeploymentSource:
    """A source like with_files, with everything that quoting gets wrong: spaces, quotes, `$`, `%`, `#`, backslashes,
    nothing at all."""
    one = with_files()
    words = ("--note", 'it\'s 100% "sure" $HOME ${X} $$ a\\b # c', "--empty", "")
    env = {"AWKWARD": 'it\'s 5% $HOME ${X} $(Y) # "d" e\\f'}
    specs = tuple(
        replace(
            s, argv=(*s.argv, *words, "--rank-note", f"it's {s.rank}"), env={**s.env, **env, "MINE": f"$ '{s.rank}'"}
        )
        for s in one.specs
    )
    return replace(one, plan=replace(one.plan, specs=specs))


def simulator(profile: str = "", nodes: int = 2) -> DeploymentSource:
    recipe = replace(shipped("simulator", profile), nodes=nodes, parallelism=Parallelism(tp=nodes))
    return source(recipe, RenderContext(node_paths(), pythons=dict.fromkeys(("spark-1", "spark-2"), "/opt/py")), nodes)


def one_node() -> DeploymentSource:
    return source(shipped("gpt-oss-20b"), hub_context(1), 1)


def groups(one: DeploymentSource, count: int = 2, bind: str = "") -> list[DeploymentSource]:
    """Groups like this one, each on nodes and addresses of its own. bind: of every head, in place of the first's."""
    return [_group(one, number, bind) for number in range(1, count + 1)]


def _group(one: DeploymentSource, number: int, bind: str) -> DeploymentSource:
    size, plan = len(one.specs), one.plan

    def node(name: str) -> str:
        return f"spark-{int(name.rpartition('-')[2]) + (number - 1) * size}"

    def text(words: str) -> str:
        return words.replace("192.168.100.", f"192.168.{99 + number}.")

    specs = tuple(
        replace(
            spec,
            node=node(spec.node),
            argv=tuple(map(text, spec.argv)),
            env={key: text(value) for key, value in spec.env.items()},
        )
        for spec in plan.specs
    )
    nodes = tuple(spec.node for spec in specs)
    where = replace(plan.placement, nodes=nodes, fabric={})
    made = replace(
        plan,
        deployment=f"{plan.deployment}-r{number}",
        placement=where,
        specs=specs,
        bind=bind or text(plan.bind),
    )
    return replace(one, plan=made, states={node(name): state for name, state in one.states.items()})
