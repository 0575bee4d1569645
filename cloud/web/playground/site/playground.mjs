// The playground's page: the compiler and machine are WebAssembly (cmd/playground) and run here in slices, so that the page stays awake.

const at = (id) => document.getElementById(id);
const slice = 2_000_000; // instructions
const beat = 50; // ms of Pleo's time, and of ours
const examples = {
  "Hello": 'main() {\n\tprintf("Hello, %s!\\n", "Pleo")\n}\n',
  "Fibonacci": "fib(n) {\n\tif (n < 2)\n\t\treturn n\n\treturn fib(n - 1) + fib(n - 2)\n}\n\nmain() {\n\tfor (new i = 0; i < 20; i++)\n\t\tprintf(\"%d \", fib(i))\n\treturn fib(20)\n}\n",
  "States": 'touch() <asleep> {\n\tprintf("It wakes up.\\n")\n\tstate awake\n}\ntouch() <awake> {\n\tprintf("It purrs.\\n")\n}\nentry() <awake> {\n\tprintf("(awake)\\n")\n}\n\nmain() {\n\tstate asleep\n\ttouch()\n\ttouch()\n}\n',
  "Pleo: touches":
    '#include <Log.inc>\n#include <Sensor.inc>\n\nnew touches\n\npublic on_sensor(time, sensor_name: sensor, value) {\n\tif (sensor == SENSOR_HEAD && value)\n\t\tprintf("touch %d of its head", ++touches)\n\treturn true\n}\n',
  "Pleo: two drives":
    '#include <Drive.inc>\n#include <Property.inc>\n#include <Script.inc>\n#include <Sensor.inc>\n\npublic hunger_eval() return 100 - get(property_energy)\npublic social_eval() return get(property_arousal)\n\npublic on_sensor(time, sensor_name: sensor, value) {\n\tif (value && sensor == SENSOR_CHIN)\n\t\tset(property_energy, 100)\n\tif (value && sensor == SENSOR_BACK)\n\t\tset(property_arousal, 0)\n\treturn true\n}\n\nmain() {\n\tset(property_energy, 60)\n\tproperty_set_leak(property_energy, -2, 500, 100, 0)\n\tproperty_set_leak(property_arousal, 3, 500, 80, 0)\n\tdrive_add("hunger", 0, 50, 500)\n\tdrive_add("social", 0, 40, 500)\n\tfor (;;)\n\t\tsleep 1000\n}\n',
  "An error": "main() {\n\tnew counter = 1\n\tcuonter = counter\n}\n",
};

let running = 0; // number of the run under way, so that one before it stops
let begun = false; // a script is compiled and has not ended

function number() {
  const n = at("script").value.split("\n").length;
  at("lines").textContent = Array.from({ length: n }, (_, i) => i + 1).join("\n");
  at("lines").scrollTop = at("script").scrollTop;
}

function place(line, column = 1) {
  const before = at("script").value.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  const text = at("script").value.split("\n")[line - 1] ?? "";
  at("script").focus();
  at("script").setSelectionRange(before + column - 1, before + Math.max(column, text.length));
  at("script").scrollTop = Math.max(0, (line - 8) * 21);
}

const onPleo = () => at("where").value === "pleo";
const names = () => at("watch").value.split(/[^A-Za-z0-9_@]+/).filter(Boolean);

// svg returns an element of a picture.
function svg(name, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, String(v));
  e.append(...children);
  return e;
}

// draw shows how drives and properties were.
function draw(curves) {
  at("calm").hidden = curves.length > 0;
  const rows = curves.map((c) => {
    const seen = c.drive ? [...c.values, c.low, c.high] : c.values;
    const least = Math.min(...seen), span = Math.max(...seen) - least || 1;
    const y = (v) => (38 - (36 * (v - least)) / span).toFixed(1);
    const width = Math.max(c.values.length - 1, 60);
    const picture = svg("svg", { viewBox: `0 0 ${width} 40`, preserveAspectRatio: "none", "aria-hidden": "true" }, svg("polyline", { points: c.values.map((v, x) => `${x},${y(v)}`).join(" ") }));
    if (c.drive) for (const v of [c.low, c.high]) picture.append(svg("line", { class: "bound", x1: 0, x2: width, y1: y(v), y2: y(v) }));
    const row = Object.assign(document.createElement("div"), { className: "curve" });
    const name = Object.assign(document.createElement("p"), { textContent: c.active ? `${c.name}, active drive` : c.drive ? `${c.name}, drive` : c.name });
    const value = Object.assign(document.createElement("p"), { className: "value", textContent: String(c.values.at(-1)) });
    row.append(name, value, picture);
    return row;
  });
  at("curves").replaceChildren(...rows);
}

function ended(why) {
  begun = false;
  at("stop").disabled = true;
  at("run").textContent = "Run";
  at("state").textContent = why;
  at("values").hidden = true;
}

