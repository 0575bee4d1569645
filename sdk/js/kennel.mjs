// Drives a robot over the network, whatever its species, from a browser or from Node 20:
//
//   import { connect } from "./kennel.mjs";
//   const robot = await connect("robot.json"); // the file that the robot's owner made for this program; in a browser its content, as an object
//   await robot.go(0.1);                       // metres; resolves when the robot has arrived
//   await robot.turn(Math.PI / 2);             // radians, to the right
//   console.log(await robot.read("robot.body.laser.distance"));
//   await robot.close();
//
// A motion that ends otherwise than ordered is a NotDone. A refusal, or a robot that cannot be reached, is a KennelError. The packages for Go and Python have
// the same calls (docs/sdk.md); kennel.d.mts has their types.
//
// In a browser the calls are fetch and the streams are WebSockets. A browser trusts the robot's certificate only if its user has accepted it. In Node the
// certificate of the file is trusted alone, and a stream is the answer to its call, a message a line.

const patience = 5000; // ms, for an answer that the robot has at once
const silence = 2000; // ms of a stream, in which the robot says something each second

export class KennelError extends Error {
  constructor(code, message) {
    super(`${code}: ${message}`);
    this.name = new.target.name;
    this.code = code; // of the robot (infra/api/robotpb/robot.proto), or file_missing, file_wrong, unreachable, certificate_wrong, lost, not_measured
  }
}

export class Lost extends KennelError {
  constructor(message = "the robot is not heard any longer") {
    super("lost", message);
  }
}

export class NotDone extends KennelError {
  constructor(ended) {
    super(ended.outcome, ended.words);
    this.ended = ended;
    this.outcome = ended.outcome;
    this.reasons = ended.reasons;
    this.words = ended.words;
  }
}

const inNode = typeof process !== "undefined" && Boolean(process.versions?.node);

// connect returns a Robot. place is the path of a robot's file, its content, or nothing: the file that $KENNEL_ROBOT names.
export async function connect(place) {
  const transport = inNode ? await node(place) : browser(place);
  await transport.knock();
  return new Robot(transport);
}

function checked(place, where) {
  const want = (key, what) => {
    if (typeof place?.[key] !== "string" || place[key] === "") throw new KennelError("file_wrong", `${where}${key}: want ${what}`);
  };
  want("address", "host:port");
  if (!/.:\d+$/.test(place.address)) throw new KennelError("file_wrong", `${where}address: want host:port`);
  want("token", "the token of a program");
  if (inNode) want("certificate", "PEM");
  return place;
}

function refusal(status, text) {
  try {
    const { code, message } = JSON.parse(text);
    if (code) return new KennelError(code, message);
  } catch {} // it is no answer of a robot
  return new KennelError(`http_${status}`, text.slice(0, 200));
}

