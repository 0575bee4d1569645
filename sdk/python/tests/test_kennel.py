"""The client against a robot in memory (sdk/sdktest), which the Go test beside starts. $KENNEL_ROBOT is its file, $KENNEL_OTHER that of another robot."""
import asyncio
import dataclasses
import json
import math
import os
import socket
import tempfile
import time
import unittest

import kennel
import kennel.aio
from kennel._pb import robot_pb2 as pb


class Simple:
    """kennel.aio as if it were kennel, so that one test shows both."""

    def __init__(self, it, loop):
        self._it, self._loop = it, loop

    def __getattr__(self, name):
        member = getattr(self._it, name)
        return self._call(member) if callable(member) else member

    def _call(self, f):
        def call(*args, **kw):
            got = f(*args, **kw)
            if asyncio.iscoroutine(got):
                got = self._loop.run_until_complete(got)
            if hasattr(got, "__anext__"):
                return self._iterate(got)
            return Simple(got, self._loop) if isinstance(got, kennel.aio.Lease) else got

        return call

    def _iterate(self, them):
        try:
            while True:
                yield self._loop.run_until_complete(them.__anext__())
        except StopAsyncIteration:
            return
        finally:
            self._loop.run_until_complete(them.aclose())


class Sync(unittest.TestCase):
    def connect(self, place=None):
        robot = kennel.connect(place)
        self.addCleanup(robot.close)
        return robot

    def refused(self, code, f, *args, says="", error=kennel.Error, **kw):
        with self.assertRaises(error) as caught:
            got = f(*args, **kw)
            if hasattr(got, "__next__"):
                for _ in got:
                    pass
        self.assertEqual(caught.exception.code, code, str(caught.exception))
        self.assertIn(says, caught.exception.message)
        return caught.exception

    def file(self, text=None, **changes):
        with open(os.environ["KENNEL_ROBOT"]) as f:
            values = {**json.load(f), **changes}
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            f.write(json.dumps(values) if text is None else text)
        self.addCleanup(os.remove, f.name)
        return f.name

    def await_count(self, robot, what, n):
        while robot.read("fake." + what) < n:
            pass

    def test_connect(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            free = "127.0.0.1:%d" % s.getsockname()[1]
        with open(os.environ["KENNEL_OTHER"]) as f:
            other = json.load(f)["certificate"]
        self.refused("file_missing", self.connect, "/nowhere/robot.json", says="/nowhere/robot.json")
        self.refused("file_wrong", self.connect, self.file("{"), says=".json")
        self.refused("file_wrong", self.connect, self.file("[]"), says=".json")
        self.refused("file_wrong", self.connect, self.file(token=""), says="token")
        self.refused("file_wrong", self.connect, self.file(token=3), says="token")
        self.refused("file_wrong", self.connect, self.file(certificate="x"), says="certificate")
        self.refused("file_wrong", self.connect, self.file(address="robot"), says="host:port")
        self.refused("certificate_wrong", self.connect, self.file(certificate=other), says="another certificate")
        self.refused("unreachable", self.connect, self.file(address=free), says=free)
        named = os.environ.pop("KENNEL_ROBOT")
        try:
            self.refused("file_missing", self.connect, says="$KENNEL_ROBOT")
        finally:
            os.environ["KENNEL_ROBOT"] = named
        place = kennel.Place.read()
        self.assertNotIn(place.token, repr(place))
        self.connect(dataclasses.replace(place, name="it has another name now")).stop()

    def test_wrong_token(self):
        robot = self.connect(self.file(token="a bad token"))
        self.refused("token_wrong", robot.describe)
        self.refused("token_wrong", robot.subscribe, "fake.count")

    def test_read(self):
        robot = self.connect()
        self.assertEqual([robot.read(n) for n in ("robot.body.laser.distance", "fake.far", "headPitch", "fake.text")], [0.42, math.inf, 0.3, "hello"])
        self.refused("not_found", robot.read, "nowhere")
        self.refused("not_measured", robot.read, "fake.unknown")
        values = robot.values("robot.body.laser.distance", "fake.unknown")
        self.assertEqual((values.at, values["robot.body.laser.distance"], values["fake.unknown"]), (1.5, 0.42, None))
        self.assertEqual(values[0], kennel.Reading("robot.body.laser", "distance", "m", 0.42, False, 0.02))
        self.assertIsNone(values[1].age)
        with self.assertRaises(KeyError):
            values["fake.other"]
        self.assertEqual((robot.describe().parts[2].full, robot.ahead()), ("robot.body.laser", "robot.body.laser.distance"))

    def test_streams(self):
        robot, seen = self.connect(), []
        self.refused("core_lost", lambda: [seen.append(v["fake.count"]) for v in robot.subscribe("fake.count", rate=50)])
        self.refused("core_lost", lambda: [seen.append((e.seq, e.name)) for e in robot.events("fake.", since=4)])
        self.refused("core_lost", lambda: [seen.append((r.order, r.program)) for r in robot.orders()])
        self.refused("lost", lambda: [seen.append(v["fake.silent"]) for v in robot.subscribe("fake.silent")], error=kennel.Lost)
        self.refused("not_found", robot.subscribe, "nowhere")
        self.refused("lost", robot.do, "silent", error=kennel.Lost)
        self.assertEqual(seen, [0, 1, 2, (5, "fake.happened"), (6, "fake.happened"), (7, "fake.happened"), (1, "fake"), (2, "fake"), (3, "fake"), 7])

    def test_settings(self):
        robot = self.connect()
        self.assertEqual(robot.settings(), {"volume": "LOW", "metric": True, "place": None, "eyes": {"hue": 0.5}})
        got = robot.change(volume="HIGH", metric=False, place="here", eyes={"hue": 0.25})
        self.assertEqual(got, {"volume": "HIGH", "metric": False, "place": "here", "eyes": {"hue": 0.25}})
        self.assertEqual((robot.settings(), robot.describe_settings()[0].values), (got, ["LOW", "HIGH"]))
        self.refused("invalid", robot.change, colour=2, says="colour")
        self.refused("invalid", robot.change, volume=object(), says="volume")
        robot.change(volume="LOW", metric=True, place=None, eyes={"hue": 0.5})

    def test_pictures(self):
        robot = self.connect()
        want = kennel.Picture("rgb", b"\xff\xd8\0\x5a", 4, 2, 1, 2.5, 0, 0.005, 2.0, 320.0, 386.0, 2.0, 1.0)
        self.assertEqual(robot.picture("rgb", quality=90), want)
        self.refused("no_picture", robot.picture, "bmp")
        seen = []
        self.refused("core_lost", lambda: [seen.append((p.format, p.missed, p.data[3])) for p in robot.pictures(rate=10)])
        self.assertEqual(seen, [("jpeg", 0, 0), ("jpeg", 1, 0), ("jpeg", 2, 0)])

    def test_animations(self):
        robot = self.connect()
        known = robot.animations()
        self.assertEqual((known.animations[0].name, known.moods[0].trigger, list(known.lacks)), ("anim_nod", "Nod", ["lift"]))
        begun = []
        ended = robot.play("happy", loops=2, ignore=["head"], tell=lambda p: begun.append(p.begun.clip) if p.HasField("begun") else None)
        self.assertEqual((begun, ended.clip, ended.outcome, ended.left_out[0].track), (["happy"], "happy 2 [head]", "done", "lift"))
        with self.assertRaises(kennel.NotDone) as caught:
            robot.play(clip="taken")
        self.assertEqual((caught.exception.outcome, caught.exception.reasons), ("stopped", ["headPitch belongs to another"]))
        self.refused("not_found", lambda: robot.play(trigger="wrong"))
        self.refused("invalid", robot.play)
        self.assertEqual(robot.screen().format, "png")
        seen = []
        self.refused("core_lost", lambda: [seen.append((p.format, p.missed)) for p in robot.screens(rate=10)])
        self.assertEqual(seen, [("jpeg", 0), ("jpeg", 1), ("jpeg", 2)])

        async def both():
            other = await kennel.aio.connect()
            try:
                return (await other.play("happy")).clip, (await other.animations()).triggers[0], (await other.screen("rgb")).format
            finally:
                await other.close()

        self.assertEqual(asyncio.run(both()), ("happy 1 []", "Nod", "rgb"))

    def test_speech(self):
        robot = self.connect()
        states = []
        ended = robot.say("hello", plain=True, language="de-DE", speed=2, pitch=-0.5, tell=lambda p: states.append(p.state) if p.HasField("state") else None)
        self.assertEqual((states, ended.clip, ended.outcome), (["playing"], "hello true de-DE 2 -0.5", "done"))
        with self.assertRaises(kennel.NotDone) as caught:
            robot.say("taken")
        self.assertEqual((caught.exception.outcome, caught.exception.reasons), ("stopped", ["speech is heard instead"]))
        self.refused("no_voice", lambda: robot.say("wrong"))
        self.assertEqual(robot.sound("beep", volume=0.5).clip, "beep 0.5")
        robot.hush()
        heard = []
        self.refused("core_lost", lambda: [heard.append(p) for p in robot.sounds()])
        self.assertEqual([(p.rate, p.data, p.place, p.at, p.missed, p.said) for p in heard][2], (16000, b"\x02\x00\xfe\xff", 4, 2.0, 2, "text 2"))
        self.assertEqual(len(heard), 3)
        listened = []
        self.refused("core_lost", lambda: [listened.append(p) for p in robot.listen()])
        self.assertEqual([(p.rate, p.data, p.at, p.missed, p.voice, p.bearing, p.own, p.reason) for p in listened][1:],
                         [(16000, b"\x01\x00\xff\xff", 1.0, 1, True, -0.5, False, ""), (16000, b"\x02\x00\xfe\xff", 2.0, 2, False, None, False, "no sound")])
        self.assertEqual((len(listened), listened[0].own), (3, True))

        async def both():
            other = await kennel.aio.connect()
            try:
                await other.hush()
                said = [(await other.say("hello")).clip, (await other.sound("beep")).clip]
                try:
                    async for h in other.listen():
                        said.append(h.missed)
                except kennel.Error as e:
                    said.append(e.code)
                try:
                    async for p in other.sounds():
                        said.append(p.missed)
                except kennel.Error as e:
                    said.append(e.code)
                return said
            finally:
                await other.close()

        self.assertEqual(asyncio.run(both()), ["hello false  1 0", "beep 1", 0, 1, 2, "core_lost", 0, 1, 2, "core_lost"])

    def test_slow_reader(self):
        """The time that a program takes for a message is not the robot's silence."""
        n = 0
        with self.assertRaises(kennel.Error) as caught:
            for n, _ in enumerate(self.connect().subscribe("fake.count"), 1):
                if n == 1:
                    time.sleep(2.2)
        self.assertEqual((n, caught.exception.code), (3, "core_lost"))

    def test_orders(self):
        robot = self.connect()
        for want, ended in {
            "robot.go(0.1)": robot.go(0.1),
            "robot.turn(-0.5) within 3000 ms": robot.turn(-0.5, deadline=3),
            "headPitch = 0.3 time:2": robot.set("headPitch", 0.3, time=2),
            "headPitch = 1 speed:0.5": robot.set("headPitch", True, speed=0.5),
            "wheel.speed = (1, 2) adaptive:0.25": robot.set("wheel.speed", [1, 2.0], adaptive=0.25),
            'voice.say("hello", 0)': robot.call("voice.say", "hello", False),
            "headPitch = 0.3 time:2s; robot.go(0.1)": robot.do("headPitch = 0.3 time:2s; robot.go(0.1)"),
        }.items():
            self.assertEqual(ended.note, want)
        e = self.refused("blocked", robot.do, "blocked", says="0.011 m of 0.1 m", error=kennel.NotDone)
        self.assertEqual((e.outcome, e.reasons), ("blocked", ["the wheels do not turn"]))
        self.refused("busy", robot.do, "busy")
        self.refused("invalid", robot.set, "headPitch", None)
        self.refused("invalid", robot.set, "headPitch", 1, time=1, speed=1)

    def test_ended_by_program(self):
        robot = self.connect()

        def tell(progress):
            if progress.HasField("pose"):
                raise KeyboardInterrupt

        before = robot.read("fake.cancelled")
        try:
            robot.order(pb.OrderRequest(text="hang"), tell)
        except KeyboardInterrupt:
            self.await_count(robot, "cancelled", before + 1)  # while the traceback, with its frames, is there
        else:
            self.fail("the interrupt was lost")

    def test_lease(self):
        robot = self.connect()
        lease, before = robot.claim("robot.go", time=0.3, reason="to dance"), robot.read("fake.renewed")
        self.await_count(robot, "renewed", before + 2)
        self.assertEqual(lease.go(0.1).note, "robot.go(0.1) leased")
        lease.release()
        lease.release()
        self.assertEqual(robot.read("fake.claimed"), 0)
        self.refused("lease_gone", lease.go, 0.1)
        self.refused("busy", robot.claim, "busy")
        robot.claim("headPitch")
        self.assertEqual(robot.read("fake.claimed"), 1)
        robot.close()
        self.assertEqual(self.connect().read("fake.claimed"), 0)


class Async(Sync):
    """The same calls of kennel.aio."""

    def setUp(self):
        self.loop = asyncio.new_event_loop()
        self.addCleanup(self.loop.close)

    def connect(self, place=None):
        async def connect():
            return await kennel.aio.connect(place)

        robot = Simple(self.loop.run_until_complete(connect()), self.loop)
        self.addCleanup(robot.close)
        return robot

    def test_with(self):
        async def all_of_it():
            async with kennel.aio.connect() as robot:
                async with await robot.claim("robot.go") as lease:
                    await lease.go(0.1)
                return await robot.read("fake.claimed")

        self.assertEqual(self.loop.run_until_complete(all_of_it()), 0)


class With(unittest.TestCase):
    def test_with(self):
        with kennel.connect() as robot:
            with robot.claim("robot.go") as lease:
                lease.go(0.1)
            self.assertEqual(robot.read("fake.claimed"), 0)


if __name__ == "__main__":
    unittest.main()
