// Keeps a page live. Without it the pages work too, as of when they were loaded.
//
// The server says when something changed; the page is fetched again and each part marked data-live is replaced if it differs. What the
// reader does meanwhile stays: focus, open details, scroll position.

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "always", style: "long" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const every = Number(document.body.dataset.again); // ms after which the page is fetched again; 0: only when something changed

const timeOf = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const dayOf = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });

function ago(then) {
  const s = Math.round((then - Date.now()) / 1000);
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(s) >= size) return relative.format(Math.trunc(s / size), unit);
  }
  return Math.abs(s) < 10 ? "just now" : relative.format(s, "second");
}

// Shows times in the reader's zone, and distances as they are now.
function tellTimes(root = document) {
  for (const t of root.querySelectorAll("time[datetime]")) {
    const then = new Date(t.dateTime);
    const full = absolute.format(then);
    const text = t.classList.contains("ago") ? ago(then) : full;
    if (t.classList.contains("ago")) t.title = full;
    if (t.textContent !== text) t.textContent = text;
  }
  for (const t of root.querySelectorAll("text[data-at]")) {
    const text = (t.dataset.form === "day" ? dayOf : timeOf).format(new Date(t.dataset.at));
    if (t.textContent !== text) t.textContent = text;
  }
}

// Whether somebody is filling in something: what they typed or chose is not replaced under their hands.
function touched(part) {
  if (part.querySelector("details[open] form :focus") || part.querySelector("form :is(input,select,textarea,button):focus")) return true;
  for (const f of part.querySelectorAll("form :is(input,textarea)")) {
    if (f.type === "checkbox" && (f.name === "thing" || f.id === "pick-all")) continue; // picked robots are kept
    if (f.type === "checkbox" || f.type === "radio" ? f.checked !== f.defaultChecked : f.value !== f.defaultValue) return true;
  }
  for (const o of part.querySelectorAll("form option")) if (o.selected !== o.defaultSelected && o.closest("select").querySelector("[selected]")) return true;
  return false;
}

// What moves in a drawing: data-at is where it is, "x y degrees", in the view data-view.
function gliders(part) {
  return new Map([...part.querySelectorAll("[data-glide]")].map((g) => [g.dataset.glide, g]));
}

const still = matchMedia("(prefers-reduced-motion: reduce)");

// Lets it go from where it was to where it is until the next page comes.
function glide(were, are) {
  if (still.matches) return;
  for (const [name, g] of are) {
    const old = were.get(name);
    if (!old || old.dataset.view !== g.dataset.view || old.dataset.at === g.dataset.at) continue;
    const [x0, y0, a0] = old.dataset.at.split(" ").map(Number), [x, y, a] = g.dataset.at.split(" ").map(Number);
    const turn = (((a - a0) % 360) + 540) % 360 - 180; // the shorter way round
    const at = (x, y, a) => ({ transform: `translate(${x}px, ${y}px) rotate(${a}deg)` });
    g.animate([at(x0, y0, a - turn), at(x, y, a)], { duration: every || 1000 });
  }
}

// Puts the parts of a fresh page in that differ.
function morph(fresh) {
  const nexts = new Map([...fresh.querySelectorAll("[data-live]")].map((p) => [p.dataset.live, p]));
  const parts = [...document.querySelectorAll("main [data-live]")];
  if (parts.length !== nexts.size || parts.some((p) => !nexts.has(p.dataset.live))) { // the page has another shape now
    if (!touched(document.body)) location.reload();
    return;
  }
  for (const part of parts) {
    const next = nexts.get(part.dataset.live);
    tellTimes(next);
    for (const d of part.querySelectorAll("details[id]")) next.querySelector(`#${CSS.escape(d.id)}`)?.toggleAttribute("open", d.open);
    if (part.className !== next.className) part.className = next.className;
    if (part.innerHTML === next.innerHTML || touched(part)) continue;
    const picked = new Set([...part.querySelectorAll("input[name=thing]:checked")].map((i) => i.value));
    const at = document.activeElement;
    const focus = part.contains(at) ? [at.getAttribute("href"), at.value] : null;
    const fold = part.contains(at) && at.matches("details[id] > summary") ? at.parentElement.id : "";
    const row = part.querySelector("tr.at a")?.getAttribute("href");
    const were = gliders(part);
    part.replaceChildren(...next.childNodes);
    glide(were, gliders(part));
    for (const i of part.querySelectorAll("input[name=thing]")) i.checked = picked.has(i.value);
    tellPicked();
    if (row) part.querySelector(`a[href="${CSS.escape(row)}"]`)?.closest("tr").classList.add("at");
    if (fold) document.getElementById(fold)?.querySelector("summary").focus({ preventScroll: true });
    if (part.id) find(part.id);
    if (focus?.[0]) part.querySelector(`[href="${CSS.escape(focus[0])}"]`)?.focus({ preventScroll: true });
    else if (focus?.[1]) part.querySelector(`input[value="${CSS.escape(focus[1])}"]`)?.focus({ preventScroll: true });
  }
}

