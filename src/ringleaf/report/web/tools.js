// What charts and maps share: elements, words for values, the tooltip, scales, CSV.
// Names are only ever set as text, never as markup.

const find = (query, from = document) => from.querySelector(query);
const each = (query, act, from = document) => from.querySelectorAll(query).forEach(act);

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) if (value !== null) element.setAttribute(name, value);
  element.append(...children);
  return element;
};
const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const SVG = "http://www.w3.org/2000/svg";
const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const label = (x, y, words, kind = "", anchor = null) =>
  svg("text", {x: px(x), y: px(y), class: kind, "text-anchor": anchor}, words);
const px = value => String(Math.round(10 * value) / 10);

const MINUTE = 60, HOUR = 3600, DAY = 86400;
const NONE = "\u2013";
const words = {
  share(value) {
    const percent = 100 * value;
    if (percent === 0) return "0 %";
    const size = Math.abs(percent);
    return (size >= 1 ? percent.toFixed(1) : size >= 0.1 ? percent.toFixed(2) : String(+percent.toPrecision(2))) + " %";
  },
  number(value) {
    return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(3));
  },
  duration(value) {
    const size = Math.abs(value);
    if (size >= 2 * DAY) return (value / DAY).toFixed(1) + " d";
    if (size >= HOUR) return (value / HOUR).toFixed(1) + " h";
    if (size >= 2 * MINUTE) return (value / MINUTE).toFixed(1) + " min";
    return +value.toPrecision(3) + " s";
  },
};
const short = {
  share: value => +(100 * value).toPrecision(3) + " %",
  number: value => Math.abs(value) >= 10000 ? +(value / 1000).toPrecision(3) + "k" : String(+value.toPrecision(3)),
  duration(value) {
    for (const [unit, name] of [[DAY, " d"], [HOUR, " h"], [MINUTE, " min"]])
      if (value >= unit) return +(value / unit).toPrecision(2) + name;
    return +value.toPrecision(2) + " s";
  },
};
const count = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const moment = (seconds, end) => {
  const days = Math.floor(seconds / DAY), rest = seconds - days * DAY;
  const pad = n => String(Math.floor(n)).padStart(2, "0");
  const time = `${pad(rest / HOUR)}:${pad(rest % HOUR / MINUTE)}`;
  return end >= DAY ? `day ${days + 1}, ${time}` : `${time} h`;
};

// One tooltip for the whole page.
const tip = {
  box: null,
  show(event, title, lines) {
    if (!this.box) document.body.append(this.box = html("div", {id: "tip"}));
    this.box.replaceChildren(html("b", {}, title), ...lines.map(line => html("div", {}, ...line)));
    this.box.hidden = false;
    const width = document.documentElement.clientWidth, own = this.box.offsetWidth;
    const left = event.clientX + 16 + own > width ? Math.max(4, event.clientX - 12 - own) : event.clientX + 16;
    this.box.style.left = left + scrollX + "px";
    this.box.style.top = event.clientY + 16 + scrollY + "px";
  },
  hide() { if (this.box) this.box.hidden = true; },
};

const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "1 2", "6 2 2 2"];
const COLOURS = 8;
const colourOf = i => `p${i % COLOURS}`;
const dashesOf = i => i ? DASHES[(i + Math.floor(i / COLOURS)) % DASHES.length] || null : null;
const swatch = i => svg("svg", {class: "swatch", viewBox: "0 0 30 10", "aria-hidden": "true"},
  svg("path", {class: `line ${colourOf(i)}${i ? "" : " own"}`, d: "M1 5L29 5", "stroke-dasharray": dashesOf(i)}));

// Values to pixels. A logarithmic scale begins with a place for 0, and not below the decade
// that matters: a tenth of a job, a thousandth of all chips. Smaller values are at its edge.
const TIMES = [1, 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 10 * DAY, 100 * DAY];
const SPANS = [
  2, 5, 10, 15, 30, ...[1, 2, 5, 10, 15, 30].map(n => n * MINUTE), ...[1, 2, 3, 6, 12].map(n => n * HOUR),
  ...[1, 2, 5, 10, 20, 50, 100].map(n => n * DAY),
];
const LEAST = {number: 0.1, share: 0.001, duration: 1};
const ZERO = 22;
const FAR = 100;
const differByHundreds = values => {
  const positive = values.filter(value => value > 0);
  return positive.length > 0 && Math.max(...positive) >= FAR * Math.min(...positive);
};
class Scale {
  constructor(values, from, to, {log = false, top = null, steps = 4, isTime = false, least = 0} = {}) {
    Object.assign(this, {from, to, log, isTime, least});
    const known = values.filter(Number.isFinite);
    const most = top === null ? Math.max(...known, 0) : top;
    if (log) this.byDecades(known.filter(value => value > 0));
    else this.bySteps(most > 0 ? most : 1, steps);
  }
  bySteps(most, steps) {
    const rough = most / steps, size = 10 ** Math.floor(Math.log10(rough));
    const round = this.isTime && rough > 1 && rough <= SPANS.at(-1) ? SPANS : [1, 2, 2.5, 5, 10].map(n => n * size);
    const step = round.find(n => n >= rough * 0.999);
    const n = Math.max(1, Math.ceil(most / step - 1e-9));
    this.ticks = Array.from({length: n + 1}, (_, i) => +(i * step).toPrecision(10));
    this.high = this.ticks[n];
  }
  byDecades(positive) {
    const high = Math.max(...positive), low = Math.max(Math.min(...positive), Math.min(this.least, high / 10));
    const all = this.isTime ? TIMES : Array.from({length: 24}, (_, i) => 10 ** (i - 9));
    this.low = Math.max(...all.filter(n => n <= low * 1.0001), Math.min(...all));
    this.high = Math.min(...all.filter(n => n >= high * 0.9999 && n > this.low), Math.max(high, this.low * 10));
    const ticks = all.filter(n => n >= this.low && n <= this.high);
    const fine = this.isTime ? SPANS : ticks.flatMap(n => [n, 2 * n, 5 * n]);
    this.ticks = [0, ...(ticks.length > 2 ? ticks : fine.filter(n => n >= this.low && n <= this.high))];
  }
  at(value) {
    const length = this.to - this.from;
    if (!this.log) return this.from + length * Math.max(0, value) / this.high;
    if (!(value > 0)) return this.from;
    const gap = Math.sign(length) * ZERO;
    const share = Math.log(Math.max(value, this.low) / this.low) / Math.log(this.high / this.low);
    return this.from + gap + (length - gap) * Math.min(1, share);
  }
}

// Rows as a file that spreadsheets read.
const saveCsv = (name, rows) => {
  const cell = value => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const text = rows.map(row => row.map(cell).join(",") + "\n").join("");
  const link = html("a", {href: URL.createObjectURL(new Blob([text], {type: "text/csv"})), download: `${name}.csv`});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  return text;
};
const toolButton = (words, title, act) => {
  const button = html("button", {type: "button", class: "tool", title}, words);
  button.addEventListener("click", act);
  return button;
};
