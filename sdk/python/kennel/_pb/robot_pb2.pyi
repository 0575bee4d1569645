from google.protobuf import struct_pb2 as _struct_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Animation(_message.Message):
    __slots__ = ["name", "span_ms", "tracks"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SPAN_MS_FIELD_NUMBER: _ClassVar[int]
    TRACKS_FIELD_NUMBER: _ClassVar[int]
    name: str
    span_ms: int
    tracks: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., span_ms: _Optional[int] = ..., tracks: _Optional[_Iterable[str]] = ...) -> None: ...

class AnimationList(_message.Message):
    __slots__ = ["animations", "lacks", "moods", "sounds", "triggers"]
    ANIMATIONS_FIELD_NUMBER: _ClassVar[int]
    LACKS_FIELD_NUMBER: _ClassVar[int]
    MOODS_FIELD_NUMBER: _ClassVar[int]
    SOUNDS_FIELD_NUMBER: _ClassVar[int]
    TRIGGERS_FIELD_NUMBER: _ClassVar[int]
    animations: _containers.RepeatedCompositeFieldContainer[Animation]
    lacks: _containers.RepeatedScalarFieldContainer[str]
    moods: _containers.RepeatedCompositeFieldContainer[Mood]
    sounds: _containers.RepeatedScalarFieldContainer[str]
    triggers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, animations: _Optional[_Iterable[_Union[Animation, _Mapping]]] = ..., triggers: _Optional[_Iterable[str]] = ..., moods: _Optional[_Iterable[_Union[Mood, _Mapping]]] = ..., lacks: _Optional[_Iterable[str]] = ..., sounds: _Optional[_Iterable[str]] = ...) -> None: ...

class AnimationsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class AuthenticateRequest(_message.Message):
    __slots__ = ["client_name", "session"]
    CLIENT_NAME_FIELD_NUMBER: _ClassVar[int]
    SESSION_FIELD_NUMBER: _ClassVar[int]
    client_name: str
    session: str
    def __init__(self, session: _Optional[str] = ..., client_name: _Optional[str] = ...) -> None: ...

class AuthenticateResponse(_message.Message):
    __slots__ = ["token"]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class Begun(_message.Message):
    __slots__ = ["note"]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    note: str
    def __init__(self, note: _Optional[str] = ...) -> None: ...

class Calibration(_message.Message):
    __slots__ = ["cx", "cy", "fx", "fy"]
    CX_FIELD_NUMBER: _ClassVar[int]
    CY_FIELD_NUMBER: _ClassVar[int]
    FX_FIELD_NUMBER: _ClassVar[int]
    FY_FIELD_NUMBER: _ClassVar[int]
    cx: float
    cy: float
    fx: float
    fy: float
    def __init__(self, fx: _Optional[float] = ..., fy: _Optional[float] = ..., cx: _Optional[float] = ..., cy: _Optional[float] = ...) -> None: ...

class ChangeRequest(_message.Message):
    __slots__ = ["settings"]
    class SettingsEntry(_message.Message):
        __slots__ = ["key", "value"]
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: _struct_pb2.Value
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ...) -> None: ...
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    settings: _containers.MessageMap[str, _struct_pb2.Value]
    def __init__(self, settings: _Optional[_Mapping[str, _struct_pb2.Value]] = ...) -> None: ...

