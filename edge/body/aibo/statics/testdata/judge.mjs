// Lets rigid bodies fall in the physics engine rapier: node judge.mjs MODULES < bodies.json. A body has points, which touch the floor at z = 0, balls of mass (x, y, z, kg),
// a box of mass (x, y, z, half its sizes, kg), and up, the world's up, all in its own frame and SI units. Prints by how much each has turned when it lies, in rad.
import { readFileSync } from "node:fs";

const { default: rapier } = await import(`${process.argv[2]}/@dimforge/rapier3d-compat/dist/rapier.mjs`);
await rapier.init();

const radius = 0.0005; // of a point
const least = 0.4, most = 6; // seconds that a body may move
const still = 0.002; // rad/s

// turning returns the rotation, as a quaternion, that turns the unit vector from to z.
function turning([x, y, z]) {
  if (z < -0.999999) return { x: 1, y: 0, z: 0, w: 0 };
  const w = 1 + z, l = Math.hypot(y, -x, w);
  return { x: y / l, y: -x / l, z: 0, w: w / l };
}

function turned({ x, y, z, w }, [a, b, c]) {
  const [tx, ty, tz] = [2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)];
  return [a + w * tx + y * tz - z * ty, b + w * ty + z * tx - x * tz, c + w * tz + x * ty - y * tx];
}

const angle = (a, b) => Math.acos(Math.max(-1, Math.min(1, a[0] * b[0] + a[1] * b[1] + a[2] * b[2])));

function fall({ points, balls, box, up }) {
  const world = new rapier.World({ x: 0, y: 0, z: -9.80665 });
  world.timestep = 0.001;
  const rotation = turning(up);
  const lowest = Math.min(...points.map((p) => turned(rotation, p)[2]));
  const body = world.createRigidBody(rapier.RigidBodyDesc.dynamic().setTranslation(0, 0, radius - lowest).setRotation(rotation).setCanSleep(false));
  const weigh = (shape, [x, y, z], kg) => world.createCollider(shape.setTranslation(x, y, z).setMass(kg).setCollisionGroups(0), body);
  weigh(rapier.ColliderDesc.cuboid(box[3], box[4], box[5]), box, box[6]);
  for (const ball of balls) weigh(rapier.ColliderDesc.ball(0.01), ball, ball[3]);
  for (const [x, y, z] of points) {
    world.createCollider(rapier.ColliderDesc.ball(radius).setTranslation(x, y, z).setDensity(0).setFriction(1).setRestitution(0), body);
  }
  world.createCollider(rapier.ColliderDesc.cuboid(5, 5, 0.5).setTranslation(0, 0, -0.5).setFriction(1).setRestitution(0));
  const begin = turned(body.rotation(), up);
  for (let t = 0; t < most; t += world.timestep) {
    world.step();
    const v = body.angvel();
    if (t > least && Math.hypot(v.x, v.y, v.z) < still) break;
  }
  const out = angle(begin, turned(body.rotation(), up));
  world.free();
  return out;
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(fall)));
