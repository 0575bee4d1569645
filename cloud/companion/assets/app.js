// Shows times in the reader's zone and words. Without it the pages say them in UTC.
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "long" });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

function ago(then) {
  const s = Math.round((then - Date.now()) / 1000);
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    if (Math.abs(s) >= size) return relative.format(Math.trunc(s / size), unit);
  }
  return "just now";
}

function tell() {
  for (const t of document.querySelectorAll("time[datetime]")) {
    const then = new Date(t.dateTime);
    const full = absolute.format(then);
    t.textContent = t.classList.contains("ago") ? ago(then) : full;
    t.title = full;
  }
}

tell();
setInterval(tell, 10_000);