// Shows what a list of folds has of the text that is searched for; a fold whose name has it shows everything.
const unfolded = new Set(); // by a search

function find(id) {
  const field = document.querySelector(`[data-filter="${CSS.escape(id)}"]`);
  if (!field) return;
  const has = (el, text) => el.textContent.toLowerCase().includes(text);
  const text = field.value.trim().toLowerCase();
  let n = 0;
  for (const d of document.getElementById(id).querySelectorAll("details[id]")) {
    const rows = [...d.querySelectorAll("tbody tr")], whole = has(d.querySelector("summary"), text);
    for (const r of rows) r.hidden = !whole && !has(r.querySelector("th"), text);
    d.hidden = !whole && rows.every((r) => r.hidden);
    if (!d.hidden) n++;
    if (text && !d.hidden && !d.open) { d.open = true; unfolded.add(d.id); }
    else if (!text && unfolded.delete(d.id)) d.open = false;
  }
  const said = text ? (n ? `${n} found` : "Nothing found") : "";
  const told = document.querySelector(`[data-filtered="${CSS.escape(id)}"]`);
  if (told.textContent !== said) told.textContent = said;
}

for (const field of document.querySelectorAll("[data-filter]")) {
  field.hidden = false;
  field.addEventListener("input", () => find(field.dataset.filter));
}

// The box in the head of the fleet's table picks every robot of the page, and shows whether all or some are picked.
function tellPicked() {
  const all = document.getElementById("pick-all");
  if (!all) return;
  const boxes = [...document.querySelectorAll(".fleet input[name=thing]")], n = boxes.filter((b) => b.checked).length;
  all.checked = n > 0 && n === boxes.length;
  all.indeterminate = n > 0 && n < boxes.length;
}

addEventListener("change", (e) => {
  if (e.target.id === "pick-all") for (const b of document.querySelectorAll(".fleet input[name=thing]")) b.checked = e.target.checked;
  if (e.target.id === "pick-all" || e.target.name === "thing") tellPicked();
});

const wire = document.getElementById("wire");

function sayWire(state, text) {
  if (!wire) return;
  wire.hidden = false;
  wire.dataset.state = state;
  if (wire.textContent !== text) wire.textContent = text;
}

let fetching = false, again = false;

// Fetches the page again; changes that come meanwhile ask for one more.
async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    do {
      again = false;
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) return location.reload(); // signed out: the log-in page
      if (!answer.ok) throw new Error(answer.statusText);
      morph(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } while (again);
    sayWire("live", "Live");
  } catch {
    sayWire("lost", "Not live");
    setTimeout(refresh, 3000);
  } finally {
    fetching = false;
  }
}

let source;

function follow() {
  source = new EventSource(document.body.dataset.liveFrom);
  source.addEventListener("change", () => { if (!document.hidden) refresh(); else again = true; });
  source.onerror = () => {
    sayWire("lost", "Reconnecting");
    // The browser reconnects by itself unless the server refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => { refresh(); follow(); }, 5000);
  };
}

tellTimes();
setInterval(tellTimes, 1000);

if (document.body.dataset.liveFrom) {
  follow();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (e) => { if (e.persisted) { follow(); refresh(); } });
}

if (every) setInterval(() => { if (!document.hidden) refresh(); }, every);

