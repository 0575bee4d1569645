// The motions of a robot (cloud/fleet/motion/motionapi): draws the robot as it is now or as a motion moves it, lists and plays its motions, and edits them. It knows
// no species: the robot itself told how its body is made.

const root = document.getElementById("motions"), thing = encodeURIComponent(root.dataset.thing), may = "may" in root.dataset;
const at = (s) => root.querySelector(s), base = `/v1/things/${thing}`;
const word = (w) => at(`[data-word="${w}"]`).textContent;
const said = at(".motion-said"), shown = at("[data-shown]"), progress = at("[data-progress]"), editor = at("[data-editor]");
const SVG = "http://www.w3.org/2000/svg";
let body = null, motions = []; // of the robot
let shape = {}; // angles by joints, rad
let edit = null, chosen = 0, undo = []; // the motion in the editor, its chosen keyframe, and what was before each change
let mode = "live", begun = 0, timer = 0;

const say = (text) => { said.textContent = text; };

async function ask(path, more = {}) {
  const answer = await fetch(base + path, { signal: AbortSignal.timeout(15000), redirect: "error", ...more }).catch(() => { throw new Error(word("away")); });
  const got = answer.status === 204 ? {} : await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(got.error ?? answer.statusText);
  return got;
}

const make = (name, set = {}, text) => {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(set)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
};
const draw = (name, set) => {
  const e = document.createElementNS(SVG, name);
  for (const [k, v] of Object.entries(set)) e.setAttribute(k, v);
  return e;
};

// The ends of all bones in the frame of the trunk, in metres, for angles by joints.
function bones(angles) {
  const turned = (p, k, by) => { // Rodrigues
    const s = Math.sin(by), c = Math.cos(by), dot = (p[0] * k[0] + p[1] * k[1] + p[2] * k[2]) * (1 - c);
    return [p[0] * c + (k[1] * p[2] - k[2] * p[1]) * s + k[0] * dot, p[1] * c + (k[2] * p[0] - k[0] * p[2]) * s + k[1] * dot, p[2] * c + (k[0] * p[1] - k[1] * p[0]) * s + k[2] * dot];
  };
  const place = (p, link) => {
    for (let l = link; l >= 0; l = body.links[l].parent) {
      const { joint, at, axis } = body.links[l];
      p = turned(p, axis, angles[joint] ?? 0).map((v, i) => v + at[i]);
    }
    return p;
  };
  return stand(body.bones.map((b) => ({ from: place(b.from, b.link), to: place(b.to, b.link), wide: b.wide })));
}

// Turns the body so that it rests on the floor as it would when its weight is in the middle of the trunk, seen from the side, and puts its lowest point at 0.
function stand(all) {
  const points = all.flatMap((b) => [b.from, b.to].map((p) => [p[0], p[2] - b.wide / 2])).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const hull = [];
  for (const p of points) {
    for (let [a, b] = hull.slice(-2); hull.length > 1 && (b[0] - a[0]) * (p[1] - a[1]) <= (b[1] - a[1]) * (p[0] - a[0]); [a, b] = hull.slice(-2)) hull.pop();
    hull.push(p);
  }
  let tilt = 0;
  for (let i = 1; i < hull.length; i++) if (hull[i - 1][0] <= 0 && hull[i][0] > 0) tilt = Math.atan2(hull[i][1] - hull[i - 1][1], hull[i][0] - hull[i - 1][0]);
  const s = Math.sin(-tilt), c = Math.cos(-tilt), turn = (p) => [p[0] * c - p[2] * s, p[1], p[0] * s + p[2] * c];
  const out = all.map((b) => ({ from: turn(b.from), to: turn(b.to), wide: b.wide }));
  const low = Math.min(...out.flatMap((b) => [b.from[2], b.to[2]].map((z) => z - b.wide / 2)));
  for (const b of out) for (const p of [b.from, b.to]) p[2] -= low;
  return out;
}

