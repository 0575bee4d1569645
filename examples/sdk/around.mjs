// Turns a robot once around and saves in around.csv what its distance sensors read in each direction. $KENNEL_ROBOT names the robot's file.
import { writeFileSync } from "node:fs";
import { connect } from "../../sdk/js/kennel.mjs";

const looks = 8;
const robot = await connect();
const sensors = (await robot.describe()).parts.filter((p) => p.interfaces.includes("DistanceSensor")).map((p) => `${p.full}.distance`);
const rows = [["degrees", ...sensors]];
for (let i = 0; i < looks; i++) {
  rows.push([(i * 360) / looks, ...(await robot.values(...sensors)).readings.map((r) => r.value)]);
  await robot.turn((2 * Math.PI) / looks);
}
writeFileSync("around.csv", rows.map((row) => row.join(",") + "\n").join(""));
console.log(`around.csv has what ${sensors.length} sensors read in ${looks} directions`);
await robot.close();
