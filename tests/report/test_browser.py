"""The report in a browser: it plays, hides, zooms, links and saves without errors."""

import csv
import json
import struct
from pathlib import Path

import pytest
from benchmarks.pictures import take
from msgspec.structs import replace

from ringleaf.report.page import write_report
from ringleaf.simulator.film import packed, unpacked
from ringleaf_testbed.browser import Tab
from tests.report.made import POLICIES, real

pytestmark = pytest.mark.slow

CHART = 'figure[data-line="0"] .plot svg'


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(path, real())
    return path.as_uri()


@pytest.fixture
def page(browser: Tab, report: str) -> Tab:
    """The report, just opened."""
    browser.resize(1400, 900)
    browser.open("about:blank")
    browser.open(report)
    return browser


def clock(page: Tab) -> str:
    return str(page.run("document.querySelector('#clock').textContent"))


def lines(page: Tab) -> int:
    return int(page.run(f"document.querySelectorAll('{CHART} .line').length"))


def hash_of(page: Tab) -> dict[str, str]:
    found: dict[str, str] = page.run(
        "Object.fromEntries(new URLSearchParams(location.hash.slice(1)))"
    )
    return found


def test_everything_is_drawn_and_nothing_goes_wrong(page: Tab) -> None:
    empty = page.run(
        "[...document.querySelectorAll('.plot, [data-contest]')]"
        ".filter(each => each.checkVisibility() && !each.querySelector('svg')).length"
    )
    painted = page.run(
        "[...document.querySelectorAll('canvas')].map(c => c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.some(value => value))"
    )

    assert empty == 0
    assert painted == [True, True]
    assert lines(page) == len(POLICIES)
    assert page.errors == []


def test_the_maps_open_where_they_differ_most(browser: Tab, tmp_path: Path) -> None:
    """The second policy has an empty cluster for a moment."""
    given = real()
    film = given.of(POLICIES[0])[0].film
    assert film is not None
    stills = unpacked(film)
    fullest = int(stills.used.sum(axis=1)[:20].argmax())
    stills.used[fullest], stills.owner[fullest] = 0, 0
    changed = film | packed(stills)
    runs = [
        replace(run, film=changed if run.spec.policy == POLICIES[1] else run.film)
        for run in given.runs
    ]
    write_report(tmp_path / "report.html", replace(given, runs=runs))

    browser.open((tmp_path / "report.html").as_uri())

    link = browser.run("document.querySelector('#link').href")
    assert f"#t={round(fullest * film['interval_s'])}&" in link
    assert browser.errors == []


def test_the_map_plays_and_pauses(page: Tab) -> None:
    page.run("document.querySelector('#moment').value = 0")
    page.run("document.querySelector('#moment').dispatchEvent(new Event('input'))")
    before = clock(page)
    page.click("#play")
    page.wait(lambda: clock(page) != before, "the map to move")
    page.click("#play")

    assert page.run("document.querySelector('#play').textContent") == "Play"
    stopped = clock(page)
    assert page.run("new Promise(go => setTimeout(go, 400, 'later'))") == "later"
    assert clock(page) == stopped
    assert page.errors == []


def test_a_policy_is_hidden_on_every_chart_and_in_the_address(page: Tab) -> None:
    dots = "document.querySelectorAll('[data-contest] .dot').length"
    bars = "document.querySelectorAll('[data-causes] .strong').length"
    before = page.run(dots), page.run(bars)
    page.click('.key[data-policy="2"]')

    assert lines(page) == len(POLICIES) - 1
    assert page.run(dots) == before[0] * (len(POLICIES) - 1) // len(POLICIES)
    assert page.run(bars) == before[1] - 1
    pressed = page.run(
        "[...document.querySelectorAll('.key[data-policy=\"2\"]')]"
        ".map(key => key.getAttribute('aria-pressed'))"
    )
    assert {*pressed} == {"false"}
    assert hash_of(page)["hide"] == POLICIES[2]
    assert page.errors == []