// Where a point is in a drawing, in millimetres.
const views = { side: (p) => [p[0] * 1000, 60 - p[2] * 1000], front: (p) => [p[1] * 1000, 60 - p[2] * 1000] };
const deep = { side: (b) => b.from[1] + b.to[1], front: (b) => b.from[0] + b.to[0] }; // towards the viewer

function lines(view, all) {
  const order = all.map((b, i) => ({ ...b, i })).sort((a, b) => deep[view](a) - deep[view](b));
  return order.map((b) => {
    const [x1, y1] = views[view](b.from), [x2, y2] = views[view](b.to);
    return { x1, y1, x2, y2, wide: b.wide * 1000, far: deep[view](b) < -0.02, i: b.i };
  });
}

function paint() {
  if (!body) return;
  const all = bones(shape);
  for (const svg of root.querySelectorAll("[data-view]")) {
    const parts = lines(svg.dataset.view, all).map((l) => draw("line", { x1: l.x1.toFixed(1), y1: l.y1.toFixed(1), x2: l.x2.toFixed(1), y2: l.y2.toFixed(1), "stroke-width": l.wide.toFixed(1), class: l.far ? "far" : "near" }));
    svg.replaceChildren(draw("line", { x1: -400, x2: 400, y1: 61, y2: 61, class: "floor" }), ...parts);
  }
}

// The angles of a motion at a time, over those that are there.
function angles(m, ms, over = {}) {
  const k = m.keyframes, out = { ...over };
  let i = k.findIndex((f) => f.at_ms > ms);
  if (i < 0) i = k.length;
  const a = k[Math.max(i - 1, 0)], b = k[Math.min(i, k.length - 1)], way = b.at_ms > a.at_ms ? (ms - a.at_ms) / (b.at_ms - a.at_ms) : 0;
  m.joints.forEach((j, c) => { out[j] = (a.values[c] + (b.values[c] - a.values[c]) * Math.min(Math.max(way, 0), 1)) / 1e6; });
  return out;
}

// --- live

async function look() {
  try {
    const l = await ask("/live");
    if (mode !== "live") return;
    const values = {};
    for (const d of l.devices ?? []) for (const s of d.slots ?? []) if (typeof s.value === "number") values[`${d.full}.${s.name}`] = s.value;
    const next = {};
    for (const j of body.joints) if (j.slot in values) next[j.name] = values[j.slot];
    shape = next;
    paint();
    const fresh = l.received && l.age_ms < 3000;
    shown.textContent = !l.received ? word("silent") : fresh ? word("live") : `${word("age")}: ${Math.round(l.age_ms / 1000)}`;
    progress.hidden = !l.playing;
    if (l.playing) {
      shown.textContent = `${word("live")}: ${l.playing.name}`;
      if (l.playing.span_ms) { progress.max = l.playing.span_ms; progress.value = l.playing.at_ms; } else progress.removeAttribute("value");
    }
  } catch (err) { shown.textContent = err.message; }
}

async function follow() {
  for (;;) {
    if (body && mode === "live" && !document.hidden) await look();
    await new Promise((again) => setTimeout(again, 500));
  }
}

function set(to) {
  mode = to;
  at('[data-do="live"]').setAttribute("aria-pressed", to === "live");
  cancelAnimationFrame(timer);
  if (to !== "preview") return;
  progress.hidden = false;
  begun = performance.now();
  const rest = shape, end = edit.keyframes.at(-1).at_ms;
  const step = (now) => {
    const ms = Math.min(now - begun, end);
    shape = angles(edit, ms, rest);
    shown.textContent = `${word("preview")}: ${Math.round(ms)} ms`;
    progress.max = Math.max(end, 1);
    progress.value = ms;
    paint();
    if (ms < end && mode === "preview") timer = requestAnimationFrame(step);
    else if (mode === "preview") mode = "still";
  };
  timer = requestAnimationFrame(step);
}

