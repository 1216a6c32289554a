"use strict";
(() => {
const figures = JSON.parse(document.getElementById("figures").textContent);
const root = document.documentElement;
const each = (query, act) => document.querySelectorAll(query).forEach(act);

// Names are only ever set as text, never as markup.
const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);
const tell = (event, title, lines) => {
  const head = document.createElement("b");
  head.textContent = title;
  tip.replaceChildren(head, ...lines.map(line => {
    const row = document.createElement("div");
    row.append(...line);
    return row;
  }));
  tip.hidden = false;
  const width = document.documentElement.clientWidth;
  const left = event.clientX + 16 + tip.offsetWidth > width
    ? Math.max(4, event.clientX - 12 - tip.offsetWidth) : event.clientX + 16;
  tip.style.left = left + window.scrollX + "px";
  tip.style.top = event.clientY + 16 + window.scrollY + "px";
};
const hush = () => { tip.hidden = true; };

const DAY = 86400;
const moment = seconds => {
  const days = Math.floor(seconds / DAY), rest = seconds - days * DAY;
  const hours = Math.floor(rest / 3600), minutes = Math.floor(rest % 3600 / 60);
  const time = String(hours).padStart(2, "0") + ":" + String(minutes).padStart(2, "0");
  return figures.end >= DAY ? `day ${days}, ${time}` : `${time} h`;
};
const written = (value, isShare) => {
  if (value === null) return "\u2013";
  if (isShare) return (100 * value).toFixed(1) + " %";
  return value >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
};

const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// Light and dark.
const themes = {
  kept() { try { return localStorage.getItem("ringleaf-theme"); } catch { return null; } },
  keep(theme) { try { localStorage.setItem("ringleaf-theme", theme); } catch { /* private */ } },
};
const isDark = () => root.dataset.theme
  ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
const dress = theme => {
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = isDark() ? "Light" : "Dark";
  button.setAttribute("aria-label", isDark() ? "Switch to light" : "Switch to dark");
  if (map) map.draw();
};

// Policies that are shown.
const hidden = new Set();
figures.policies.forEach((_, i) => { if (document.body.classList.contains(`hide-${i}`)) hidden.add(i); });
each(".key", key => key.addEventListener("click", () => {
  const i = Number(key.dataset.policy);
  if (hidden.has(i)) hidden.delete(i); else hidden.add(i);
  document.body.classList.toggle(`hide-${i}`, hidden.has(i));
  each(`.key[data-policy="${i}"]`, other => other.setAttribute("aria-pressed", String(!hidden.has(i))));
}));

// Charts over time.
const point = (svg, share) => {
  const cursor = svg.querySelector(".cursor");
  const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
  const x = left + (right - left) * share;
  cursor.setAttribute("x1", x);
  cursor.setAttribute("x2", x);
  cursor.classList.toggle("on", share >= 0 && share <= 1);
};
const pointAll = share => each("svg[data-chart]", svg => point(svg, share));
each("svg[data-chart]", svg => {
  const chart = figures.charts[svg.dataset.chart];
  const left = Number(svg.dataset.left), right = Number(svg.dataset.right);
  const bins = chart.lines[0].length;
  svg.addEventListener("pointermove", event => {
    const box = svg.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
    const share = (x - left) / (right - left);
    if (share < 0 || share >= 1) { hush(); return; }
    pointAll(share);
    const bin = Math.floor(share * bins);
    const lines = figures.policies.flatMap((policy, i) => {
      if (hidden.has(i)) return [];
      const key = document.querySelector(`.key[data-policy="${i}"] .swatch`);
      return [[key ? key.cloneNode(true) : "", `${policy}: ${written(chart.lines[i][bin], chart.share)}`]];
    });
    tell(event, moment(share * figures.end), lines);
  });
  svg.addEventListener("pointerleave", () => { hush(); pointAll(map ? map.share() : -1); });
});

// The map.
const bytes = text => Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
const unpack = (film, nodes) => {
  const runs = bytes(film.runs), used = bytes(film.used), health = bytes(film.health);
  const owners = new DataView(bytes(film.owner).buffer);
  const size = film.stills * nodes;
  const out = {owner: new Uint32Array(size), used: new Uint8Array(size), health: new Uint8Array(size)};
  for (let i = 0, at = 0; i < runs.length; at += runs[i++]) {
    out.owner.fill(owners.getUint32(4 * i, true), at, at + runs[i]);
    out.used.fill(used[i], at, at + runs[i]);
    out.health.fill(health[i], at, at + runs[i]);
  }
  return out;  // node by node: still s of node n is at n * stills + s
};

class Film {
  constructor(film, first) {
    const of = key => film[key] || first[key];
    Object.assign(this, {
      policy: film.policy, interval: film.interval_s, stills: film.stills, jobs: film.jobs,
      nodes: of("nodes"), chips: of("chips"), groups: of("groups"), group: of("group"),
    });
    Object.assign(this, unpack(film, this.nodes.length));
  }
  still(seconds) { return Math.min(this.stills - 1, Math.floor(seconds / this.interval + 1e-9)); }
  fullest() {
    const used = new Array(this.stills).fill(0);
    this.used.forEach((n, at) => { used[at % this.stills] += n; });
    const arriving = used.slice(0, Math.max(1, this.still(figures.last) + 1));
    return arriving.indexOf(Math.max(...arriving));
  }
  // What is seen on a still: jobs across leaves, and leaves that several of them share.
  look(still) {
    const leaves = new Map();
    let used = 0, chips = 0, down = 0;
    for (let n = 0; n < this.nodes.length; n++) {
      const at = n * this.stills + still, job = this.owner[at];
      used += this.used[at];
      chips += this.chips[n];
      down += this.health[at] === 2;
      if (job && this.groups[this.group[n]][0] === "leaf") {
        if (!leaves.has(job)) leaves.set(job, new Set());
        leaves.get(job).add(this.group[n]);
      }
    }
    const crossing = [...leaves.values()].filter(own => own.size > 1);
    const on = new Map();
    crossing.forEach(own => own.forEach(g => on.set(g, (on.get(g) || 0) + 1)));
    const shared = new Set([...on].filter(([, n]) => n > 1).map(([g]) => g));
    return {used, chips, down, crossing: crossing.length, shared};
  }
}

// Nodes of a group stand in a block; blocks flow as words do.
const columnsOf = n => {
  for (let c = Math.ceil(Math.sqrt(n)); c <= 2 * Math.sqrt(n); c++) if (n % c === 0) return c;
  return Math.ceil(Math.sqrt(n));
};
const layout = (film, width, height) => {
  const members = film.groups.map(() => []);
  film.group.forEach((g, n) => members[g].push(n));
  const flow = cell => {
    const gap = Math.max(2, Math.min(8, Math.round(cell / 2.2)));
    const cells = new Array(film.nodes.length), blocks = [];
    let x = 2, y = 2, tall = 0;
    members.forEach((own, g) => {
      const columns = film.groups[g][0] ? columnsOf(own.length) : Math.min(own.length, Math.floor((width - 4) / cell));
      const w = columns * cell, h = Math.ceil(own.length / columns) * cell;
      if (x > 2 && x + w > width - 2) { x = 2; y += tall + gap; tall = 0; }
      own.forEach((n, i) => { cells[n] = [x + i % columns * cell, y + Math.floor(i / columns) * cell]; });
      blocks.push([x, y, w, h]);
      x += w + gap;
      tall = Math.max(tall, h);
    });
    return {cell, cells, blocks, height: y + tall + 2};
  };
  let found = flow(26);
  for (let cell = 25; cell >= 3 && found.height > height; cell--) found = flow(cell);
  return found;
};

class Panel {
  constructor(canvas, told, chosen) {
    Object.assign(this, {canvas, told, chosen});
    canvas.addEventListener("pointermove", event => this.hover(event));
    canvas.addEventListener("pointerdown", event => this.hover(event));
    canvas.addEventListener("pointerleave", () => { hush(); map.light(-1); });
  }
  get film() { return map.films[this.chosen]; }
  colour(job, styles) {
    const [number, , , nodes] = this.film.jobs[job - 1];
    if (nodes < 2) return styles.single;
    const light = parseFloat(styles.light) + [0, 9, -8][Math.floor(number / 3) % 3];
    return `hsl(${(number * 137.508) % 360} ${styles.sat} ${light}%)`;
  }
  draw() {
    const film = this.film, still = film.still(map.seconds), seen = film.look(still);
    const width = this.canvas.parentElement.clientWidth;
    if (this.drawnFor !== film || this.width !== width) {
      this.drawnFor = film;
      this.width = width;
      this.plan = layout(film, width, innerWidth < 720 ? 340 : 430);
    }
    const {cell, cells, blocks, height} = this.plan, scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = height + "px";
    const pen = this.canvas.getContext("2d"), css = getComputedStyle(root);
    const v = name => css.getPropertyValue(name).trim();
    const styles = {free: v("--free"), edge: v("--edge"), single: v("--single"), bad: v("--alarm"), ink: v("--ink"), sat: v("--job-s"), light: v("--job-l")};
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, height);
    const inner = cell - (cell > 6 ? 1.5 : cell > 4 ? 1 : 0.5);
    cells.forEach(([x, y], n) => {
      const at = n * film.stills + still, job = film.owner[at], health = film.health[at];
      pen.fillStyle = styles.free;
      pen.fillRect(x, y, inner, inner);
      if (job) {
        const h = inner * Math.min(1, film.used[at] / film.chips[n]);
        pen.globalAlpha = map.lit >= 0 && map.lit !== film.jobs[job - 1][0] ? 0.35 : 1;
        pen.fillStyle = this.colour(job, styles);
        pen.fillRect(x, y + inner - h, inner, h);
        pen.globalAlpha = 1;
      }
      if (health) {
        pen.strokeStyle = pen.fillStyle = styles.bad;
        pen.lineWidth = 1.5;
        pen.beginPath();
        if (health === 2) {
          pen.moveTo(x, y); pen.lineTo(x + inner, y + inner);
          pen.moveTo(x + inner, y); pen.lineTo(x, y + inner);
          pen.stroke();
        } else {
          pen.moveTo(x + inner, y); pen.lineTo(x + inner, y + inner * 0.5); pen.lineTo(x + inner * 0.5, y);
          pen.fill();
        }
      }
    });
    pen.strokeStyle = styles.bad;
    pen.lineWidth = cell > 6 ? 2.5 : 1.5;
    seen.shared.forEach(g => { const [x, y, w, h] = blocks[g]; pen.strokeRect(x - 1, y - 1, w + 0.5, h + 0.5); });
    this.say(seen, film);
  }
  say(seen, film) {
    const {queue_length: queue} = figures.charts;
    const words = [`In use: ${(100 * seen.used / seen.chips).toFixed(1)} % of the chips`];
    if (queue) {
      const line = queue.lines[film.policy];
      const bin = Math.floor(map.seconds / figures.end * line.length);
      if (bin < line.length && line[bin] !== null) words.push(`about ${count(Math.round(line[bin]), "job")} waiting`);
    }
    if (film.groups.some(([kind]) => kind === "leaf")) {
      words.push(count(seen.crossing, "gang") + " across leaves", count(seen.shared.size, "leaf", "leaves") + " that gangs share");
    }
    if (seen.down) words.push(count(seen.down, "node") + " down");
    const text = words.join(" \u00b7 ");
    this.canvas.setAttribute("aria-label", `Map of the cluster under ${figures.policies[film.policy]}, ${moment(map.seconds)}. ${text}`);
    if (this.told.textContent !== text) this.told.textContent = text;
    this.told.setAttribute("aria-live", map.timer ? "off" : "polite");
  }
  hover(event) {
    const box = this.canvas.getBoundingClientRect(), film = this.film, {cell, cells} = this.plan;
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const n = cells.findIndex(([cx, cy]) => x >= cx && x < cx + cell && y >= cy && y < cy + cell);
    if (n < 0) { hush(); map.light(-1); return; }
    const at = n * film.stills + film.still(map.seconds), job = film.owner[at];
    const [kind, name] = film.groups[film.group[n]];
    const lines = [];
    if (kind) lines.push([kind === "leaf" ? `under ${name}` : `in ${kind} ${name}`]);
    lines.push([`${film.used[at]} of ${film.chips[n]} chips in use`]);
    if (job) {
      const [, title, chips, nodes] = film.jobs[job - 1];
      lines.push([`${nodes > 1 ? "gang" : "job"} ${title}: ${count(chips, "chip")} on ${count(nodes, "node")}`]);
    }
    if (film.health[at]) lines.push([film.health[at] === 2 ? "down" : "some chips are broken"]);
    map.light(job && film.jobs[job - 1][3] > 1 ? film.jobs[job - 1][0] : -1);
    tell(event, film.nodes[n], lines);
  }
}

