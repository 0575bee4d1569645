// Pleo's part of the robot's own page: its posture as a picture whose places can be touched, and its drives and feelings as bars with curves.

const svg = (name, attributes = {}, ...children) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  e.append(...children);
  return e;
};
const html = (name, properties = {}, ...children) => {
  const e = Object.assign(document.createElement(name), properties);
  e.append(...children);
  return e;
};

const legs = [
  { name: "leg[front][right]", hip: [262, 138], far: true, side: "fore-right", word: "right foreleg" },
  { name: "leg[back][right]", hip: [158, 138], far: true, side: "hind-right", word: "right hind leg" },
  { name: "leg[front][left]", hip: [246, 144], side: "fore-left", word: "left foreleg" },
  { name: "leg[back][left]", hip: [142, 144], side: "hind-left", word: "left hind leg" },
];
const tilts = ["Its position is not known", "On its feet", "On its left side", "On its right side", "On its nose", "On its tail", "On its back"];
const moods = ["none", "neutral", "happy", "sad", "aggressive", "scared", "affectionate", "angry", "surprised", "jaded", "curious", "bored", "pain"];
const feelings = ["arousal", "valence", "energy", "health", "fatigue", "damage"];
const drives = 6, curvePoints = 120, upper = 34, lower = 34;

// at returns the point so far from p in a direction: an angle clockwise on the picture, 0 is to the right, where Pleo looks.
const at = ([x, y], length, angle) => [x + length * Math.cos(angle), y + length * Math.sin(angle)];
const path = (...points) => "M" + points.map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L");

