// Asks for the state again and again, and draws what changed.

import { bars, curve, flows, promises, ranking } from "./plots.js";

const EVERY_MS = 2000;
const UNEVEN = 1.15;
const find = (id) => document.getElementById(id);

// -- numbers as people read them ----------------------------------------------------------------------------------------

const scaled = (value, base, units) => {
  let place = 0;
  while (Math.abs(value) >= 999.5 && place < units.length - 1) { value /= base; place += 1; }
  return `${Number(value.toPrecision(3))}${units[place]}`;
};
const count = (value) => scaled(value, 1000, ["", "k", "M", "G", "T"]);
const bytes = (value) => scaled(value, 1024, [" B", " KiB", " MiB", " GiB", " TiB"]);
const times = (value) => (value === null || value === undefined ? "–" : `${Number(value).toFixed(2)}×`);
const ms = (value) => (value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value < 10 ? Number(value.toFixed(1)) : Math.round(value)} ms`);
const percent = (value) => `${(100 * value).toFixed(value < 0.1 ? 2 : 1)} %`;
const whole = (value) => Number(value).toLocaleString("en");
const clock = (seconds) => (seconds === null ? "–" : new Date(seconds * 1000).toLocaleTimeString());

// -- parts of the page --------------------------------------------------------------------------------------------------

function part(id, lead) {
  const section = find(id);
  section.querySelector(".lead").textContent = lead;
  return { figure: section.querySelector("figure"), table: section.querySelector(".scroll") };
}

// Columns are [heading, is a number, cell of a row].
function fill(place, caption, columns, rows) {
  const table = document.createElement("table");
  table.createCaption().textContent = caption;
  const head = table.createTHead().insertRow();
  for (const [heading, number] of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = heading;
    if (number) cell.className = "n";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    columns.forEach(([, number, value], index) => {
      const cell = line.insertCell();
      cell.textContent = value(row);
      if (number) cell.className = "n";
      else if (index === 0) cell.className = "key";
    });
  }
  const above = place.scrollTop;
  place.replaceChildren(table);
  place.scrollTop = above;
}

// Keeps what is chosen where it still can be.
function choose(select, options) {
  const before = select.value;
  select.replaceChildren(...options.map(([value, words]) => new Option(words, value)));
  select.value = options.some(([value]) => value === before) ? before : options.length ? options[0][0] : "";
  select.parentElement.hidden = options.length < 2;
}

function tiles(state, stage) {
  const last = stage.history[stage.history.length - 1];
  const table = stage.table;
  const list = [["batch", whole(state.batch), clock(last.ended)]];
  list.push(["imbalance", times(stage.skewness), `batch ${stage.load_batch}, 1× is even`]);
  const more = table && table.next_channels !== table.channels ? `${table.next_channels} from the next batch` : "";
  list.push(["channels", whole(stage.channels.length), more]);
  if (stage.router) list.push(["routing", "per tuple", stage.router]);
  else if (table) list.push(["table epoch", whole(table.epoch), `${whole(table.pins)} pins, ${whole(table.split_keys)} split keys`]);
  list.push(["state", bytes(last.state_bytes), `${count(stage.channels.reduce((sum, channel) => sum + channel.keys, 0))} keys`]);
  list.push(last.took_ms === null ? ["busiest channel", ms(last.busiest_ms), "in the last batch"] : ["batch time", ms(last.took_ms), `busiest channel ${ms(last.busiest_ms)}`]);
  list.push(["rows", count(last.rows), last.late ? `${count(last.late)} late` : "in the last batch"]);
  if (stage.watermark) list.push(["watermark", stage.watermark.slice(11, 19), stage.watermark.slice(0, 10)]);
  find("tiles").replaceChildren(...list.map(([name, value, more]) => {
    const tile = document.createElement("div");
    const small = document.createElement("small");
    small.textContent = more;
    const term = document.createElement("dt");
    term.textContent = name;
    const told = document.createElement("dd");
    told.append(value, small);
    tile.append(term, told);
    return tile;
  }));
}

// -- sections -----------------------------------------------------------------------------------------------------------

function load(stage) {
  const rows = stage.channels.map((channel) => channel.rows);
  const average = rows.reduce((sum, value) => sum + value, 0) / rows.length;
  const most = rows.indexOf(Math.max(...rows));
  const words = `Rows in batch ${stage.load_batch}: channel ${stage.channels[most].channel} has ${count(rows[most])}, the average is ${count(average)}.`;
  const { figure, table } = part("load", words);
  bars(figure, { values: rows, labels: stage.channels.map((channel) => channel.channel), format: count, label: `Load per channel. ${words}`, over: UNEVEN });
  fill(table, `Load of batch ${stage.load_batch}, and where the channels are`, [
    ["channel", true, (row) => row.channel],
    ["rows", true, (row) => whole(row.rows)],
    ["× average", true, (row) => (average ? (row.rows / average).toFixed(2) : "–")],
    ["busy", true, (row) => ms(row.busy_ms)],
    ["slots", true, (row) => whole(row.slots)],
    ["pins", true, (row) => whole(row.pins)],
    ["state came", true, (row) => bytes(row.imported_bytes)],
    ["host", false, (row) => row.host],
    ["opened", false, (row) => row.opened],
  ], stage.channels);
}

function imbalance(stage) {
  const last = stage.history[stage.history.length - 1];
  const words = `The fullest channel over the average one; 1× is even. Batch ${last.batch}: ${times(last.skewness)}.`;
  const { figure, table } = part("imbalance", words);
  const points = stage.history.map((batch) => ({ x: batch.batch, y: batch.skewness }));
  curve(figure, { points, low: 1, least: 1.2, format: times, label: `Imbalance over time. ${words}`, marks: marks(stage) });
  fill(table, "Imbalance by batch, newest first", [
    ["batch", true, (row) => row.batch],
    ["committed", false, (row) => clock(row.ended)],
    ["rows", true, (row) => whole(row.rows)],
    ["imbalance", true, (row) => times(row.skewness)],
    ["channels", true, (row) => whole(row.channels)],
    ["table epoch", true, (row) => (row.epoch < 0 ? "–" : row.epoch)],
    ["late", true, (row) => whole(row.late)],
  ], [...stage.history].reverse());
}

const marks = (stage) => stage.movements.map((move) => ({ x: move.batch, name: String(move.epoch), words: `table ${move.epoch} from batch ${move.batch}` }));

function time(stage) {
  const known = stage.history.some((batch) => batch.took_ms !== null);
  const words = known ? "From the start of a batch to its commit." : "How long the busiest channel worked; the time of whole batches is not stored in this checkpoint.";
  const { figure, table } = part("time", words);
  const value = (batch) => (known ? batch.took_ms : batch.busiest_ms);
  const points = stage.history.filter((batch) => value(batch) !== null).map((batch) => ({ x: batch.batch, y: value(batch) }));
  curve(figure, { points, low: 0, least: 1, format: ms, label: `Time per batch. ${words}`, marks: marks(stage) });
  fill(table, "Times by batch, newest first", [
    ["batch", true, (row) => row.batch],
    ["batch time", true, (row) => (row.took_ms === null ? "–" : ms(row.took_ms))],
    ["busiest channel", true, (row) => ms(row.busiest_ms)],
    ["channels rebuilt", true, (row) => whole(row.cold)],
  ], [...stage.history].reverse());
}

const nameOf = (key) => (key.name === null ? key.hash : key.name);
const whereOf = (key) => (key.channel_count > key.channels.length ? `${key.channels.join(", ")}, …` : key.channels.join(", "));

function hotKeys(stage, masked) {
  const hashed = stage.hot_keys.length && stage.hot_keys.every((key) => key.name === null);
  const why = masked ? " Keys are masked: these are their hashes." : hashed ? " Known by their hashes: this checkpoint does not hold their names." : "";
  const { figure, table } = part("keys", `Share of the rows of batch ${stage.load_batch}.${why}`);
  const rows = stage.hot_keys.slice(0, 12).map((key) => ({ name: nameOf(key), value: key.share }));
  ranking(figure, { rows, format: percent, label: `The hottest keys by share of rows. The first has ${rows.length ? percent(rows[0].value) : "none"}.` });
  fill(table, "Hot keys, most rows first", [
    ["key", false, nameOf],
    ["rows", true, (row) => whole(row.count)],
    ["share", true, (row) => percent(row.share)],
    ["state", true, (row) => bytes(row.state_bytes)],
    ["channel", false, whereOf],
    ["placed by", false, (row) => row.placed],
    ["hash", false, (row) => row.hash],
  ], stage.hot_keys);
}

function moves(stage) {
  const list = [...stage.movements].reverse();
  if (stage.planned) list.unshift({ ...stage.planned, coming: true });
  choose(find("movement"), list.map((move) => [String(move.epoch), `${move.coming ? "next: " : ""}batch ${move.batch}, table ${move.epoch}`]));
  const chosen = list.find((move) => String(move.epoch) === find("movement").value);
  const items = chosen ? chosen.flows : [];
  const all = chosen ? Object.values(chosen.items).reduce((sum, value) => sum + value, 0) : 0;
  const most = 40;
  const drawn = items.slice(0, most).reduce((sum, flow) => sum + flow.slots + flow.keys, 0);
  const rest = all > drawn ? ` The ${most} largest flows are drawn: ${whole(drawn)} of them.` : "";
  const words = chosen ? `Table ${chosen.epoch}, ${chosen.coming ? "to come with" : "from"} batch ${chosen.batch}: ${whole(all)} slots and keys.${rest}` : "What a new table moves from channel to channel.";
  const { figure, table } = part("moves", words);
  flows(figure, { items, most, label: `Moves between channels. ${words}` });
  fill(table, chosen && chosen.flow_items < all ? `The largest flows: ${whole(chosen.flow_items)} of ${whole(all)} slots and keys` : "Slots and keys by their way", [
    ["from", true, (row) => row.source],
    ["to", true, (row) => row.target],
    ["slots", true, (row) => whole(row.slots)],
    ["keys", true, (row) => whole(row.keys)],
    ["how", false, (row) => row.action],
  ], items);
}

function sizes(stage) {
  const values = stage.channels.map((channel) => channel.state_bytes);
  const total = values.reduce((sum, value) => sum + value, 0);
  const words = `${bytes(total)} in all; the largest channel holds ${bytes(Math.max(...values))}.`;
  const { figure, table } = part("state-size", words);
  bars(figure, { values, labels: stage.channels.map((channel) => channel.channel), format: bytes, base: 1024, label: `State per channel. ${words}` });
  fill(table, "State by channel", [
    ["channel", true, (row) => row.channel],
    ["state", true, (row) => bytes(row.state_bytes)],
    ["bytes", true, (row) => whole(row.state_bytes)],
    ["keys", true, (row) => whole(row.keys)],
  ], stage.channels);
}

function growth(stage) {
  const moved = stage.history.reduce((sum, batch) => sum + batch.moved_bytes, 0);
  const words = `State of all channels after each batch; ${bytes(moved)} moved between channels in these batches.`;
  const { figure, table } = part("growth", words);
  const points = stage.history.map((batch) => ({ x: batch.batch, y: batch.state_bytes }));
  curve(figure, { points, low: 0, least: 1, format: bytes, base: 1024, label: `State over time. ${words}`, marks: marks(stage) });
  fill(table, "State by batch, newest first", [
    ["batch", true, (row) => row.batch],
    ["state", true, (row) => bytes(row.state_bytes)],
    ["moved", true, (row) => bytes(row.moved_bytes)],
    ["slots and keys moved", true, (row) => whole(row.moved_items)],
  ], [...stage.history].reverse());
}

function replicas(stage) {
  const table = stage.table;
  const entries = table ? table.slots_with_backups + table.pins_with_backups : 0;
  const switched = [...stage.movements].reverse().filter((move) => move.items.switch);
  const recoveries = stage.decisions.filter((item) => item.choice === "recover");
  find("replicas").hidden = !(entries || switched.length || recoveries.length);
  if (find("replicas").hidden) return;
  const roles = switched.reduce((sum, move) => sum + move.items.switch, 0);
  const words = `${whole(entries)} entries of the table have backups. ${whole(roles)} switches of roles in the changes below, ${whole(recoveries.length)} recoveries among the decisions.`;
  const place = part("replicas", words);
  bars(place.figure, { values: stage.channels.map((channel) => channel.backups), labels: stage.channels.map((channel) => channel.channel), format: count, label: `Backups per channel. ${words}` });
  const lines = stage.channels.map((channel) => [`channel ${channel.channel}`, `${whole(channel.backups)} backups`]);
  for (const move of switched) lines.unshift([`batch ${move.batch}`, `${whole(move.items.switch)} switches of roles, ${whole(move.items.copy)} new backups`]);
  for (const item of recoveries) lines.unshift([`batch ${item.batch}`, `recovery: ${item.reasons.join(" ")}`]);
  fill(place.table, "Recoveries, switches of roles, and backups by channel", [["where", false, (row) => row[0]], ["what", false, (row) => row[1]]], lines);
}

function kept(stage) {
  const plans = stage.decisions.filter((item) => item.predicted !== null && item.choice !== "stay").reverse();
  const judged = plans.filter((item) => item.achieved !== null);
  const words = judged.length ? `Imbalance before each plan, as it promised, and as the channels measured it afterwards. ${judged.length} of ${plans.length} plans are judged so far.` : "Imbalance before each plan, as it promised, and as the channels measure it in the first whole window afterwards.";
  const { figure, table } = part("kept", words);
  promises(figure, { rows: plans.slice(0, 12), format: times, label: `Predicted and achieved imbalance. ${words}` });
  fill(table, "Plans, newest first", [
    ["batch", true, (row) => row.batch],
    ["before", true, (row) => times(row.before)],
    ["predicted", true, (row) => times(row.predicted)],
    ["achieved", true, (row) => times(row.achieved)],
    ["state moved", true, (row) => bytes(row.state_bytes)],
    ["planner", false, (row) => row.planner || "–"],
    ["planning", true, (row) => ms(row.plan_ms)],
  ], plans);
}

function decisions(stage) {
  const list = [...stage.decisions].reverse();
  const counted = Object.entries(stage.totals.decisions).map(([choice, number]) => `${choice} ${number}`).join(", ");
  const words = list.length ? `Newest first. As far as remembered: ${counted}.` : "None so far: the first comes when a statistics window is over.";
  find("decisions").querySelector(".lead").textContent = words;
  const place = find("decisions").querySelector("ol");
  const open = new Set([...place.querySelectorAll("details[open]")].map((item) => item.dataset.number));
  place.replaceChildren(...list.map((item) => decision(item, open)));
}

function decision(item, open) {
  const entry = document.createElement("li");
  const choice = document.createElement("span");
  choice.className = `choice ${["move", "resize", "continue", "rehome"].includes(item.choice) ? "acts" : item.choice}`;
  choice.textContent = item.choice;
  const facts = [];
  if (item.before !== null) facts.push(item.predicted === null ? times(item.before) : `${times(item.before)} → ${times(item.predicted)} predicted`);
  if (item.achieved !== null) facts.push(`${times(item.achieved)} achieved`);
  if (item.next_channels !== item.channels) facts.push(`${item.channels} → ${item.next_channels} channels`);
  if (item.state_bytes) facts.push(`${bytes(item.state_bytes)} to move`);
  if (item.steps > 1) facts.push(`step ${item.step} of ${item.steps}`);
  if (item.planner) facts.push(`${item.planner} planned in ${ms(item.plan_ms)}`);
  entry.append(`after batch ${item.batch}, ${clock(item.time)}: `, choice, facts.length ? ` · ${facts.join(" · ")}` : "");
  entry.append(bullets(item.reasons));
  if (item.answers.length) {
    const details = document.createElement("details");
    details.dataset.number = item.number;
    details.open = open.has(String(item.number));
    const summary = document.createElement("summary");
    summary.textContent = "what each gate said";
    details.append(summary, bullets(item.answers.map((answer) => `${answer.gate}: ${answer.passes ? "yes" : "no"}. ${answer.reason}`)));
    entry.append(details);
  }
  return entry;
}

function bullets(lines) {
  const list = document.createElement("ul");
  for (const line of lines) {
    const item = document.createElement("li");
    item.textContent = line;
    list.append(item);
  }
  return list;
}

// -- the whole ----------------------------------------------------------------------------------------------------------

let seen = null;
let tag = "";
let now = Date.now();
let offline = "";

function headline() {
  const query = seen.query;
  find("job").textContent = seen.checkpoint.job || "Evenkeel";
  document.title = `${seen.checkpoint.job || "Evenkeel"}: batch ${seen.batch ?? "–"}`;
  const status = find("status");
  status.textContent = query.status;
  status.className = `badge ${query.status}`;
  const ago = query.heartbeat === undefined ? "" : Math.max(0, Math.round(now / 1000 - query.heartbeat));
  find("holder").textContent = query.status === "ended" ? "no query holds the checkpoint" : `${query.host}, process ${query.pid}, last heard of ${ago} s ago`;
  find("where").textContent = `${seen.checkpoint.location}${seen.masked ? " · keys are masked" : ""} · `;
  const empty = seen.stages.length ? "" : "No batch is committed yet; this page will show the first one.";
  const damaged = seen.damaged.length ? `Passed over: ${seen.damaged[seen.damaged.length - 1]}` : "";
  const notice = [offline, seen.trouble, empty, damaged].filter(Boolean).join("\n");
  if (find("notice").textContent !== notice) find("notice").textContent = notice;
  find("notice").hidden = !notice;
}

function show() {
  headline();
  choose(find("stage"), seen.stages.map((stage) => [stage.name, stage.name]));
  const stage = seen.stages.find((item) => item.name === find("stage").value);
  document.querySelector("main").hidden = !stage;
  find("tiles").hidden = !stage;
  if (!stage) return;
  tiles(seen, stage);
  for (const section of [load, imbalance, time, moves, sizes, growth, replicas, kept, decisions]) section(stage);
  hotKeys(stage, seen.masked);
}

async function ask() {
  try {
    const answer = await fetch("/api/state", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
    if (answer.status !== 200 && answer.status !== 304) throw new Error(`the answer was ${answer.status}`);
    now = Date.parse(answer.headers.get("Date")) || Date.now();
    offline = "";
    if (answer.status === 200) {
      tag = answer.headers.get("ETag") || "";
      seen = await answer.json();
      show();
    }
  } catch (error) {
    offline = `The dashboard does not answer (${error.message}); this is what it said last.`;
  }
  if (seen) headline();
  setTimeout(ask, document.hidden ? 5 * EVERY_MS : EVERY_MS);
}

for (const id of ["stage", "movement"]) find(id).addEventListener("change", () => seen && show());
let width = window.innerWidth;
window.addEventListener("resize", () => {
  if (seen && window.innerWidth !== width) { width = window.innerWidth; show(); }
});
ask();
