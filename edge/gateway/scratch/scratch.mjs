// The page of scratch.go.
import { connect, KennelError, NotDone } from "./kennel.mjs";

const at = (id) => document.getElementById(id);
const kept = "kennel.token"; // in this tab, until it is closed
const mostNames = 64; // of one subscription
const metres = 0.05, radians = Math.PI / 12; // of one press

let robot, description, moving;

function trouble(e) {
  at("trouble").textContent = e instanceof KennelError || e instanceof NotDone ? e.message : String(e?.message ?? e);
}

function say(text, bad) {
  const line = document.createElement("p");
  line.textContent = text;
  line.classList.toggle("bad", Boolean(bad));
  const log = at("log");
  log.append(line);
  while (log.children.length > 200) log.firstChild.remove();
  log.scrollTop = log.scrollHeight;
}

async function open(token) {
  const address = location.host.includes(":") && !location.host.endsWith("]") ? location.host : `${location.host}:443`;
  robot = await connect({ address, token });
  description = await robot.describe();
  sessionStorage.setItem(kept, token);
  at("trouble").textContent = "";
  at("name").textContent = document.title = description.name || description.thing;
  at("about").textContent = `${description.thing}; you may ${description.rights.join(", ") || "do nothing"}`;
  const has = (right) => description.rights.includes(right);
  at("door").hidden = true;
  at("robot").hidden = at("stop").hidden = false;
  at("drive").hidden = !(has("move") && description.parts.some((p) => p.interfaces.includes("Mobile")));
  at("camera").hidden = !(has("camera") && description.parts.some((p) => p.interfaces.includes("VideoIn")));
  if (!at("camera").hidden) forever(pictures);
  at("display").hidden = !(has("look") && description.parts.some((p) => p.interfaces.includes("VideoOut")));
  if (!at("display").hidden) forever(screens);
  at("sound").hidden = !(has("look") && description.parts.some((p) => p.interfaces.includes("TextToSpeech")));
  at("speak").hidden = at("hush").hidden = !has("talk");
  if (has("move")) robot.animations().then(choices, () => {}); // a robot without a character plays none
  if (has("look")) {
    forever(events);
    list();
    await species(token, has);
  }
}

// species shows the part of the page that the robot's species has, and lends it a hand that touches a simulated robot.
async function species(token, has) {
  const { default: part } = await import("./part/part.mjs");
  const asHand = (words) => fetch("hand", { method: words ? "POST" : "GET", headers: { authorization: `Bearer ${token}` }, body: words });
  const simulated = has("move") && (await (await asHand()).json()).simulated;
  const hand = simulated
    ? async (...words) => {
        const answer = await asHand(words.join(" "));
        if (!answer.ok) throw new Error((await answer.json()).message);
      }
    : null;
  const subscribe = (names, options, tell) =>
    forever(async (alive) => {
      for await (const values of robot.subscribe(names, options)) {
        alive();
        tell(values.readings);
      }
    });
  const section = part({ description, subscribe, hand, say });
  if (!section) return;
  document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: "part/part.css" }));
  at("robot").prepend(section);
}

