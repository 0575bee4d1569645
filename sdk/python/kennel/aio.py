"""The calls of kennel for asyncio:

    async with kennel.aio.connect("robot.json") as robot:
        await robot.go(0.1)
        async for values in robot.subscribe("robot.body.laser.distance", rate=20):
            ...
"""
from __future__ import annotations

import asyncio
import os
from typing import Any, AsyncIterator, Callable, Dict, Generator, Iterable, List, Optional, Set, Union

import grpc
import grpc.aio

from . import _common as c
from ._common import Error, Heard, Lost, NotDone, Picture, Piece, Place, Plain, Values
from ._pb import robot_pb2 as pb


class _Mover:
    """As kennel.Robot's and kennel.Lease's orders. Cancelling an order ends the motion."""

    _robot: "Robot"
    _lease = ""

    async def go(self, metres: float, *, deadline: Optional[float] = None) -> pb.Ended:
        return await self.call("robot.go", metres, deadline=deadline)

    async def turn(self, radians: float, *, deadline: Optional[float] = None) -> pb.Ended:
        return await self.call("robot.turn", radians, deadline=deadline)

    async def set(self, name: str, value: Plain, *, time: Optional[float] = None, speed: Optional[float] = None, adaptive: Optional[float] = None,
                  deadline: Optional[float] = None) -> pb.Ended:
        return await self.order(c.setting(name, value, time=time, speed=speed, adaptive=adaptive, deadline=deadline))

    async def call(self, name: str, *args: Plain, time: Optional[float] = None, speed: Optional[float] = None, adaptive: Optional[float] = None,
                   deadline: Optional[float] = None) -> pb.Ended:
        return await self.order(c.calling(name, args, time=time, speed=speed, adaptive=adaptive, deadline=deadline))

    async def do(self, text: str) -> pb.Ended:
        return await self.order(pb.OrderRequest(text=text))

    async def order(self, request: pb.OrderRequest, tell: Optional[Callable[[pb.Progress], object]] = None) -> pb.Ended:
        request.lease = self._lease
        stream = self._robot._listen("Order", request)
        try:
            async for progress in stream:
                if progress.HasField("ended"):
                    break
                if tell:
                    tell(progress)
        finally:
            await stream.aclose()
        if progress.ended.outcome != "done":
            raise NotDone(progress.ended)
        return progress.ended

    async def play(self, mood: str = "", *, trigger: str = "", clip: str = "", loops: int = 1, ignore: Iterable[str] = (),
                   tell: Optional[Callable[[pb.PlayProgress], object]] = None) -> pb.PlayEnded:
        stream = self._robot._listen("Play", c.playing(mood, trigger, clip, loops, ignore, self._lease))
        try:
            async for progress in stream:
                if progress.HasField("ended"):
                    break
                if tell:
                    tell(progress)
        finally:
            await stream.aclose()
        return c.played(progress.ended)


