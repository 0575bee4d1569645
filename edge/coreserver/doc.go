// Package coreserver answers the peers of the real-time core (edge/corelink): it turns their messages into orders of the control loop
// (edge/control), brings results and events back, and reports what the loop publishes. It runs outside the loop: what it allocates and how long
// it takes is nothing to the loop. It knows a body by its tree and its control.Model alone.
//
//	Claim, Do, Stop, ...  ─► Order ─► control loop ─► Result ─► Reply, then Ended
//	                                  control loop ─► Event  ─► Event
//	GetTree, GetValues    ─► board                 ─► Tree, Values
//	Hold, Unhold          ─► data/kennel/hold.json, Halt, Resume
//
// A peer that owns an actuator is asked all the time whether it still listens. One that does not answer for 0.4 s loses what it holds, as one that
// leaves does: it could not stop what it began.
package coreserver
