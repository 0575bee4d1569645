// Drives Chromium for tests in Go: one JSON object a line comes in, one goes out. infra/browser/browser.go is the other end and says what each
// operation is for. Elements are found as people and screen readers find them: by role and name, by label, by text.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.argv[2],
  headless: true,
  chromiumSandbox: false,
  args: ["--disable-gpu", "--disable-background-networking", "--disable-quic", "--no-first-run", "--disable-component-update", "--disable-sync"],
});
const pages = new Map();

// find returns the first visible element that a request means.
function find({ page }, a) {
  const root = a.within ? page.getByRole(a.within.role, { name: a.within.name }).filter({ visible: true }).first() : page;
  const options = { name: a.name, exact: a.exact };
  let at;
  if (a.role === "summary") at = root.locator("summary").filter({ hasText: a.name }); // which has no role of its own for Playwright
  else if (a.label !== undefined) at = root.getByLabel(a.label, { exact: a.exact });
  else if (a.role !== undefined) at = root.getByRole(a.role, a.name === undefined ? {} : options);
  else at = root.getByText(a.text, { exact: a.exact });
  if (!a.hidden) at = at.filter({ visible: true });
  return at.first();
}

// What a Tab must reach: everything that acts, but one radio button of each group.
function tabbable() {
  const names = new Set(), out = [];
  for (const e of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")) {
    if (e.disabled || e.tabIndex < 0 || !e.checkVisibility({ visibilityProperty: true }) || e.closest("[inert]")) continue;
    if (e.closest("details:not([open])") && !(e.tagName === "SUMMARY" && e.parentElement.open === false && !e.parentElement.parentElement.closest("details:not([open])"))) continue;
    if (e.type === "radio") {
      const group = (e.form ? [...document.forms].indexOf(e.form) : "") + "/" + e.name;
      if (names.has(group)) continue;
      names.add(group);
    }
    out.push(e);
  }
  return out;
}

// What does not fit into the window as it is: a page wider than it, a target that another element covers or that is smaller than 24 px, a text
// that is cut off. The page must have come to rest. The window is scrolled to the top again afterwards.
function misfits(tabbable) {
  const out = [], short = (e) => e.outerHTML.replace(/\s+/g, " ").slice(0, 120);
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over > 0) {
    const far = [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3);
    out.push({ kind: "wide", what: `${over} px too wide: ${far.map(short).join(" | ")}` });
  }
  const sides = (e) => [...e.getClientRects()].filter((r) => r.width && r.height);
  const text = (e) => e.textContent.trim();
  const clipped = (e) => e && e !== document.body && (getComputedStyle(e).clipPath !== "none" || clipped(e.parentElement)); // shown to screen readers alone
  for (const e of tabbable()) {
    if (clipped(e)) continue;
    const label = e.labels?.[0], style = getComputedStyle(e);
    const hidden = style.opacity === "0" || sides(e).every((r) => r.width <= 1 || r.height <= 1);
    if (hidden && !label) continue; // the link that skips to the content, until it has the focus
    const target = label && (hidden || /^(checkbox|radio)$/.test(e.type)) ? label : e;
    if (!sides(target).length) continue;
    target.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    const boxes = sides(target), [r] = boxes;
    const hit = document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2);
    if (hit && !target.contains(hit) && hit !== e && hit.closest("label")?.control !== e) out.push({ kind: "covered", what: `${short(hit)} covers ${short(target)}` });
    const inText = style.display === "inline" && text(e.parentElement) !== text(e);
    const height = Math.max(...boxes.map((b) => b.height)), width = Math.max(...boxes.map((b) => b.width));
    if (!inText && Math.min(height, width) < 23.5 && !e.closest("svg")) out.push({ kind: "small", what: `${Math.round(width)} x ${Math.round(height)} px: ${short(target)}` });
  }
  for (const e of document.body.querySelectorAll("*")) {
    if (!e.clientWidth || !e.clientHeight || e.title || !text(e) || !e.checkVisibility({ visibilityProperty: true })) continue;
    const { overflowX, overflowY, clipPath, clip } = getComputedStyle(e);
    if (clipPath !== "none" || clip !== "auto" || e.clientWidth <= 1) continue; // for screen readers
    const x = /hidden|clip/.test(overflowX) && e.scrollWidth > e.clientWidth + 1, y = /hidden|clip/.test(overflowY) && e.scrollHeight > e.clientHeight + 2;
    if (x || y) out.push({ kind: "cut", what: `${e.scrollWidth} x ${e.scrollHeight} px in ${e.clientWidth} x ${e.clientHeight}: ${short(e)}` });
  }
  scrollTo(0, 0);
  return out;
}