// forever runs a stream again when it ends, until over says so, and says once that the robot is away.
async function forever(stream, over = () => false) {
  for (let told = false; ; ) {
    try {
      await stream(() => (told = false));
      if (over()) return;
    } catch (e) {
      if (over()) return;
      if (!told) say(e.message, true);
      told = true;
      if (["token_wrong", "right_missing", "unable"].includes(e.code)) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// show puts a picture into an image, in place of the one before, and waits until it is shown.
async function show(image, p) {
  const before = image.src;
  image.src = URL.createObjectURL(new Blob([p.data], { type: `image/${p.format}` }));
  await image.decode().catch(() => {}); // a damaged one is followed by the next
  if (before) URL.revokeObjectURL(before);
}

async function pictures(alive) {
  for await (const p of robot.pictures({ format: "jpeg", rate: 5 })) {
    alive();
    await show(at("picture"), p);
  }
}

async function screens(alive) {
  for await (const p of robot.screens({ format: "png", rate: 25 })) {
    alive();
    await show(at("screen"), p);
  }
}

const cushion = 0.15; // seconds by which sound is played later than it arrives
let ears; // while the page listens: the audio context, how to end, and when the robot's clock was 0 by the context's

// hear plays what the robot plays until it is called off.
async function hear() {
  const context = new AudioContext(), meter = context.createAnalyser(), level = new Float32Array(512), end = new AbortController();
  meter.fftSize = level.length;
  meter.connect(context.destination);
  ears = { context, end };
  const show = setInterval(() => {
    meter.getFloatTimeDomainData(level);
    at("loud").value = Math.min(1, Math.max(...level.map(Math.abs)));
  }, 100);
  await forever(async (alive) => {
    for await (const p of robot.sounds({ signal: end.signal })) {
      alive();
      if (p.said !== null) at("said").textContent = p.said;
      if (p.data.length) ears.zero = play(p, context, meter, ears.zero);
    }
  }, () => end.signal.aborted);
  clearInterval(show);
  at("loud").value = 0;
  at("said").textContent = "";
  await context.close();
}

// play plays a piece of sound when it is due. zero is when the robot's clock was 0, by the context's: it is found again after a gap.
function play(p, context, output, zero) {
  if (zero === undefined || zero + p.at < context.currentTime || zero + p.at > context.currentTime + 2) zero = context.currentTime + cushion - p.at;
  const samples = new Int16Array(p.data.buffer, 0, p.data.length / 2), piece = context.createBuffer(1, samples.length, p.rate), to = piece.getChannelData(0);
  samples.forEach((v, i) => (to[i] = v / 32768));
  const source = context.createBufferSource();
  source.buffer = piece;
  source.connect(output);
  source.start(zero + p.at);
  return zero;
}

// choices fills the list of what the robot plays, moods first.
function choices({ moods, triggers, animations }) {
  const groups = { mood: ["Moods", moods.map((m) => m.name)], trigger: ["Triggers", triggers], clip: ["Clips", animations.map((a) => a.name)] };
  for (const [kind, [label, names]] of Object.entries(groups)) {
    const group = document.createElement("optgroup");
    group.label = label;
    for (const name of names) group.append(new Option(name, JSON.stringify({ [kind]: name })));
    at("animation").append(group);
  }
  at("play").hidden = false;
}

async function events(alive) {
  for await (const e of robot.events()) {
    alive();
    say([e.name, ...e.texts, ...e.numbers].join(" "), e.warning);
  }
}

// list shows all slots, whose values change as the robot says so.
function list() {
  const cells = new Map(), names = [];
  for (const part of description.parts) {
    if (part.slots.length) names.push(part.full);
    for (const slot of part.slots) {
      const row = at("parts").insertRow(), name = `${part.full}.${slot.name}`;
      row.insertCell().textContent = name;
      cells.set(name, row.insertCell());
      row.insertCell().textContent = slot.unit;
      row.dataset.words = [name, part.compact, ...part.aliases].join(" ").toLowerCase();
    }
  }
  for (let i = 0; i < names.length; i += mostNames) {
    const some = names.slice(i, i + mostNames);
    forever(async (alive) => {
      for await (const values of robot.subscribe(some, { rate: 5 })) {
        alive();
        for (const r of values.readings) {
          const cell = cells.get(`${r.part}.${r.slot}`);
          if (cell) cell.textContent = r.value === null ? "not known" : typeof r.value === "number" ? +r.value.toPrecision(5) : r.value;
        }
      }
    });
  }
}

async function press(key) {
  if (moving) return; // it has not arrived
  const step = { ArrowUp: () => robot.go(metres), ArrowDown: () => robot.go(-metres), ArrowLeft: () => robot.turn(-radians), ArrowRight: () => robot.turn(radians) }[key];
  moving = step().catch((e) => say(e.message, true));
  await moving;
  moving = undefined;
}

async function run(text) {
  say(`> ${text}`);
  try {
    if (/[=(]/.test(text)) say((await robot.do(text)).words);
    else for (const r of (await robot.values(text)).readings) say(`${r.part}.${r.slot} = ${r.value ?? "not known"} ${r.unit}`);
  } catch (e) {
    say(e.message, true);
  }
}

at("door").addEventListener("submit", async (e) => {
  e.preventDefault();
  try {
    const file = at("file").files[0];
    await open(at("token").value.trim() || (file ? JSON.parse(await file.text()).token : ""));
  } catch (e) {
    trouble(e);
  }
});
at("stop").addEventListener("click", () => robot.stop().then(() => say("stopped"), (e) => say(e.message, true)));
at("pad").addEventListener("click", (e) => e.target.dataset.key && press(e.target.dataset.key));
at("pad").addEventListener("keydown", (e) => {
  if (!e.key.startsWith("Arrow")) return;
  e.preventDefault();
  press(e.key);
});
at("line").addEventListener("submit", (e) => {
  e.preventDefault();
  const text = at("text").value.trim();
  at("text").value = "";
  if (text) run(text);
});
at("show").addEventListener("submit", async (e) => {
  e.preventDefault();
  const wish = JSON.parse(at("animation").value), leftOut = (all) => all.map((l) => `; without ${l.track}: ${l.reason}`).join("");
  say(`> play ${Object.values(wish)[0]}`);
  try {
    const ended = await robot.play(wish, (p) => p.begun && say(`${p.begun.clip}${leftOut(p.begun.left_out)}`));
    say(`${ended.clip}: done`);
  } catch (e) {
    say(e.message, true);
  }
});
at("listen").addEventListener("click", () => {
  const on = !ears;
  at("listen").setAttribute("aria-pressed", on);
  if (on) hear().catch((e) => say(e.message, true));
  else {
    ears.end.abort();
    ears = undefined;
  }
});
at("hush").addEventListener("click", () => robot.hush().then(() => say("silent"), (e) => say(e.message, true)));
at("speak").addEventListener("submit", async (e) => {
  e.preventDefault();
  const text = at("words").value.trim();
  if (!text) return;
  say(`> say ${text}`);
  try {
    await robot.say(text, {}, (p) => p.state && say(p.state));
    say("said");
    at("words").value = "";
  } catch (e) {
    say(e.message, true);
  }
});
at("filter").addEventListener("input", () => {
  const word = at("filter").value.trim().toLowerCase();
  for (const row of at("parts").rows) row.hidden = !row.dataset.words.includes(word);
});
const before = sessionStorage.getItem(kept);
if (before) open(before).catch((e) => (sessionStorage.removeItem(kept), trouble(e)));
