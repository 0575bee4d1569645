"""Turns a robot once around and saves in around.csv what its distance sensors read in each direction. $KENNEL_ROBOT names the robot's file."""
import csv
import math

import kennel

LOOKS = 8

with kennel.connect() as robot, open("around.csv", "w", newline="") as f:
    sensors = [p.full + ".distance" for p in robot.describe().parts if "DistanceSensor" in p.interfaces]
    out = csv.writer(f)
    out.writerow(["degrees", *sensors])
    for i in range(LOOKS):
        out.writerow([i * 360 // LOOKS, *(r.value for r in robot.values(*sensors))])
        robot.turn(2 * math.pi / LOOKS)
    print(f"around.csv has what {len(sensors)} sensors read in {LOOKS} directions")
