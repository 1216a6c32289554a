// The report: what is on the page, and what the address keeps of it.

const figures = JSON.parse(find("#figures").textContent);
const view = {
  policies: figures.policies, hidden: new Set(figures.hidden),
  from: 0, to: figures.end, end: figures.end, warm: figures.warm, last: figures.last, now: null,
};
const lineCharts = [], otherCharts = [];
let player = null;

const drawAll = () => [...lineCharts, ...otherCharts].forEach(chart => chart.draw());

// Charts.
const acts = {
  pick(seconds) {
    if (player) player.go(seconds);
    else { view.now = seconds; lineCharts.forEach(chart => chart.clocked()); keep(); }
  },
  point(seconds) { lineCharts.forEach(chart => chart.pointed(seconds)); },
  zoom(from, to) {
    if (to - from < figures.end / 200) return;
    Object.assign(view, {from, to});
    find("#all-time").hidden = from <= 0 && to >= figures.end;
    tip.hide();
    lineCharts.forEach(chart => chart.draw());
    keep();
  },
};
each("figure[data-line]", figure =>
  lineCharts.push(new LineChart(figure, figures.lines[Number(figure.dataset.line)], view, acts)));
const withCsv = (figure, chart) => {
  find(".tools", figure).append(toolButton("CSV", "Download what this chart shows", () => chart.save()));
  otherCharts.push(chart);
};
each("figure[data-waits]", figure => withCsv(figure, new RangeChart(find(".plot", figure), figures.waits, view, {log: true})));
each("figure[data-causes]", figure => withCsv(figure, new BarChart(find(".plot", figure), figures.causes, view)));
each("[data-contest]", plot => otherCharts.push(
  new RangeChart(plot, figures.contests[Number(plot.dataset.contest)], view, {left: 0, line: figures.reference})));
each("#verdict .tools", tools => tools.append(toolButton("CSV", "Download the verdict", () => {
  const hidden = new Set([...view.hidden].map(i => view.policies[i]));
  const rows = figures.contests.flatMap(contest => contest.csv.slice(1)).filter(row => !hidden.has(row[1]));
  return saveCsv("verdict", [figures.contests[0].csv[0], ...rows]);
})));

// Policies that are shown.
const press = () => each(".key", key =>
  key.setAttribute("aria-pressed", String(!view.hidden.has(Number(key.dataset.policy)))));
each(".key", key => key.addEventListener("click", () => {
  const i = Number(key.dataset.policy);
  if (view.hidden.has(i)) view.hidden.delete(i);
  else if (view.hidden.size < view.policies.length - 1) view.hidden.add(i);
  press();
  drawAll();
  keep();
}));
each("details", details => details.addEventListener("toggle", drawAll));
find("#all-time").addEventListener("click", () => acts.zoom(0, figures.end));

// Light and dark.
const root = document.documentElement;
const themes = {
  kept() { try { return localStorage.getItem("ringleaf-theme"); } catch { return null; } },
  keep(theme) { try { localStorage.setItem("ringleaf-theme", theme); } catch { /* private */ } },
};
const isDark = () => root.dataset.theme
  ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
const dress = theme => {
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const button = find("#theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", isDark() ? "Switch to light" : "Switch to dark");
  if (player) player.draw();
};
find("#theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  themes.keep(theme);
  dress(theme);
});
matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => dress(root.dataset.theme));

