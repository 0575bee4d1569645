"""Drives a robot over the network, whatever its species:

    import math, kennel

    with kennel.connect("robot.json") as robot:     # the file that the robot's owner made for this program
        robot.go(0.1)                               # metres; returns when the robot has arrived
        robot.turn(math.pi / 2)                     # radians, to the right
        print(robot.read(robot.ahead()))

A motion that ends otherwise than ordered raises NotDone; a refusal, or a robot that cannot be reached, raises Error. kennel.aio has the same calls for
asyncio. The packages for Go and JavaScript have them too (docs/sdk.md).
"""
from ._common import Error, Heard, Lost, NotDone, Picture, Piece, Place, Reading, Values
from ._sync import Lease, Robot, connect

__all__ = ["Error", "Heard", "Lease", "Lost", "NotDone", "Picture", "Piece", "Place", "Reading", "Robot", "Values", "connect"]