// Where the focus is, and whether somebody sees it there: an outline or shadow, on the element or on one around it that shows it in its place.
function focused() {
  const e = document.activeElement;
  if (!e || e === document.body || e === document.documentElement) return null;
  const list = (window.kennelTabs ??= new Map());
  let key = e;
  if (e.type === "radio") key = [...document.querySelectorAll(`input[type=radio][name="${CSS.escape(e.name)}"]`)].find((x) => x.form === e.form) ?? e;
  if (!list.has(key)) list.set(key, list.size);
  const shows = (x) => {
    const s = getComputedStyle(x);
    return (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) > 0) || s.boxShadow !== "none";
  };
  const label = e.labels?.[0];
  let seen = shows(e) || (label && shows(label)) || (e.nextElementSibling && label?.contains(e) && shows(e.nextElementSibling));
  for (let x = e.parentElement, n = 0; x && n < 3 && !seen; x = x.parentElement, n++) seen = x.matches(":has(:focus-visible), :focus-within") && getComputedStyle(x).outlineStyle !== "none";
  const r = e.getBoundingClientRect();
  const name = (e.getAttribute("aria-label") || label?.innerText || e.innerText || e.value || e.name || "").trim().replace(/\s+/g, " ").slice(0, 60);
  (window.kennelNames ??= new Set()).add(e.outerHTML);
  return { n: list.get(key), name: `${e.tagName.toLowerCase()} ${name}`.trim(), seen: Boolean(seen), inView: r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth };
}

// tab presses Tab n times and returns where the focus was after each. The keys go out in one batch, and the page itself notes where each led:
// waiting for every one costs four times as much.
async function tab(s, n) {
  await s.page.evaluate(`(() => {
    window.kennelStops = [];
    window.kennelNotes ??= addEventListener("keyup", () => window.kennelStops.push((${focused})()), true) ?? true;
  })()`);
  s.cdp ??= await s.context.newCDPSession(s.page);
  const key = { key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 };
  const sent = [];
  for (let i = 0; i < n; i++) sent.push(s.cdp.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...key }), s.cdp.send("Input.dispatchKeyEvent", { type: "keyUp", ...key }));
  await Promise.all(sent);
  return await s.page.evaluate(() => window.kennelStops);
}

