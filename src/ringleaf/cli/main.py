"""The commands. Each imports what it needs when it is called: --help stays fast."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

import ringleaf
from ringleaf.cli.failure import BadUse, report

app = typer.Typer(
    name="ringleaf",
    add_completion=False,
    rich_markup_mode=None,  # plain help: three times as fast to start
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 88},
)

ScenarioFile = Annotated[
    str,
    typer.Argument(metavar="FILE", help="Scenario file, YAML or JSON; - for stdin."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        print(f"ringleaf {ringleaf.__version__}")  # noqa: T201
        raise typer.Exit


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Place AI jobs on Ascend chips that are wired together, and say why.

    Exit status: 0 yes, 1 the answer is no, 2 bad use or bad input.

    \b
    Examples:
      ringleaf demo
      ringleaf plan examples/node-a-or-b.yaml
      ringleaf explain examples/why-waiting.yaml --job big --node n2
      ringleaf products atlas-800t-a2 --table
    """  # noqa: D301 - \b keeps the lines apart
    del version
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201
        raise typer.Exit(2)


@app.command()
def plan(file: ScenarioFile, *, json: AsJson = False) -> None:
    """Decide every job of a scenario: which node and which chips each pod gets.

    Jobs are decided in the order of the file; each sees what the earlier ones took.
    Exit status 0 when every job was placed, 1 when some job was not.

    \b
    Examples:
      ringleaf plan examples/node-a-or-b.yaml
      ringleaf plan examples/node-a-or-b.yaml --json | jq .decisions
      cat examples/node-a-or-b.yaml | ringleaf plan -
    """  # noqa: D301
    from ringleaf.cli.plan import plan_file

    raise typer.Exit(plan_file(file, as_json=json))


@app.command()
def explain(
    file: ScenarioFile,
    *,
    job: Annotated[
        str, typer.Option("--job", metavar="NAME", help="The job to ask about.")
    ],
    node: Annotated[
        str | None,
        typer.Option("--node", metavar="NAME", help="What the job finds on this node."),
    ] = None,
    top: Annotated[
        int,
        typer.Option("--top", metavar="N", min=1, help="How many of the best nodes."),
    ] = 10,
    json: AsJson = False,
) -> None:
    """Say why a job of a scenario goes where it goes, or why it waits.

    Shows the best nodes in rank order with their rank spelled out, the refused nodes by
    reason, and for a waiting job what would be enough. With --node: the place of that
    node in the order, or the one rule that refuses it.
    Exit status 0 when the job (with --node: on that node) is placed, 1 when not.

    \b
    Examples:
      ringleaf explain examples/why-waiting.yaml --job big
      ringleaf explain examples/why-waiting.yaml --job big --node n2
    """  # noqa: D301
    from ringleaf.cli.explain import explain_job

    raise typer.Exit(explain_job(file, job, node, top, as_json=json))


@app.command()
def products(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="One product, by any of its names."),
    ] = None,
    *,
    table: Annotated[
        bool, typer.Option("--table", help="Its misfit table: request x free chips.")
    ] = False,
    json: AsJson = False,
) -> None:
    """List the products Ringleaf knows, or one of them in full.

    \b
    Examples:
      ringleaf products
      ringleaf products "Atlas 800I A2"
      ringleaf products atlas-800t-a2 --table
    """  # noqa: D301
    from ringleaf.cli.products import show_products

    raise typer.Exit(show_products(name, table=table, as_json=json))


@app.command()
def demo(*, json: AsJson = False) -> None:
    """Fill a small cluster of every product with a mixed list of jobs.

    \b
    Examples:
      ringleaf demo
      ringleaf demo --json
    """  # noqa: D301
    from ringleaf.cli.plan import show_demo

    raise typer.Exit(show_demo(as_json=json))


def run() -> None:
    """Run the command line; bad input is one line and exit status 2."""
    _prepare_streams()
    try:
        sys.exit(app(prog_name="ringleaf", standalone_mode=False))
    except BadUse as error:
        report(str(error))
        sys.exit(2)
    except typer.TyperException as error:
        report(_one_line(error))
        sys.exit(2)
    except typer.Abort:
        sys.exit(130)
    except BrokenPipeError:
        _let_go()  # the reader left; nothing more to say
        sys.exit(0)
    except OSError as error:
        _let_go()
        report(f"standard output: {error.strerror or error}")
        sys.exit(2)


def _one_line(error: typer.TyperException) -> str:
    """What was wrong with the call, and where to read how it goes."""
    told = getattr(error, "format_message", error.__str__)().removesuffix(".")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "ringleaf"
    return f"{told}; hint: {command} --help"


def _prepare_streams() -> None:
    """A closed stream swallows; what an encoding cannot show is escaped."""
    nowhere = Path(os.devnull)
    sys.stdout = sys.stdout or nowhere.open("w")
    sys.stderr = sys.stderr or nowhere.open("w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _let_go() -> None:
    """Send what is still buffered nowhere, so that leaving does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
