// Small plots in SVG. All text goes through textContent: a key may be called anything.

const SVG = "http://www.w3.org/2000/svg";

export function draw(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function text(x, y, words, attributes = {}) {
  return draw("text", { x, y, ...attributes }, String(words));
}

function titled(shape, words) {
  const title = draw("title");
  title.textContent = words;
  shape.append(title);
  return shape;
}

function frame(figure, height, label) {
  const width = Math.max(240, Math.floor(figure.clientWidth));
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  return { svg, width };
}

export function nothing(figure, words) {
  const told = document.createElement("p");
  told.className = "none";
  told.textContent = words;
  figure.replaceChildren(told);
}

// Round steps that cover low to high in about `count` parts.
function ticks(low, high, count) {
  const span = high - low || 1;
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= count);
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9) * step; at <= high + step * 1e-6; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

function yAxis(svg, low, high, place, left, right, format, base) {
  // Round numbers of KiB where the base is 1024, not of bytes.
  const unit = base ? base ** Math.max(0, Math.floor(Math.log(high) / Math.log(base))) : 1;
  const found = ticks(low / unit, high / unit, 4).map((tick) => tick * unit);
  if (found[0] > low) found.unshift(low);
  for (const at of found) {
    const y = place(at);
    svg.append(draw("line", { x1: left, x2: right, y1: y, y2: y, class: "grid" }));
    svg.append(text(left - 6, y + 4, format(at), { "text-anchor": "end" }));
  }
}

// One bar per channel; where there are more than fit, neighbours share a bar: pale up to the fullest, dark up to the average.
export function bars(figure, { values, labels, format, label, over, base }) {
  if (!values.length) return nothing(figure, "No batch is committed yet.");
  const height = 220, left = 58, top = 10, bottom = 24;
  const { svg, width } = frame(figure, height, label);
  const room = width - left - 4;
  const each = Math.ceil(values.length / Math.max(1, Math.floor(room / 4)));
  const groups = [];
  for (let start = 0; start < values.length; start += each) {
    const part = values.slice(start, start + each);
    groups.push({ start, last: start + part.length - 1, most: Math.max(...part), mean: part.reduce((a, b) => a + b, 0) / part.length });
  }
  const average = values.reduce((a, b) => a + b, 0) / values.length;
  const high = Math.max(...values, 1e-9) * 1.04;
  const y = (value) => top + (height - top - bottom) * (1 - value / high);
  yAxis(svg, 0, high, y, left, width - 4, format, base);
  const step = room / groups.length;
  const gap = step > 6 ? Math.min(step * 0.25, 10) : step > 3 ? 1 : 0;
  const wide = Math.min(step - gap, 90);
  groups.forEach((group, place) => {
    const x = left + place * step + (step - wide) / 2;
    const who = group.start === group.last ? labels[group.start] : `${labels[group.start]} to ${labels[group.last]}`;
    const hot = (value) => (over && value > over * average ? " over" : "");
    const bar = (value, kind) => draw("rect", { x, width: wide, y: y(value), height: Math.max(0, y(0) - y(value)), class: `bar${kind}${hot(value)}` });
    const words = each > 1 ? `channels ${who}: fullest ${format(group.most)}, average ${format(group.mean)}` : `channel ${who}: ${format(group.most)}`;
    const both = each > 1 ? [bar(group.most, " peak"), bar(group.mean, "")] : [bar(group.most, "")];
    svg.append(titled(draw("g", {}, ...both), words));
  });
  const every = Math.ceil(groups.length / Math.max(1, Math.floor(room / 46)));
  for (let place = 0; place < groups.length; place += every)
    svg.append(text(left + (place + 0.5) * step, height - 8, labels[groups[place].start], { "text-anchor": "middle" }));
  svg.append(draw("line", { x1: left, x2: width - 4, y1: y(0), y2: y(0), class: "axis" }));
  svg.append(draw("line", { x1: left, x2: width - 4, y1: y(average), y2: y(average), class: "average" }));
  const key = [["average", "average of all channels"]];
  if (each > 1) key.unshift(["bar peak", `fullest of ${each} channels`], ["bar", "their average"]);
  if (over) key.push(["bar over", `above ${over} times the average`]);
  figure.replaceChildren(svg, legend(key));
}