// --- the list

let loading = Promise.resolve();

// Loads the list, after every load that was begun before: an older answer must not come last.
const load = () => loading = loading.catch(() => {}).then(reload);

async function reload() {
  const r = await ask("/motions?full=true");
  body = r.body ?? null;
  motions = r.motions;
  list();
  paint();
  if (motions.some((m) => m.state === "waiting")) setTimeout(() => load().catch(() => {}), 1500);
}

function list() {
  const focus = document.activeElement?.closest("[data-list]") ? [document.activeElement.closest("li").dataset.name, document.activeElement.dataset.act] : null;
  const rows = motions.map((m) => {
    const li = make("li", { "data-name": m.name });
    const title = make("span", { class: "motion-name" });
    title.append(make("b", { translate: "no" }, m.name), ` ${m.span_ms ? `${(m.span_ms / 1000).toFixed(1)} s · ` : ""}${m.own ? word(m.state) : word("library")}`);
    li.append(title);
    const button = (act, on) => {
      const b = make("button", { type: "button", "data-act": act, "aria-label": `${word(act)}: ${m.name}` }, word(act));
      b.addEventListener("click", on);
      li.append(b);
    };
    if (may && m.state === "kept") button("play", () => play(m));
    if (m.motion) button("edit", () => open(m));
    if (m.own) {
      const a = make("a", { href: `${base}/motions/${m.name}/file`, download: "", "aria-label": `${word("download")}: ${m.name}` }, word("download"));
      li.append(a);
      if (may) button("delete", () => drop(m));
    }
    for (const f of m.findings ?? []) {
      const where = f.offset >= 0 ? `${word("offset")} ${f.offset}: ` : "";
      li.append(make("p", { class: "motion-why", translate: "no" }, `${f.severity}: ${where}${f.what}${f.expected ? `; ${word("expected")} ${f.expected}, ${word("found")} ${f.found}` : ""}`));
    }
    if (m.state === "refused" && !m.findings?.length) li.append(make("p", { class: "motion-why", translate: "no" }, m.why));
    return li;
  });
  at("[data-list]").replaceChildren(...rows.length ? rows : [make("li", {}, word("none"))]);
  if (focus) at(`[data-list] [data-name="${CSS.escape(focus[0])}"] [data-act="${focus[1]}"]`)?.focus();
}

async function play(m) {
  set("live");
  try {
    const { id } = await ask("/play", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name: m.name }) });
    say(`${word("sent")}: ${m.name}`);
    for (const end = Date.now() + 200_000; Date.now() < end;) {
      await new Promise((again) => setTimeout(again, 300));
      const { state, result } = await ask(`/commands/${id}`);
      if (state === "done") { say(`${word("done")}: ${result?.detail ?? m.name}`); return; }
      if (state === "failed" || state === "expired") throw new Error(result?.detail ?? word("late"));
    }
    throw new Error(word("late"));
  } catch (err) { say(`${word("notdone")}: ${err.message}`); }
}

async function drop(m) {
  if (!confirm(`${m.name}: ${word("sure")}`)) return;
  try {
    await ask(`/motions/${m.name}`, { method: "DELETE" });
    say(`${word("deleted")}: ${m.name}`);
    await load();
    at("[data-list] button, [data-list] a")?.focus();
  } catch (err) { say(`${word("notdone")}: ${err.message}`); }
}

async function put(name, content) {
  try {
    await ask(`/motions/${encodeURIComponent(name)}`, { method: "PUT", headers: { "Content-Type": "application/octet-stream" }, body: content });
    await load();
    for (const end = Date.now() + 60_000; Date.now() < end;) {
      const m = motions.find((x) => x.name === name);
      say(`${name}: ${m ? word(m.state) : word("uploaded")}${m?.why ? `: ${m.why}` : ""}`);
      if (!m || m.state !== "waiting") return;
      await new Promise((again) => setTimeout(again, 700));
      await load();
    }
  } catch (err) { say(`${word("notdone")}: ${err.message}`); }
}