// The live tail: rows as the server makes them, the newest on top, so many and no more.
const tail = document.getElementById("tail");
if (tail) {
  const state = document.getElementById("tail-state"), pause = document.getElementById("tail-pause"), clear = document.getElementById("tail-clear");
  const note = document.getElementById("tail-skipped"), body = tail.tBodies[0], shown = Number(tail.dataset.shown);
  let waiting = [], skipped = 0, lost = false;
  const say = (s, text) => { state.dataset.state = s; if (state.textContent !== text) state.textContent = text; };
  const add = (rows) => {
    for (const r of rows) { r.classList.add("new"); body.prepend(r); }
    while (body.rows.length > shown) body.lastElementChild.remove();
    document.getElementById("tail-none")?.remove();
    tellTimes(body);
  };
  const paused = () => pause.getAttribute("aria-pressed") === "true";
  // Whoever reads in the list with the keyboard must not have it pushed away: what comes waits until they leave it.
  const waits = "New rows are held while you read";
  const reading = () => body.contains(document.activeElement);
  const flush = () => {
    if (paused() || reading()) return;
    add(waiting);
    waiting = [];
    say("live", "Live");
  };
  const tell = () => {
    note.hidden = !skipped && !lost;
    note.textContent = (skipped ? `${skipped} events arrived too fast to show; use a narrower filter. ` : "") + (lost ? "The connection was lost meanwhile; some may be missing." : "");
  };
  const toggle = () => {
    pause.setAttribute("aria-pressed", String(!paused()));
    pause.textContent = paused() ? "Continue" : "Pause";
    if (paused()) say("live", "Paused");
    else if (reading()) say("live", waits);
    else flush();
  };
  body.addEventListener("focusout", () => setTimeout(flush)); // by then the focus is where it goes
  pause.hidden = clear.hidden = false;
  pause.addEventListener("click", toggle);
  clear.addEventListener("click", () => { body.replaceChildren(); skipped = 0; lost = false; tell(); });
  addEventListener("keydown", (e) => { if (e.key === "p" && free(e)) toggle(); });
  const stream = new EventSource(tail.dataset.stream);
  stream.onopen = () => say("live", paused() ? "Paused" : "Live");
  stream.onerror = () => { lost = true; tell(); say("lost", stream.readyState === EventSource.CLOSED ? "Disconnected; reload the page" : "Reconnecting"); };
  stream.addEventListener("rows", (e) => {
    const rows = [...new DOMParser().parseFromString("<table><tbody>" + JSON.parse(e.data), "text/html").querySelectorAll("tr")];
    if (!paused() && !reading()) return add(rows);
    waiting = waiting.concat(rows).slice(-shown);
    say("live", paused() ? `Paused, ${waiting.length} waiting` : waits);
  });
  stream.addEventListener("skipped", (e) => { skipped += Number(e.data); tell(); });
  addEventListener("pagehide", () => stream.close());
}

// Keys. Whoever types into a field, or holds a modifier, means something else.
function free(e) {
  return !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName) && !document.querySelector("dialog[open]");
}

async function showHelp() {
  if (!document.querySelector('a[href="/help"]')) return;
  const answer = await fetch("/help");
  if (!answer.ok) return location.assign("/help");
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  const box = document.createElement("dialog"), close = document.createElement("button"), form = document.createElement("form");
  box.setAttribute("aria-label", "Keyboard and filters");
  form.method = "dialog";
  close.textContent = "Close";
  form.append(close);
  box.append(...fresh.querySelectorAll("main > .cols"), form);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
}

function step(by) {
  const rows = [...document.querySelectorAll(".fleet tbody tr")];
  if (!rows.length) return;
  const now = rows.findIndex((r) => r.classList.contains("at"));
  const next = rows[Math.min(Math.max(now + by, 0), rows.length - 1)];
  rows[now]?.classList.remove("at");
  next.classList.add("at");
  next.querySelector("th a").focus();
}

const places = { o: "/", f: "/things", t: "/tail", c: "/certificates", a: "/audit" };
let going = 0;
addEventListener("keydown", (e) => {
  const menu = document.querySelector("details.menu[open]");
  if (e.key === "Escape" && menu) { menu.open = false; menu.firstElementChild.focus(); }
  if (!free(e)) return;
  if (Date.now() - going < 1500 && places[e.key]) {
    const to = document.querySelector(`#nav a[href="${places[e.key]}"]`);
    if (to) { e.preventDefault(); to.click(); }
    going = 0;
    return;
  }
  const field = document.getElementById("q");
  switch (e.key) {
    case "g": going = Date.now(); break;
    case "/": if (field) { e.preventDefault(); field.focus(); field.select(); } break;
    case "?": e.preventDefault(); showHelp(); break;
    case "j": step(1); break;
    case "k": step(-1); break;
  }
});
addEventListener("click", (e) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(e.target)) menu.open = false;
});

// The menu at the side folds away; the button in the header brings it back. The server draws it as the cookie says.
const side = document.getElementById("nav"), fold = document.getElementById("nav-fold"), opener = document.getElementById("nav-open");
if (side) {
  const folds = (folded) => {
    side.parentElement.classList.toggle("folded", folded);
    fold.setAttribute("aria-expanded", String(!folded));
    document.cookie = `kennel_nav=${folded ? "folded" : ""}; path=/; max-age=${folded ? 31536000 : 0}; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;
  };
  const wide = matchMedia("(min-width: 75rem)");
  fold.hidden = false;
  fold.addEventListener("click", () => { folds(true); opener.focus(); });
  opener.addEventListener("click", (e) => {
    if (!wide.matches) return;
    e.preventDefault();
    folds(false);
    side.querySelector("a").focus();
  });
}