class Robot(_Mover):
    """A connection to a robot: the calls of kennel.Robot."""

    def __init__(self, place: Place, name: str):
        self.place = place
        self._robot = self
        self._channel = c.secured(grpc.aio, place, name)
        self._calls = c.calls(self._channel)
        self._metadata = (("authorization", "Bearer " + place.token),)
        self._leases: Set[Lease] = set()

    async def close(self) -> None:
        for lease in list(self._leases):
            try:
                await lease.release()
            except Error:
                pass  # a robot that is lost ends it by itself
        await self._channel.close()

    async def _ask(self, call: str, request: Any) -> Any:
        try:
            return await self._calls[call](request, timeout=c.PATIENCE, metadata=self._metadata)
        except grpc.RpcError as e:
            raise c.explain(e) from None

    async def _listen(self, call: str, request: Any, take: Callable[[Any], Any] = lambda m: m) -> Any:
        stream = self._calls[call](request, metadata=self._metadata)
        try:
            while True:
                message = await asyncio.wait_for(stream.read(), c.SILENCE)
                if message is grpc.aio.EOF:
                    raise Lost("the robot has ended the stream")
                message = take(message)
                if message is not None:
                    yield message
        except asyncio.TimeoutError:
            raise Lost() from None
        except grpc.RpcError as e:
            raise c.explain(e) from None
        finally:
            stream.cancel()

    async def describe(self) -> pb.Description:
        return await self._ask("Describe", pb.DescribeRequest())

    async def ahead(self) -> str:
        return c.ahead(await self.describe())

    async def stop(self) -> None:
        await self._ask("Stop", pb.StopRequest())

    async def read(self, name: str) -> Union[float, str]:
        return (await self.values(name)).one(name)

    async def values(self, *names: str) -> Values:
        return Values(await self._ask("Read", pb.ReadRequest(names=names)))

    def subscribe(self, *names: str, rate: float = 10) -> AsyncIterator[Values]:
        return self._listen("Subscribe", pb.SubscribeRequest(names=names, rate_hz=rate), c.values)

    def events(self, *names: str, since: Optional[int] = None) -> AsyncIterator[pb.Event]:
        return self._listen("Events", pb.EventsRequest(names=names, since=since), c.event)

    def orders(self) -> AsyncIterator[pb.OrderReport]:
        return self._listen("Orders", pb.OrdersRequest(), c.report)

    async def picture(self, format: str = "", *, quality: Optional[int] = None) -> Picture:
        return c.picture(await self._ask("Image", pb.ImageRequest(format=format, quality=quality)))  # type: ignore[return-value]

    def pictures(self, format: str = "", *, quality: Optional[int] = None, rate: float = 5) -> AsyncIterator[Picture]:
        return self._listen("Images", pb.ImagesRequest(format=format, quality=quality, rate_hz=rate), c.picture)

    async def animations(self) -> pb.AnimationList:
        return await self._ask("Animations", pb.AnimationsRequest())

    async def screen(self, format: str = "") -> Picture:
        return c.picture(await self._ask("Screen", pb.ScreenRequest(format=format)))  # type: ignore[return-value]

    def screens(self, format: str = "", *, rate: float = 20) -> AsyncIterator[Picture]:
        return self._listen("Screens", pb.ScreensRequest(format=format, rate_hz=rate), c.picture)

    async def say(self, text: str, *, plain: bool = False, language: str = "", speed: float = 1, pitch: float = 0,
                  tell: Optional[Callable[[pb.SpeechProgress], object]] = None) -> pb.PlayEnded:
        return await self._heard("Say", pb.SayRequest(text=text, plain=plain, language=language, speed=speed, pitch=pitch), tell)

    async def sound(self, name: str, *, volume: float = 1, tell: Optional[Callable[[pb.SpeechProgress], object]] = None) -> pb.PlayEnded:
        return await self._heard("Sound", pb.SoundRequest(name=name, volume=volume), tell)

    async def hush(self) -> None:
        await self._heard("Sound", pb.SoundRequest(stop=True), None)

    async def _heard(self, call: str, request: Any, tell: Optional[Callable[[pb.SpeechProgress], object]]) -> pb.PlayEnded:
        stream = self._listen(call, request)
        try:
            async for progress in stream:
                if progress.HasField("ended"):
                    break
                if tell:
                    tell(progress)
        finally:
            await stream.aclose()
        return c.played(progress.ended)

    def sounds(self) -> AsyncIterator[Piece]:
        return self._listen("Sounds", pb.SoundsRequest(), c.piece)

    def listen(self) -> AsyncIterator[Heard]:
        return self._listen("Listen", pb.ListenRequest(), c.heard)

    async def settings(self) -> Dict[str, Any]:
        return c.settings(await self.describe_settings())

    async def describe_settings(self) -> List[pb.Setting]:
        return list((await self._ask("Settings", pb.SettingsRequest())).settings)

    async def change(self, **settings: Any) -> Dict[str, Any]:
        return c.settings((await self._ask("Change", c.change(settings))).settings)

    async def claim(self, *parts: str, time: float = 5, reason: str = "") -> "Lease":
        return Lease(self, await self._ask("Claim", pb.ClaimRequest(parts=parts, for_ms=round(time * 1000), reason=reason)))


class Lease(_Mover):
    """As kennel.Lease."""

    def __init__(self, robot: Robot, lease: pb.Lease):
        self._robot, self._lease = robot, lease.id
        self._task = asyncio.ensure_future(self._renew(max(lease.for_ms, 30) / 3000))
        robot._leases.add(self)

    async def __aenter__(self) -> "Lease":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.release()

    async def _renew(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await self._robot._ask("Renew", pb.RenewRequest(lease=self._lease))
            except Error as e:
                if e.code == "lease_gone":
                    return  # the next order says so too

    async def release(self) -> None:
        if self not in self._robot._leases:
            return
        self._robot._leases.discard(self)
        self._task.cancel()
        await self._robot._ask("Release", pb.ReleaseRequest(lease=self._lease))


class connect:
    """Connects as kennel.connect does: robot = await connect(place), or async with connect(place) as robot."""

    def __init__(self, place: Union[Place, str, "os.PathLike[str]", None] = None):
        self._place = place

    async def _connect(self) -> Robot:
        place = self._place if isinstance(self._place, Place) else Place.read(self._place)
        return Robot(place, await asyncio.get_running_loop().run_in_executor(None, place.knock))

    def __await__(self) -> Generator[Any, None, Robot]:
        return self._connect().__await__()

    async def __aenter__(self) -> Robot:
        self._robot = await self._connect()
        return self._robot

    async def __aexit__(self, *_: object) -> None:
        await self._robot.close()
