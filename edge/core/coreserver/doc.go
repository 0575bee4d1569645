// Package coreserver answers the peers of the real-time core (edge/core/corelink): it turns their messages into orders of the control loop
// (edge/core/control), brings results and events back, and reports what the loop publishes. It runs outside the loop: its allocations and
// its time do not matter to the loop. It knows a body by its tree and its control.Model alone.
//
//	Claim, Do, Stop, ...  ─► Order ─► control loop ─► Result ─► Reply, then Ended
//	                                  control loop ─► Event  ─► Event
//	GetTree, GetValues    ─► board                 ─► Tree, Values
//	Hold, Unhold          ─► Halt, Resume; the journal and the note of a hold
//
// A peer that owns an actuator is pinged continuously. If it does not answer for 0.4 s it loses its claims, as if it had left: it could not
// stop the motions that it began.
package coreserver