// browser calls by fetch and WebSocket: streams by fetch would take the few connections that a browser has for all calls, stop among them.
function browser(given) {
  const place = checked(given, "");
  const post = async (call, request, signal) => {
    const answer = await fetch(`https://${place.address}/v1/${call}`, {
      method: "POST", body: JSON.stringify(request), signal, headers: { Authorization: `Bearer ${place.token}`, "Content-Type": "application/json" },
    });
    const text = await answer.text();
    if (!answer.ok) throw refusal(answer.status, text);
    return JSON.parse(text);
  };
  return {
    post,
    async knock() {
      await post("describe", {}, AbortSignal.timeout(patience)).catch((e) => {
        if (e.code === "right_missing") return;
        if (e instanceof KennelError) throw e;
        throw new KennelError("unreachable", `no robot at ${place.address}, or its certificate is not accepted in this browser: ${e.message}`);
      });
    },
    async *stream(call, request, signal) {
      const token = btoa(String.fromCharCode(...new TextEncoder().encode(place.token))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
      const socket = new WebSocket(`wss://${place.address}/v1/${call}`, ["kennel.robot.v1", `kennel.bearer.${token}`]);
      const waiting = []; // null: the end
      let wake = () => {};
      const put = (m) => {
        const old = waiting.at(-1);
        if (m?.readings?.length && old?.readings?.length) { // a slow reader gets the newest values
          m.missed = Number(m.missed) + Number(old.missed) + 1;
          m.readings.forEach((r, i) => (r.changed ||= old.readings[i].changed));
          waiting.pop();
        }
        if (m?.format && old?.format) { // and the newest picture
          m.missed = Number(m.missed) + Number(old.missed) + 1;
          waiting.pop();
        }
        waiting.push(m);
        wake();
      };
      socket.onopen = () => socket.send(JSON.stringify(request));
      socket.onmessage = (e) => put(JSON.parse(e.data));
      socket.onclose = () => put(null);
      signal.addEventListener("abort", () => (socket.close(), put(null)));
      for (;;) {
        while (waiting.length === 0) await new Promise((resolve) => (wake = resolve));
        const m = waiting.shift();
        if (m === null) return;
        yield m;
      }
    },
    close() {},
  };
}

// node calls by node:https, which can trust one certificate alone.
async function node(given) {
  const { readFile } = await import("node:fs/promises");
  const { default: https } = await import("node:https");
  const { default: tls } = await import("node:tls");
  const { X509Certificate } = await import("node:crypto");
  let place = given, where = "";
  if (typeof given !== "object") {
    const path = given || process.env.KENNEL_ROBOT;
    if (!path) throw new KennelError("file_missing", "want the path of a robot's file, or $KENNEL_ROBOT");
    where = `${path}: `;
    const text = await readFile(path, "utf8").catch((e) => {
      throw new KennelError("file_missing", `${e.message}: want the robot's file, which its owner makes`);
    });
    try {
      place = JSON.parse(text);
    } catch (e) {
      throw new KennelError("file_wrong", where + e.message);
    }
  }
  const { address, certificate, token } = checked(place, where);
  let servername;
  try {
    servername = /DNS:([^,]+)/.exec(new X509Certificate(certificate).subjectAltName)[1];
  } catch (e) {
    throw new KennelError("file_wrong", `${where}certificate: want PEM with the robot's name: ${e.message}`);
  }
  const [, host, port] = /^\[?(.*?)\]?:(\d+)$/.exec(address);
  const trust = { host, port, servername, ca: certificate };
  const agent = new https.Agent({ ...trust, keepAlive: true, timeout: 30000 }); // the robot ends idle connections after a minute
  const begin = (call, request, signal) => new Promise((resolve, reject) => {
    const q = https.request({ host, port, agent, method: "POST", path: `/v1/${call}`, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" } }, (answer) => {
      answer.on("error", () => {}); // its reader hears it, if there is one
      resolve(answer);
    });
    q.on("error", reject);
    signal.addEventListener("abort", () => q.destroy());
    q.end(JSON.stringify(request));
  });
  const textOf = async (answer) => {
    let text = "";
    for await (const chunk of answer.setEncoding("utf8")) text += chunk;
    return text;
  };
  return {
    knock: () => new Promise((resolve, reject) => {
      const socket = tls.connect({ ...trust, timeout: patience }, () => (socket.destroy(), resolve()));
      socket.on("timeout", () => socket.destroy(new Error("no answer")));
      socket.on("error", (e) => reject(/CERT|VERIFY|ISSUER|SIGNATURE/.test(e.code)
        ? new KennelError("certificate_wrong", `${address} shows another certificate than the file has (${e.message}): it is another robot, or its user data was erased and its owner makes a new file`)
        : new KennelError("unreachable", `no robot at ${address}: ${e.message}`)));
    }),
    async post(call, request, signal) {
      const answer = await begin(call, request, signal), text = await textOf(answer);
      if (answer.statusCode !== 200) throw refusal(answer.statusCode, text);
      return JSON.parse(text);
    },
    async *stream(call, request, signal) {
      const answer = await begin(call, request, signal);
      if (answer.statusCode !== 200) throw refusal(answer.statusCode, await textOf(answer));
      let rest = "";
      for await (const chunk of answer.setEncoding("utf8")) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop();
        for (const line of lines) yield JSON.parse(line);
      }
    },
    close: () => agent.destroy(),
  };
}

// Mover gives orders: a Robot claims what an order moves for that order alone, a Lease has claimed it already. Each order resolves when it has ended, and is
// rejected with NotDone if it did not end as ordered. options.signal ends the motion.
class Mover {
  // go drives so many metres forward; a negative number drives back.
  go(metres, options) {
    return this.call("robot.go", [metres], options);
  }

  // turn turns on the spot, to the right.
  turn(radians, options) {
    return this.call("robot.turn", [radians], options);
  }

  // set writes a slot. A position is a goal: it is reached after options.time seconds, with options.speed in the slot's unit a second, or in about
  // options.adaptive seconds.
  async set(name, v, options) {
    return this.#state({ name, set: value(v) }, options);
  }

  // call calls a method of the robot's tree.
  async call(name, args = [], options) {
    return this.#state({ name, call: value(args).list }, options);
  }

  // do does what a line of text says, such as "headPitch = 0.3 time:2s; robot.go(0.1)".
  do(text, options) {
    return this.order({ text }, undefined, options);
  }

