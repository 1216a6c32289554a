// Ranges on one axis: a dot for each policy, a line through what it ranges over.
//
// spec: {key, kind, names, groups: [{title, note, values: [{dot, low, high, tell} | null, by policy]}],
//        csv: [head, ...rows by group and policy]}

class RangeChart {
  constructor(plot, spec, view, {left = 96, line = null, log = null} = {}) {
    Object.assign(this, {plot, spec, view, edge: left, line, log});
  }
  get shown() { return this.view.policies.map((_, i) => i).filter(i => !this.view.hidden.has(i)); }
  draw() {
    const width = Math.max(220, this.plot.clientWidth), left = this.edge, right = width - 16;
    const shown = this.shown, lane = shown.length > 6 ? 9 : 12;
    const groups = this.spec.groups.filter(group => shown.some(i => group.values[i]));
    const own = groups.flatMap(group => shown.map(i => group.values[i]).filter(Boolean));
    const values = own.flatMap(value => [value.dot, value.low, value.high]).filter(Number.isFinite);
    const log = this.log === null ? differByHundreds(own.map(value => value.dot)) : this.log;
    const isLog = log && values.some(value => value > 0);
    const isTime = this.spec.kind === "duration", steps = Math.max(2, Math.floor(width / 130));
    const scale = new Scale(values, left + 8, right, {log: isLog, isTime, steps, least: LEAST[this.spec.kind]});
    const tall = Math.max(lane * shown.length, this.edge ? 30 : 0) + (this.edge ? 14 : 6);
    const bottom = 4 + tall * groups.length, height = bottom + 20;
    const board = svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": this.spec.title});
    board.append(...this.ticks(scale, right, bottom, height));
    groups.forEach((group, g) => {
      const top = 4 + g * tall;
      if (g) board.append(svg("line", {class: "tick", x1: 0, x2: right, y1: px(top - 3), y2: px(top - 3)}));
      if (this.edge) board.append(label(left - 8, top + 13, group.title, "strong", "end"), label(left - 8, top + 27, group.note, "dim", "end"));
      const mark = this.line === null ? null : group.values[this.line];
      if (mark) board.append(svg("line", {class: "reference", x1: px(scale.at(mark.dot)), x2: px(scale.at(mark.dot)), y1: top, y2: top + tall - 6}));
      shown.forEach((i, n) => {
        if (group.values[i]) board.append(this.dot(i, group, scale, top + lane * (n + 0.5), lane, left, right));
      });
    });
    this.plot.replaceChildren(board);
  }
  *ticks(scale, right, bottom, height) {
    let last = -Infinity;
    for (const tick of scale.ticks) {
      const x = scale.at(tick), named = short[this.spec.kind](tick), room = 4 * named.length + 10;
      yield svg("line", {class: "grid", x1: px(x), x2: px(x), y1: 2, y2: bottom});
      if (x - last < room * 1.6) continue;
      last = x;
      const anchor = x + room > right + 14 ? "end" : x - room < 0 ? "start" : "middle";
      yield label(anchor === "start" ? x - 4 : x, height - 5, named, "dim", anchor);
    }
  }
  dot(i, group, scale, y, lane, left, right) {
    const {dot, low, high, tell} = group.values[i];
    const mark = svg("g", {class: colourOf(i)}, svg("rect", {class: "hit", x: left, y: px(y - lane / 2), width: right - left, height: lane}));
    if (low !== null && high !== null) {
      const [a, b] = [scale.at(low), scale.at(high)];
      mark.append(svg("line", {class: "whisker", x1: px(a), x2: px(b), y1: px(y), y2: px(y)}));
      for (const end of [a, b]) mark.append(svg("line", {class: "whisker", x1: px(end), x2: px(end), y1: px(y - 3), y2: px(y + 3)}));
    }
    mark.append(svg("circle", {class: "dot", cx: px(scale.at(dot)), cy: px(y), r: i ? 3.6 : 4.6}));
    mark.addEventListener("pointermove", event => tip.show(event, this.view.policies[i], tell.map(line => [line])));
    mark.addEventListener("pointerleave", () => tip.hide());
    return mark;
  }
  save() {
    const hidden = new Set([...this.view.hidden].map(i => this.view.policies[i]));
    const [head, ...rows] = this.spec.csv;
    return saveCsv(this.spec.key, [head, ...rows.filter(row => !hidden.has(row[1]))]);
  }
}
