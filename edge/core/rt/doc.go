// Package rt is the real-time core: one goroutine reads the body, runs a table of tasks and writes the body, once per step.
//
//	commands ──► mailbox ─┐                        ┌─► Snapshot (each step)
//	                      ▼                        │
//	        Read ──► lateness ──► tasks ──► Write ─┴─► Stats (about each second)
//
// Pace. A body with its own rhythm paces the loop: one step per frame (Vector: 5.12 ms, VEC-MOT-05). Any other gets absolute deadlines
// of 5 ms. A late step skips whole periods and counts them; it never runs two in a row to catch up.
//
// Time. Tasks get the time in their Frame. Step itself reads the clock only to measure how long it took; no decision hangs on that, so a
// simulation is the loop's Clock and a run repeats.
//
// Lateness is how long after its due time a step began. With deadlines of our own the due time is the deadline. With the body's rhythm it is
// an estimate (rhythm.go): the earliest arrivals of the last frames, continued at the measured period. What it shows is therefore the
// sum of the body's own jitter, the port and the scheduler; a constant delay of all frames is not visible in it.
//
// Measurements. A step may be late, and the next one soon after it; what divides a way by a time takes Frame.Taken, which follows the body's count of
// its frames and its measured period, and not when they were read.
//
// Others. Nothing in a step allocates, locks, logs or waits for another goroutine. Post leaves a command in a mailbox of fixed size; a
// full one refuses the new command and counts it. Halt and Shutdown have a place of their own and are never refused. Snapshots and statistics leave
// through triple buffers: the loop always has one to write to, a reader always gets the newest whole one.
//
// Recording. A Tape takes down what comes into each step and what comes out, in a ring that another goroutine empties; Replay runs the same
// tasks on it again and compares them bit by bit. What a task is told by others than body and mailbox it takes through Tape.Input.
// A recording of one processor is replayed on another as long as neither fuses products and sums: amd64 and ARM v7 do not, arm64 does, in the
// standard library's functions too.
//
// Safety. Motors are 0 unless a task sets them in this very step. They are forced to 0 while halted, while the body is silent for longer than
// StaleAfter and in the first step after such a gap (VEC-BODY-33). Any way out of Run, a panic of a task included, halts the body first. A
// panic in another goroutine ends the process without that: then the body hears nothing any more and its own watchdog stops it
// (Vector: power is cut after 200 frames, 1.024 s, VEC-WDOG-01).
package rt
