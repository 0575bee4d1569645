// Package telemetry exposes the work of a cloud process: metrics for Prometheus, spans for any OpenTelemetry collector, and whether it is
// alive and ready. It knows requests, messages and statements; the wiring passes it the counts of domains as functions.
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
// With traces.endpoint empty no trace is recorded and statements cost nothing extra.
package telemetry
