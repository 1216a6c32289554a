"""Commands for files, the catalogue and the shell."""

from enum import StrEnum
from typing import Annotated

from ringleaf.cli.failure import BadUse, program
from ringleaf.cli.options import Json, TopologyColumns
from ringleaf.cli.parameter import Option, Positional
from ringleaf.cli.registry import COMMANDS, TOOLS, command

TopologyFile = Annotated[
    str,
    Positional(
        "FILE",
        "ConfigMap basic-tor-node-cm, its tor_info, or CSV; - reads standard input.",
    ),
]


class Form(StrEnum):
    """What a topology can be converted to."""

    CONFIGMAP = "configmap"
    JSON = "json"
    SCENARIO = "scenario"
    CSV = "csv"


DEFAULT_COLUMNS = TopologyColumns()


@command(
    TOOLS,
    "ringleaf topology check examples/topology/basic-tor-node-cm.yaml",
    "ringleaf topology check examples/topology/broken.yaml",
    "ringleaf topology check examples/topology/racks.csv --leaf room,rack --json",
    name="topology check",
)
def topology_check(
    file: TopologyFile, *, json: Json = False, table: TopologyColumns = DEFAULT_COLUMNS
) -> int:
    """Check a topology and draw it.

    Prints every problem and every warning on one line.

    Exit status 0 when there are no problems (there may be warnings), else 1.
    """
    from ringleaf.cli.topology import check_file

    return check_file(file, table, as_json=json)


@command(
    TOOLS,
    "ringleaf topology draw examples/topology/basic-tor-node-cm.yaml",
    "ringleaf topology draw examples/topology/racks.csv --leaf room,rack",
    name="topology draw",
)
def topology_draw(
    file: TopologyFile,
    *,
    svg: Annotated[
        str | None, Option("OUT.svg", "Also write an SVG drawing to this file.")
    ] = None,
    table: TopologyColumns = DEFAULT_COLUMNS,
) -> int:
    """Draw a topology: leaves as rows below the spine, slots as columns.

    A topology with problems is drawn as far as possible; topology check lists them.
    """
    from ringleaf.cli.topology import draw_file

    return draw_file(file, table, svg)


@command(
    TOOLS,
    "ringleaf topology convert examples/topology/racks.csv --to configmap",
    "ringleaf topology convert examples/topology/racks.csv --to scenario",
    "ringleaf topology convert examples/topology/basic-tor-node-cm.yaml --to csv",
    name="topology convert",
)
def topology_convert(
    file: TopologyFile,
    *,
    to: Annotated[Form, Option("FORM", "configmap, json, scenario or csv.")],
    product: Annotated[
        str | None,
        Option(
            "NAME",
            "Product of the nodes, for scenarios and CSV.",
            default="atlas-800t-a2",
        ),
    ] = None,
    leaf_size: Annotated[
        int | None,
        Option(
            "N",
            "Nodes per leaf.",
            least=1,
            default="as in the file; of CSV, the largest leaf",
        ),
    ] = None,
    table: TopologyColumns = DEFAULT_COLUMNS,
) -> int:
    """Print a topology as a ConfigMap, its tor_info, a scenario or CSV.

    Exit status 1 when the topology has problems. They go to standard error, and no
    topology is printed.
    """
    from ringleaf.cli.topology import convert_file

    return convert_file(file, to.value, table, product, leaf_size)


@command(
    TOOLS,
    "ringleaf check-conf examples/conf/vendor.yaml",
    "ringleaf check-conf examples/conf/broken.conf",
    "ringleaf check-conf examples/conf/busy.conf --json",
    "ringleaf check-conf examples/conf/guide-default.go --fix",
)
def check_conf(
    file: Annotated[
        str,
        Positional(
            "FILE",
            "volcano-scheduler.conf, or a ConfigMap with it; - reads standard input.",
        ),
    ],
    *,
    fix: Annotated[
        bool,
        Option("", "Repair the indentation, remove Go source around it, and write it."),
    ] = False,
    output: Annotated[
        str | None,
        Option(
            "FILE",
            "With --fix: write to this new file.",
            default="standard output",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Check a volcano-scheduler.conf and show what it does.

    Prints every problem and every warning on one line; without problems, the actions,
    plugins, flags and arguments that take effect.

    Exit status 0 when there are no problems (there may be warnings), 1 when there are
    some (--fix then writes nothing), 2 when the file cannot be read.
    """
    from ringleaf.cli.conf import check_file, fix_file

    if fix:
        return fix_file(file, output, as_json=json)
    if output is not None:
        raise BadUse(
            f"--output goes with --fix; hint: {program()} check-conf FILE --fix"
        )
    return check_file(file, as_json=json)


@command(
    TOOLS,
    "ringleaf products",
    'ringleaf products "Atlas 800I A2"',
    "ringleaf products atlas-800t-a2 --table",
)
def products(
    name: Annotated[
        str | None, Positional("NAME", "Show one product, by any of its names.")
    ] = None,
    *,
    table: Annotated[
        bool, Option("", "Show its misfit table: request by free chips.")
    ] = False,
    json: Json = False,
) -> int:
    """List the Ascend products of the catalogue, or show one."""
    from ringleaf.cli.products import show_products

    return show_products(name, table=table, as_json=json)


@command(
    TOOLS,
    "ringleaf plan examples/big-job-waits.yaml --record run.log",
    "ringleaf replay run.log",
)
def replay(
    file: Annotated[
        str,
        Positional(
            "LOG", "Log of plan --record or scheduler --record; - reads standard input."
        ),
    ],
    *,
    json: Json = False,
) -> int:
    """Replay a recorded log and report the first difference.

    Exit status 0 when every instruction is the same, 1 when one differs.
    """
    from ringleaf.cli.replay import replay_file

    return replay_file(file, as_json=json)


class Shell(StrEnum):
    """Shells for which there is a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@command(
    TOOLS,
    "source <(ringleaf completion bash)",
    "ringleaf completion zsh > ~/.zfunc/_ringleaf",
    "ringleaf completion fish > ~/.config/fish/completions/ringleaf.fish",
)
def completion(
    shell: Annotated[Shell, Positional("SHELL", "bash, zsh or fish.", known=[*Shell])],
) -> int:
    """Print the completion script of a shell.

    The script completes commands, options and known values. Load it at the start of
    the shell, as the examples show.
    """
    from ringleaf.cli.completion import script_of

    print(script_of(shell.value), end="")  # noqa: T201
    return 0


def _names() -> list[str]:
    return [*dict.fromkeys(name.partition(" ")[0] for name in COMMANDS)]


@command(TOOLS, "ringleaf help plan", "ringleaf help topology check", name="help")
def show_help(
    name: Annotated[
        str | None, Positional("COMMAND", "The command.", known=_names)
    ] = None,
    more: Annotated[
        str | None, Positional("SUBCOMMAND", "Such as check, of topology.")
    ] = None,
) -> int:
    """Show the help of a command."""
    from ringleaf.cli.main import print_help

    print_help([word for word in (name, more) if word is not None])
    return 0
