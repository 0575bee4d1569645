// Drives a robot from its page: each line holds for less than a second and is renewed while a key, button or slider is held, so that it comes
// to rest without this page, too.

const panel = document.getElementById("drive"), said = panel.querySelector("[role=status]"), speed = panel.querySelector("input");
const every = 400, lasts = 800; // ms
const ways = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, 1], ArrowRight: [0, -1] }; // forward; to the left, rad/s
const held = new Set(), goals = new Map(); // keys of ways; where joints shall be
let busy = false, told = 0, heard = 0, moved = 0, click = 0, stops = 0;
const pause = () => new Promise((again) => setTimeout(again, 250));

async function ask(path, patience, more) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(patience), redirect: "error", ...more }).catch(() => { throw new Error("the cloud does not answer"); });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.error ?? answer.statusText);
  return body;
}

// Gives a command, and then says what became of it, unless a later one was heard of meanwhile. What it returns once the command is given tells whether it was done.
async function tell(kind, args, expires, well) {
  const n = ++told;
  const say = (text) => {
    if (n < heard) return;
    heard = n;
    if (said.textContent !== text) said.textContent = text;
  };
  const fails = (err) => { say(`Not done: ${err.message}`); return false; };
  try {
    const { id } = await ask(panel.dataset.commands, expires, { method: "POST", keepalive: true, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ kind, args, expires_in_ms: expires }) });
    return { done: follow(id, expires).then(() => { say(well); return true; }, fails) };
  } catch (err) { return { done: fails(err) }; }
}

async function follow(id, expires) {
  for (const end = Date.now() + expires + 1000; Date.now() < end;) {
    await pause();
    const { state, result } = await ask(`${panel.dataset.commands}/${id}`, expires);
    if (state === "done") return;
    if (state === "failed" || state === "expired") throw new Error(result?.detail ?? "the robot did not answer in time");
  }
  throw new Error("the robot has not answered yet");
}

// Sends what is held now, once the one before is on its way.
async function beat() {
  if (busy || !held.size && !goals.size) return;
  const lines = [...goals].map(([name, value]) => `${name} = ${value} time:${lasts}ms`);
  if (held.size) {
    const [x, yaw] = [...held].map((k) => ways[k]).reduce((a, b) => [a[0] + b[0], a[1] + b[1]]);
    lines.unshift(`robot.xSpeed = ${(x * speed.value).toFixed(2)}; robot.yawSpeed = ${yaw}`);
  }
  goals.clear();
  busy = true;
  moved = Date.now();
  const line = lines.join("; ");
  await tell("robot_do", { line, seconds: lasts / 1000 }, 1000, `Sent: ${line}`);
  busy = false;
}

// Stops it, and again until it says so: a stop may be lost on its way, as anything else.
async function stop() {
  held.clear();
  goals.clear();
  moved = 0;
  const n = ++stops, late = busy; // a line on its way may come after the first stop
  for (let i = 0; i < 20 && n === stops && !held.size && !moved; i++) {
    const { done } = await tell("robot_stop", {}, 5000, "Stopped.");
    if (!(late && i === 0) && await done) return;
    if (i) await pause();
  }
}

function hold(key) { if (ways[key] && !held.has(key)) { held.add(key); beat(); } }
function release(key) { if (held.delete(key)) held.size ? beat() : stop(); }
function leave() { if (held.size || goals.size || Date.now() - moved < 2 * lasts) stop(); }

setInterval(beat, every);
panel.hidden = false;
panel.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || e.key !== " " && (!ways[e.key] || e.target.type === "range")) return;
  e.preventDefault();
  if (e.repeat) return;
  if (e.key === " ") stop(); else hold(e.key);
});
panel.addEventListener("keyup", (e) => { if (e.key === " ") e.preventDefault(); release(e.key); });
panel.addEventListener("focusout", (e) => { if (!panel.contains(e.relatedTarget)) leave(); });
panel.addEventListener("submit", (e) => e.preventDefault());
panel.addEventListener("input", (e) => {
  e.target.parentElement.querySelector("span").textContent = Number(e.target.value).toFixed(2);
  if (e.target.name) { goals.set(e.target.name, Number(e.target.value).toFixed(3)); beat(); }
});
panel.addEventListener("change", (e) => { if (e.target.name) e.target.defaultValue = e.target.value; }); // it follows the robot again
for (const b of panel.querySelectorAll("button")) {
  const key = b.dataset.way;
  b.addEventListener("pointerdown", (e) => { b.focus(); b.setPointerCapture(e.pointerId); if (key) hold(key); else stop(); });
  b.addEventListener("lostpointercapture", () => release(key));
  b.addEventListener("contextmenu", (e) => e.preventDefault()); // of a long press
  b.addEventListener("click", (e) => { // by keyboard or a screen reader: a nudge
    if (e.detail) return;
    if (!key) return stop();
    hold(key);
    clearTimeout(click);
    click = setTimeout(() => release(key), every);
  });
}
addEventListener("blur", leave);
addEventListener("pagehide", leave);
document.addEventListener("visibilitychange", () => { if (document.hidden) leave(); });
