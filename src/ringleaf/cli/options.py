"""Options of the commands that simulate, the same for all of them."""

from enum import StrEnum
from typing import Annotated, Final

import typer

COMPARED: Final = "ringleaf,best-fit,first-fit,random"
"""The policies that are compared where none is named."""


class Recovering(StrEnum):
    """What jobs want that say nothing themselves."""

    off = "off"
    grace = "grace"
    force = "force"


ClusterName = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="A preset (leaf-spine-512, superpod-48x8, mixed), a topology file, or "
        "what ringleaf dump wrote.",
    ),
]

NodesAre = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of a topology file: what its nodes are."),
]

WorkloadName = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="kalos, seren, llm-superpod, adversarial, helios-gang, philly, packing, "
        "pai.",
    ),
]

Trace = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Jobs of a CSV or SWF file instead."),
]

Columns = Annotated[
    str | None,
    typer.Option(
        metavar="MAPPING",
        help="Of a CSV file: philly, helios, or submit=...,duration=...,chips=....",
    ),
]

Load = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Offered load: chip-seconds asked by those there are; presets 0.9, "
        "traces as they are.",
    ),
]

Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="How many jobs, of a trace the first; else as usual, of a trace all.",
    ),
]

Burst = Annotated[
    float, typer.Option(metavar="CV", help="How uneven arrivals are; 1 is Poisson.")
]

Amplitude = Annotated[
    float, typer.Option(metavar="SHARE", help="How much more comes by day.")
]

Common = Annotated[
    float,
    typer.Option(metavar="SHARE", help="Share of gangs that are common jobs."),
]

EstimateBy = Annotated[
    float,
    typer.Option(
        metavar="FACTOR",
        help="Jobs tell their running time, times this; 0 for not at all.",
    ),
]

Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Of all that is drawn.")]

ConfFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="volcano-scheduler.conf; else the default."),
]

QueueOrder = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Who is next: fifo, easy; else as configured."),
]

FaultRates = Annotated[
    str,
    typer.Option(
        metavar="RATES",
        help="none, usual, or hours between faults of one part: chip=80000,node=20000,"
        "leaf=40000,node-repair=4; 0 is never.",
    ),
]

Recovers = Annotated[
    Recovering, typer.Option(help="What jobs want when their pods are faulty.")
]

Contention = Annotated[
    float,
    typer.Option(
        metavar="SHARE",
        min=0,
        max=1,
        help="Share of their time that jobs communicate: those that share links "
        "slow each other down. 0 for not at all.",
    ),
]

CheckpointSeconds = Annotated[
    float,
    typer.Option(metavar="S", min=0, help="How often jobs save their work; 0: always."),
]

GraceSeconds = Annotated[
    float, typer.Option(metavar="S", min=0, help="How long pods take to end.")
]

ChipsEach = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        max=1000,
        help="Of a trace: chips for each GPU or processor that it counts.",
    ),
]
TraceQueues = Annotated[
    bool, typer.Option("--queues", help="Of a trace: jobs wait in the queues it names.")
]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad", help="Of a trace: leave out rows that cannot be read."),
]

Compared = Annotated[
    list[str] | None,
    typer.Option(
        "--policies",
        metavar="NAMES",
        help="Who is compared, by commas, with the first; best-fit+easy has an "
        f"order of its own.  [default: {COMPARED}]",
    ),
]

Workers = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Processes; else one a core.")
]

RegretEvery = Annotated[
    int,
    typer.Option(
        "--regret",
        metavar="N",
        min=0,
        help="At every Nth moment at which somebody waits, let an exact solver say how "
        "much could be held; wants the extra optimum. 0 for never.",
    ),
]