// --- the editor

function open(m) {
  edit = structuredClone(m.motion);
  undo = [];
  chosen = 0;
  editor.hidden = false;
  at("[data-title]").textContent = m.name;
  const save = at("[data-save] input");
  if (save) save.value = m.own ? m.name : `my_${m.name}`;
  for (const b of ["preview", "svg"]) at(`[data-do="${b}"]`).disabled = false;
  rows();
  choose(0);
  editor.scrollIntoView({ block: "nearest" });
  at("[data-keyframe]").focus();
}

const range = (j) => {
  const r = body.joints.find((x) => x.name === j);
  return r && r.max > r.min ? [r.min, r.max] : [-3141593, 3141593];
};
const degrees = (v) => `${(v / 1e6 * 180 / Math.PI).toFixed(1)}°`;

// Makes a change that can be taken back. Changes of one drag are one.
function change(f, go_on = false) {
  if (!go_on) undo.push(JSON.stringify(edit));
  f();
  at('[data-do="undo"]').disabled = !undo.length;
  rows();
}

function choose(i) {
  chosen = Math.min(Math.max(i, 0), edit.keyframes.length - 1);
  if (mode !== "preview") {
    mode = "still";
    at('[data-do="live"]').setAttribute("aria-pressed", "false");
    progress.hidden = true;
    shape = angles(edit, edit.keyframes[chosen].at_ms, shape);
    shown.textContent = `${edit.keyframes[chosen].at_ms} ms`;
    paint();
  }
  rows();
}

// Moves the chosen keyframe and all behind it, so that no way becomes shorter than a frame.
function retime(ms) {
  const k = edit.keyframes, least = k[chosen - 1]?.at_ms + 16, by = Math.max(Math.round(ms / 16) * 16, least) - k[chosen].at_ms;
  for (let i = chosen; i < k.length; i++) k[i].at_ms += by;
}

const short = (j) => j.replace(/^robot\.body\./, "");

function rows() {
  const k = edit.keyframes, end = Math.max(k.at(-1).at_ms, 1), select = at("[data-keyframe]"), time = at("[data-at]");
  select.replaceChildren(...k.map((f, i) => make("option", { value: i, ...i === chosen ? { selected: "" } : {} }, `${i + 1} / ${k.length} · ${f.at_ms} ms`)));
  time.disabled = chosen === 0;
  if (document.activeElement !== time) time.value = k[chosen].at_ms;
  at('[data-do="drop"]').disabled = k.length < 2 || chosen === 0;
  const list = at("[data-rows]");
  if (list.children.length !== edit.joints.length) {
    list.replaceChildren(...edit.joints.map((j, c) => {
      const row = make("div", { class: "motion-row" }), id = `motion-j${c}`;
      const slider = make("input", { type: "range", "aria-labelledby": id, step: 1000 });
      [slider.min, slider.max] = range(j);
      let first = true;
      slider.addEventListener("input", () => { change(() => { edit.keyframes[chosen].values[c] = Number(slider.value); }, !first); first = false; choose(chosen); });
      slider.addEventListener("change", () => { first = true; });
      const label = make("span", { id, translate: "no" }, short(j));
      const svg = draw("svg", { viewBox: "0 0 100 100", preserveAspectRatio: "none", "aria-hidden": "true" });
      drag(svg, j, c);
      row.append(label, svg, slider, make("span", { class: "degrees", "aria-hidden": "true" }));
      return row;
    }));
  }
  edit.joints.forEach((j, c) => {
    const row = list.children[c], [low, high] = range(j), svg = row.querySelector("svg"), slider = row.querySelector("input");
    const x = (f) => f.at_ms / end * 100, y = (f) => 100 - (f.values[c] - low) / (high - low) * 100;
    svg.replaceChildren(draw("line", { class: "now", x1: x(k[chosen]), x2: x(k[chosen]), y1: 0, y2: 100 }), draw("polyline", { points: k.map((f) => `${x(f)},${y(f)}`).join(" ") }),
      ...k.map((f, i) => draw("line", { "data-k": i, x1: x(f), x2: x(f) + 0.01, y1: y(f), y2: y(f), ...i === chosen ? { class: "chosen" } : {} })));
    slider.value = k[chosen].values[c];
    slider.setAttribute("aria-valuetext", degrees(k[chosen].values[c]));
    row.querySelector(".degrees").textContent = degrees(k[chosen].values[c]);
  });
}

