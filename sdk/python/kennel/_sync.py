from __future__ import annotations

import contextlib
import os
import threading
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Set, Union

import grpc

from . import _common as c
from ._common import Error, Heard, Lost, NotDone, Picture, Piece, Place, Plain, Values
from ._pb import robot_pb2 as pb


class _Mover:
    """Gives orders: a Robot claims what an order moves for that order alone, a Lease has claimed it already. Each order returns when it has ended, and raises
    NotDone if it did not end as ordered. An exception in between, such as KeyboardInterrupt, ends the motion."""

    _robot: "Robot"
    _lease = ""

    def go(self, metres: float, *, deadline: Optional[float] = None) -> pb.Ended:
        """Drives forward; a negative number drives back."""
        return self.call("robot.go", metres, deadline=deadline)

    def turn(self, radians: float, *, deadline: Optional[float] = None) -> pb.Ended:
        """Turns on the spot, to the right."""
        return self.call("robot.turn", radians, deadline=deadline)

    def set(self, name: str, value: Plain, *, time: Optional[float] = None, speed: Optional[float] = None, adaptive: Optional[float] = None,
            deadline: Optional[float] = None) -> pb.Ended:
        """Writes a slot. A position is a goal: it is reached after time seconds, with speed in the slot's unit a second, or in about adaptive seconds."""
        return self.order(c.setting(name, value, time=time, speed=speed, adaptive=adaptive, deadline=deadline))

    def call(self, name: str, *args: Plain, time: Optional[float] = None, speed: Optional[float] = None, adaptive: Optional[float] = None,
             deadline: Optional[float] = None) -> pb.Ended:
        """Calls a method of the robot's tree."""
        return self.order(c.calling(name, args, time=time, speed=speed, adaptive=adaptive, deadline=deadline))

    def do(self, text: str) -> pb.Ended:
        """Does what a line of text says, such as "headPitch = 0.3 time:2s; robot.go(0.1)"."""
        return self.order(pb.OrderRequest(text=text))

    def order(self, request: pb.OrderRequest, tell: Optional[Callable[[pb.Progress], object]] = None) -> pb.Ended:
        """Does any order. tell hears its progress; an exception of tell ends the motion."""
        request.lease = self._lease
        with contextlib.closing(self._robot._listen("Order", request)) as stream:
            for progress in stream:
                if progress.HasField("ended"):
                    break
                if tell:
                    tell(progress)
        if progress.ended.outcome != "done":
            raise NotDone(progress.ended)
        return progress.ended

    def play(self, mood: str = "", *, trigger: str = "", clip: str = "", loops: int = 1, ignore: Iterable[str] = (),
             tell: Optional[Callable[[pb.PlayProgress], object]] = None) -> pb.PlayEnded:
        """Plays an animation, by the mood that it shows, a trigger, of whose clips one is drawn, or a clip, and returns when it has ended: left_out says what the
        body lacks. ignore names tracks that do not play: "head", "lift", "body". Raises NotDone if it was stopped, whose words say why. A Lease's play takes its
        parts from its other motions meanwhile."""
        with contextlib.closing(self._robot._listen("Play", c.playing(mood, trigger, clip, loops, ignore, self._lease))) as stream:
            for progress in stream:
                if progress.HasField("ended"):
                    break
                if tell:
                    tell(progress)
        return c.played(progress.ended)


