"""The command: global options, lazily loaded verbs, and the one place where errors become words and exit codes."""

import errno
import gc
import importlib
import os
import select
import sys
from typing import TYPE_CHECKING, Any

import click

from sparkwright.adapters.build_info import full_version
from sparkwright.domain.errors import NotReady, Refused, SparkwrightError, StoreError
from sparkwright.domain.values import dataclass

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# verb -> (module, attribute, help). Modules are imported when their verb is used: `--help` stays quick.
VERBS = {
    "init": ("init", "init", "Prepare new nodes: ssh, fabric, docker, swap, sysctl, clock."),
    "check": ("check", "check", "Check all nodes in parallel: findings, evidence, remedy."),
    "recipes": ("recipes", "recipes", "List, show, validate and import recipes; list checkpoints."),
    "engines": ("engines", "engines", "List the engines and versions that are known; read others."),
    "plan": ("plan", "plan", "Print what would run where, and whether it fits."),
    "build": ("build", "build", "Build a recipe's image from its pinned parts for all nodes."),
    "up": ("up", "up", "Start a recipe and wait until it has answered a real request."),
    "status": ("status", "status", "Show the deployments as the nodes report them."),
    "top": ("top", "top", "Show speed, queue, memory and GPUs as they change."),
    "logs": ("status", "logs", "Print the logs of a deployment's ranks."),
    "incidents": ("incidents", "incidents", "List and show incidents and the actions of the supervisor."),
    "wake": ("wake", "wake_node", "Wake a node that is off, over the network."),
    "notify": ("notify", "notify", "Send messages about incidents by ntfy, chat or mail."),
    "down": ("up", "down", "Stop a deployment and remove everything that belongs to it."),
    "restart": ("up", "restart", "Restart a deployment; its gateway answers 503 meanwhile."),
    "switch": ("switch", "switch", "Replace a running deployment by another recipe, or roll back."),
    "keys": ("keys", "keys_group", "Add, list and revoke the gateway's API keys."),
    "connect": ("connect", "connect", "Print settings of a client and check them; open a tunnel."),
    "bench": ("bench", "bench", "Benchmark any OpenAI-compatible endpoint, or a deployment."),
    "eval": ("evals", "evals", "Check the answers of an endpoint: protocol and instructions."),
    "tune": ("tune", "tune", "Search the settings of a recipe that serve best on these nodes."),
    "soak": ("soak", "soak", "Load an endpoint for hours and find leaks, drift and faults."),
    "runs": ("runs", "runs", "List, show, tag, export and delete benchmark runs."),
    "compare": ("compare", "compare", "Compare runs with a base, metric by metric."),
    "gate": ("compare", "gate", "Check runs against thresholds, for CI."),
    "report": ("compare", "report", "Write plots, tables and conditions of runs to one file."),
    "diagnose": ("diagnose", "diagnose", "Find the root cause in logs of any engine or on the nodes."),
    "explain": ("explain", "explain", "Explain a finding's code or a cause, and the fix."),
    "facts": ("check", "facts", "Print the facts of all nodes."),
    "monitoring": ("monitoring", "monitoring", "Write a Grafana dashboard and alert rules."),
    "demo": ("demo", "demo", "Start a simulated deployment, kill a rank, show the recovery."),
}
STDOUT, STDERR = 1, 2
STOPPED = 130
COMPLETE_VARIABLE = "_SPARKWRIGHT_COMPLETE"
ISSUE_HINT = "this is a bug in sparkwright: please report it with the lines above"


class BrokenPipe(Exception):
    """A BrokenPipeError of a verb. click exits silently at one, whichever pipe it was."""


class Verbs(click.Group):
    """A group whose commands live in modules that are not yet imported."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise BrokenPipe from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in VERBS:
            return None
        module, attribute, _ = VERBS[name]
        loaded: click.Command = getattr(importlib.import_module(f"sparkwright.cli.{module}"), attribute)
        return loaded

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem[str]]":
        """Complete verbs without importing their modules."""
        from click.shell_completion import CompletionItem

        verbs = [CompletionItem(name, help=row[2]) for name, row in VERBS.items() if name.startswith(incomplete)]
        return verbs + click.Command.shell_complete(self, ctx, incomplete)

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


def print_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Print version and commit, and end the program."""
    if wanted:
        click.echo(f"sparkwright, version {full_version()}")
        context.exit()


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Show the version and exit.",
)
@click.option("--debug", is_flag=True, help="Print the traceback of an error, too.")
@click.pass_context
def main(ctx: click.Context, debug: bool) -> None:
    """Turn GB10 machines (DGX Spark and OEM variants) into a reliable model endpoint.

    \b
    First time:
      sparkwright demo                     a simulated deployment loses a rank and recovers
      sparkwright init spark-1 spark-2     prepare the nodes, write cluster.yaml
      sparkwright check                    check the nodes
      sparkwright plan deepseek-v4-flash   print what would run and whether it fits
      sparkwright up deepseek-v4-flash     start it
    """
    ctx.obj = {"debug": debug}


