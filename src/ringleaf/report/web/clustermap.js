// The cluster over time: every cell is a node, nodes of a leaf or a SuperPoD stand together.
//
// A Film has stills of one run; a ClusterMap draws a still of one; a Player moves the time.

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
  // When most chips are in use, while jobs arrive.
  fullest(last) {
    const used = new Array(this.stills).fill(0);
    this.used.forEach((n, at) => { used[at % this.stills] += n; });
    const arriving = used.slice(0, Math.max(1, this.still(last) + 1));
    return arriving.indexOf(Math.max(...arriving)) * this.interval;
  }
  // What a still shows: gangs across leaves, and leaves that several of them share.
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

// When two films differ most while jobs arrive: in the part of all chips that are in use, and in
// the part of all leaves that are shared.
const mostApart = (one, other, step, last) => {
  let best = -1, found = 0;
  for (let seconds = 0; seconds <= last; seconds += step) {
    const [a, b] = [one, other].map(film => film.look(film.still(seconds)));
    const shared = Math.abs(a.shared.size - b.shared.size) / one.groups.length;
    const apart = Math.abs(a.used / a.chips - b.used / b.chips) + shared;
    if (apart > best + 1e-9) [best, found] = [apart, seconds];
  }
  return found;
};

// Nodes of a group stand in a block; blocks flow as words do.
const columnsOf = n => {
  for (let c = Math.ceil(Math.sqrt(n)); c <= 2 * Math.sqrt(n); c++) if (n % c === 0) return c;
  return Math.ceil(Math.sqrt(n));
};
const layout = (film, width, height) => {
  const members = film.groups.map(() => []);
  film.group.forEach((g, n) => members[g].push(n));
  const flow = cell => {
    const gap = Math.max(3, Math.min(9, Math.round(cell / 2.2)));
    const cells = new Array(film.nodes.length), blocks = [];
    let x = 3, y = 3, tall = 0, wide = 0;
    members.forEach((own, g) => {
      const columns = film.groups[g][0] ? columnsOf(own.length) : Math.min(own.length, Math.floor((width - 6) / cell));
      const w = columns * cell, h = Math.ceil(own.length / columns) * cell;
      if (x > 3 && x + w > width - 3) { x = 3; y += tall + gap; tall = 0; }
      own.forEach((n, i) => { cells[n] = [x + i % columns * cell, y + Math.floor(i / columns) * cell]; });
      blocks.push([x, y, w, h]);
      x += w + gap;
      wide = Math.max(wide, x - gap + 3);
      tall = Math.max(tall, h);
    });
    return {cell, cells, blocks, height: y + tall + 3, wide};
  };
  let found = flow(30);
  for (let cell = 29; cell >= 3 && found.height > height; cell--) found = flow(cell);
  return found;
};