  // order does any order. tell hears its progress; what it throws ends the motion.
  async order(request, tell, options = {}) {
    for await (const progress of listen(this._transport, "order", { ...request, lease: this._lease }, options.signal)) {
      if (progress.ended) {
        if (progress.ended.outcome !== "done") throw new NotDone(progress.ended);
        return progress.ended;
      }
      tell?.(progress);
    }
  }

  // play plays an animation: { mood } by what shows it on this body, { trigger }, of whose clips one is drawn, or { clip }. It resolves when it has ended, with what
  // was left out because the body lacks it, and is rejected with NotDone if it was stopped. ignore names tracks that do not play: "head", "lift", "body". tell hears
  // its progress. A Lease's play takes its parts from its other motions meanwhile.
  async play({ mood, trigger, clip, loops = 1, ignore = [] }, tell, { signal } = {}) {
    return heard(this._transport, "play", { mood, trigger, clip, loops, ignore, lease: this._lease }, tell, signal);
  }

  #state(statement, { time, speed, adaptive, deadline, signal } = {}) {
    const manner = Object.entries({ time_s: time, speed, adaptive_s: adaptive }).filter(([, v]) => v !== undefined);
    if (manner.length > 1) throw new KennelError("invalid", "want only one of time, speed and adaptive");
    return this.order({ steps: [{ statements: [{ ...statement, ...Object.fromEntries(manner) }] }], for_ms: Math.round((deadline ?? 0) * 1000) }, undefined, { signal });
  }
}

// Robot is a connection to a robot; connect makes it.
export class Robot extends Mover {
  #leases = new Set();
  _lease = "";

  constructor(transport) {
    super();
    this._transport = transport;
  }