@dataclass(frozen=True, slots=True)
class Voice:
    """Prints errors. color: None lets the terminal decide."""

    debug: bool
    color: bool | None = None

    def echo(self, text: str, **style: str) -> None:
        from sparkwright.cli.columns import printable_text  # with what only an error needs

        click.secho(printable_text(text), err=True, color=self.color, **style)  # type: ignore[arg-type]


def run_command_line() -> None:
    """The command. Exit: 0 good, 1 findings, 2 usage or files, 3 node, 4 busy, 5 not ready, 70 our bug, 130 Ctrl-C."""
    _open_streams()
    gc.set_threshold(100_000, 20, 20)  # what is loaded at the start stays: not to be collected ten times
    # https://no-color.org: any value that is not empty; click does not look at it by itself.
    sys.exit(run(sys.argv[1:], False if os.environ.get("NO_COLOR") else None))


def _open_streams() -> None:
    """Opens standard streams that the caller closed (`>&-`): otherwise the next opened file gets the output."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        pass
    os.close(handle)
    sys.stdout = sys.stdout or os.fdopen(STDOUT, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(STDERR, "w", closefd=False)


def run(args: list[str], color: bool | None = None) -> int:
    """One call of the command; its exit code."""
    try:
        if COMPLETE_VARIABLE in os.environ:
            from sparkwright.cli.complete_bash import register

            register()
        code = main.main(args, prog_name="sparkwright", standalone_mode=False, color=color)
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except BaseException as error:
        if isinstance(error, SystemExit) and isinstance(error.code, int) and not _reader_left():
            return error.code  # the end of a completion
        code = _failed(error, Voice("--debug" in args, color))
        if "--json" in args and code not in (0, STOPPED):
            from sparkwright.cli.failure import failure_json

            try:
                click.echo(failure_json(error, _all_known(error), code))
            except BrokenPipeError:
                _write_nowhere()
    return code if isinstance(code, int) else 0


def _failed(error: BaseException, voice: Voice) -> int:
    if codes := [_known(one, voice) for one in _all_known(error)]:
        return codes[0]
    match error:
        case click.ClickException():
            return _misused(error, voice)
        case BrokenPipe() | BrokenPipeError() | SystemExit() if _reader_left():
            _write_nowhere()
            return 0
        case OSError(errno=errno.ENOSPC | errno.EROFS | errno.EDQUOT):
            _write_nowhere()
            voice.echo(f"error: {error.filename or 'the output'} cannot be written: {error.strerror}", fg="red")
            return StoreError.exit_code
        case Exception() if not isinstance(error, click.Abort):
            import traceback

            traceback.print_exception(error)
            voice.echo(f"sparkwright {full_version()}: {ISSUE_HINT}")
            return 70
    voice.echo("stopped")
    return STOPPED


def _write_nowhere() -> None:
    """Nobody reads on (`| head`): that is no failure, and what is still buffered goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def _all_known(error: BaseException) -> list[SparkwrightError]:
    """Our own errors when there is nothing else: one, or what several nodes' tasks ended with; each message once."""
    if isinstance(error, SparkwrightError):
        return [error]
    if not isinstance(error, BaseExceptionGroup):
        return []
    parts = [_all_known(one) for one in error.exceptions]
    return list({one.message: one for part in parts for one in part}.values()) if all(parts) else []


def _reader_left() -> bool:
    poll = select.poll()
    poll.register(STDOUT, 0)
    return bool(poll.poll(0))


def _misused(error: click.ClickException, voice: Voice) -> int:
    """A usage error, printed as every other error."""
    message = error.format_message()
    if message.startswith("Usage:"):  # a group without a verb: click's message is the whole help
        voice.echo(message)
        return 2
    from sparkwright.cli.failure import misuse_text

    message, hint = misuse_text(error)
    voice.echo(f"error: {message}", fg="red")
    if hint:
        voice.echo(f"hint:  {hint}")
    return 2


def _known(error: SparkwrightError, voice: Voice) -> int:
    """An expected error: one clear message, never a traceback."""
    if voice.debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, Refused) and error.findings:
        from sparkwright.cli.columns import findings_text

        voice.echo(findings_text(error.findings))
        if error.remedies:
            from sparkwright.cli.plan_outlook import remedies_text

            voice.echo(remedies_text(error.remedies))
    if isinstance(error, NotReady):
        for line in error.tail:
            voice.echo(f"  | {line}")
        if error.causes or error.explanation:
            from sparkwright.cli.diagnose_text import failure_text

            voice.echo(failure_text(error.causes, error.explanation))
    voice.echo(f"error: {error.message}", fg="red")
    if isinstance(error, NotReady) and error.logs:
        voice.echo(f"logs:  {error.logs}")
    if error.hint:
        voice.echo(f"hint:  {error.hint}")
    return error.exit_code


if __name__ == "__main__":
    run_command_line()