class ClusterMap {
  // about(film, still, seen) gives words for below the map.
  constructor(canvas, told, choice, player, about) {
    Object.assign(this, {canvas, told, choice, player, about});
    canvas.addEventListener("pointermove", event => this.hover(event));
    canvas.addEventListener("pointerdown", event => this.hover(event));
    canvas.addEventListener("pointerleave", () => { tip.hide(); player.light(-1); });
  }
  get film() { return this.player.films[Number(this.choice.value)]; }
  colour(job, styles) {
    const [number, , , nodes] = this.film.jobs[job - 1];
    if (nodes < 2) return styles.single;
    const light = parseFloat(styles.light) + [0, 9, -8][Math.floor(number / 3) % 3];
    return `hsl(${(number * 137.508) % 360} ${styles.sat} ${light}%)`;
  }
  draw() {
    const film = this.film, {player} = this, still = film.still(player.seconds), seen = film.look(still);
    const width = this.canvas.parentElement.clientWidth;
    if (this.drawnFor !== film || this.width !== width) {
      this.drawnFor = film;
      this.width = width;
      this.plan = layout(film, width, innerWidth < 720 ? 340 : 460);
    }
    const {cell, cells, blocks, height} = this.plan, scale = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(height * scale);
    this.canvas.style.height = height + "px";
    const pen = this.canvas.getContext("2d"), css = getComputedStyle(document.documentElement);
    const v = name => css.getPropertyValue(name).trim();
    const styles = {free: v("--free"), edge: v("--edge"), single: v("--single"), bad: v("--alarm"), sat: v("--job-s"), light: v("--job-l")};
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, height);
    const inner = cell - (cell > 6 ? 1.5 : cell > 4 ? 1 : 0.5);
    cells.forEach(([x, y], n) => {
      const at = n * film.stills + still, job = film.owner[at], health = film.health[at];
      pen.fillStyle = styles.free;
      pen.fillRect(x, y, inner, inner);
      if (job) {
        const h = inner * Math.min(1, film.used[at] / film.chips[n]);
        pen.globalAlpha = player.lit >= 0 && player.lit !== film.jobs[job - 1][0] ? 0.25 : 1;
        pen.fillStyle = this.colour(job, styles);
        pen.fillRect(x, y + inner - h, inner, h);
        pen.globalAlpha = 1;
      }
      if (health) this.cross(pen, styles.bad, x, y, inner, health);
    });
    pen.strokeStyle = styles.bad;
    pen.lineWidth = cell > 6 ? 2.5 : 1.5;
    seen.shared.forEach(g => { const [x, y, w, h] = blocks[g]; pen.strokeRect(x - 1.5, y - 1.5, w + 1.5, h + 1.5); });
    this.say(film, still, seen);
  }
  cross(pen, colour, x, y, size, health) {
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = 1.5;
    pen.beginPath();
    if (health === 2) {
      pen.moveTo(x, y); pen.lineTo(x + size, y + size);
      pen.moveTo(x + size, y); pen.lineTo(x, y + size);
      pen.stroke();
    } else {
      pen.moveTo(x + size, y); pen.lineTo(x + size, y + size * 0.5); pen.lineTo(x + size * 0.5, y);
      pen.fill();
    }
  }
  say(film, still, seen) {
    const text = this.about(film, still, seen).join(" \u00b7 ");
    const name = this.choice.selectedOptions[0].textContent;
    this.canvas.setAttribute("aria-label", `Map of the cluster under ${name}, ${this.player.words}. ${text}`);
    if (this.told.textContent !== text) this.told.textContent = text;
    this.told.setAttribute("aria-live", this.player.timer ? "off" : "polite");
  }
  hover(event) {
    const box = this.canvas.getBoundingClientRect(), film = this.film, {cell, cells} = this.plan;
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const n = cells.findIndex(([cx, cy]) => x >= cx && x < cx + cell && y >= cy && y < cy + cell);
    if (n < 0) { tip.hide(); this.player.light(-1); return; }
    const at = n * film.stills + film.still(this.player.seconds), job = film.owner[at];
    const [kind, name] = film.groups[film.group[n]];
    const lines = [];
    if (kind) lines.push([kind === "leaf" ? `under ${name}` : `in ${kind} ${name}`]);
    lines.push([`${film.used[at]} of ${film.chips[n]} chips in use`]);
    if (job) {
      const [, title, chips, nodes] = film.jobs[job - 1];
      lines.push([`${nodes > 1 ? "gang" : "job"} ${title}: ${count(chips, "chip")} on ${count(nodes, "node")}`]);
    }
    if (film.health[at]) lines.push([film.health[at] === 2 ? "down" : "some chips are broken"]);
    this.player.light(job && film.jobs[job - 1][3] > 1 ? film.jobs[job - 1][0] : -1);
    tip.show(event, film.nodes[n], lines);
  }
}

class Player {
  // changed() is called after every move; end is where charts end.
  constructor(films, controls, end, changed) {
    Object.assign(this, {films, ...controls, end, changed, seconds: 0, timer: 0, maps: [], lit: -1});
    this.step = Math.min(...films.map(film => film.interval));
    const last = Math.max(...films.map(film => film.interval * (film.stills - 1)));
    this.steps = Math.max(1, Math.round(last / this.step));
    this.slider.max = this.steps;
    this.slider.addEventListener("input", () => this.go(this.slider.value * this.step));
    this.play.addEventListener("click", () => this.toggle());
  }
  get words() { return moment(this.seconds, this.end); }
  light(number) { if (number !== this.lit) { this.lit = number; this.draw(); } }
  draw() { this.maps.forEach(map => map.draw()); }
  go(seconds) {
    const at = Math.max(0, Math.min(this.steps, Math.round(seconds / this.step)));
    this.slider.value = at;
    this.seconds = at * this.step;
    this.slider.setAttribute("aria-valuetext", this.words);
    this.clock.textContent = this.words;
    this.changed();
    this.draw();
  }
  move(steps) { this.go(this.seconds + steps * this.step); }
  get isAtEnd() { return Number(this.slider.value) >= this.steps; }
  toggle() {
    if (this.timer) { clearInterval(this.timer); this.timer = 0; }
    else {
      if (this.isAtEnd) this.go(0);
      this.timer = setInterval(() => { if (this.isAtEnd) this.toggle(); else this.move(1); }, 110);
    }
    this.play.textContent = this.timer ? "Pause" : "Play";
    this.play.setAttribute("aria-label", this.play.textContent);
    this.changed();
    this.draw();
  }
}
