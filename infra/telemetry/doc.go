// Package telemetry is how a process of the cloud shows what it does: metrics for Prometheus, spans for any OpenTelemetry collector, and
// whether it is alive and ready. It knows requests, messages and statements; what a domain counts is handed to it as functions by the
// wiring.
//
// Names are kennel_<area>_<what>_<unit>. Labels are words from a fixed list (an endpoint's name, a kind of error, a species): never a thing
// id, an address or anything else a peer chooses, because each value costs memory here and in Prometheus for as long as it is kept.
//
// A trace begins on the robot: it makes a traceparent for each request (infra/api/traceparent) and the spans here continue under its trace id,
//
//	robot's request (trace id in its log)
//	└─ bridge jdocs/write     from the message's arrival to the answer
//	   └─ jdocs/write         the handler
//	      └─ postgres with    each statement
//
// With traces.endpoint empty nothing is recorded and no statement is looked at twice.
package telemetry
