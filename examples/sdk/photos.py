"""Turns a robot once around and saves what its camera sees in each direction, in photo-000.jpg and so on by degrees. $KENNEL_ROBOT names the robot's file."""
import math
from pathlib import Path

import kennel

LOOKS = 8

with kennel.connect() as robot:
    for i in range(LOOKS):
        picture = robot.picture("jpeg")
        name = f"photo-{i * 360 // LOOKS:03d}.jpg"
        Path(name).write_bytes(picture.data)
        print(f"{name}: {picture.width} by {picture.height} pixels")
        robot.turn(2 * math.pi / LOOKS)
