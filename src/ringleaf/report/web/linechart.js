// Lines over time, one for each policy.
//
// view: {policies, hidden: Set, from, to, end, warm, last, now}, all times in seconds.
// acts: {pick(seconds), zoom(from, to)}; a click picks a time, dragging zooms.

const DRAG = 6;

class LineChart {
  constructor(figure, spec, view, acts) {
    Object.assign(this, {figure, spec, view, acts, log: null, drag: null});
    this.plot = find(".plot", figure);
    const tools = find(".tools", figure);
    this.logButton = toolButton("log", "Logarithmic scale", () => { this.log = !this.isLog; this.draw(); });
    tools.append(this.logButton, toolButton("CSV", "Download what this chart shows", () => this.save()));
  }
  get shown() { return this.view.policies.map((_, i) => i).filter(i => !this.view.hidden.has(i)); }
  get bins() { return this.spec.lines[0].length; }
  bin(seconds) { return Math.max(0, Math.min(this.bins - 1, Math.floor(seconds / this.view.end * this.bins))); }
  seen(i) { return this.spec.lines[i].slice(this.bin(this.view.from), this.bin(this.view.to) + 1); }
  time(x) {
    const {from, to} = this.view, share = (x - this.left) / (this.right - this.left);
    return from + Math.max(0, Math.min(1, share)) * (to - from);
  }
  x(seconds) {
    const {from, to} = this.view;
    return this.left + (this.right - this.left) * (seconds - from) / (to - from);
  }
  draw() {
    const width = Math.max(240, this.plot.clientWidth), height = 220;
    Object.assign(this, {left: 52, right: width - 10, top: 10, bottom: height - 26});
    const means = this.shown.map(i => {
      const values = this.seen(i).filter(value => value !== null);
      return values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
    });
    this.isLog = this.log === null ? this.spec.top === null && differByHundreds(means) : this.log;
    const values = this.shown.flatMap(i => this.seen(i)).filter(value => value !== null);
    if (this.isLog && !values.some(value => value > 0)) this.isLog = false;
    this.logButton.setAttribute("aria-pressed", String(this.isLog));
    this.scale = new Scale(values, this.bottom, this.top, {log: this.isLog, top: this.isLog ? null : this.spec.top, least: LEAST[this.spec.kind]});
    const board = svg("svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: "0",
      "aria-label": `${this.spec.title} over time. Click to move the map, drag to zoom, arrows move, 0 shows all.`,
    });
    board.append(...this.uncounted(), ...this.rows(), ...this.columns(height));
    const clip = `clip-${this.spec.key}`;
    board.append(svg("clipPath", {id: clip}, svg("rect", {x: this.left, y: 0, width: this.right - this.left, height})));
    board.append(svg("g", {"clip-path": `url(#${clip})`}, ...this.shown.map(i => this.line(i))));
    this.select = svg("rect", {class: "select", y: this.top, height: this.bottom - this.top, visibility: "hidden"});
    this.pointer = svg("line", {class: "cursor", y1: this.top, y2: this.bottom});
    this.clock = svg("line", {class: "clock", y1: this.top, y2: this.bottom});
    board.append(this.select, this.clock, this.pointer);
    const focused = this.plot.contains(document.activeElement);
    this.plot.replaceChildren(board);
    this.listen(board);
    if (focused) board.focus({preventScroll: true});
    this.pointAt(this.clock, this.view.now);
  }
  *uncounted() {
    for (const [from, to, name] of [[0, this.view.warm, "warm-up"], [this.view.last, this.view.end, "no more arrivals"]]) {
      const x1 = Math.max(this.left, this.x(from)), x2 = Math.min(this.right, this.x(to));
      if (x2 - x1 <= 1) continue;
      yield svg("rect", {class: "uncounted", x: px(x1), y: this.top, width: px(x2 - x1), height: this.bottom - this.top});
      if (x2 - x1 > 6.5 * name.length) yield label(x1 + 4, this.top + 12, name, "dim");
    }
  }
  *rows() {
    let last = Infinity;
    for (const tick of this.scale.ticks) {
      const y = this.scale.at(tick);
      if (last - y < 14) continue;
      last = y;
      yield svg("line", {class: "grid", x1: this.left, x2: this.right, y1: px(y), y2: px(y)});
      yield label(this.left - 6, y + 4, short[this.spec.kind](tick), "", "end");
    }
  }
  *columns(height) {
    const {from, to} = this.view, span = to - from;
    const [unit, name] = span >= 3 * DAY ? [DAY, "d"] : span >= 3 * HOUR ? [HOUR, "h"] : [MINUTE, "min"];
    const many = Math.max(2, Math.floor((this.right - this.left) / 70));
    const step = new Scale([span / unit], 0, 1, {steps: many}).ticks[1];
    for (let tick = Math.ceil(from / unit / step) * step; tick * unit <= to * 1.0001; tick += step) {
      const x = this.x(tick * unit);
      yield svg("line", {class: "tick", x1: px(x), x2: px(x), y1: this.bottom, y2: this.bottom + 4});
      yield label(x, height - 8, `${+tick.toPrecision(6)} ${name}`, "", x > this.right - 16 ? "end" : "middle");
    }
  }
  line(i) {
    const step = this.view.end / this.bins;
    let path = "", pen = "M";
    this.spec.lines[i].forEach((value, bin) => {
      const at = (bin + 0.5) * step;
      if (value === null || at < this.view.from - step || at > this.view.to + step) { pen = "M"; return; }
      path += `${pen}${px(this.x(at))} ${px(this.scale.at(value))}`;
      pen = "L";
    });
    return svg("path", {class: `line ${colourOf(i)}${i ? "" : " own"}`, d: path, "stroke-dasharray": dashesOf(i)});
  }
  pointAt(mark, seconds) {
    const on = seconds !== null && seconds >= this.view.from && seconds <= this.view.to;
    mark.classList.toggle("on", on);
    if (on) { mark.setAttribute("x1", px(this.x(seconds))); mark.setAttribute("x2", px(this.x(seconds))); }
  }
  pointed(seconds) { this.pointAt(this.pointer, seconds); }
  clocked() { this.pointAt(this.clock, this.view.now); }
  listen(board) {
    const xOf = event => (event.clientX - board.getBoundingClientRect().left) * board.viewBox.baseVal.width / board.clientWidth;
    board.addEventListener("pointerdown", event => {
      if (event.button) return;
      this.drag = {from: xOf(event), moved: false};
      board.setPointerCapture(event.pointerId);
    });
    board.addEventListener("pointermove", event => {
      const x = xOf(event);
      if (this.drag && Math.abs(x - this.drag.from) > DRAG) this.drag.moved = true;
      if (this.drag && this.drag.moved) { tip.hide(); this.selectTo(x); }
      else if (x >= this.left && x <= this.right) this.tell(event, this.time(x));
      else { tip.hide(); this.acts.point(null); }
    });
    board.addEventListener("pointerup", event => {
      const drag = this.drag, x = xOf(event);
      this.drag = null;
      if (!drag) return;
      if (drag.moved) this.acts.zoom(...[this.time(drag.from), this.time(x)].sort((a, b) => a - b));
      else if (x >= this.left && x <= this.right) this.acts.pick(this.time(x));
    });
    board.addEventListener("pointercancel", () => { this.drag = null; this.select.setAttribute("visibility", "hidden"); });
    board.addEventListener("pointerleave", () => { tip.hide(); this.acts.point(null); });
    board.addEventListener("keydown", event => {
      const {from, to, now, end} = this.view, span = to - from, at = now === null ? (from + to) / 2 : now;
      const near = half => this.acts.zoom(Math.max(0, at - half), Math.min(end, at + half));
      const act = {
        ArrowLeft: () => this.acts.pick(Math.max(0, at - span / 60)),
        ArrowRight: () => this.acts.pick(Math.min(end, at + span / 60)),
        "+": () => near(span / 4), "-": () => near(span), 0: () => this.acts.zoom(0, end), Escape: () => this.acts.zoom(0, end),
      }[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  }
  selectTo(x) {
    const [a, b] = [this.drag.from, x].map(v => Math.max(this.left, Math.min(this.right, v))).sort((c, d) => c - d);
    fill(this.select, {x: px(a), width: px(b - a), visibility: "visible"}, []);
  }
  tell(event, seconds) {
    this.acts.point(seconds);
    const bin = this.bin(seconds);
    tip.show(event, moment(seconds, this.view.end), this.shown.map(i => {
      const value = this.spec.lines[i][bin];
      return [swatch(i), `${this.view.policies[i]}: ${value === null ? NONE : words[this.spec.kind](value)}`];
    }));
  }
  save() {
    const first = this.bin(this.view.from), last = this.bin(this.view.to), step = this.view.end / this.bins;
    const rows = [["time_s", ...this.shown.map(i => this.view.policies[i])]];
    for (let bin = first; bin <= last; bin++)
      rows.push([+((bin + 1) * step).toPrecision(8), ...this.shown.map(i => this.spec.lines[i][bin])]);
    return saveCsv(this.spec.key, rows);
  }
}