// part returns the section for a page, and keeps it up to date with robot.subscribe. hand(words) touches a simulated Pleo; it is null on a real one.
export default function part({ description, subscribe, hand, say }) {
  const values = new Map();
  const value = (name) => values.get(`robot.${name}`) ?? 0;
  const angle = (name) => value(`body.${name}.angle`);

  const zone = (side, word, slot, shape, ...others) => {
    shape.classList.add("pad");
    const g = svg("g", {}, ...others, shape);
    g.dataset.slot = `robot.body.${slot}.pressure`;
    if (hand) {
      g.setAttribute("role", "button");
      g.setAttribute("tabindex", "0");
      g.setAttribute("aria-label", `Touch its ${word}`);
      const touch = () => hand("pat", side).then(() => say(`touched its ${word}`), (e) => say(e.message, true));
      g.addEventListener("click", touch);
      g.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" && e.key !== " ") return;
        e.preventDefault();
        touch();
      });
    }
    return g;
  };
  const circle = () => svg("circle", { r: 13 });

  const limbs = legs.map((l) => ({ ...l, bone: svg("path", { class: l.far ? "limb far" : "limb" }), pad: circle() }));
  for (const l of limbs) l.zone = zone(l.side, l.word, `${l.name}.touch`, l.pad, l.bone);
  const neck = svg("path", { class: "limb" }), tail = svg("path", { class: "limb" });
  const head = svg("g", {}, svg("ellipse", { class: "skin", cx: 14, cy: -6, rx: 26, ry: 16 }), svg("circle", { class: "eye", cx: 20, cy: -11, r: 3 }));
  const jaw = svg("path", { class: "skin", d: "M2 5 L34 3 L30 12 L8 14 Z" });
  const skull = svg("g", {}, jaw, head);
  const crown = zone("head", "head", "head.touch[up]", svg("circle", { r: 12, cx: 8, cy: -20 }));
  const chin = zone("chin", "chin", "head.touch[down]", svg("circle", { r: 12, cx: 16, cy: 18 }));
  skull.append(crown, chin);
  const trunk = svg("g", {}, svg("ellipse", { class: "skin", cx: 202, cy: 122, rx: 78, ry: 38 }), svg("ellipse", { class: "belly", cx: 202, cy: 140, rx: 56, ry: 17 }));
  const back = zone("neck", "back", "touch[front]", svg("circle", { r: 13, cx: 236, cy: 92 }));
  const rump = zone("rump", "rump", "touch[back]", svg("circle", { r: 13, cx: 160, cy: 93 }));
  const picture = svg("g", {}, limbs[0].zone, limbs[1].zone, tail, neck, trunk, back, rump, limbs[2].zone, limbs[3].zone, skull);
  const drawing = svg("svg", { class: "body", viewBox: "0 0 400 240", role: "group", "aria-label": "Pleo as it is now, from its left" },
    svg("path", { class: "floor", d: "M10 226H390" }), picture);
  const posture = html("p", { textContent: tilts[0] });

  function draw() {
    for (const l of limbs) {
      const hip = angle(`${l.name}.hip.pitch`), knee = angle(`${l.name}.knee.pitch`);
      const joint = at(l.hip, upper, Math.PI / 2 + hip), foot = at(joint, lower, Math.PI / 2 + hip + knee);
      l.bone.setAttribute("d", path(l.hip, joint, foot));
      [["cx", 0], ["cy", 1]].forEach(([k, i]) => l.pad.setAttribute(k, joint[i].toFixed(1)));
    }
    const up = -Math.PI / 4 + angle("neck.pitch"), reach = 46 + 16 * Math.cos(angle("neck.yaw"));
    const nape = at([262, 104], reach, up);
    neck.setAttribute("d", path([262, 104], nape));
    skull.setAttribute("transform", `translate(${nape.map((v) => v.toFixed(1)).join(" ")}) rotate(${((angle("neck.pitch") * 180) / Math.PI / 2).toFixed(1)})`);
    jaw.setAttribute("transform", `rotate(${Math.max(0, (-value("body.head.mouth.val") * 180) / Math.PI / 3).toFixed(1)} 4 6)`);
    const down = Math.PI - angle("tail.pitch") * 0.7, length = 50 + 40 * Math.cos(angle("tail.yaw"));
    const middle = at([134, 112], length / 2, down - 0.2);
    tail.setAttribute("d", path([134, 112], middle, at(middle, length / 2, down - 0.5)));
    for (const z of picture.querySelectorAll("[data-slot]")) z.classList.toggle("touched", values.get(z.dataset.slot) > 0);
    const tilt = value("body.tilt.val"), feet = legs.some((l) => value(`body.${l.name}.foot.touch.pressure`) > 0);
    picture.setAttribute("transform", { 4: "rotate(60 200 130)", 5: "rotate(-60 200 130)", 6: "rotate(180 200 130)" }[tilt] ?? (feet || tilt > 1 ? "" : "translate(0 -12)"));
    posture.textContent = tilt === 1 && !feet ? "Off the floor" : (tilts[tilt] ?? tilts[0]);
  }

  // bar is one line: a word, a scale and a number, above its curve of the last minute.
  function bar() {
    const word = html("p"), fill = html("div", { className: "fill" }), low = html("div", { className: "mark" }), high = html("div", { className: "mark" });
    const scale = html("div", { className: "scale" }, fill, low, high), number = html("p", { className: "number" });
    const line = svg("polyline"), curve = svg("svg", { class: "curve", viewBox: "0 -1 120 2", preserveAspectRatio: "none", "aria-hidden": "true" }, line);
    const row = html("div", { className: "bar" }, word, scale, number);
    row.append(curve);
    scale.setAttribute("role", "meter");
    const points = [];
    let most = 100;
    return {
      row,
      set(name, v, { active, from, to } = {}) {
        row.hidden = name === "";
        most = Math.max(most, Math.abs(v), Math.abs(from ?? 0), Math.abs(to ?? 0));
        const place = (x) => `${(50 + (50 * x) / most).toFixed(1)}%`;
        word.textContent = active ? `${name}, active` : name;
        row.classList.toggle("active", Boolean(active));
        number.textContent = String(v);
        fill.style.left = place(Math.min(v, 0));
        fill.style.width = `${((50 * Math.abs(v)) / most).toFixed(1)}%`;
        low.hidden = high.hidden = from === undefined;
        if (from !== undefined) [low.style.left, high.style.left] = [place(from), place(to)];
        for (const [k, x] of [["label", name || "none"], ["valuenow", v], ["valuemin", -most], ["valuemax", most]]) scale.setAttribute(`aria-${k}`, String(x));
        points.push(v);
        if (points.length > curvePoints) points.shift();
        line.setAttribute("points", points.map((y, x) => `${x},${(-y / most).toFixed(3)}`).join(" "));
      },
    };
  }

  // text reads the name of a drive, which is two numbers of six letters each, the first one lowest.
  const text = (...numbers) => {
    let out = "";
    for (let v of numbers) for (; v > 0; v = Math.floor(v / 256)) out += String.fromCharCode(v % 256);
    return out;
  };
  const driveBars = Array.from({ length: drives }, bar), feelingBars = feelings.map(bar);
  const none = html("p", { textContent: "No application with drives is running." }), mood = html("p");
  function feel() {
    const active = value("mood.drive");
    let any = false;
    driveBars.forEach((b, i) => {
      const of = (slot) => value(`drive[${i}].${slot}`);
      const name = text(of("name"), of("rest"));
      any ||= name !== "";
      b.set(name, of("val"), { active: active === i + 1, from: of("low"), to: of("high") });
    });
    none.hidden = any;
    feelings.forEach((name, i) => feelingBars[i].set(name, value(`mood.${name}`)));
    mood.textContent = `Mood: ${moods[value("mood.val")] ?? value("mood.val")}`;
  }

  const about = hand ? "Click a marked place to touch it there. With the keyboard, go to a place with Tab and press Enter." : "This is a real Pleo: touch it by hand. Marked places light up when they feel it.";
  const section = html("section", { id: "pleo" }, html("h2", { id: "pleo-title", textContent: "Pleo" }), html("div", { className: "sides" },
    html("div", {}, drawing, posture, html("p", { textContent: about })),
    html("div", {}, html("h3", { textContent: "Drives" }), none, ...driveBars.map((b) => b.row), html("h3", { textContent: "Feelings" }), mood, ...feelingBars.map((b) => b.row))));
  section.setAttribute("aria-labelledby", "pleo-title");
  draw();
  feel();

  const keep = (readings) => {
    for (const r of readings) if (r.value !== null) values.set(`${r.part}.${r.slot}`, r.value);
  };
  const names = description.parts.filter((p) => /\.(hip|knee|torso|tail|neck|mouth|touch|tilt)/.test(p.full)).map((p) => p.full);
  subscribe(names, { rate: 10 }, (readings) => (keep(readings), draw()));
  subscribe(["robot.mood", "robot.drive"], { rate: 2 }, keep);
  setInterval(feel, 500);
  return section;
}