function show(messages) {
  at("messages").replaceChildren();
  at("clean").hidden = messages.length > 0;
  for (const m of messages) {
    const go = Object.assign(document.createElement("button"), { type: "button" });
    go.textContent = `Line ${m.line}, column ${m.column}: ${m.kind || (m.number < 200 ? "error" : "warning")} ${m.number}: ${m.text}` + (m.expected ? `; expected ${m.expected}` : "") + (m.found ? `; found ${m.found}` : "") + (m.fix ? `; ${m.fix}` : "");
    go.addEventListener("click", () => place(m.line, m.column));
    const item = document.createElement("li");
    item.append(go);
    at("messages").append(item);
  }
}

// compile makes the script ready, and reports whether it is.
function compile() {
  const r = JSON.parse((onPleo() ? globalThis.pleoCompile : globalThis.pawnCompile)(at("script").value));
  const messages = r.messages ?? [];
  show(messages);
  at("output").textContent = "";
  if (r.ready) return true;
  const errors = messages.filter((m) => m.number < 200).length;
  ended(r.why ? `Not run: ${r.why}.` : `Not run: ${errors} ${errors === 1 ? "error" : "errors"}.`);
  return false;
}

function lines() {
  return at("breaks").value.split(/[^0-9]+/).filter(Boolean).map(Number);
}

async function go(step) {
  if (!begun && !compile()) return;
  begun = true;
  const mine = ++running;
  at("stop").disabled = false;
  at("state").textContent = "Running.";
  at("values").hidden = true;
  for (;;) {
    const pleo = onPleo();
    const r = JSON.parse(pleo ? globalThis.pleoRun(beat, step, lines(), names()) : globalThis.pawnRun(slice, step, lines(), names()));
    if (pleo) {
      at("clock").textContent = `${(r.ms / 1000).toFixed(1)} s`;
      draw(r.curves ?? []);
    }
    at("output").textContent = (at("output").textContent + (r.output ?? "")).slice(-262144);
    at("output").scrollTop = at("output").scrollHeight;
    if (r.state === "paused") {
      const why = r.why?.includes(" changed from ") ? ` ${r.why}.` : "";
      at("state").textContent = `Paused before line ${r.line} in ${r.function}.${why}`;
      at("run").textContent = "Continue";
      at("variables").replaceChildren();
      for (const v of r.variables ?? []) {
        const row = at("variables").insertRow();
        row.insertCell().textContent = v.name;
        row.insertCell().textContent = v.text ? `"${v.text}"` : v.value;
      }
      at("values").hidden = false;
      return;
    }
    if (r.state === "off") return ended(`Pleo is off: ${r.why}.`);
    if (r.state === "ended") {
      ended(r.code ? `Stopped in line ${r.line}: ${r.why} (error ${r.code}).` : `Done; main returned ${r.value}.`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, pleo ? beat : 0));
    if (mine !== running) return;
  }
}

at("script").addEventListener("input", () => {
  number();
  if (begun) {
    running++;
    ended("The script was changed. Run it again.");
  }
});
at("script").addEventListener("scroll", () => (at("lines").scrollTop = at("script").scrollTop));
at("run").addEventListener("click", () => go(false));
at("step").addEventListener("click", () => go(true));
at("stop").addEventListener("click", () => {
  running++;
  ended("Stopped.");
});
const pads = { head: "head", chin: "chin", back: "back", tail: "rump", left_arm: "left foreleg", right_arm: "right foreleg" };
for (const [pad, word] of Object.entries(pads)) {
  const touch = Object.assign(document.createElement("button"), { type: "button", textContent: `Touch its ${word}` });
  touch.addEventListener("click", () => globalThis.pleoTouch?.(pad));
  at("touches").append(touch);
}
at("where").addEventListener("change", () => {
  at("pleo").hidden = !onPleo();
  running++;
  if (begun) ended("Run it again.");
});
for (const name of Object.keys(examples)) at("example").append(new Option(name));
at("example").addEventListener("change", () => {
  at("script").value = examples[at("example").value];
  at("where").value = at("example").value.startsWith("Pleo:") ? "pleo" : "console";
  at("where").dispatchEvent(new Event("change"));
  at("script").dispatchEvent(new Event("input"));
});
at("script").value = examples.Hello;
number();

globalThis.pawnReady = () => {
  at("run").disabled = at("step").disabled = false;
  at("state").textContent = "Ready.";
};
try {
  const machine = new globalThis.Go();
  const { instance } = await WebAssembly.instantiateStreaming(fetch("/playground/playground.wasm"), machine.importObject);
  machine.run(instance);
} catch (e) {
  at("state").textContent = "The compiler is not part of this server: build it with make.";
  console.info(e);
}