  // close gives back the leases that are held, and ends the connection.
  async close() {
    for (const lease of this.#leases) await lease.release().catch(() => {}); // a robot that is lost ends it by itself
    this._transport.close();
  }

  // describe says what the robot is, has and can do.
  describe() {
    return ask(this._transport, "describe", {});
  }

  // ahead returns the slot of the distance sensor that looks most nearly to the front, such as robot.body.laser.distance.
  async ahead() {
    const sensors = (await this.describe()).parts.filter((p) => p.interfaces.includes("DistanceSensor"));
    if (sensors.length === 0) throw new KennelError("not_found", "this robot has no distance sensor");
    return sensors.reduce((a, b) => (Math.abs(b.bearing ?? 0) < Math.abs(a.bearing ?? 0) ? b : a)).full + ".distance";
  }

  // stop stops all motors, whatever program moves them.
  async stop() {
    await ask(this._transport, "stop", {});
  }

  // read returns what a slot reads as, in SI units: Infinity where nothing is in range. For a part it is the slot val. It is rejected with not_measured if it is
  // not known now.
  async read(name) {
    const { readings } = await this.values(name);
    const known = readings.find((r) => r.value !== null && (readings.length === 1 || r.slot === "val"));
    if (!known) throw new KennelError("not_measured", `${name}: no value is known now`);
    return known.value;
  }

  // values returns what slots read as now; a part means all its slots.
  async values(...names) {
    return new Values(await ask(this._transport, "read", { names }));
  }

  // subscribe yields what slots read as: first at once, then when one of them changed, at most options.rate times a second. A slow reader gets the newest
  // values next. It throws Lost when the robot is not heard for 2 s.
  async *subscribe(names, { rate = 10, signal } = {}) {
    for await (const m of listen(this._transport, "subscribe", { names: [names].flat(), rate_hz: rate }, signal)) {
      if (m.readings?.length) yield new Values(m); // without, it only says that the robot is there
    }
  }

  // events yields what happens from now on, or after the event with the number options.since; of names, if there are any, events that begin so.
  async *events(names = [], { since, signal } = {}) {
    for await (const { seq, at_us, name, warning, numbers, texts } of listen(this._transport, "events", { names: [names].flat(), since }, signal)) {
      if (name) yield { seq: Number(seq), at: at_us / 1e6, name, warning, numbers: numbers.map(Number), texts };
    }
  }

  // orders yields the orders of all programs, as they begin and as they end.
  async *orders({ signal } = {}) {
    for await (const { seq, order, at_us, program, steps, for_ms, ended } of listen(this._transport, "orders", {}, signal)) {
      if (Number(order)) yield { seq: Number(seq), order: Number(order), at: at_us / 1e6, program, steps, for_ms, ended };
    }
  }

  // picture takes a picture: options.format is jpeg, rgb or grey8, options.quality of jpeg 0 to 100. What is not given is as the slots of the robot's camera say. It is
  // rejected with unable for a body without a camera, with no_picture for one that is off.
  async picture({ format, quality } = {}) {
    return picture(await ask(this._transport, "image", { format, quality }));
  }

  // pictures yields pictures, at most options.rate a second. A slow reader gets the newest one next. While the camera is off there are none.
  async *pictures({ format, quality, rate = 5, signal } = {}) {
    for await (const m of listen(this._transport, "images", { format, quality, rate_hz: rate }, signal)) {
      if (m.format) yield picture(m); // without, it only says that the robot is there
    }
  }

  // settings returns the robot's settings by name; null where it has no value. What each may be is in describeSettings.
  async settings() {
    return byName(await this.describeSettings());
  }

  // describeSettings returns the robot's settings with type, allowed values and unit. It is rejected with unable for a robot without settings.
  async describeSettings() {
    return (await ask(this._transport, "settings", {})).settings;
  }

  // change changes settings, all or none, and returns all of them: robot.change({ master_volume: "LOW" }). They are on the robot's disk then. It is rejected with
  // invalid and what is allowed. A field of an object is named by both: "custom_eye_color.hue".
  async change(settings) {
    return byName((await ask(this._transport, "change", { settings })).settings);
  }

  // animations says what the robot plays: clips, triggers, and moods with what shows them on its body.
  animations() {
    return ask(this._transport, "animations", {});
  }

  // say says a text of at most 2000 characters, and resolves when its last sample was heard. plain is the synthesiser's voice and not the robot's own, language such as
  // "de-DE", speed a factor of 0.05 to 20, pitch -1 to 1. It is rejected with NotDone if it was interrupted. tell hears its progress.
  say(text, { plain = false, language = "", speed = 1, pitch = 0, signal } = {}, tell) {
    return heard(this._transport, "say", { text, plain, language, speed, pitch }, tell, signal);
  }

  // sound plays a sound of the list that animations returns, and resolves when it was heard. volume is a factor above 0 to 1.
  sound(name, { volume = 1, signal } = {}, tell) {
    return heard(this._transport, "sound", { name, volume }, tell, signal);
  }

  // hush ends all that the robot says and plays, also for other programs.
  async hush() {
    await heard(this._transport, "sound", { stop: true });
  }

  // sounds yields what the robot plays: { rate, data, place, at, missed, said }, data with two bytes a sample, signed, the low one first. The first piece, without data, says
  // that the robot is heard from now on; while it is silent there are none. said is the text that is said from there on, "" after its end, and null as before.
  async *sounds({ signal } = {}) {
    for await (const m of listen(this._transport, "sounds", {}, signal)) {
      if (m.rate) yield { rate: m.rate, data: bytes(m.data), place: Number(m.place), at: m.at_us / 1e6, missed: Number(m.missed), said: m.said ?? null };
    }
  }

  // listen yields what the robot hears through its microphones, 25 pieces a second: { rate, data, at, missed, voice, bearing, own, reason }, data as of sounds; and each second,
  // without data, the reason why it hears nothing. bearing is where a voice comes from, in rad counter-clockwise from the front, and null if it is not known; own says that the
  // robot makes a sound itself. The program needs the right hear, which its owner gives by name, and the robot's light shows that a program listens.
  async *listen({ signal } = {}) {
    for await (const m of listen(this._transport, "listen", {}, signal)) {
      if (!m.rate && !m.reason) continue; // it only says that the robot is there
      yield { rate: m.rate, data: bytes(m.data), at: m.at_us / 1e6, missed: Number(m.missed), voice: m.voice, bearing: m.bearing ?? null, own: m.own, reason: m.reason };
    }
  }

  // screen returns what the robot's display shows: format is png, jpeg, rgb or rgb565 (two bytes a pixel, the high one first).
  async screen({ format = "png" } = {}) {
    return picture(await ask(this._transport, "screen", { format }));
  }

  // screens yields the frames of the display, at most options.rate a second, up to 33. A slow reader gets the newest one next.
  async *screens({ format = "jpeg", rate = 20, signal } = {}) {
    for await (const m of listen(this._transport, "screens", { format, rate_hz: rate }, signal)) {
      if (m.format) yield picture(m); // without, it only says that the robot is there
    }
  }

  // claim takes parts for this program, by the names of actuators or of what has them: all or none. options.time is 0.1 to 60 s (5); the lease is renewed until
  // release. Programs that are refused meanwhile hear options.reason.
  async claim(parts, { time = 5, reason = "" } = {}) {
    const { id, for_ms } = await ask(this._transport, "claim", { parts: [parts].flat(), for_ms: Math.round(time * 1000), reason });
    const lease = new Lease(this._transport, id, for_ms, () => this.#leases.delete(lease));
    this.#leases.add(lease);
    return lease;
  }
}

const byName = (settings) => Object.fromEntries(settings.map((s) => [s.name, s.value]));

// Lease holds parts of the robot for this program: others cannot move them. If the program ends, the robot gives them back when the lease's time is over.
export class Lease extends Mover {
  #renewal;
  #forget;

  constructor(transport, id, time, forget) {
    super();
    this._transport = transport;
    this._lease = id;
    this.#forget = forget;
    this.#renewal = setInterval(() => {
      ask(transport, "renew", { lease: id }).catch((e) => {
        if (e.code === "lease_gone") clearInterval(this.#renewal); // the next order says so too
      });
    }, Math.max(time, 30) / 3);
    this.#renewal.unref?.(); // a program of Node may end
  }

  // release gives the parts back. What still moves under the lease ends.
  async release() {
    if (!this.#forget()) return;
    clearInterval(this.#renewal);
    await ask(this._transport, "release", { lease: this._lease });
  }
}

// heard tells how something goes that is played or said, and returns its end.
async function heard(transport, call, request, tell, signal) {
  for await (const progress of listen(transport, call, request, signal)) {
    const { ended } = progress;
    if (ended) {
      if (ended.outcome !== "done") throw new NotDone({ ...ended, reasons: [ended.reason], words: `${ended.outcome}: ${ended.reason}` });
      return ended;
    }
    tell?.(progress);
  }
}

const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));

// Values holds what slots read as at one moment, in the order of the names asked for.
export class Values {
  constructor(m) {
    this.at = m.at_us / 1e6; // seconds by the robot's clock, since its start
    this.missed = Number(m.missed ?? 0); // messages that newer ones replaced, since the one before
    this.readings = (m.readings ?? []).map(({ part, slot, unit, value: v, changed, age_us }) => ({
      part, slot, unit, changed, name: `${part}.${slot}`,
      value: v?.text ?? (v?.number === undefined ? null : Number(v.number)), // null: not known
      age: age_us < 0 ? null : age_us / 1e6, // seconds since it was measured; null: it never changes, or is not known
    }));
  }

