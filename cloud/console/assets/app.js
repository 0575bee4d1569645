// Keeps a page live. Without it the pages work too, as of when they were loaded.
//
// The server says when something changed; the page is fetched again and each part marked data-live is replaced if it differs. What the
// reader does meanwhile stays: focus, open details, scroll position.

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "always", style: "long" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

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
}

// Puts the parts of a fresh page in that differ.
function morph(fresh) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
    if (!next) return location.reload(); // the page has another shape now
    tellTimes(next);
    for (const d of part.querySelectorAll("details[open][id]")) {
      next.querySelector(`#${CSS.escape(d.id)}`)?.setAttribute("open", "");
    }
    if (part.className !== next.className) part.className = next.className;
    if (part.innerHTML === next.innerHTML) continue;
    if (part.querySelector("details[open] form") || part.querySelector("form :focus")) continue; // somebody fills it in
    const focus = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    part.replaceChildren(...next.childNodes);
    if (focus) part.querySelector(`[href="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  }
}

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
    // The browser tries on by itself unless the server refused.
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

// "/" goes to the search field, as in many lists.
addEventListener("keydown", (e) => {
  const field = document.getElementById("q");
  if (e.key !== "/" || !field || e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
  e.preventDefault();
  field.select();
});
