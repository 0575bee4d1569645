// Package gateway is where programs reach a robot: the calls of kennel.robot.v1 (infra/api/robotpb) for every species, on one TLS port.
//
//	gRPC, h2 ───────────────┐                       ┌─ peer "gateway": tree, values, subscriptions, events
//	POST /v1/do, JSON ──────┤ calls: token, right,  │
//	WebSocket /v1/order ────┘ limits, handler ──────┼─ peer "gateway: NAME" for each lease and order: robotd says who moves what
//	                                                └─ pictures, by one connection for all who look (package sight)
//
// One table lists the calls, and all three doors are made of it. Who calls is told by a client token, which its owner made; what it may do by the
// token's rights. A lease is a connection to robotd of its own, so that robotd arbitrates between clients as between programs of the robot, and what
// a client moves ends with its lease, with its time, or with agentd.
package gateway