class ClaimRequest(_message.Message):
    __slots__ = ["for_ms", "parts", "reason"]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    for_ms: int
    parts: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    def __init__(self, parts: _Optional[_Iterable[str]] = ..., for_ms: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class DescribeRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Description(_message.Message):
    __slots__ = ["firmware", "limits", "model", "name", "parts", "rights", "software", "species", "thing"]
    FIRMWARE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    RIGHTS_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    SPECIES_FIELD_NUMBER: _ClassVar[int]
    THING_FIELD_NUMBER: _ClassVar[int]
    firmware: str
    limits: Limits
    model: str
    name: str
    parts: _containers.RepeatedCompositeFieldContainer[Part]
    rights: _containers.RepeatedScalarFieldContainer[str]
    software: str
    species: str
    thing: str
    def __init__(self, thing: _Optional[str] = ..., species: _Optional[str] = ..., name: _Optional[str] = ..., model: _Optional[str] = ..., firmware: _Optional[str] = ..., software: _Optional[str] = ..., parts: _Optional[_Iterable[_Union[Part, _Mapping]]] = ..., rights: _Optional[_Iterable[str]] = ..., limits: _Optional[_Union[Limits, _Mapping]] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ["moved", "note", "of", "outcome", "pose", "reasons", "unit", "words"]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    POSE_FIELD_NUMBER: _ClassVar[int]
    REASONS_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    WORDS_FIELD_NUMBER: _ClassVar[int]
    moved: float
    note: str
    of: float
    outcome: str
    pose: Pose
    reasons: _containers.RepeatedScalarFieldContainer[str]
    unit: str
    words: str
    def __init__(self, outcome: _Optional[str] = ..., reasons: _Optional[_Iterable[str]] = ..., words: _Optional[str] = ..., moved: _Optional[float] = ..., of: _Optional[float] = ..., unit: _Optional[str] = ..., pose: _Optional[_Union[Pose, _Mapping]] = ..., note: _Optional[str] = ...) -> None: ...

class Event(_message.Message):
    __slots__ = ["at_us", "name", "numbers", "seq", "texts", "warning"]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    WARNING_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    name: str
    numbers: _containers.RepeatedScalarFieldContainer[int]
    seq: int
    texts: _containers.RepeatedScalarFieldContainer[str]
    warning: bool
    def __init__(self, seq: _Optional[int] = ..., at_us: _Optional[int] = ..., name: _Optional[str] = ..., warning: bool = ..., numbers: _Optional[_Iterable[int]] = ..., texts: _Optional[_Iterable[str]] = ...) -> None: ...

class EventsRequest(_message.Message):
    __slots__ = ["names", "since"]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    since: int
    def __init__(self, names: _Optional[_Iterable[str]] = ..., since: _Optional[int] = ...) -> None: ...

class HeardPiece(_message.Message):
    __slots__ = ["at_us", "bearing", "data", "missed", "own", "rate", "reason", "voice"]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    BEARING_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    VOICE_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    bearing: float
    data: bytes
    missed: int
    own: bool
    rate: int
    reason: str
    voice: bool
    def __init__(self, rate: _Optional[int] = ..., data: _Optional[bytes] = ..., at_us: _Optional[int] = ..., missed: _Optional[int] = ..., voice: bool = ..., bearing: _Optional[float] = ..., own: bool = ..., reason: _Optional[str] = ...) -> None: ...

class ImageRequest(_message.Message):
    __slots__ = ["format", "part", "quality"]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    format: str
    part: str
    quality: int
    def __init__(self, part: _Optional[str] = ..., format: _Optional[str] = ..., quality: _Optional[int] = ...) -> None: ...

class ImagesRequest(_message.Message):
    __slots__ = ["format", "part", "quality", "rate_hz"]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    QUALITY_FIELD_NUMBER: _ClassVar[int]
    RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    format: str
    part: str
    quality: int
    rate_hz: float
    def __init__(self, part: _Optional[str] = ..., format: _Optional[str] = ..., quality: _Optional[int] = ..., rate_hz: _Optional[float] = ...) -> None: ...

class Lease(_message.Message):
    __slots__ = ["for_ms", "id"]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    for_ms: int
    id: str
    def __init__(self, id: _Optional[str] = ..., for_ms: _Optional[int] = ...) -> None: ...

class LeftOut(_message.Message):
    __slots__ = ["reason", "track"]
    REASON_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    reason: str
    track: str
    def __init__(self, track: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ["lease_ms", "leases", "rate_hz", "statements", "steps"]
    LEASES_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    lease_ms: int
    leases: int
    rate_hz: float
    statements: int
    steps: int
    def __init__(self, rate_hz: _Optional[float] = ..., lease_ms: _Optional[int] = ..., leases: _Optional[int] = ..., steps: _Optional[int] = ..., statements: _Optional[int] = ...) -> None: ...

class List(_message.Message):
    __slots__ = ["items"]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    items: _containers.RepeatedCompositeFieldContainer[Value]
    def __init__(self, items: _Optional[_Iterable[_Union[Value, _Mapping]]] = ...) -> None: ...

class ListenRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Mood(_message.Message):
    __slots__ = ["motion", "name", "trigger"]
    MOTION_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    motion: str
    name: str
    trigger: str
    def __init__(self, name: _Optional[str] = ..., trigger: _Optional[str] = ..., motion: _Optional[str] = ...) -> None: ...

class OrderReport(_message.Message):
    __slots__ = ["at_us", "ended", "for_ms", "order", "program", "seq", "steps"]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    ORDER_FIELD_NUMBER: _ClassVar[int]
    PROGRAM_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    ended: Ended
    for_ms: int
    order: int
    program: str
    seq: int
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    def __init__(self, seq: _Optional[int] = ..., order: _Optional[int] = ..., at_us: _Optional[int] = ..., program: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., for_ms: _Optional[int] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ...) -> None: ...

class OrderRequest(_message.Message):
    __slots__ = ["for_ms", "lease", "steps", "text"]
    FOR_MS_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    for_ms: int
    lease: str
    steps: _containers.RepeatedCompositeFieldContainer[Step]
    text: str
    def __init__(self, lease: _Optional[str] = ..., steps: _Optional[_Iterable[_Union[Step, _Mapping]]] = ..., text: _Optional[str] = ..., for_ms: _Optional[int] = ...) -> None: ...

class OrdersRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class Part(_message.Message):
    __slots__ = ["actuator", "aliases", "bearing", "compact", "full", "interfaces", "kind", "slots"]
    ACTUATOR_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    BEARING_FIELD_NUMBER: _ClassVar[int]
    COMPACT_FIELD_NUMBER: _ClassVar[int]
    FULL_FIELD_NUMBER: _ClassVar[int]
    INTERFACES_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    actuator: bool
    aliases: _containers.RepeatedScalarFieldContainer[str]
    bearing: float
    compact: str
    full: str
    interfaces: _containers.RepeatedScalarFieldContainer[str]
    kind: str
    slots: _containers.RepeatedCompositeFieldContainer[Slot]
    def __init__(self, full: _Optional[str] = ..., compact: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., kind: _Optional[str] = ..., interfaces: _Optional[_Iterable[str]] = ..., actuator: bool = ..., slots: _Optional[_Iterable[_Union[Slot, _Mapping]]] = ..., bearing: _Optional[float] = ...) -> None: ...

class Picture(_message.Message):
    __slots__ = ["at_us", "calibration", "data", "exposure_s", "format", "gain", "height", "missed", "reason", "seq", "width"]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    EXPOSURE_S_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    GAIN_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    calibration: Calibration
    data: bytes
    exposure_s: float
    format: str
    gain: float
    height: int
    missed: int
    reason: str
    seq: int
    width: int
    def __init__(self, format: _Optional[str] = ..., width: _Optional[int] = ..., height: _Optional[int] = ..., data: _Optional[bytes] = ..., seq: _Optional[int] = ..., at_us: _Optional[int] = ..., missed: _Optional[int] = ..., exposure_s: _Optional[float] = ..., gain: _Optional[float] = ..., calibration: _Optional[_Union[Calibration, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class PlayBegun(_message.Message):
    __slots__ = ["clip", "left_out", "span_ms"]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    SPAN_MS_FIELD_NUMBER: _ClassVar[int]
    clip: str
    left_out: _containers.RepeatedCompositeFieldContainer[LeftOut]
    span_ms: int
    def __init__(self, clip: _Optional[str] = ..., span_ms: _Optional[int] = ..., left_out: _Optional[_Iterable[_Union[LeftOut, _Mapping]]] = ...) -> None: ...

class PlayEnded(_message.Message):
    __slots__ = ["at_ms", "by", "clip", "left_out", "outcome", "reason"]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    LEFT_OUT_FIELD_NUMBER: _ClassVar[int]
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    by: str
    clip: str
    left_out: _containers.RepeatedCompositeFieldContainer[LeftOut]
    outcome: str
    reason: str
    def __init__(self, clip: _Optional[str] = ..., outcome: _Optional[str] = ..., reason: _Optional[str] = ..., by: _Optional[str] = ..., at_ms: _Optional[int] = ..., left_out: _Optional[_Iterable[_Union[LeftOut, _Mapping]]] = ...) -> None: ...

class PlayProgress(_message.Message):
    __slots__ = ["at_ms", "begun", "ended"]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    begun: PlayBegun
    ended: PlayEnded
    def __init__(self, begun: _Optional[_Union[PlayBegun, _Mapping]] = ..., at_ms: _Optional[int] = ..., ended: _Optional[_Union[PlayEnded, _Mapping]] = ...) -> None: ...

class PlayRequest(_message.Message):
    __slots__ = ["clip", "ignore", "lease", "loops", "mood", "trigger"]
    CLIP_FIELD_NUMBER: _ClassVar[int]
    IGNORE_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    LOOPS_FIELD_NUMBER: _ClassVar[int]
    MOOD_FIELD_NUMBER: _ClassVar[int]
    TRIGGER_FIELD_NUMBER: _ClassVar[int]
    clip: str
    ignore: _containers.RepeatedScalarFieldContainer[str]
    lease: str
    loops: int
    mood: str
    trigger: str
    def __init__(self, clip: _Optional[str] = ..., trigger: _Optional[str] = ..., mood: _Optional[str] = ..., loops: _Optional[int] = ..., ignore: _Optional[_Iterable[str]] = ..., lease: _Optional[str] = ...) -> None: ...

class Pose(_message.Message):
    __slots__ = ["theta", "x", "y"]
    THETA_FIELD_NUMBER: _ClassVar[int]
    X_FIELD_NUMBER: _ClassVar[int]
    Y_FIELD_NUMBER: _ClassVar[int]
    theta: float
    x: float
    y: float
    def __init__(self, x: _Optional[float] = ..., y: _Optional[float] = ..., theta: _Optional[float] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ["begun", "ended", "pose"]
    BEGUN_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    POSE_FIELD_NUMBER: _ClassVar[int]
    begun: Begun
    ended: Ended
    pose: Pose
    def __init__(self, begun: _Optional[_Union[Begun, _Mapping]] = ..., pose: _Optional[_Union[Pose, _Mapping]] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ...) -> None: ...

class ReadRequest(_message.Message):
    __slots__ = ["names"]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Reading(_message.Message):
    __slots__ = ["age_us", "changed", "part", "slot", "unit", "value"]
    AGE_US_FIELD_NUMBER: _ClassVar[int]
    CHANGED_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    SLOT_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    age_us: int
    changed: bool
    part: str
    slot: str
    unit: str
    value: Value
    def __init__(self, part: _Optional[str] = ..., slot: _Optional[str] = ..., unit: _Optional[str] = ..., value: _Optional[_Union[Value, _Mapping]] = ..., changed: bool = ..., age_us: _Optional[int] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ["lease"]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: str
    def __init__(self, lease: _Optional[str] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class RenewRequest(_message.Message):
    __slots__ = ["lease"]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    lease: str
    def __init__(self, lease: _Optional[str] = ...) -> None: ...

class SayRequest(_message.Message):
    __slots__ = ["language", "pitch", "plain", "speed", "text"]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    PITCH_FIELD_NUMBER: _ClassVar[int]
    PLAIN_FIELD_NUMBER: _ClassVar[int]
    SPEED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    language: str
    pitch: float
    plain: bool
    speed: float
    text: str
    def __init__(self, text: _Optional[str] = ..., plain: bool = ..., language: _Optional[str] = ..., speed: _Optional[float] = ..., pitch: _Optional[float] = ...) -> None: ...

class ScreenRequest(_message.Message):
    __slots__ = ["format"]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    format: str
    def __init__(self, format: _Optional[str] = ...) -> None: ...

class ScreensRequest(_message.Message):
    __slots__ = ["format", "rate_hz"]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    format: str
    rate_hz: float
    def __init__(self, format: _Optional[str] = ..., rate_hz: _Optional[float] = ...) -> None: ...

class Setting(_message.Message):
    __slots__ = ["about", "fields", "name", "type", "unit", "value", "values"]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    FIELDS_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    about: str
    fields: _containers.RepeatedCompositeFieldContainer[Setting]
    name: str
    type: str
    unit: str
    value: _struct_pb2.Value
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., value: _Optional[_Union[_struct_pb2.Value, _Mapping]] = ..., type: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ..., unit: _Optional[str] = ..., about: _Optional[str] = ..., fields: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ...) -> None: ...

class SettingsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class SettingsResponse(_message.Message):
    __slots__ = ["settings", "version"]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    settings: _containers.RepeatedCompositeFieldContainer[Setting]
    version: int
    def __init__(self, settings: _Optional[_Iterable[_Union[Setting, _Mapping]]] = ..., version: _Optional[int] = ...) -> None: ...

class Slot(_message.Message):
    __slots__ = ["max", "min", "name", "type", "unit"]
    MAX_FIELD_NUMBER: _ClassVar[int]
    MIN_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    max: float
    min: float
    name: str
    type: str
    unit: str
    def __init__(self, name: _Optional[str] = ..., type: _Optional[str] = ..., unit: _Optional[str] = ..., min: _Optional[float] = ..., max: _Optional[float] = ...) -> None: ...

class SoundPiece(_message.Message):
    __slots__ = ["at_us", "data", "missed", "place", "rate", "said"]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    PLACE_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    SAID_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    data: bytes
    missed: int
    place: int
    rate: int
    said: str
    def __init__(self, rate: _Optional[int] = ..., data: _Optional[bytes] = ..., place: _Optional[int] = ..., at_us: _Optional[int] = ..., missed: _Optional[int] = ..., said: _Optional[str] = ...) -> None: ...

class SoundRequest(_message.Message):
    __slots__ = ["name", "stop", "volume"]
    NAME_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    VOLUME_FIELD_NUMBER: _ClassVar[int]
    name: str
    stop: bool
    volume: float
    def __init__(self, name: _Optional[str] = ..., stop: bool = ..., volume: _Optional[float] = ...) -> None: ...

class SoundsRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class SpeechProgress(_message.Message):
    __slots__ = ["at_ms", "ended", "state"]
    AT_MS_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    at_ms: int
    ended: PlayEnded
    state: str
    def __init__(self, state: _Optional[str] = ..., at_ms: _Optional[int] = ..., ended: _Optional[_Union[PlayEnded, _Mapping]] = ...) -> None: ...

class Statement(_message.Message):
    __slots__ = ["adaptive_s", "call", "name", "set", "speed", "time_s"]
    ADAPTIVE_S_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    SPEED_FIELD_NUMBER: _ClassVar[int]
    TIME_S_FIELD_NUMBER: _ClassVar[int]
    adaptive_s: float
    call: List
    name: str
    set: Value
    speed: float
    time_s: float
    def __init__(self, name: _Optional[str] = ..., set: _Optional[_Union[Value, _Mapping]] = ..., call: _Optional[_Union[List, _Mapping]] = ..., speed: _Optional[float] = ..., time_s: _Optional[float] = ..., adaptive_s: _Optional[float] = ...) -> None: ...

class Step(_message.Message):
    __slots__ = ["statements"]
    STATEMENTS_FIELD_NUMBER: _ClassVar[int]
    statements: _containers.RepeatedCompositeFieldContainer[Statement]
    def __init__(self, statements: _Optional[_Iterable[_Union[Statement, _Mapping]]] = ...) -> None: ...

class StopRequest(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class StopResponse(_message.Message):
    __slots__ = []
    def __init__(self) -> None: ...

class SubscribeRequest(_message.Message):
    __slots__ = ["names", "rate_hz"]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    rate_hz: float
    def __init__(self, names: _Optional[_Iterable[str]] = ..., rate_hz: _Optional[float] = ...) -> None: ...

class Value(_message.Message):
    __slots__ = ["list", "number", "text"]
    LIST_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    list: List
    number: float
    text: str
    def __init__(self, number: _Optional[float] = ..., text: _Optional[str] = ..., list: _Optional[_Union[List, _Mapping]] = ...) -> None: ...

class Values(_message.Message):
    __slots__ = ["at_us", "missed", "readings"]
    AT_US_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    READINGS_FIELD_NUMBER: _ClassVar[int]
    at_us: int
    missed: int
    readings: _containers.RepeatedCompositeFieldContainer[Reading]
    def __init__(self, at_us: _Optional[int] = ..., missed: _Optional[int] = ..., readings: _Optional[_Iterable[_Union[Reading, _Mapping]]] = ...) -> None: ...
