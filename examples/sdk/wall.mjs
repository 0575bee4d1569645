// Follows the wall on the right with any robot that has wheels and looks ahead: it turns to the wall, measures, and drives on. $KENNEL_ROBOT names the robot's
// file, an argument the number of steps.
import { connect } from "../../sdk/js/kennel.mjs";

const want = 0.3, step = 0.1; // m to the wall, and of each step

const robot = await connect(), ahead = await robot.ahead(), wheels = await robot.claim("robot.go");
try {
  let last; // distance of the wall one step ago
  for (let i = 0; i < Number(process.argv[2] ?? 20); i++) {
    await wheels.turn(Math.PI / 2);
    let wall = await robot.read(ahead);
    console.log(`${wall.toFixed(2)} m to the wall`);
    wall = Math.min(wall, 2 * want); // it has ended
    let steer = Math.atan2(wall - want, 3 * step);
    if (last !== undefined) steer -= Math.atan2(last - wall, step); // it drove towards the wall
    last = wall;
    await wheels.turn(steer - Math.PI / 2);
    if ((await robot.read(ahead)) < want + step) { // a corner: the next wall is ahead
      last = undefined;
      await wheels.turn(-Math.PI / 2);
    } else {
      await wheels.go(step);
    }
  }
} finally {
  await robot.close(); // gives the wheels back at once, however it ended
}