// Lets a keyframe be dragged: up and down turns the joint, to the sides moves the keyframe in time.
function drag(svg, j, c) {
  svg.addEventListener("pointerdown", (e) => {
    const dot = e.target.closest("[data-k]");
    if (!dot) return;
    svg.setPointerCapture(e.pointerId);
    choose(Number(dot.dataset.k));
    const box = svg.getBoundingClientRect(), [low, high] = range(j), end = Math.max(edit.keyframes.at(-1).at_ms, 1), was = edit.keyframes[chosen].at_ms;
    let moved = false;
    const move = (e2) => {
      if (!moved && Math.hypot(e2.clientX - e.clientX, e2.clientY - e.clientY) < 3) return; // a click alone chooses
      change(() => {
        edit.keyframes[chosen].values[c] = Math.round(Math.min(Math.max(high - (e2.clientY - box.top) / box.height * (high - low), low), high));
        if (chosen > 0 && Math.abs(e2.clientX - e.clientX) > 4) retime(was + (e2.clientX - e.clientX) / box.width * end);
        shape = angles(edit, edit.keyframes[chosen].at_ms, shape);
        paint();
      }, moved);
      moved = true;
    };
    svg.addEventListener("pointermove", move);
    svg.addEventListener("lostpointercapture", () => { svg.removeEventListener("pointermove", move); choose(chosen); }, { once: true });
  });
}

// --- files

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type })), a = make("a", { href: url, download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const xml = (s) => s.replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c] ?? `&#${c.charCodeAt(0)};`);

