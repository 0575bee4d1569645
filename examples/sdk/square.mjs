// Drives a square with any robot that has wheels, and prints how far away it then sees something. $KENNEL_ROBOT names the robot's file.
import { connect } from "../../sdk/js/kennel.mjs";

const robot = await connect();
try {
  const wheels = await robot.claim("robot.go"); // others cannot drive it meanwhile
  for (let i = 0; i < 4; i++) {
    await wheels.go(0.1);
    await wheels.turn(Math.PI / 2);
  }
  console.log(`drove a square; the next thing is ${(await robot.read(await robot.ahead())).toFixed(2)} m away`);
} finally {
  await robot.close(); // gives the wheels back at once, however it ended
}