const ops = {
  async page(_, a) {
    const context = await browser.newContext({
      viewport: { width: a.width, height: a.height }, colorScheme: a.scheme ?? "light", hasTouch: a.touch, isMobile: a.touch, deviceScaleFactor: a.scale ?? 1,
      ignoreHTTPSErrors: true, // the house makes its own root certificate
      acceptDownloads: true, locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce",
    });
    context.setDefaultTimeout(a.timeout);
    const page = await context.newPage();
    const state = { page, context, faults: [], requests: [] };
    page.on("console", (m) => { if (m.type() === "error" && !/the server responded with a status of [45]/.test(m.text())) state.faults.push(`console: ${m.text()}`); });
    page.on("pageerror", (e) => state.faults.push(`script: ${e.message}`));
    page.on("request", (r) => {
      const u = new URL(r.url());
      if (u.protocol.startsWith("http") && u.hostname !== "127.0.0.1" && u.hostname !== "localhost") state.faults.push(`another host: ${r.url()}`);
    });
    pages.set(a.page, state);
  },
  async close(s, a) { await s.context.close(); pages.delete(a.page); },
  async goto(s, a) { await s.page.goto(a.url, { waitUntil: "load" }); },
  async reload(s) { await s.page.reload({ waitUntil: "load" }); },
  async look(s, a) { // each change lays the page out and paints it anew
    const { width, height } = s.page.viewportSize();
    if (a.scheme && a.scheme !== s.scheme) await s.page.emulateMedia({ colorScheme: s.scheme = a.scheme });
    if (a.width && (a.width !== width || a.height !== height)) await s.page.setViewportSize({ width: a.width, height: a.height });
  },
  async click(s, a) { await find(s, a).click(); },
  async focus(s, a) { await find(s, a).focus(); },
  async fill(s, a) { await find(s, a).fill(a.value); },
  async attach(s, a) { await find(s, a).setInputFiles({ name: a.name, mimeType: "application/octet-stream", buffer: Buffer.from(a.content, "base64") }); },
  async drag(s, a) {
    await s.page.mouse.move(a.from[0], a.from[1]);
    await s.page.mouse.down();
    await s.page.mouse.move(a.to[0], a.to[1], { steps: 4 });
    await s.page.mouse.up();
  },
  async authenticator(s) {
    const cdp = await s.context.newCDPSession(s.page);
    await cdp.send("WebAuthn.enable");
    const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true };
    await cdp.send("WebAuthn.addVirtualAuthenticator", { options });
  },
  async check(s, a) { await find(s, a).setChecked(a.on ?? true); },
  async choose(s, a) { await find(s, a).selectOption({ label: a.value }); },
  async press(s, a) { await (a.role || a.label ? find(s, a).press(a.key) : s.page.keyboard.press(a.key, { delay: a.hold ?? 0 })); },
  async see(s, a) { await find(s, a).waitFor({ state: "visible" }); },
  async gone(s, a) { await find(s, { ...a, hidden: true }).waitFor({ state: "hidden" }); },
  async count(s, a) { return (await find(s, a).count()); },
  async at(s, a) { await s.page.waitForURL((u) => new RegExp(a.path).test(u.pathname + u.search)); },
  async url(s) { return s.page.url(); },
  async text(s, a) { return a.role || a.label || a.text ? await find(s, a).innerText() : await s.page.locator("body").innerText(); },
  async value(s, a) { return await find(s, a).inputValue(); },
  async checked(s, a) { return await find(s, a).isChecked(); },
  async active(s) { return await s.page.evaluate(focused); },
  async eval(s, a) { return await s.page.evaluate(a.script); },
  async download(s, a) {
    const [file] = await Promise.all([s.page.waitForEvent("download"), find(s, a).click()]);
    await file.saveAs(a.file);
    return file.suggestedFilename();
  },
  async shot(s, a) {
    await s.page.evaluate(() => document.activeElement?.blur());
    await s.page.screenshot({ path: a.file, fullPage: !a.window, animations: "disabled" });
  },
  async labels(s) {
    const all = await s.page.locator("nav a, h2, h3, label, button").filter({ visible: true }).allInnerTexts();
    return [...new Set(all.map((text) => text.replace(/\S*\d\S*/g, "").replace(/\s+/g, " ").trim()).filter(Boolean))].sort();
  },
  async axe(s, a) {
    // From the top, whatever was done before: further down, a header that stays in the window lies over some target by chance.
    await s.page.evaluate(() => scrollTo(0, 0));
    // Playwright evaluates outside the page's Content-Security-Policy.
    if (!(await s.page.evaluate(() => Boolean(window.axe)))) await s.page.evaluate(axeSource);
    return await s.page.evaluate(async (rules) => {
      const runOnly = rules ?? ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
      const { violations } = await window.axe.run(document, { resultTypes: ["violations"], runOnly });
      return violations.map((v) => ({ id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 4).map((n) => `${n.html.slice(0, 160)} (${n.any.concat(n.all, n.none).map((c) => c.message).join("; ").slice(0, 240)})`) }));
    }, a.rules);
  },
  async fit(s) {
    return await s.page.evaluate(`(${misfits})(${tabbable})`);
  },
  async untranslated(s, a) {
    const answer = await s.context.request.get(s.page.url(), { headers: { "Accept-Language": a.lang, Accept: "text/html" } });
    const html = await answer.text();
    return await s.page.evaluate((html) => {
      const doc = new DOMParser().parseFromString(html, "text/html");
      return [...doc.querySelectorAll("body [lang=en]:not([translate=no])")].map((e) => e.textContent.trim().replace(/\s+/g, " ").slice(0, 120)).concat(doc.documentElement.lang === "en" ? ["the whole page"] : []);
    }, html);
  },
  async tabs(s) {
    await s.page.evaluate(() => { window.kennelTabs = new Map(); window.kennelNames = new Set(); document.activeElement?.blur(); scrollTo(0, 0); getSelection()?.removeAllRanges(); });
    const want = await s.page.evaluate(`(${tabbable})().length`);
    const stops = [];
    let outside = 0;
    walk: for (let left = want + 20, n = want + 2; left > 0; left -= n, n = Math.min(left, 4)) {
      for (const f of await tab(s, n)) {
        if (!f) {
          if (stops.length && ++outside > 1) break walk;
          continue;
        }
        if (stops.some((x) => x.n === f.n)) { // round once, or standing still
          if (f.n === 0) break walk;
          return { stops, missed: [`the focus stays at ${f.name}`] };
        }
        stops.push(f);
      }
    }
    // A live page may have put another element in the place of one that was reached.
    const missed = await s.page.evaluate(`(${tabbable})().filter((e) => !window.kennelTabs.has(e) && !window.kennelNames.has(e.outerHTML)).map((e) => e.outerHTML.slice(0, 120))`);
    await s.page.evaluate(() => document.activeElement?.blur()); // the link that skips to the content covers what is below it while it has the focus
    return { stops, missed };
  },
  async faults(s) { return s.faults.splice(0); },
};

const answer = (o) => process.stdout.write(JSON.stringify(o) + "\n");
answer({ id: 0, value: browser.version() });
for await (const line of createInterface({ input: process.stdin })) {
  const a = JSON.parse(line);
  try {
    const s = pages.get(a.page);
    if (!s && a.op !== "page") throw new Error(`no page ${a.page}`);
    answer({ id: a.id, value: (await ops[a.op](s, a)) ?? null });
  } catch (e) {
    answer({ id: a.id, error: String(e.message ?? e) });
  }
}
await browser.close();
