// The playground's page: the compiler and machine are WebAssembly (cmd/playground) and run here in slices, so that the page stays awake.

const at = (id) => document.getElementById(id);
const slice = 2_000_000; // instructions
const examples = {
  "Hello": 'main() {\n\tprintf("Hello, %s!\\n", "Pleo")\n}\n',
  "Fibonacci": "fib(n) {\n\tif (n < 2)\n\t\treturn n\n\treturn fib(n - 1) + fib(n - 2)\n}\n\nmain() {\n\tfor (new i = 0; i < 20; i++)\n\t\tprintf(\"%d \", fib(i))\n\treturn fib(20)\n}\n",
  "States": 'touch() <asleep> {\n\tprintf("It wakes up.\\n")\n\tstate awake\n}\ntouch() <awake> {\n\tprintf("It purrs.\\n")\n}\nentry() <awake> {\n\tprintf("(awake)\\n")\n}\n\nmain() {\n\tstate asleep\n\ttouch()\n\ttouch()\n}\n',
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
  const r = JSON.parse(globalThis.pawnCompile(at("script").value));
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
  for (;;) {
    const r = JSON.parse(globalThis.pawnRun(slice, step, lines()));
    at("output").textContent = (at("output").textContent + (r.output ?? "")).slice(-262144);
    at("output").scrollTop = at("output").scrollHeight;
    if (r.state === "paused") {
      at("state").textContent = `Paused before line ${r.line} in ${r.function}.`;
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
    if (r.state === "ended") {
      ended(r.code ? `Stopped in line ${r.line}: ${r.why} (error ${r.code}).` : `Done; main returned ${r.value}.`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve));
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
for (const name of Object.keys(examples)) at("example").append(new Option(name));
at("example").addEventListener("change", () => {
  at("script").value = examples[at("example").value];
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
