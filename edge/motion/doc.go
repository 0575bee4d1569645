// Package motion moves a body with two treads and some joints: it turns "drive this path" and "head to 20 degrees" into duties of motors.
//
//	path ─► follower ─┐ v, w                        ┌─► joint: homing, profile, position loop ─┐
//	drive wheels ─────┴─► kinematics ─► tread loop ─┤                                          ├─► guard ─► gate ─► body.Act
//	                          ▲                     └─► one loop a tread ──────────────────────┘
//	encoders, gyro ─► odometry ─► pose
//
// It is a pure step: time is an argument, no clock, no lock, no allocation, and the same inputs give the same bits (VEC-MOT-05: one step
// per frame of the body). A Motion belongs to the goroutine of the real-time loop; its commands are called there too, from the mailbox.
//
// Units are SI. A joint's angle counts as the body's wire does: a raised head and a raised lift are positive. (In the structure tree positive
// pitch is nose down; vectordriver converts, given the angle that JointReport.Home names.)
//
// Safety. The gate comes last. While a Reason to stop holds, and in the very step that first shows it, the motors it concerns get
// duty 0, and what they were doing is dropped: nothing moves again until a new command. Cliff and Lifted concern the treads, the others
// everything. While a cliff is seen the treads turn only away from it (VEC-IO-22, VEC-MCT-15). Speed, acceleration and the ends of travel
// are planned with some headroom below the limit, because a real motor follows its plan only nearly.
//
// Doubts, each a setting or a choice made here:
//   - How long a list of segments may be: VEC-MOT-09 says 128, VEC-MCT-02 says 64. The table holds 128 and Config.Segments may ask for less.
//   - The printed signs of the arc are those of a clockwise turn; ours are VEC-MOT-10's: left = w(r - width/2), right = w(r + width/2).
//   - A joint homes because a command needs it to, never on its own: otherwise a joint would move unasked after a Halt.
//     For calibration at start (VEC-MOT-07), command it at start.
//   - Tucking lift and head in a fall, which the source allows, is left out: nothing moves in a fall. A fall from a table lasts
//     0.35 s, of which detecting it takes 0.1 s. A lift that accelerates at 10 rad/s² comes down only 0.3 of its 1 rad in the rest, and meets
//     the floor with its motor on.
//   - Gains, headroom, lag, friction, margins and all times without a row are own defaults (vector.go), to be measured on a robot.
package motion
