"""What the calls of kennel and kennel.aio share."""
from __future__ import annotations

import json
import os
import socket
import ssl
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Union

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from ._pb import robot_pb2 as pb

PATIENCE = 5.0  # seconds for an answer that the robot has at once
SILENCE = 2.0  # seconds of a stream, in which the robot says something each second


class Error(Exception):
    """A refusal of the robot, or the reason why there is no answer.

    code is one of the robot's, such as "busy" (infra/api/robotpb/robot.proto), or one of this package: file_missing, file_wrong, unreachable,
    certificate_wrong, lost, not_measured.
    """

    def __init__(self, code: str, message: str):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Lost(Error):
    """The robot is not heard any longer."""

    def __init__(self, message: str = "the robot is not heard any longer"):
        super().__init__("lost", message)


class NotDone(Error):
    """A motion did not end as ordered: outcome is such as "blocked", reasons are why in words, words is all of it as a sentence."""

    def __init__(self, ended: pb.Ended):
        super().__init__(ended.outcome, ended.words)
        self.ended = ended
        self.outcome: str = ended.outcome
        self.reasons: List[str] = list(ended.reasons)
        self.words: str = ended.words


@dataclass(frozen=True)
class Place:
    """Where a robot is, and how a program proves to it who it is."""

    address: str  # host:port
    certificate: str  # the robot's own, PEM: no other is trusted
    token: str = field(repr=False)
    thing: str = ""  # such as "vic:00e20100"
    name: str = ""  # the robot's

    @classmethod
    def read(cls, path: Union[str, "os.PathLike[str]", None] = None) -> "Place":
        """Reads a JSON file; None is the file that $KENNEL_ROBOT names. Raises Error with the code file_missing or file_wrong."""
        path = path or os.environ.get("KENNEL_ROBOT")
        if not path:
            raise Error("file_missing", "want the path of a robot's file, or $KENNEL_ROBOT")
        try:
            with open(path, encoding="utf-8") as f:
                values = json.load(f)
            place = cls(**{k: v for k, v in values.items() if k in cls.__dataclass_fields__ and isinstance(v, str)})
        except OSError as e:
            raise Error("file_missing", f"{e}: want the robot's file, which its owner makes") from e
        except (ValueError, AttributeError, TypeError) as e:
            raise Error("file_wrong", f"{path}: {e}") from e
        place._split(f"{path}: ")
        return place

    def _split(self, where: str = "") -> "tuple[str, int]":
        host, _, port = self.address.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65535:
            raise Error("file_wrong", f"{where}address: want host:port")
        if not self.token:
            raise Error("file_wrong", f"{where}token: want the token of a program")
        return host.strip("[]"), int(port)

    def knock(self) -> str:
        """Makes a connection and ends it; returns the name in the robot's certificate. Its errors say more than those of gRPC."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # the certificate is the robot's own, whatever address it has
        address = self._split()
        try:
            context.load_verify_locations(cadata=self.certificate)
        except (ssl.SSLError, ValueError) as e:
            raise Error("file_wrong", f"certificate: want PEM: {e}") from e
        try:
            with socket.create_connection(address, PATIENCE) as raw, context.wrap_socket(raw) as conn:
                shown: Any = conn.getpeercert()
        except ssl.SSLCertVerificationError as e:
            raise Error("certificate_wrong", f"{self.address} shows another certificate than the file has ({e.verify_message}): it is another robot, "
                        "or its user data was erased and its owner makes a new file") from e
        except OSError as e:
            raise Error("unreachable", f"no robot at {self.address}: {e}") from e
        return next((name for kind, name in shown.get("subjectAltName", ()) if kind == "DNS"), "")


@dataclass(frozen=True)
class Reading:
    """The value of one slot."""

    part: str  # full name
    slot: str
    unit: str
    value: Union[float, str, None]  # None: not known
    changed: bool  # since the message before
    age: Optional[float]  # seconds since it was measured; None: it never changes, or is not known

    @property
    def name(self) -> str:
        return f"{self.part}.{self.slot}"


@dataclass(frozen=True)
class Piece:
    """A piece of what the robot plays, one channel of 16 bits."""

    rate: int  # samples a second
    data: bytes  # two bytes a sample, signed, the low one first, as wave.writeframes takes them
    place: int  # how many samples were played before the first one, since the robot's character started; pauses are not counted
    at: float  # seconds by the robot's clock, when the first one is heard
    missed: int  # samples before it that were lost, because this program was slow
    said: Optional[str]  # the text that is said from here on; "": none any longer; None: as before


def piece(m: pb.SoundPiece) -> Optional[Piece]:
    """A piece of sound; None for a message that only says that the robot is there."""
    return Piece(m.rate, m.data, m.place, m.at_us / 1e6, m.missed, m.said if m.HasField("said") else None) if m.rate else None


@dataclass(frozen=True)
class Heard:
    """A piece of what the robot hears, one channel of 16 bits."""

    rate: int  # samples a second; 0: there are none, for the reason
    data: bytes  # two bytes a sample, signed, the low one first, as wave.writeframes takes them
    at: float  # seconds by the robot's clock, when the last one was heard
    missed: int  # samples before it that were lost
    voice: bool  # a person speaks
    bearing: Optional[float]  # rad, where the voice comes from, counter-clockwise from the front; None: it is not known
    own: bool  # the robot makes a sound itself, and does not listen: the samples are 0
    reason: str  # why there are no samples, such as that a person switched the microphones off; "": there are


def heard(m: pb.HeardPiece) -> Optional[Heard]:
    """A piece of what the robot hears; None for a message that only says that the robot is there."""
    if not m.rate and not m.reason:
        return None
    return Heard(m.rate, m.data, m.at_us / 1e6, m.missed, m.voice, m.bearing if m.HasField("bearing") else None, m.own, m.reason)


class Values(Sequence[Reading]):
    """What slots read as at one moment: readings in the order of the names asked for, and by full name, as in values["robot.body.laser.distance"]."""

    def __init__(self, m: pb.Values):
        self.at = m.at_us / 1e6  # seconds by the robot's clock, since its start
        self.missed: int = m.missed  # messages that newer ones replaced, since the one before
        self.readings = [
            Reading(r.part, r.slot, r.unit, getattr(r.value, r.value.WhichOneof("kind") or "", None), r.changed, r.age_us / 1e6 if r.age_us >= 0 else None)
            for r in m.readings
        ]

    def __len__(self) -> int:
        return len(self.readings)

    def __iter__(self) -> Iterator[Reading]:
        return iter(self.readings)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.readings[key]
        for r in self.readings:
            if r.name == key:
                return r.value
        raise KeyError(key)

    def one(self, name: str) -> Union[float, str]:
        """The one reading of a slot, or of a part's slot val."""
        for r in self.readings:
            if r.value is not None and (len(self.readings) == 1 or r.slot == "val"):
                return r.value
        raise Error("not_measured", f"{name}: no value is known now")


