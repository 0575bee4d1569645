// Types of kennel.mjs. SI units; angles in radians, times in seconds.

export class KennelError extends Error {
  readonly code: string;
}
/** The robot is not heard any longer. */
export class Lost extends KennelError {}
/** A motion did not end as ordered. */
export class NotDone extends KennelError {
  readonly ended: Ended;
  readonly outcome: string;
  readonly reasons: string[];
  readonly words: string;
}

/** The file of a program; a browser needs address and token. */
export interface Place {
  address: string;
  token: string;
  certificate?: string;
  thing?: string;
  name?: string;
}

export function connect(place?: string | Place): Promise<Robot>;

export type Value = number | boolean | string | Value[];
export interface Pose {
  x: number;
  y: number;
  theta: number;
}
export interface Ended {
  outcome: string;
  reasons: string[];
  words: string;
  moved: number;
  of: number;
  unit: string;
  pose: Pose | null;
  note: string;
}
export interface Progress {
  begun?: { note: string };
  pose?: Pose;
}
export interface Ending {
  deadline?: number;
  signal?: AbortSignal;
}
export interface Manner extends Ending {
  time?: number;
  speed?: number;
  adaptive?: number;
}
/** OrderRequest of infra/api/robotpb/robot.proto, as JSON. */
export interface Order {
  text?: string;
  steps?: { statements: object[] }[];
  for_ms?: number;
}

declare class Mover {
  go(metres: number, options?: Ending): Promise<Ended>;
  turn(radians: number, options?: Ending): Promise<Ended>;
  set(name: string, value: Value, options?: Manner): Promise<Ended>;
  call(name: string, args?: Value[], options?: Manner): Promise<Ended>;
  do(text: string, options?: { signal?: AbortSignal }): Promise<Ended>;
  play(animation: Animation, tell?: (progress: PlayProgress) => void, options?: { signal?: AbortSignal }): Promise<PlayEnded>;
  order(request: Order, tell?: (progress: Progress) => void, options?: { signal?: AbortSignal }): Promise<Ended>;
}

export class Robot extends Mover {
  close(): Promise<void>;
  describe(): Promise<Description>;
  ahead(): Promise<string>;
  stop(): Promise<void>;
  read(name: string): Promise<number | string>;
  values(...names: string[]): Promise<Values>;
  subscribe(names: string | string[], options?: { rate?: number; signal?: AbortSignal }): AsyncGenerator<Values>;
  events(names?: string | string[], options?: { since?: number; signal?: AbortSignal }): AsyncGenerator<Event>;
  orders(options?: { signal?: AbortSignal }): AsyncGenerator<OrderReport>;
  picture(options?: { format?: Format; quality?: number }): Promise<Picture>;
  pictures(options?: { format?: Format; quality?: number; rate?: number; signal?: AbortSignal }): AsyncGenerator<Picture>;
  animations(): Promise<AnimationList>;
  say(text: string, options?: { plain?: boolean; language?: string; speed?: number; pitch?: number; signal?: AbortSignal }, tell?: (progress: SpeechProgress) => void): Promise<PlayEnded>;
  sound(name: string, options?: { volume?: number; signal?: AbortSignal }, tell?: (progress: SpeechProgress) => void): Promise<PlayEnded>;
  hush(): Promise<void>;
  sounds(options?: { signal?: AbortSignal }): AsyncGenerator<Piece>;
  listen(options?: { signal?: AbortSignal }): AsyncGenerator<Heard>;
  screen(options?: { format?: ScreenFormat }): Promise<Screen>;
  screens(options?: { format?: ScreenFormat; rate?: number; signal?: AbortSignal }): AsyncGenerator<Screen>;
  settings(): Promise<Record<string, unknown>>;
  describeSettings(): Promise<Setting[]>;
  change(settings: Record<string, unknown>): Promise<Record<string, unknown>>;
  claim(parts: string | string[], options?: { time?: number; reason?: string }): Promise<Lease>;
}

export class Lease extends Mover {
  release(): Promise<void>;
}

export class Values {
  readonly at: number;
  readonly missed: number;
  readonly readings: Reading[];
  get(name: string): number | string | null | undefined;
}
export interface Reading {
  name: string;
  part: string;
  slot: string;
  unit: string;
  value: number | string | null;
  changed: boolean;
  age: number | null;
}
/** One of clip, trigger and mood. */
export interface Animation {
  clip?: string;
  trigger?: string;
  mood?: string;
  loops?: number;
  ignore?: ("head" | "lift" | "body")[];
}
export interface AnimationList {
  animations: { name: string; span_ms: number; tracks: string[] }[];
  triggers: string[];
  moods: { name: string; trigger: string; motion: string }[];
  lacks: string[];
  sounds: string[];
}
export interface SpeechProgress {
  state?: "generating" | "ready" | "playing";
  at_ms?: number;
}
/** A piece of what the robot plays: data has two bytes a sample, signed, the low one first. */
export interface Piece {
  rate: number;
  data: Uint8Array;
  place: number;
  at: number;
  missed: number;
  said: string | null;
}
/** A piece of what the robot hears: data has two bytes a sample, signed, the low one first. Without data, reason says why. */
export interface Heard {
  rate: number;
  data: Uint8Array;
  at: number;
  missed: number;
  voice: boolean;
  bearing: number | null;
  own: boolean;
  reason: string;
}
export interface LeftOut {
  track: string;
  reason: string;
}
export interface PlayProgress {
  begun?: { clip: string; span_ms: number; left_out: LeftOut[] };
  at_ms?: number;
}
export interface PlayEnded {
  clip: string;
  outcome: string;
  reason: string;
  by: string;
  at_ms: number;
  left_out: LeftOut[];
}
export type ScreenFormat = "png" | "jpeg" | "rgb" | "rgb565";
/** What the robot's display showed. */
export interface Screen {
  format: ScreenFormat;
  data: Uint8Array;
  width: number;
  height: number;
  seq: number;
  at: number;
  missed: number;
}
export type Format = "jpeg" | "rgb" | "grey8";
/** What the robot's camera saw: a point x to the right of the camera, y below and z before it is at (fx*x/z + cx, fy*y/z + cy). */
export interface Picture {
  format: Format;
  data: Uint8Array;
  width: number;
  height: number;
  seq: number;
  at: number;
  missed: number;
  exposure: number;
  gain: number;
  fx: number;
  fy: number;
  cx: number;
  cy: number;
}
export interface Event {
  seq: number;
  at: number;
  name: string;
  warning: boolean;
  numbers: number[];
  texts: string[];
}
export interface OrderReport {
  seq: number;
  order: number;
  at: number;
  program: string;
  steps: Order["steps"];
  for_ms: number;
  ended: Ended | null;
}
export interface Setting {
  name: string;
  value: unknown;
  type: string;
  values: string[];
  unit: string;
  about: string;
  fields: Setting[];
}
export interface Description {
  thing: string;
  species: string;
  name: string;
  model: string;
  firmware: string;
  software: string;
  rights: string[];
  limits: { rate_hz: number; lease_ms: number; leases: number; steps: number; statements: number };
  parts: {
    full: string;
    compact: string;
    aliases: string[];
    kind: string;
    interfaces: string[];
    actuator: boolean;
    bearing?: number;
    slots: { name: string; type: string; unit: string; min?: number; max?: number }[];
  }[];
}