// A drawing of the motion in which every bone is a line that moves. Drawings and bodies are those of infra/api/motionwire/skeleton; a test compares the two.
function animated() {
  const end = Math.max(edit.keyframes.at(-1).at_ms, 1), n = Math.min(Math.max(Math.ceil(end / 40), 2), 200), steps = [];
  for (let i = 0; i <= n; i++) steps.push(lines("side", bones(angles(edit, end * i / n, shape))));
  const order = steps[0].map((l) => l.i); // the nearest last, over the others
  for (const s of steps) s.sort((a, b) => a.i - b.i);
  const parts = order.map((b) => {
    const l = steps[0][b], moves = ["x1", "y1", "x2", "y2"].map((p) => `<animate attributeName="${p}" dur="${end}ms" repeatCount="indefinite" values="${steps.map((s) => s[b][p].toFixed(1)).join(";")}"/>`).join("");
    return `<line x1="${l.x1.toFixed(1)}" y1="${l.y1.toFixed(1)}" x2="${l.x2.toFixed(1)}" y2="${l.y2.toFixed(1)}" stroke-width="${l.wide.toFixed(1)}"${l.far ? ' opacity="0.45"' : ""}>${moves}</line>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="-240 -330 480 420" stroke="black" stroke-linecap="round"><title>${xml(at("[data-title]").textContent)}</title><line x1="-240" x2="240" y1="61" y2="61" stroke-width="2"/>${parts.join("")}</svg>\n`;
}

// The body as URDF: a link for each joint, and a cylinder for each bone.
function urdf() {
  const name = (l) => l < 0 ? "trunk" : `link${l}`, list = (v) => v.map((x) => x.toFixed(5)).join(" "), rad = (v) => (v / 1e6).toFixed(6);
  const link = (l) => `  <link name="${name(l)}">\n${body.bones.filter((b) => b.link === l).map((b) => {
    const d = b.to.map((v, i) => v - b.from[i]), long = Math.hypot(...d), flat = Math.hypot(d[0], d[1]);
    return `    <visual><origin xyz="${list(b.from.map((v, i) => v + d[i] / 2))}" rpy="0 ${Math.atan2(flat, d[2]).toFixed(5)} ${Math.atan2(d[1], d[0]).toFixed(5)}"/><geometry><cylinder radius="${(b.wide / 2).toFixed(5)}" length="${long.toFixed(5)}"/></geometry></visual>\n`;
  }).join("")}  </link>\n`;
  const joint = (l, i) => {
    const j = body.joints.find((x) => x.name === l.joint), lim = j && j.max > j.min ? `<limit lower="${rad(j.min)}" upper="${rad(j.max)}" effort="1" velocity="${rad(j.speed || 1e6)}"/>` : "";
    const axis = l.joint ? `<axis xyz="${list(l.axis)}"/>` : "";
    return `  <joint name="${xml(l.joint || `fixed${i}`)}" type="${l.joint ? (lim ? "revolute" : "continuous") : "fixed"}"><parent link="${name(l.parent)}"/><child link="${name(i)}"/><origin xyz="${list(l.at)}"/>${axis}${lim}</joint>\n`;
  };
  return `<?xml version="1.0"?>\n<robot name="${xml(body.model)}">\n${link(-1)}${body.links.map((_, i) => link(i)).join("")}${body.links.map(joint).join("")}</robot>\n`;
}

// --- buttons

const acts = {
  live: () => set("live"),
  preview: () => set("preview"),
  stop: async () => {
    try {
      await ask("/commands", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ kind: "robot_stop", args: {} }) });
      say(word("stopping"));
    } catch (err) { say(`${word("notdone")}: ${err.message}`); }
  },
  svg: () => save(`${at("[data-title]").textContent}.svg`, "image/svg+xml", animated()),
  urdf: () => body && save(`${body.model}.urdf`, "application/xml", urdf()),
  before: () => choose(chosen - 1),
  after: () => choose(chosen + 1),
  add: () => change(() => {
    const k = edit.keyframes, next = structuredClone(k[chosen]);
    next.at_ms += 400;
    for (let i = chosen + 1; i < k.length; i++) k[i].at_ms += 400;
    k.splice(++chosen, 0, next);
  }),
  drop: () => change(() => {
    const k = edit.keyframes, by = k[chosen].at_ms - k[chosen - 1].at_ms;
    k.splice(chosen, 1);
    for (let i = chosen; i < k.length; i++) k[i].at_ms -= by;
    chosen--;
  }),
  undo: () => {
    edit = JSON.parse(undo.pop());
    at('[data-do="undo"]').disabled = !undo.length;
    choose(chosen);
    if (!undo.length) at("[data-keyframe]").focus();
  },
};
for (const b of root.querySelectorAll("[data-do]")) b.addEventListener("click", () => acts[b.dataset.do]());
at("[data-keyframe]").addEventListener("change", (e) => choose(Number(e.target.value)));
at("[data-at]").addEventListener("change", (e) => { if (chosen > 0) change(() => retime(Number(e.target.value))); choose(chosen); });
at("[data-upload]")?.addEventListener("submit", (e) => {
  e.preventDefault();
  put(e.target.elements.name.value, e.target.elements.file.files[0]);
});
at("[data-save]")?.addEventListener("submit", (e) => {
  e.preventDefault();
  edit.span_ms = edit.keyframes.at(-1).at_ms;
  put(e.target.elements.name.value, JSON.stringify({ v: 1, ...edit }));
});

load().then(follow, (err) => say(err.message));