// The maps.
const aboutStill = (film, _still, seen) => {
  const told = [`utilization ${(100 * seen.used / seen.chips).toFixed(1)} %`];
  const queue = figures.lines.find(line => line.key === "queue_length");
  if (queue) {
    const own = queue.lines[film.policy], bin = Math.floor(player.seconds / figures.end * own.length);
    if (bin < own.length && own[bin] !== null) told.push(`${Math.round(own[bin])} pending`);
  }
  if (film.groups.some(([kind]) => kind === "leaf"))
    told.push(count(seen.crossing, "gang") + " across leaves", count(seen.shared.size, "leaf", "leaves") + " shared");
  if (seen.down) told.push(count(seen.down, "node") + " down");
  return told;
};
if (figures.films && figures.films.length) {
  const films = figures.films.map(film => new Film(film, figures.films[0]));
  const controls = {slider: find("#moment"), play: find("#play"), clock: find("#clock")};
  player = new Player(films, controls, figures.end, () => {
    view.now = player.seconds;
    lineCharts.forEach(chart => chart.clocked());
    if (!player.timer) keep();
  });
  each("canvas[data-panel]", canvas => {
    const i = canvas.dataset.panel, choice = find(`select[data-panel="${i}"]`);
    const map = new ClusterMap(canvas, find(`.told[data-panel="${i}"]`), choice, player, aboutStill);
    choice.addEventListener("change", () => { map.draw(); keep(); });
    player.maps.push(map);
  });
  find("#map").addEventListener("keydown", event => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10}[event.key];
    if (event.key === " " && event.target !== player.play) { event.preventDefault(); player.toggle(); }
    else if (by && event.target.tagName === "CANVAS") { event.preventDefault(); player.move(by); }
  });
}

// What the address keeps: the time, the policies of the maps and of the charts, the zoom.
let isReady = false;
const state = () => {
  const told = new URLSearchParams();
  if (player) {
    told.set("t", String(Math.round(player.seconds)));
    player.maps.forEach((map, i) => told.set(i ? "right" : "left", view.policies[map.film.policy]));
  }
  if (view.hidden.size) told.set("hide", [...view.hidden].map(i => view.policies[i]).join(","));
  if (view.from > 0 || view.to < figures.end) told.set("zoom", `${Math.round(view.from)}-${Math.round(view.to)}`);
  return "#" + told;
};
const keep = () => {
  if (!isReady) return;
  find("#link").setAttribute("href", state());
  try { history.replaceState(null, "", state()); } catch { /* the link has it */ }
};
const opening = () => {
  const [left, right] = player.maps.map(map => map.film);
  return right ? mostApart(left, right, player.step, figures.last) : left.fullest(figures.last);
};
const restore = () => {
  const told = new URLSearchParams(location.hash.slice(1));
  if (told.has("hide")) {
    const names = told.get("hide").split(",");
    view.hidden = new Set(view.policies.map((_, i) => i).filter(i => names.includes(view.policies[i])));
  } else if (told.has("t")) view.hidden = new Set();
  if (view.hidden.size >= view.policies.length) view.hidden = new Set();
  const zoom = (told.get("zoom") || "").split("-").map(Number);
  const isZoom = zoom.length === 2 && zoom[0] >= 0 && zoom[1] > zoom[0] && zoom[1] <= figures.end * 1.01;
  Object.assign(view, isZoom ? {from: zoom[0], to: zoom[1]} : {from: 0, to: figures.end});
  find("#all-time").hidden = !isZoom;
  press();
  drawAll();
  if (!player) return;
  player.maps.forEach((map, i) => {
    const at = player.films.findIndex(film => view.policies[film.policy] === told.get(i ? "right" : "left"));
    if (at >= 0) map.choice.value = String(at);
  });
  const seconds = Number(told.get("t"));
  player.go(told.has("t") && Number.isFinite(seconds) ? seconds : opening());
};
each("nav a", link => link.addEventListener("click", event => {
  event.preventDefault();
  const part = find(link.getAttribute("href"));
  part.scrollIntoView();
  part.focus({preventScroll: true});
}));
addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });

let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;  // bars of phones come and go
  width = innerWidth;
  drawAll();
  if (player) player.draw();
});
// Paper is white.
let worn;
addEventListener("beforeprint", () => { worn = root.dataset.theme; dress("light"); drawAll(); });
addEventListener("afterprint", () => {
  if (worn) root.dataset.theme = worn; else delete root.dataset.theme;
  dress(worn);
  drawAll();
});

dress(themes.kept());
restore();
isReady = true;
find("#link").setAttribute("href", state());
