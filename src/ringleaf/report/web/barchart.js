// A bar for each policy, in parts.
//
// spec: {key, title, kind, parts: [name], values: [[value by part] by policy]}

class BarChart {
  constructor(plot, spec, view) { Object.assign(this, {plot, spec, view}); }
  get shown() { return this.view.policies.map((_, i) => i).filter(i => !this.view.hidden.has(i)); }
  draw() {
    const width = Math.max(220, this.plot.clientWidth), right = width - 60;
    const sums = this.shown.map(i => this.spec.values[i].reduce((sum, value) => sum + value, 0));
    const scale = new Scale(sums, 4, right, {steps: Math.max(2, Math.floor(width / 110))});
    const row = 40, bottom = row * sums.length + 2, height = bottom + 20;
    const board = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.spec.title});
    for (const tick of scale.ticks) {
      const x = scale.at(tick);
      board.append(svg("line", {class: "grid", x1: px(x), x2: px(x), y1: 2, y2: bottom}),
        label(x, height - 5, short[this.spec.kind](tick), "dim", x < 12 ? "start" : "middle"));
    }
    this.shown.forEach((i, n) => {
      const y = row * n + 20;
      board.append(label(4, y - 5, this.view.policies[i], "strong"));
      let from = 0;
      this.spec.values[i].forEach((value, part) => {
        if (value > 0) board.append(this.bar(i, part, value, scale.at(from), scale.at(from + value), y));
        from += value;
      });
      board.append(label(scale.at(from) + 6, y + 12, words[this.spec.kind](from), "dim"));
    });
    this.plot.replaceChildren(board);
  }
  bar(i, part, value, left, right, y) {
    const bar = svg("rect", {class: `b${part}`, x: px(left), y, width: px(Math.max(0.5, right - left)), height: 16});
    bar.addEventListener("pointermove", event =>
      tip.show(event, this.view.policies[i], [[`${this.spec.parts[part]}: ${words[this.spec.kind](value)}`]]));
    bar.addEventListener("pointerleave", () => tip.hide());
    return bar;
  }
  save() {
    const rows = this.shown.map(i => [this.view.policies[i], ...this.spec.values[i]]);
    return saveCsv(this.spec.key, [["policy", ...this.spec.parts], ...rows]);
  }
}
