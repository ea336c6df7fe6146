"""The command: global options, lazily loaded verbs, and the one place where errors become words and exit codes."""

import importlib
import sys
from typing import Any

import click

from sparkwright import __version__
from sparkwright.domain.errors import NotReady, Refused, SparkwrightError

# verb -> (module, attribute, help). Modules are imported when their verb is used: `--help` stays quick.
VERBS = {
    "check": ("check", "check", "Look at all nodes in parallel: findings with evidence and remedy."),
    "recipes": ("recipes", "recipes", "The shipped recipes and your own: list, show, validate."),
    "plan": ("plan", "plan", "What would run where, with which exact commands, and does it fit."),
    "up": ("up", "up", "From a recipe to an endpoint that has answered a real request."),
    "status": ("status", "status", "The deployments as the nodes themselves tell them."),
    "logs": ("status", "logs", "The logs of a deployment's ranks."),
    "down": ("up", "down", "Stop a deployment and remove all that is left of it."),
    "facts": ("check", "facts", "What is known of each node."),
    "demo": ("demo", "demo", "The whole loop on this machine, on an embedded simulated two-node cluster."),
}
ISSUE_HINT = "this is a bug in sparkwright: please report it with the lines above"


class Verbs(click.Group):
    """A group whose commands live in modules that are not yet imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module, attribute, _ = VERBS[name]
        loaded: click.Command = getattr(importlib.import_module(f"sparkwright.cli.{module}"), attribute)
        return loaded

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, row[2]) for name, row in VERBS.items()])

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, Any, list[str]]:
        from difflib import get_close_matches

        if args and args[0] not in VERBS and not args[0].startswith("-"):
            near = get_close_matches(args[0], VERBS, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"commands: {', '.join(VERBS)}"
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="sparkwright")
@click.option("--debug", is_flag=True, help="On an error also show where in sparkwright it came from.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Turns GB10 machines (DGX Spark and its twins) into a model endpoint that people can rely on.

    \b
    First time:
      sparkwright demo                     see the whole loop, simulated, on this machine
      echo 'nodes: [spark-1, spark-2]' > cluster.yaml
      sparkwright check                    are the nodes in order?
      sparkwright plan deepseek-v4-flash   does it fit, what would run?
      sparkwright up deepseek-v4-flash     serve it
    """
    ctx.obj = {"debug": debug}


def entry() -> None:
    """The console script. Exit: 0 good, 1 findings, 2 usage, 3 node, 4 busy, 5 not ready, 70 our bug, 130 Ctrl-C."""
    sys.exit(run(sys.argv[1:]))


def run(args: list[str]) -> int:
    """One call of the command; its exit code."""
    try:
        code = main.main(args, prog_name="sparkwright", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except BaseException as error:
        code = _failed(error, "--debug" in args)
    return code if isinstance(code, int) else 0


def _failed(error: BaseException, debug: bool) -> int:
    match error:
        case click.ClickException():
            error.show()
            return 2
        case SparkwrightError():
            return _known(error, debug)
        case BrokenPipeError():
            sys.stderr.close()
            return 0
        case Exception() if not isinstance(error, click.Abort):
            return _bug(error)
    click.echo("stopped", err=True)
    return 130


def _bug(error: Exception) -> int:
    import traceback

    traceback.print_exception(error)
    click.echo(f"sparkwright {__version__}: {ISSUE_HINT}", err=True)
    return 70


def _known(error: SparkwrightError, debug: bool) -> int:
    """Expected trouble: one clear message, never a traceback."""
    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, Refused) and error.findings:
        from sparkwright.cli.text import findings_text

        click.echo(findings_text(error.findings), err=True)
    if isinstance(error, NotReady):
        for line in error.tail:
            click.echo(f"  | {line}", err=True)
    click.secho(f"error: {error.message}", err=True, fg="red")
    if isinstance(error, NotReady) and error.logs:
        click.echo(f"logs:  {error.logs}", err=True)
    if error.cure:
        click.echo(f"cure:  {error.cure}", err=True)
    return error.exit_code


if __name__ == "__main__":
    entry()
