"""Takes the pictures of the docs from the report of ``ringleaf demo``.

``python -m benchmarks.pictures [REPORT]``; without a report the demo is run. It wants
Chromium on the path.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ringleaf_testbed.browser import browsing
from ringleaf_testbed.source import TestbedError

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
WIDTH, HEIGHT = 1280, 900
MAPS_WIDTH, MAPS_SCALE = 900, 1.5
"""Of the page for the maps alone, and how much larger they are taken."""
NAMES: Final = {
    "ringleaf": "Ringleaf",
    "volcano-vendor-1.0": "Volcano + plugin",
}
"""Policies as the words above the maps call them."""
PLAIN: Final = """
(names => {
  document.querySelector("#map figcaption").hidden = true;
  document.querySelectorAll(".panel").forEach(panel => {
    const name = panel.querySelector("select").selectedOptions[0].textContent;
    const label = panel.querySelector("label"), told = panel.querySelector(".told");
    label.textContent = names[name] || name;
    label.style.cssText = "font-size:29px;font-weight:650";
    const percent = Math.round(parseFloat(told.textContent.split(" ")[1]));
    told.textContent = `${percent} % of chips in use`;
    told.style.fontSize = "27px";
  });
})
"""
"""Large words instead of boxes to choose from, so that a phone shows them, too."""


def take(report: Path, folder: Path) -> list[Path]:
    """Write the pictures of *report* to *folder*; where they are."""
    taken = {}
    with browsing() as page:
        for name, dark in (("maps", False), ("maps-dark", True)):
            page.resize(MAPS_WIDTH, HEIGHT, dark=dark)
            page.open("about:blank")  # the same address is not loaded twice
            page.open(report.resolve().as_uri())
            page.run(f"{PLAIN}({json.dumps(NAMES)})")
            taken[name] = page.picture(".panels", margin=14, scale=MAPS_SCALE)
        page.resize(WIDTH, HEIGHT)
        page.open("about:blank")
        page.open(report.resolve().as_uri())
        taken["report"] = page.picture("header", "#map", scale=0.75)
        if page.errors:
            raise TestbedError(f"{report}: {page.errors[0]}")
    written = []
    for name, data in taken.items():
        path = folder / f"{name}.png"
        path.write_bytes(data)
        written.append(path)
    return written


def main() -> int:
    """Take them; the exit status."""
    with TemporaryDirectory() as folder:
        report = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder, "report.html")
        try:
            if len(sys.argv) == 1:
                command = (sys.executable, "-m", "ringleaf", "demo", "--out", folder)
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
            for path in take(report, DOCS):
                print(f"{path.name}: {path.stat().st_size:,} bytes")
        except (TestbedError, subprocess.CalledProcessError) as error:
            print(f"pictures: {error}", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