let map = null;
if (figures.films && figures.films.length) {
  const slider = document.getElementById("moment"), play = document.getElementById("play");
  const films = figures.films.map(film => new Film(film, figures.films[0]));
  const step = Math.min(...films.map(film => film.interval));
  const last = Math.max(...films.map(film => film.interval * (film.stills - 1)));
  const steps = Math.max(1, Math.round(last / step));
  map = {
    films, seconds: 0, timer: 0, panels: [],
    lit: -1,  // the number of the gang that is pointed at, on all maps
    light(number) { if (number !== this.lit) { this.lit = number; this.draw(); } },
    touched: false,
    share() { return this.touched ? this.seconds / figures.end : -1; },
    draw() { this.panels.forEach(panel => panel.draw()); },
    go(to, touched = true) {
      this.touched = touched;
      const at = Math.max(0, Math.min(steps, to));
      slider.value = at;
      this.seconds = at * step;
      slider.setAttribute("aria-valuetext", moment(this.seconds));
      document.getElementById("clock").textContent = moment(this.seconds);
      pointAll(this.share());
      this.draw();
    },
    toggle() {
      if (this.timer) { clearInterval(this.timer); this.timer = 0; }
      else {
        if (Number(slider.value) >= steps) this.go(0);
        this.timer = setInterval(() => {
          if (Number(slider.value) >= steps) this.toggle(); else this.go(Number(slider.value) + 1);
        }, 110);
      }
      play.textContent = this.timer ? "Pause" : "Play";
      play.setAttribute("aria-label", play.textContent);
      this.draw();
    },
  };
  slider.max = steps;
  each("canvas[data-panel]", canvas => {
    const i = canvas.dataset.panel, choice = document.querySelector(`select[data-panel="${i}"]`);
    const panel = new Panel(canvas, document.querySelector(`.told[data-panel="${i}"]`), Number(choice.value));
    choice.addEventListener("change", () => { panel.chosen = Number(choice.value); panel.draw(); });
    map.panels.push(panel);
  });
  slider.addEventListener("input", () => map.go(Number(slider.value)));
  play.addEventListener("click", () => map.toggle());
  document.getElementById("map").addEventListener("keydown", event => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10}[event.key];
    if (event.key === " " && event.target !== play) { event.preventDefault(); map.toggle(); }
    else if (by && event.target.tagName === "CANVAS") { event.preventDefault(); map.go(Number(slider.value) + by); }
  });
  addEventListener("resize", () => map.draw());
  // At first, when the first policy has most chips in use while jobs arrive.
  const fullest = films[0].fullest();
  map.go(Math.round(fullest * films[0].interval / step), false);
}
matchMedia("(prefers-color-scheme:dark)").addEventListener("change", () => dress(root.dataset.theme));
document.getElementById("theme").addEventListener("click", () => {
  const theme = isDark() ? "light" : "dark";
  themes.keep(theme);
  dress(theme);
});
// Paper is white.
let worn;
addEventListener("beforeprint", () => { worn = root.dataset.theme; dress("light"); });
addEventListener("afterprint", () => {
  if (worn) root.dataset.theme = worn; else delete root.dataset.theme;
  dress(worn);
});
dress(themes.kept());
})();
