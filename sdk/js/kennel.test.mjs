// The client against a robot in memory (sdk/sdktest), which a Go test starts: in Node by node --test, and in a browser by its page. $KENNEL_ROBOT is the robot's
// file, $KENNEL_OTHER that of another robot.
import { KennelError, Lost, NotDone, Values, connect } from "./kennel.mjs";

const inNode = typeof process !== "undefined";

function equal(got, want) {
  const [g, w] = [got, want].map((v) => JSON.stringify(v, (_, x) => (x === Infinity ? "Infinity" : x)));
  if (g !== w) throw new Error(`got ${g}, want ${w}`);
}

async function refused(code, promise, { says = "", error = KennelError } = {}) {
  const e = await promise.then((v) => new Error(`it is ${JSON.stringify(v)}`), (e) => e);
  if (!(e instanceof error) || e.code !== code || !e.message.includes(says)) throw new Error(`${e}: want ${error.name} ${code} ${says}`);
  return e;
}

async function all(stream, take) {
  for await (const x of stream) take(x);
}

async function awaited(robot, what, n) {
  while ((await robot.read(`fake.${what}`)) < n);
}

// The tests of both.
export const tests = {
  async reads(robot) {
    equal(await Promise.all(["robot.body.laser.distance", "fake.far", "headPitch", "fake.text"].map((n) => robot.read(n))), [0.42, Infinity, 0.3, "hello"]);
    await refused("not_found", robot.read("nowhere"));
    await refused("not_measured", robot.read("fake.unknown"));
    const values = await robot.values("robot.body.laser.distance", "fake.unknown");
    equal([values.at, values.missed, values.get("robot.body.laser.distance"), values.get("fake.unknown"), values.get("fake.other")], [1.5, 0, 0.42, null, undefined]);
    equal(values.readings[0], { part: "robot.body.laser", slot: "distance", unit: "m", changed: false, name: "robot.body.laser.distance", value: 0.42, age: 0.02 });
    equal([(await robot.describe()).parts[2].full, await robot.ahead()], ["robot.body.laser", "robot.body.laser.distance"]);
    await robot.stop();
  },
  async "wrong token"(_, place) {
    if (!inNode) return refused("token_wrong", connect({ ...place, token: "a bad token" }));
    const robot = await connect({ ...place, token: "a bad token" });
    await refused("token_wrong", robot.describe());
    await refused("token_wrong", all(robot.subscribe("fake.count")));
    await robot.close();
  },
  async streams(robot) {
    const seen = [];
    await refused("core_lost", all(robot.events("fake.", { since: 4 }), (e) => seen.push(e.seq, e.at, e.numbers)));
    equal(seen, [5, 2.5, [0, -1], 6, 2.5, [1, -1], 7, 2.5, [2, -1]]);
    const orders = [];
    await refused("core_lost", all(robot.orders(), (r) => orders.push(r.order, r.at, r.program)));
    equal(orders, [1, 2.5, "fake", 2, 2.5, "fake", 3, 2.5, "fake"]);
    const silent = [];
    await refused("lost", all(robot.subscribe("fake.silent"), (v) => silent.push(v.get("fake.silent"))), { error: Lost });
    equal(silent, [7]);
    await refused("not_found", all(robot.subscribe("nowhere")));
    await refused("lost", robot.do("silent"), { error: Lost });
  },
  async subscriptions(robot) {
    let last;
    await refused("core_lost", all(robot.subscribe("fake.count", { rate: 50 }), (v) => (last = v)));
    equal(last.get("fake.count"), 2);
    for await (const v of robot.subscribe(["fake.silent"])) {
      equal(v instanceof Values, true);
      break;
    }
    await awaited(robot, "cancelled", 1);
  },
  async settings(robot) {
    equal(await robot.settings(), { volume: "LOW", metric: true, place: null, eyes: { hue: 0.5 } });
    const got = await robot.change({ volume: "HIGH", metric: false, place: "here", "eyes.hue": 0.25 });
    equal(got, { volume: "HIGH", metric: false, place: "here", eyes: { hue: 0.25 } });
    equal([await robot.settings(), (await robot.describeSettings())[0].values], [got, ["LOW", "HIGH"]]);
    await refused("invalid", robot.change({ colour: 2 }), { says: "colour" });
    await robot.change({ volume: "LOW", metric: true, place: null, "eyes.hue": 0.5 });
  },
  async pictures(robot) {
    const { data, ...rest } = await robot.picture({ format: "rgb", quality: 90 });
    equal([...data], [255, 216, 0, 90]);
    equal(rest, { format: "rgb", width: 4, height: 2, seq: 1, missed: 0, exposure: 0.005, gain: 2, fx: 320, fy: 386, cx: 2, cy: 1, at: 2.5 });
    await refused("no_picture", robot.picture({ format: "bmp" }));
    let last;
    await refused("core_lost", all(robot.pictures({ rate: 10 }), (p) => (last = p)));
    equal([last.format, last.data[3], last.seq], ["jpeg", 0, 3]);
  },
  async animations(robot) {
    const list = await robot.animations();
    equal([list.animations[0].name, list.moods[0].trigger, list.lacks[0]], ["anim_nod", "Nod", "lift"]);
    let begun;
    const ended = await robot.play({ mood: "happy", loops: 2, ignore: ["head"] }, (p) => (begun ??= p.begun));
    equal([begun.clip, ended.clip, ended.outcome, ended.left_out[0].track], ["happy", "happy 2 [head]", "done", "lift"]);
    await refused("stopped", robot.play({ clip: "taken" }));
    await refused("not_found", robot.play({ trigger: "wrong" }));
    const { data, format } = await robot.screen();
    equal([format, data.length], ["png", 4]);
    let last;
    await refused("core_lost", all(robot.screens({ rate: 10 }), (p) => (last = p)));
    equal([last.format, last.seq], ["jpeg", 3]);
  },
  async speech(robot) {
    let state;
    const ended = await robot.say("hello", { plain: true, language: "de-DE", speed: 2, pitch: -0.5 }, (p) => (state ??= p.state));
    equal([state, ended.clip, ended.outcome], ["playing", "hello true de-DE 2 -0.5", "done"]);
    await refused("stopped", robot.say("taken"));
    await refused("no_voice", robot.say("wrong"));
    equal((await robot.sound("beep", { volume: 0.5 })).clip, "beep 0.5");
    await robot.hush();
    const heard = [];
    await refused("core_lost", all(robot.sounds(), (p) => heard.push(p)));
    const { rate, data, place, at, missed, said } = heard[2];
    equal([heard.length, rate, ...data, place, at, missed, said], [3, 16000, 2, 0, 254, 255, 4, 2, 2, "text 2"]);
    const listened = [];
    await refused("core_lost", all(robot.listen(), (p) => listened.push(p)));
    const facts = (p) => [p.rate, ...p.data, p.at, p.missed, p.voice, p.bearing, p.own, p.reason];
    equal([listened.length, listened[0].own, ...facts(listened[1])], [3, true, 16000, 1, 0, 255, 255, 1, 1, true, -0.5, false, ""]);
    equal(facts(listened[2]), [16000, 2, 0, 254, 255, 2, 2, false, null, false, "no sound"]);
  },
  async "a slow reader"(robot) {
    let n = 0;
    const slow = async () => {
      for await (const v of robot.subscribe("fake.count")) {
        if (n++ === 0) await new Promise((resolve) => setTimeout(resolve, 2200)); // its own time, not the robot's silence
      }
    };
    await refused("core_lost", slow());
    equal(n >= 2, true);
  },
  async orders(robot) {
    for (const [want, ended] of [
      ["robot.go(0.1)", robot.go(0.1)],
      ["robot.turn(-0.5) within 3000 ms", robot.turn(-0.5, { deadline: 3 })],
      ["headPitch = 0.3 time:2", robot.set("headPitch", 0.3, { time: 2 })],
      ["headPitch = 1 speed:0.5", robot.set("headPitch", true, { speed: 0.5 })],
      ["wheel.speed = (1, +Inf) adaptive:0.25", robot.set("wheel.speed", [1, Infinity], { adaptive: 0.25 })],
      ['voice.say("hello", 0)', robot.call("voice.say", ["hello", false])],
      ["headPitch = 0.3 time:2s; robot.go(0.1)", robot.do("headPitch = 0.3 time:2s; robot.go(0.1)")],
    ]) {
      equal((await ended).note, want);
    }
    const e = await refused("blocked", robot.do("blocked"), { says: "0.011 m of 0.1 m", error: NotDone });
    equal([e.outcome, e.reasons], ["blocked", ["the wheels do not turn"]]);
    await refused("busy", robot.do("busy"));
    await refused("invalid", robot.set("headPitch", null));
    await refused("invalid", robot.set("headPitch", 1, { time: 1, speed: 1 }));
  },
  async "an order that the program ends"(robot) {
    const before = await robot.read("fake.cancelled"), end = new AbortController();
    const e = await robot.order({ text: "hang" }, (p) => p.pose && end.abort(), { signal: end.signal }).catch((e) => e);
    equal(e.name, "AbortError");
    await awaited(robot, "cancelled", before + 1);
    const thrown = new Error("enough");
    equal(await robot.order({ text: "hang" }, () => { throw thrown; }).catch((e) => e === thrown), true);
    await awaited(robot, "cancelled", before + 2);
  },
  async "a lease"(robot, place) {
    const lease = await robot.claim("robot.go", { time: 0.3, reason: "to dance" });
    await awaited(robot, "renewed", 2);
    equal((await lease.go(0.1)).note, "robot.go(0.1) leased");
    await lease.release();
    await lease.release();
    equal(await robot.read("fake.claimed"), 0);
    await refused("lease_gone", lease.go(0.1));
    await refused("busy", robot.claim("busy"));
    const other = await connect(place);
    await other.claim(["headPitch"]);
    equal(await robot.read("fake.claimed"), 1);
    await other.close();
    equal(await robot.read("fake.claimed"), 0);
  },
};