def test_the_last_policy_cannot_be_hidden(page: Tab) -> None:
    for i in range(len(POLICIES)):
        page.click(f'#time .key[data-policy="{i}"]')

    assert lines(page) == 1
    assert page.errors == []


def test_an_axis_fits_the_policies_that_are_shown(page: Tab, tmp_path: Path) -> None:
    """The tallest line is hidden, and the axis ends lower; then all differ by little.

    With all of them the values differ by a factor of 100 or more, so that the axis is
    logarithmic.
    """
    text = Path(page.run("location.pathname")).read_text(encoding="utf-8")
    head, mark, rest = text.partition('id="figures">')
    data, end, tail = rest.partition("</script>")
    figures = json.loads(data)
    for i, value in enumerate((2.0, 3.0, 900.0)):
        figures["lines"][1]["lines"][i] = [value] * 400
    changed = tmp_path / "changed.html"
    changed.write_text(head + mark + json.dumps(figures) + end + tail, encoding="utf-8")
    page.open(changed.as_uri())
    chart = 'figure[data-line="1"]'
    ticks = (
        f"[...document.querySelectorAll('{chart} text[text-anchor=end]')]"
        ".map(each => each.textContent)"
    )
    log = f"document.querySelector('{chart} .tool').getAttribute('aria-pressed')"

    assert page.run(log) == "true"
    assert "100" in page.run(ticks)
    page.click('#time .key[data-policy="2"]')
    assert page.run(log) == "false"
    assert page.run(ticks)[-1] == "3" or "4" in page.run(ticks)
    page.click(f"{chart} .tool")
    assert page.run(log) == "true"
    assert page.errors == []


def test_a_logarithmic_axis_begins_at_the_decade_that_matters(
    page: Tab, tmp_path: Path
) -> None:
    """A tenth of a job; smaller values are drawn where the axis begins."""
    text = Path(page.run("location.pathname")).read_text(encoding="utf-8")
    head, mark, rest = text.partition('id="figures">')
    data, end, tail = rest.partition("</script>")
    figures = json.loads(data)
    value: dict[str, object] = {"low": None, "high": None, "tell": []}
    contest = figures["contests"][0]
    contest["kind"] = "number"
    dots = [value | {"dot": dot} for dot in (0.0001, 0.05, 300.0)]
    contest["groups"][0]["values"] = dots
    changed = tmp_path / "changed.html"
    changed.write_text(head + mark + json.dumps(figures) + end + tail, encoding="utf-8")
    page.open(changed.as_uri())
    plot = '[data-contest="0"]'

    ticks = page.run(
        f"[...document.querySelectorAll('{plot} text')].map(each => each.textContent)"
    )
    places = page.run(
        f"[...document.querySelectorAll('{plot} .dot')]"
        ".map(each => each.cx.baseVal.value)"
    )
    assert "0.001" not in ticks
    assert ticks[0] == "0"
    assert ticks[-1] == "100"
    assert page.run(f"document.querySelectorAll('{plot} .grid').length") == 5
    assert places[0] == places[1] < places[2]
    assert page.errors == []


def test_a_click_on_a_chart_moves_the_map(page: Tab) -> None:
    page.click(CHART, 0.3)
    early, address = clock(page), hash_of(page)["t"]
    page.click(CHART, 0.8)

    assert clock(page) != early
    assert int(hash_of(page)["t"]) > int(address)
    assert page.errors == []


def test_dragging_zooms_all_charts_and_a_button_shows_all_time(page: Tab) -> None:
    labels = (
        "[...document.querySelectorAll('figure[data-line=\"1\"] svg text')]"
        ".map(each => each.textContent).join()"
    )
    whole = page.run(labels)
    page.drag(CHART, 0.4, 0.6)

    assert page.run(labels) != whole
    assert "zoom" in hash_of(page)
    page.click("#all-time")
    assert page.run(labels) == whole
    assert "zoom" not in hash_of(page)
    assert page.errors == []