function legend(entries) {
  const list = document.createElement("p");
  list.className = "legend";
  for (const [kind, words] of entries) {
    const item = document.createElement("span");
    const sign = draw("svg", { viewBox: "0 0 16 14", "aria-hidden": "true" });
    const line = ["average", "mark", "curve"].includes(kind);
    const circle = ["before", "predicted", "achieved"].includes(kind);
    if (line) sign.append(draw("line", { x1: 0, x2: 16, y1: 7, y2: 7, class: kind }));
    else if (circle) sign.append(draw("circle", { cx: 8, cy: 7, r: 4.5, class: kind }));
    else sign.append(draw("rect", { x: 1, y: 1, width: 13, height: 12, class: kind }));
    item.append(sign, words);
    list.append(item);
  }
  return list;
}

// A curve over batches, with marks where the table changed.
export function curve(figure, { points, low, least, format, label, base, marks = [] }) {
  if (!points.length) return nothing(figure, "No batch is committed yet.");
  const height = 200, left = 58, top = 18, bottom = 24;
  const { svg, width } = frame(figure, height, label);
  const right = width - 10;
  const high = Math.max(least, ...points.map((point) => point.y)) + 1e-9;
  const ceiling = low + (high - low) * 1.05;
  const first = points[0].x, last = points[points.length - 1].x;
  const x = (value) => (first === last ? (left + right) / 2 : left + ((right - left) * (value - first)) / (last - first));
  const y = (value) => top + (height - top - bottom) * (1 - (value - low) / (ceiling - low));
  yAxis(svg, low, ceiling, y, left, right, format, base);
  let free = -1;
  for (const mark of marks.filter((item) => item.x >= first && item.x <= last)) {
    svg.append(titled(draw("line", { x1: x(mark.x), x2: x(mark.x), y1: top, y2: height - bottom, class: "mark" }), mark.words));
    if (x(mark.x) > free) {
      const tail = x(mark.x) > width - 40;
      svg.append(text(x(mark.x), top - 6, mark.name, { class: "markname", "text-anchor": tail ? "end" : "middle" }));
      free = x(mark.x) + 34;
    }
  }
  svg.append(draw("line", { x1: left, x2: right, y1: y(low), y2: y(low), class: "axis" }));
  const path = points.map((point, place) => `${place ? "L" : "M"}${x(point.x).toFixed(1)} ${y(point.y).toFixed(1)}`).join("");
  svg.append(draw("path", { d: path, class: "curve" }));
  const radius = points.length > 120 ? 1.5 : 3;
  for (const point of points) svg.append(titled(draw("circle", { cx: x(point.x), cy: y(point.y), r: radius, class: "dot" }), `batch ${point.x}: ${format(point.y)}`));
  const whole = ticks(first, last, Math.max(2, Math.floor((right - left) / 70))).filter(Number.isInteger);
  for (const at of whole.length ? whole : [first]) svg.append(text(x(at), height - 8, at, { "text-anchor": "middle" }));
  const key = [["curve", "by batch"]];
  if (marks.length) key.push(["mark", "table changed (its epoch)"]);
  figure.replaceChildren(svg, legend(key));
}

// Names with a bar each.
export function ranking(figure, { rows, format, label }) {
  if (!rows.length) return nothing(figure, "No tuple has come yet.");
  const line = 22;
  const { svg, width } = frame(figure, rows.length * line + 4, label);
  const left = Math.min(180, width * 0.42), room = width - left - 62;
  const most = Math.max(...rows.map((row) => row.value)) || 1;
  rows.forEach((row, place) => {
    const y = place * line + 2;
    const fits = Math.floor(left / 7.2);
    const letters = Array.from(row.name);
    const short = letters.length > fits ? `${letters.slice(0, fits - 1).join("")}…` : row.name;
    svg.append(titled(text(0, y + 14, short, { class: "name mono" }), row.name));
    svg.append(titled(draw("rect", { x: left, y: y + 3, width: Math.max(1, (room * row.value) / most), height: line - 8, class: "bar" }), `${row.name}: ${format(row.value)}`));
    svg.append(text(left + (room * row.value) / most + 6, y + 14, format(row.value)));
  });
  figure.replaceChildren(svg);
}

