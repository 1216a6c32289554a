"""A topology as one SVG file that needs nothing else: no fonts, scripts or links.

Few leaves are cards with a line per node; many are cards with a small box per node.
Cards stand in rows below the spine. Every card and node has a tooltip.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from ringleaf.model.placement import LeafState
from ringleaf.model.topology import Server, Switch, Topology, seats

WIDTH: Final = 1240
"""The width that rows of cards fill, in pixels."""

MARGIN, GAP, HEAD = 28, 16, 42
"""Around the drawing, between cards, and for the title of a card."""

DRAWN_IN_FULL: Final = 24
"""Leaves up to which nodes are told by name."""

_STYLE: Final = """\
text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1d2733}
.title{font-size:15px;font-weight:bold}.leaf{font-weight:bold}.small{font-size:11px}
.dim{fill:#5d6978}.paper{fill:#ffffff}.line{stroke:#8a97a8;stroke-width:1.5;fill:none}
.card{fill:#f3f5f8;stroke:#8a97a8}.spine{fill:#dfe5ec;stroke:#8a97a8}
.node{fill:#cfe2fb;stroke:#6d9bd3}.bad{fill:#ffd0cc;stroke:#c7372f}
.empty{fill:none;stroke:#9aa6b5;stroke-dasharray:3 2}
.shared{stroke:#b67a00;stroke-width:2.5}.exclusive{stroke:#7b3fc4;stroke-width:2.5}
.unhealthy{stroke:#c7372f;stroke-width:2.5;stroke-dasharray:6 3}
"""
_DARK: Final = """\
text{fill:#e4e9ef}.dim{fill:#9dabbb}.paper{fill:#14191f}.line{stroke:#66758a}
.card{fill:#1e252e;stroke:#66758a}.spine{fill:#2b3541;stroke:#66758a}
.node{fill:#1f4470;stroke:#5b8fcc}.bad{fill:#6d1f1b;stroke:#ff8078}
.empty{stroke:#5a6878}.shared{stroke:#e0a630}.exclusive{stroke:#b58af0}
.unhealthy{stroke:#ff8078}
"""


SPINE: Final = (10, 58, 34)
"""Left edge, upper edge and height of the spine."""


class _Grid(NamedTuple):
    """How nodes stand on a card: size of a box, boxes side by side, names or not."""

    box: tuple[int, int]
    columns: int
    named: bool

    @property
    def width(self) -> int:
        """Of a card."""
        return max(112, self.columns * (self.box[0] + 4) + 16)

    def height(self, n_boxes: int) -> int:
        """Of a card with so many boxes."""
        return HEAD + -(-n_boxes // self.columns) * (self.box[1] + 4) + 6

    def at(self, i: int) -> tuple[int, int]:
        """Where box *i* is on its card."""
        row, column = divmod(i, self.columns)
        return 10 + column * (self.box[0] + 4), HEAD + row * (self.box[1] + 4)


class _Sheet(NamedTuple):
    """Where the cards are: *tops* has the upper edge of every row."""

    grid: _Grid
    per_row: int
    width: int
    tops: list[int]
    bottom: int

    def at(self, i: int) -> tuple[int, int]:
        """Where card *i* is."""
        row, column = divmod(i, self.per_row)
        return MARGIN + column * (self.grid.width + GAP), self.tops[row]


def drawing(topology: Topology, summary: str) -> str:
    """The SVG text; *summary* is its heading."""
    sheet = _sheet(topology)
    legend = _legend(topology)
    width, height = sheet.width + 2 * MARGIN, sheet.bottom + 20 * len(legend) + MARGIN
    parts = [
        _text("title", MARGIN, 36, summary),
        "" if topology.single_layer else _spine(sheet, len(topology.switches)),
        *(
            _card(switch, topology.leaf_size, sheet.grid, sheet.at(i))
            for i, switch in enumerate(topology.switches)
        ),
        *(
            _legend_line(sheet.bottom + 20 * i, kind, words)
            for i, (kind, words) in enumerate(legend)
        ),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">\n'
        f"<title>{escape(summary)}</title>\n"
        f"<style>\n{_STYLE}@media (prefers-color-scheme:dark){{\n{_DARK}}}\n</style>\n"
        f'<rect class="paper" width="{width}" height="{height}"/>\n'
        + "\n".join(filter(None, parts))
        + "\n</svg>\n"
    )


def _sheet(topology: Topology) -> _Sheet:
    """Rows of cards, each as high as its highest card."""
    places = [seats(switch, topology.leaf_size) for switch in topology.switches]
    n_boxes = [len(seated) + len(others) for seated, others in places]
    grid = _grid(len(n_boxes), max(n_boxes, default=1))
    n_rows = -(-len(n_boxes) // ((WIDTH + GAP) // (grid.width + GAP)))
    per_row = -(-len(n_boxes) // max(1, n_rows))  # rows of equal length
    tops = []
    edge = SPINE[1] + (-GAP if topology.single_layer else SPINE[2])
    for start in range(0, len(n_boxes), per_row or 1):
        tops.append(edge + 2 * GAP)
        edge = tops[-1] + grid.height(max(n_boxes[start : start + per_row]))
    width = max(640, per_row * (grid.width + GAP) - GAP)
    return _Sheet(grid, per_row, width, tops, edge + 2 * GAP)


def _grid(n_leaves: int, most: int) -> _Grid:
    if n_leaves <= DRAWN_IN_FULL and most <= DRAWN_IN_FULL:
        return _Grid((176, 22), 1, named=True)
    columns = 4 if most <= 8 else 8  # noqa: PLR2004 - cards wider than high
    return _Grid((24, 22), columns, named=False)


def _spine(sheet: _Sheet, n_leaves: int) -> str:
    """The spine, and its lines: straight to the first row, by the left to others."""
    left, top, height = SPINE
    bottom, trunk = top + height, left + 6
    path = []
    for i in range(n_leaves):
        x, y = sheet.at(i)
        start = bottom if i < sheet.per_row else y - GAP
        path.append(f"M{x + sheet.grid.width // 2} {start}V{y}")
    for row in range(1, len(sheet.tops)):
        here = min(n_leaves - row * sheet.per_row, sheet.per_row) - 1
        end = sheet.at(row * sheet.per_row + here)[0] + sheet.grid.width // 2
        path.append(f"M{trunk} {bottom}V{sheet.tops[row] - GAP}H{end}")
    width = sheet.width + 2 * (MARGIN - left)
    return (
        f'<path class="line" d="{"".join(path)}"/>\n'
        f'<rect class="spine" x="{left}" y="{top}" width="{width}" height="{height}" '
        f'rx="6"/>{_text("leaf", MARGIN, top + 22, "spine")}'
    )


def _card(switch: Switch, leaf_size: int, grid: _Grid, at: tuple[int, int]) -> str:
    """One leaf: its address, its state, its nodes."""
    seated, others = seats(switch, leaf_size)
    n_boxes = len(seated) + len(others)
    kind = switch.state_word if switch.healthy else "unhealthy"
    told = [f"{len(switch.servers)} of {leaf_size}", *_condition(switch)]
    letters = (grid.width - 18) // 7
    return "".join(
        [
            f'<g transform="translate({at[0]} {at[1]})">',
            f"<title>{escape(f'{switch}: ' + ', '.join(told))}</title>",
            f'<rect class="card {kind}" width="{grid.width}" ',
            f'height="{grid.height(n_boxes)}" rx="6"/>',
            _text("leaf", 10, 18, _cut(switch.address, letters)),
            _text("small dim", 10, 33, _cut(", ".join(told), letters)),
            *_boxes(seated, grid),
            *(
                _box(server, grid, len(seated) + i, "bad")
                for i, server in enumerate(others)
            ),
            "</g>",
        ]
    )


def _condition(switch: Switch) -> Iterator[str]:
    """The state in words, where it is not as usual."""
    if switch.state is not LeafState.IDLE:
        yield switch.state_word
    if not switch.healthy:
        yield "unhealthy"


def _boxes(seated: Sequence[Server | None], grid: _Grid) -> Iterator[str]:
    """The nodes by slot; all empty slots are one outline."""
    width, height = grid.box
    outline = []
    for i, server in enumerate(seated):
        if server is None:
            x, y = grid.at(i)
            outline.append(f"M{x} {y}h{width}v{height}h-{width}z")
        else:
            yield _box(server, grid, i, "node")
    if outline:
        yield f'<path class="empty" d="{"".join(outline)}"/>'


def _box(server: Server, grid: _Grid, i: int, kind: str) -> str:
    """One node: its slot and, where there is room, its address."""
    x, y = grid.at(i)
    width, height = grid.box
    chips = "" if server.chips is None else f", {server.chips} chips"
    told = f"{server.address}: slot {server.slot}{chips}"
    label = _cut(str(server.slot), 3)
    if grid.named:
        label = _cut(f"{server.slot:<3} {server.address}", 23)
    return (
        f"<g><title>{escape(told)}</title>"
        f'<rect class="{kind}" x="{x}" y="{y}" '
        f'width="{width}" height="{height}" rx="3"/>'
        f"{_text('small', x + 5, y + 15, label)}</g>"
    )


def _legend(topology: Topology) -> list[tuple[str, str]]:
    """Class of a box -> what it means, of those that are there."""
    size, switches = topology.leaf_size, topology.switches
    places = [seats(switch, size) for switch in switches]
    states = {switch.state for switch in switches if switch.healthy}
    entries = [
        ("node", "node, with its slot under the leaf", True),
        ("empty", "empty slot", any(None in seated for seated, _others in places)),
        ("bad", "node out of place", any(others for _seated, others in places)),
        ("card shared", "leaf shared by jobs", LeafState.SHARED in states),
        ("card exclusive", "leaf of one job", LeafState.EXCLUSIVE in states),
        ("card unhealthy", "unhealthy leaf", not all(s.healthy for s in switches)),
    ]
    return [(kind, words) for kind, words, there in entries if there]


def _legend_line(y: int, kind: str, words: str) -> str:
    box = f'<rect class="{kind}" x="{MARGIN}" y="{y}" width="24" height="14" rx="3"/>'
    return box + _text("small dim", MARGIN + 34, y + 11, words)


def _text(kind: str, x: int, y: int, words: str) -> str:
    """Words at their place; blanks are kept."""
    return (
        f'<text class="{kind}" x="{x}" y="{y}" xml:space="preserve">'
        f"{escape(words)}</text>"
    )


def _cut(text: str, letters: int) -> str:
    """*text*, or its beginning and end.

    >>> _cut("0123456789", 10), _cut("0123456789", 7)
    ('0123456789', '0123…89')
    """
    if len(text) <= letters:
        return text
    end = (letters - 1) // 3
    return f"{text[: letters - 1 - end]}…{text[len(text) - end :]}"