def test_a_link_keeps_time_policies_and_zoom(page: Tab, report: str) -> None:
    page.click(CHART, 0.7)
    page.drag(CHART, 0.5, 0.9)
    page.click('#time .key[data-policy="1"]')
    page.run("document.querySelector('select[data-panel=\"0\"]').value = '2'")
    page.run(
        "document.querySelector('select[data-panel=\"0\"]')"
        ".dispatchEvent(new Event('change'))"
    )
    shown, link = clock(page), page.run("document.querySelector('#link').href")
    page.open("about:blank")
    page.open(link)

    assert link.startswith(f"{report}#")
    assert clock(page) == shown
    assert lines(page) == len(POLICIES) - 1
    assert page.run("document.querySelector('select[data-panel=\"0\"]').value") == "2"
    assert not page.run("document.querySelector('#all-time').hidden")
    assert page.errors == []


def test_a_chart_is_saved_as_it_is_shown(page: Tab, tmp_path: Path) -> None:
    page.downloads_to(tmp_path)
    page.click('#time .key[data-policy="1"]')
    page.drag(CHART, 0.4, 0.6)
    page.click('figure[data-line="0"] .tool:last-child')
    saved = tmp_path / "utilisation.csv"
    page.wait(saved.exists, "the file")

    rows = list(csv.reader(saved.read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["time_s", POLICIES[0], POLICIES[2]]
    assert 20 < len(rows) < 200
    assert all(0 <= float(value) <= 1 for row in rows[1:] for value in row[1:])
    assert page.errors == []


def test_keys_play_move_and_zoom(page: Tab) -> None:
    page.run("document.querySelector('canvas').focus()")
    before = clock(page)
    page.press("ArrowRight")
    assert clock(page) != before
    page.press(" ")
    page.wait(
        lambda: page.run("document.querySelector('#play').textContent") == "Pause",
        "the map to play",
    )
    page.press(" ")
    page.run(f"document.querySelector('{CHART}').focus()")
    page.press("+")
    assert "zoom" in hash_of(page)
    page.press("0")
    assert "zoom" not in hash_of(page)
    assert page.errors == []


CONTRASTS = """
(() => {
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0(\\.\\d+)?\\)$/.test(colour)) return colour;
    }
  };
  const found = [];
  const texts = "p, small, td, th, dt, dd, a, button, .badge, svg text";
  document.querySelectorAll(texts).forEach(each => {
    if (!each.checkVisibility() || !each.textContent.trim()) return;
    const style = getComputedStyle(each);
    const ink = each.ownerSVGElement ? style.fill : style.color;
    const pair = [light(ink), light(behind(each))];
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (ratio < 4.5) found.push([each.textContent.slice(0, 40), each.className, ratio]);
  });
  return found;
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_a_page_fits_its_width_and_can_be_read(
    page: Tab, report: str, *, width: int, dark: bool
) -> None:
    page.resize(width, 900, dark=dark)
    page.open(report)

    assert page.run("document.documentElement.scrollWidth") <= width
    boxes = page.run(
        "[...document.querySelectorAll('table')]"
        ".filter(each => each.scrollWidth > each.clientWidth + 1).length"
    )
    assert boxes == 0
    assert page.run(CONTRASTS) == []
    assert page.errors == []


@pytest.mark.usefixtures("chromium")
def test_pictures_of_the_docs_are_taken_from_a_report(
    report: str, tmp_path: Path
) -> None:
    """It starts a browser of its own; without one it is left out as the others are."""
    taken = take(Path(report.removeprefix("file://")), tmp_path)

    assert [path.name for path in taken] == [
        *("maps.png", "maps-dark.png", "report.png"),
    ]
    for path in taken:
        head = path.read_bytes()[:24]
        assert head.startswith(b"\x89PNG")
        assert 900 < struct.unpack(">I", head[16:20])[0] <= 1280


def test_errors_of_a_page_are_seen(browser: Tab, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<script>console.error('no'); missing()</script>")
    browser.open(wrong.as_uri())

    assert any("missing is not defined" in each for each in browser.errors)
    assert "['no']" in browser.errors