  // get returns what a slot reads as, by its full name such as robot.body.laser.distance; undefined if it is not among these.
  get(name) {
    return this.readings.find((r) => r.name === name)?.value;
  }
}

// picture is a picture as programs get it. A point x to the right of the camera, y below and z before it is at (fx*x/z + cx, fy*y/z + cy).
function picture(m) {
  const { fx, fy, cx, cy } = m.calibration ?? {}; // a display has none
  return {
    format: m.format, width: m.width, height: m.height, seq: Number(m.seq), missed: Number(m.missed), exposure: m.exposure_s, gain: m.gain, fx, fy, cx, cy,
    at: m.at_us / 1e6, // seconds by the robot's clock, when its exposure began
    data: bytes(m.data),
  };
}

function value(v) {
  if (typeof v === "string") return { text: v };
  if (Array.isArray(v)) return { list: { items: v.map(value) } };
  if (typeof v !== "number" && typeof v !== "boolean") throw new KennelError("invalid", `value of type ${typeof v}: want a number, boolean, string or array`);
  return { number: Number.isFinite(Number(v)) ? Number(v) : String(v) };
}

// ask makes a call that the robot answers at once.
async function ask(transport, call, request) {
  try {
    return await transport.post(call, request, AbortSignal.timeout(patience));
  } catch (e) {
    throw e instanceof KennelError ? e : new Lost(e.message);
  }
}

// listen makes a call with a stream. It ends the call when its reader does, when signal says so, and when the robot is not heard.
async function* listen(transport, call, request, signal) {
  signal?.throwIfAborted();
  const end = new AbortController(), abort = () => end.abort();
  signal?.addEventListener("abort", abort);
  const stream = transport.stream(call, request, end.signal);
  try {
    for (;;) {
      let lost = false;
      const watch = setTimeout(() => ((lost = true), abort()), silence);
      let next, failure;
      try {
        next = await stream.next();
      } catch (e) {
        failure = e;
      }
      clearTimeout(watch);
      signal?.throwIfAborted();
      if (lost) throw new Lost();
      if (failure) throw failure instanceof KennelError ? failure : new Lost(failure.message);
      if (next.done) throw new Lost("the robot has ended the stream");
      const m = next.value;
      if (m.code) throw new KennelError(m.code, m.message); // its last words
      yield m;
    }
  } finally {
    signal?.removeEventListener("abort", abort);
    abort();
  }
}