@dataclass(frozen=True)
class Picture:
    """What the robot's camera saw. A point x to the right of the camera, y below and z before it is at (fx*x/z + cx, fy*y/z + cy)."""

    format: str  # jpeg, rgb (a byte each of red, green and blue, row by row) or grey8
    data: bytes = field(repr=False)
    width: int  # pixels
    height: int
    seq: int
    at: float  # seconds by the robot's clock, when its exposure began
    missed: int  # pictures that newer ones replaced, since the one before
    exposure: float  # seconds
    gain: float
    fx: float
    fy: float
    cx: float
    cy: float


def picture(m: pb.Picture) -> Optional[Picture]:
    """None if m only says that the robot is there."""
    if not m.format:
        return None
    c = m.calibration
    return Picture(m.format, m.data, m.width, m.height, m.seq, m.at_us / 1e6, m.missed, m.exposure_s, m.gain, c.fx, c.fy, c.cx, c.cy)


def ahead(d: pb.Description) -> str:
    sensors = [p for p in d.parts if "DistanceSensor" in p.interfaces]
    if not sensors:
        raise Error("not_found", "this robot has no distance sensor")
    return min(sensors, key=lambda p: abs(p.bearing)).full + ".distance"


def values(m: pb.Values) -> Optional[Values]:
    """None if m only says that the robot is there."""
    return Values(m) if m.readings else None


def event(m: pb.Event) -> Optional[pb.Event]:
    """None likewise."""
    return m if m.name else None


def report(m: pb.OrderReport) -> Optional[pb.OrderReport]:
    """None likewise."""
    return m if m.order else None