class Robot(_Mover):
    """A connection to a robot. It may be used by several threads."""

    def __init__(self, place: Place):
        self.place = place
        self._robot = self
        self._channel = c.secured(grpc, place, place.knock())
        self._calls = c.calls(self._channel)
        self._metadata = (("authorization", "Bearer " + place.token),)
        self._leases: Set[Lease] = set()

    def __enter__(self) -> "Robot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives back the leases that are held, and ends the connection."""
        for lease in list(self._leases):
            try:
                lease.release()
            except Error:
                pass  # a robot that is lost ends it by itself
        self._channel.close()

    def _ask(self, call: str, request: Any) -> Any:
        try:
            return self._calls[call](request, timeout=c.PATIENCE, metadata=self._metadata)
        except grpc.RpcError as e:
            raise c.explain(e) from None

    def _listen(self, call: str, request: Any, take: Callable[[Any], Any] = lambda m: m) -> Iterator[Any]:
        stream = self._calls[call](request, metadata=self._metadata)
        lost = threading.Event()

        def silent() -> None:
            lost.set()
            stream.cancel()

        try:
            while True:
                watch = threading.Timer(c.SILENCE, silent)  # only while this side waits
                watch.daemon = True
                watch.start()
                try:
                    message = next(stream, None)
                finally:
                    watch.cancel()
                if message is None:
                    raise Lost("the robot has ended the stream")
                message = take(message)
                if message is not None:
                    yield message
        except grpc.RpcError as e:
            raise (Lost() if lost.is_set() else c.explain(e)) from None
        finally:
            stream.cancel()

    def describe(self) -> pb.Description:
        """What the robot is, has and can do."""
        return self._ask("Describe", pb.DescribeRequest())

    def ahead(self) -> str:
        """The slot of the distance sensor that looks most nearly to the front, such as robot.body.laser.distance."""
        return c.ahead(self.describe())

    def stop(self) -> None:
        """Stops all motors, whatever program moves them."""
        self._ask("Stop", pb.StopRequest())

    def read(self, name: str) -> Union[float, str]:
        """What a slot reads as, in SI units: inf where nothing is in range. For a part it is the slot val. Raises Error not_measured if it is not known now."""
        return self.values(name).one(name)

    def values(self, *names: str) -> Values:
        """What slots read as now; a part means all its slots."""
        return Values(self._ask("Read", pb.ReadRequest(names=names)))

    def subscribe(self, *names: str, rate: float = 10) -> Iterator[Values]:
        """What slots read as: first at once, then when one of them changed, at most rate times a second. A slow reader gets the newest values next. Raises
        Lost when the robot is not heard for 2 s."""
        return self._listen("Subscribe", pb.SubscribeRequest(names=names, rate_hz=rate), c.values)

    def events(self, *names: str, since: Optional[int] = None) -> Iterator[pb.Event]:
        """What happens from now on, or after the event with the number since; of names, if there are any, events that begin so."""
        return self._listen("Events", pb.EventsRequest(names=names, since=since), c.event)

    def orders(self) -> Iterator[pb.OrderReport]:
        """The orders of all programs, as they begin and as they end."""
        return self._listen("Orders", pb.OrdersRequest(), c.report)

    def picture(self, format: str = "", *, quality: Optional[int] = None) -> Picture:
        """Takes a picture: jpeg, rgb or grey8. What is not given is as the slots of the robot's camera say. Raises Error unable for a body without a camera,
        no_picture for one that is off."""
        return c.picture(self._ask("Image", pb.ImageRequest(format=format, quality=quality)))  # type: ignore[return-value]

    def pictures(self, format: str = "", *, quality: Optional[int] = None, rate: float = 5) -> Iterator[Picture]:
        """Yields pictures, at most rate a second. A slow reader gets the newest one next. While the camera is off there are none."""
        return self._listen("Images", pb.ImagesRequest(format=format, quality=quality, rate_hz=rate), c.picture)

    def animations(self) -> pb.AnimationList:
        """What the robot plays: clips, triggers, and moods with what shows them on its body."""
        return self._ask("Animations", pb.AnimationsRequest())

    def screen(self, format: str = "") -> Picture:
        """What the robot's display shows: png, jpeg, rgb or rgb565 (two bytes a pixel, the high one first); "": png. Raises Error unable for a body without one."""
        return c.picture(self._ask("Screen", pb.ScreenRequest(format=format)))  # type: ignore[return-value]

    def screens(self, format: str = "", *, rate: float = 20) -> Iterator[Picture]:
        """Yields the frames of the display, at most rate a second, up to 33. A slow reader gets the newest one next."""
        return self._listen("Screens", pb.ScreensRequest(format=format, rate_hz=rate), c.picture)

    def say(self, text: str, *, plain: bool = False, language: str = "", speed: float = 1, pitch: float = 0,
            tell: Optional[Callable[[pb.SpeechProgress], object]] = None) -> pb.PlayEnded:
        """Says a text of at most 2000 characters and returns when its last sample was heard. plain is the synthesiser's voice and not the robot's own, language such as
        "de-DE", speed a factor of 0.05 to 20, pitch -1 to 1. Raises NotDone if it was interrupted, whose words say why, and Error unable for a body without a
        speaker, or no_voice, which says what to install."""
        return self._heard("Say", pb.SayRequest(text=text, plain=plain, language=language, speed=speed, pitch=pitch), tell)

    def sound(self, name: str, *, volume: float = 1, tell: Optional[Callable[[pb.SpeechProgress], object]] = None) -> pb.PlayEnded:
        """Plays a sound of animations().sounds and returns when it was heard. Raises as say."""
        return self._heard("Sound", pb.SoundRequest(name=name, volume=volume), tell)

    def hush(self) -> None:
        """Ends all that the robot says and plays, also for other programs."""
        self._heard("Sound", pb.SoundRequest(stop=True), None)

    def _heard(self, call: str, request: Any, tell: Optional[Callable[[pb.SpeechProgress], object]]) -> pb.PlayEnded:
        with contextlib.closing(self._listen(call, request)) as stream:
            for progress in stream:
                if progress.HasField("ended"):
                    break
                if tell:
                    tell(progress)
        return c.played(progress.ended)

    def sounds(self) -> Iterator[Piece]:
        """Yields what the robot plays. The first piece, without data, says that the robot is heard from now on; while it is silent there are none."""
        return self._listen("Sounds", pb.SoundsRequest(), c.piece)

    def listen(self) -> Iterator[Heard]:
        """Yields what the robot hears through its microphones, 25 pieces a second, and each second the reason why it hears nothing. The program needs the right hear,
        which its owner gives by name, and the robot's light shows that a program listens."""
        return self._listen("Listen", pb.ListenRequest(), c.heard)

    def settings(self) -> Dict[str, Any]:
        """The robot's settings by name; None where it has no value. What each may be is in describe_settings()."""
        return c.settings(self.describe_settings())

    def describe_settings(self) -> List[pb.Setting]:
        """The robot's settings with type, allowed values and unit. Raises Error unable for a robot without settings."""
        return list(self._ask("Settings", pb.SettingsRequest()).settings)

    def change(self, **settings: Any) -> Dict[str, Any]:
        """Changes settings, all or none, and returns all of them: robot.change(master_volume="LOW"). They are on the robot's disk then. Fields of an object
        are a dict: robot.change(custom_eye_color={"enabled": True}) keeps its other fields. Raises Error invalid with what is allowed."""
        return c.settings(self._ask("Change", c.change(settings)).settings)

    def claim(self, *parts: str, time: float = 5, reason: str = "") -> "Lease":
        """Takes parts for this program, by the names of actuators or of what has them: all or none. time is 0.1 to 60 s; the lease is renewed until release.
        Programs that are refused meanwhile hear the reason."""
        return Lease(self, self._ask("Claim", pb.ClaimRequest(parts=parts, for_ms=round(time * 1000), reason=reason)))


class Lease(_Mover):
    """Holds parts of the robot for this program: others cannot move them. If the program ends, the robot gives them back when the lease's time is over."""

    def __init__(self, robot: Robot, lease: pb.Lease):
        self._robot, self._lease = robot, lease.id
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, args=(max(lease.for_ms, 30) / 3000,), daemon=True)
        robot._leases.add(self)
        self._thread.start()

    def __enter__(self) -> "Lease":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _renew(self, every: float) -> None:
        while not self._over.wait(every):
            try:
                self._robot._ask("Renew", pb.RenewRequest(lease=self._lease))
            except Error as e:
                if e.code == "lease_gone":
                    return  # the next order says so too

    def release(self) -> None:
        """Gives the parts back. What still moves under the lease ends."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        self._robot._leases.discard(self)
        self._robot._ask("Release", pb.ReleaseRequest(lease=self._lease))


def connect(place: Union[Place, str, "os.PathLike[str]", None] = None) -> Robot:
    """Connects to the robot of a file, of $KENNEL_ROBOT (None), or at a Place. Raises Error with the code file_missing, file_wrong, unreachable or
    certificate_wrong."""
    return Robot(place if isinstance(place, Place) else Place.read(place))
