"""Follows the wall on the right with any robot that has wheels and looks ahead: it turns to the wall, measures, and drives on. $KENNEL_ROBOT names the robot's
file, an argument the number of steps."""
import math
import sys

import kennel

WANT, STEP = 0.3, 0.1  # m to the wall, and of each step

with kennel.connect() as robot, robot.claim("robot.go") as wheels:
    ahead = robot.ahead()
    last = None  # distance of the wall one step ago
    for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 20):
        wheels.turn(math.pi / 2)
        wall = robot.read(ahead)
        print(f"{wall:.2f} m to the wall")
        wall = min(wall, 2 * WANT)  # it has ended
        steer = math.atan2(wall - WANT, 3 * STEP)
        if last is not None:
            steer -= math.atan2(last - wall, STEP)  # it drove towards the wall
        last = wall
        wheels.turn(steer - math.pi / 2)
        if robot.read(ahead) < WANT + STEP:  # a corner: the next wall is ahead
            last = None
            wheels.turn(-math.pi / 2)
        else:
            wheels.go(STEP)
