// Turns a robot once around and saves what its camera sees in each direction, in photo-000.jpg and so on by degrees. $KENNEL_ROBOT names the robot's file.
import { writeFileSync } from "node:fs";
import { connect } from "../../sdk/js/kennel.mjs";

const looks = 8;
const robot = await connect();
for (let i = 0; i < looks; i++) {
  const picture = await robot.picture({ format: "jpeg" });
  const name = `photo-${String((i * 360) / looks).padStart(3, "0")}.jpg`;
  writeFileSync(name, picture.data);
  console.log(`${name}: ${picture.width} by ${picture.height} pixels`);
  await robot.turn((2 * Math.PI) / looks);
}
await robot.close();
