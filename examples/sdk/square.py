"""Drives a square with any robot that has wheels, and prints how far away it then sees something. $KENNEL_ROBOT names the robot's file."""
import math

import kennel

with kennel.connect() as robot:
    with robot.claim("robot.go") as wheels:  # others cannot drive it meanwhile
        for _ in range(4):
            wheels.go(0.1)
            wheels.turn(math.pi / 2)
    print(f"drove a square; the next thing is {robot.read(robot.ahead()):.2f} m away")