Plain = Union[float, bool, str, Sequence[Any]]


def value(v: Plain) -> pb.Value:
    if isinstance(v, str):
        return pb.Value(text=v)
    if isinstance(v, (list, tuple)):
        return pb.Value(list=pb.List(items=[value(x) for x in v]))
    try:
        return pb.Value(number=float(v))  # type: ignore[arg-type]
    except (TypeError, ValueError) as e:
        raise Error("invalid", f"value of type {type(v).__name__}: want a number, bool, str or list") from e


def statement(
    s: pb.Statement, time: Optional[float], speed: Optional[float], adaptive: Optional[float], deadline: Optional[float]
) -> pb.OrderRequest:
    manner: Dict[str, Optional[float]] = {"time_s": time, "speed": speed, "adaptive_s": adaptive}
    given = {k: v for k, v in manner.items() if v is not None}
    if len(given) > 1:
        raise Error("invalid", "want only one of time, speed and adaptive")
    for k, v in given.items():
        setattr(s, k, v)
    return pb.OrderRequest(steps=[pb.Step(statements=[s])], for_ms=round((deadline or 0) * 1000))


def setting(name: str, v: Plain, **how: Optional[float]) -> pb.OrderRequest:
    return statement(pb.Statement(name=name, set=value(v)), **how)  # type: ignore[arg-type]


def calling(name: str, args: Sequence[Plain], **how: Optional[float]) -> pb.OrderRequest:
    return statement(pb.Statement(name=name, call=value(list(args)).list), **how)  # type: ignore[arg-type]


def settings(all: Iterable[pb.Setting]) -> Dict[str, Any]:
    return {s.name: MessageToDict(s.value) for s in all}


def change(all: Dict[str, Any]) -> pb.ChangeRequest:
    q = pb.ChangeRequest()
    for name, v in all.items():
        for full, x in ((f"{name}.{k}", x) for k, x in v.items()) if isinstance(v, dict) else [(name, v)]:
            try:
                ParseDict(x, q.settings[full])
            except ParseError as e:
                raise Error("invalid", f"setting {full} of type {type(x).__name__}: want a string, number, bool, list or dict") from e
    return q


def explain(e: Any) -> Error:
    """What an error of gRPC means to the program."""
    for key, code in e.trailing_metadata() or ():
        if key == "kennel-code":
            return Error(code, e.details())
    if e.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return Lost(e.details() or "the robot is not heard any longer")
    return Error(e.code().name.lower(), e.details() or "")


def calls(channel: Any) -> Dict[str, Any]:
    """The calls of the API on a channel of grpc or grpc.aio, by name."""
    out = {}
    for m in pb.DESCRIPTOR.services_by_name["Robot"].methods:
        make = channel.unary_stream if m.name in ("Subscribe", "Events", "Orders", "Images", "Screens", "Order", "Play", "Say", "Sound", "Sounds", "Listen") else channel.unary_unary
        answer = getattr(pb, m.output_type.name)
        out[m.name] = make(f"/kennel.robot.v1.Robot/{m.name}", request_serializer=getattr(pb, m.input_type.name).SerializeToString,
                           response_deserializer=answer.FromString)
    return out


def secured(grpc_like: Any, place: Place, name: str) -> Any:
    """A channel to the robot alone."""
    credentials = grpc.ssl_channel_credentials(place.certificate.encode())
    return grpc_like.secure_channel(place.address, credentials, [("grpc.ssl_target_name_override", name)] if name else [])


def playing(mood: str, trigger: str, clip: str, loops: int, ignore: Iterable[str], lease: str) -> pb.PlayRequest:
    """The request to play one animation."""
    what = {k: v for k, v in (("mood", mood), ("trigger", trigger), ("clip", clip)) if v}
    if len(what) != 1:
        raise Error("invalid", "want one of mood, trigger and clip")
    return pb.PlayRequest(loops=loops, ignore=list(ignore), lease=lease, **what)


def played(ended: pb.PlayEnded) -> pb.PlayEnded:
    """The end of an animation that was not stopped."""
    if ended.outcome != "done":
        raise NotDone(pb.Ended(outcome=ended.outcome, reasons=[ended.reason], words=f"{ended.outcome}: {ended.reason}"))
    return ended