if (inNode) {
  const { test } = await import("node:test"), { readFileSync, writeFileSync } = await import("node:fs"), { createServer } = await import("node:net");
  const read = (name) => JSON.parse(readFileSync(process.env[name], "utf8"));
  const place = read("KENNEL_ROBOT");
  for (const [name, f] of Object.entries(tests)) {
    test(name, async () => {
      const robot = await connect();
      await f(robot, place).finally(() => robot.close());
    });
  }
  test("what is wrong before the first call", async () => {
    const l = createServer();
    await new Promise((resolve) => l.listen(0, "127.0.0.1", resolve));
    const free = `127.0.0.1:${l.address().port}`;
    await new Promise((resolve) => l.close(resolve));
    writeFileSync(`${process.env.KENNEL_ROBOT}.broken`, "{");
    await refused("file_missing", connect("/nowhere/robot.json"), { says: "/nowhere/robot.json" });
    await refused("file_wrong", connect(`${process.env.KENNEL_ROBOT}.broken`), { says: ".broken" });
    await refused("file_wrong", connect({ ...place, token: "" }), { says: "token" });
    await refused("file_wrong", connect({ ...place, certificate: "x" }), { says: "certificate" });
    await refused("file_wrong", connect({ ...place, address: "robot" }), { says: "host:port" });
    await refused("certificate_wrong", connect({ ...place, certificate: read("KENNEL_OTHER").certificate }), { says: "another certificate" });
    await refused("unreachable", connect({ ...place, address: free }), { says: free });
    const named = process.env.KENNEL_ROBOT;
    delete process.env.KENNEL_ROBOT;
    await refused("file_missing", connect(), { says: "$KENNEL_ROBOT" });
    process.env.KENNEL_ROBOT = named;
  });
}
