// Package voice takes a person's call, by the button or the wake word, to an intent of the robot.
//
//	miclink ─► sound.Pipeline ─► tape ─┐
//	button, wake word ─► machine ──────┴► Cloud.Listen ─► intent.Map ─► machine ─► inbox, programs on the robot
//
// machine is the order of things (VEC-INT-12), without clock, network and sound. Voice is the rest around it. Sound is kept for two seconds in
// memory, for what was said before the call was noticed, and nowhere else. Words and sound never reach a log or an event.
package voice