// Channels that give on the left, those that take on the right, and a band for each way.
export function flows(figure, { items, most, label }) {
  if (!items.length) return nothing(figure, "Nothing has moved so far.");
  const shown = items.slice(0, most);
  const size = (flow) => flow.slots + flow.keys;
  const sides = ["source", "target"].map((side) => {
    const sums = new Map();
    for (const flow of shown) sums.set(flow[side], (sums.get(flow[side]) || 0) + size(flow));
    return [...sums.entries()].sort((a, b) => a[0] - b[0]);
  });
  const gap = 5, least = 11;
  const total = shown.reduce((sum, flow) => sum + size(flow), 0);
  const count = Math.max(...sides.map((side) => side.length));
  const height = Math.min(560, count * 24 + 70);
  const { svg, width } = frame(figure, height, label);
  const left = 64, right = width - 64, top = 18;
  const places = sides.map((side) => {
    const room = height - top - 4 - gap * (side.length - 1) - least * side.length;
    const found = new Map();
    let y = top;
    for (const [channel, sum] of side) {
      const tall = least + (Math.max(0, room) * sum) / total;
      found.set(channel, { y, tall, sum, used: 0 });
      y += tall + gap;
    }
    return found;
  });
  svg.append(text(left, 10, "from channel", { "text-anchor": "middle" }), text(right, 10, "to channel", { "text-anchor": "middle" }));
  for (const flow of [...shown].sort((a, b) => a.source - b.source || a.target - b.target)) {
    const ends = [places[0].get(flow.source), places[1].get(flow.target)];
    const thick = ends.map((end) => (end.tall * size(flow)) / end.sum);
    const [from, to] = ends.map((end, side) => { const y = end.y + end.used; end.used += thick[side]; return y; });
    const [a, b, middle] = [left + 6, right - 6, (left + right) / 2];
    const d = `M${a} ${from}C${middle} ${from} ${middle} ${to} ${b} ${to}v${thick[1]}C${middle} ${to + thick[1]} ${middle} ${from + thick[0]} ${a} ${from + thick[0]}z`;
    const words = `${flow.source} to ${flow.target}: ${flow.slots} slots, ${flow.keys} keys, ${flow.action}`;
    svg.append(titled(draw("path", { d, class: `flow ${flow.action}` }), words));
  }
  places.forEach((side, place) => {
    for (const [channel, node] of side) {
      const x = place ? right - 6 : left;
      svg.append(draw("rect", { x, y: node.y, width: 6, height: node.tall, class: "node" }));
      svg.append(text(place ? right + 6 : left - 6, node.y + node.tall / 2 + 4, channel, { class: "name", "text-anchor": place ? "start" : "end" }));
    }
  });
  const kinds = new Set(shown.map((flow) => flow.action));
  const words = { move: "state moves", switch: "switch of roles, nothing is sent", copy: "new backup" };
  figure.replaceChildren(svg, legend(Object.keys(words).filter((kind) => kinds.has(kind)).map((kind) => [`flow ${kind}`, words[kind]])));
}

// Before, predicted and achieved of each plan, on one scale.
export function promises(figure, { rows, format, label }) {
  if (!rows.length) return nothing(figure, "No plan was made so far.");
  const line = 24, top = 4;
  const { svg, width } = frame(figure, rows.length * line + 30, label);
  const left = 76, right = width - 14, bottom = rows.length * line + top;
  const numbers = rows.flatMap((row) => [row.before, row.predicted, row.achieved]).filter((value) => value !== null);
  const high = Math.max(1.1, ...numbers) * 1.02;
  const x = (value) => left + ((right - left) * (value - 1)) / (high - 1);
  for (const at of ticks(1, high, Math.max(2, Math.floor((right - left) / 70)))) {
    svg.append(draw("line", { x1: x(at), x2: x(at), y1: top, y2: bottom, class: "grid" }));
    svg.append(text(x(at), bottom + 16, format(at), { "text-anchor": "middle" }));
  }
  rows.forEach((row, place) => {
    const y = top + place * line + line / 2;
    const there = [row.before, row.predicted, row.achieved].filter((value) => value !== null);
    svg.append(text(left - 10, y + 4, `batch ${row.batch}`, { class: "name", "text-anchor": "end" }));
    svg.append(draw("line", { x1: x(Math.min(...there)), x2: x(Math.max(...there)), y1: y, y2: y, class: "between" }));
    for (const [kind, radius] of [["before", 4.5], ["achieved", 4.5], ["predicted", 3]])
      if (row[kind] !== null) svg.append(titled(draw("circle", { cx: x(row[kind]), cy: y, r: radius, class: kind }), `${kind}: ${format(row[kind])}`));
  });
  figure.replaceChildren(svg, legend([["before", "before"], ["predicted", "predicted"], ["achieved", "achieved"]]));
}
