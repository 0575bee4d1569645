// Package vectorsdk lets programs for the original Vector drive a Kennel robot: it serves the interface of infra/api/vectorpb on the gateway's port, by
// gRPC and as JSON over HTTPS.
//
//	Python SDK, Go SDK, C# ─ gRPC ─────────────┐                   ┌─ control: who may move the robot, by connection
//	curl, apps ─ POST /v1/battery_state, JSON ─┤ table of calls ───┼─ motion: orders to robotd under the holder's claims
//	                                           │ token, right      └─ state, events: what robotd reports, in the original's units
//	                                           └─ absent: calls whose part this robot does not have yet say so
//
// It is a facade (edge/gateway.Facade, ADR 0050). The client tokens, limits and connections to robotd are the gateway's, and the robot's claims decide who
// moves it. Everything above the original's wire is in SI units; this package converts to mm, mm/s and ms, and turns the head's sign: up is positive here.
//
// Where the original differs in a way that a program can see:
//   - A call whose part does not exist yet ends with Unimplemented (HTTP 501). None answers success without doing it.
//   - A stream ends with Unavailable when the robot's core is lost, so a program hears that the robot died.
//   - The acceleration of a head, a lift or a way is the body's own; only DriveWheels takes one.
package vectorsdk
