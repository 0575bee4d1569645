// Shows times in the reader's zone and words, and keeps a page true while one looks at it. Without it the pages work as of when they were loaded.
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto", style: "long" });
const absolute = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });

function ago(then) {
  const s = Math.round((then - Date.now()) / 1000);
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(s) >= size) return relative.format(Math.trunc(s / size), unit);
  }
  return relative.format(0, "second"); // "now"
}

function tell(root = document) {
  for (const t of root.querySelectorAll("time[datetime]")) {
    const then = new Date(t.dateTime);
    const full = absolute.format(then);
    const text = t.classList.contains("ago") ? ago(then) : full;
    if (t.textContent !== text) t.textContent = text;
    t.title = full;
  }
}

tell();
setInterval(tell, 10_000);

// The server says when something changed; the page is fetched again, and each part marked data-live is replaced if it differs. What somebody
// fills in is not among them.
let fetching = false, again = false;

async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    do {
      again = false;
      const answer = await fetch(location.pathname, { headers: { Accept: "text/html" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 404) return location.reload(); // signed out, or the robot is another's now
      if (!answer.ok) throw new Error(answer.statusText);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
        if (!next) return location.reload(); // the page has another shape now
        tell(next);
        if (part.innerHTML === next.innerHTML) continue;
        const focus = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        part.replaceChildren(...next.childNodes);
        if (focus) part.querySelector(`[href="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
      }
    } while (again);
  } catch {
    setTimeout(refresh, 5000); // the way to the server is broken
  } finally {
    fetching = false;
  }
}

const from = document.body.dataset.liveFrom;
if (from) {
  let source;
  const follow = () => {
    source = new EventSource(from);
    source.addEventListener("change", () => { if (!document.hidden) refresh(); });
    source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(() => { refresh(); follow(); }, 5000); };
  };
  follow();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (e) => { if (e.persisted) { follow(); refresh(); } });
}

// What a robot was told waits for its answer for some seconds.
setInterval(() => { if (!document.hidden && document.querySelector("[data-open]")) refresh(); }, 1000);

// A robot that updates reports how far it is.
setInterval(() => { if (!document.hidden && document.querySelector("[data-moving]")) refresh(); }, 10_000);

// The face of the settings shows the colour that is picked.
const eyes = document.querySelector(".eyes-form");
if (eyes) {
  const face = eyes.querySelector(".face .eyes"), own = eyes.querySelector(".own");
  const mix = () => {
    const h = eyes.hue.value / 360, s = eyes.saturation.value / 100;
    const part = (n) => { const k = (n + h * 6) % 6; return Math.round(255 * (1 - s * Math.max(0, Math.min(k, 4 - k, 1)))); };
    return `rgb(${part(5)} ${part(3)} ${part(1)})`;
  };
  eyes.addEventListener("input", () => {
    own.setAttribute("fill", mix());
    const picked = eyes.querySelector("input[type=radio]:checked");
    if (picked) face.setAttribute("fill", picked.parentElement.querySelector("g").getAttribute("fill"));
  });
}

// The time zone of this device, for who does not want to look for it.
const here = document.getElementById("here-zone");
if (here) {
  here.parentElement.hidden = false;
  here.addEventListener("click", () => { document.getElementById("zone").value = Intl.DateTimeFormat().resolvedOptions().timeZone; });
}
