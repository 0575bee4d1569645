// Package registry is the fleet as the cloud knows it: which things exist, which are present, what each last said of itself, and why one
// is not well.
//
// Presence is a lease (infra/api/status): a robot is present until its lease runs out after the last status received, by the clock of
// the database, the one clock all cloud processes share. Lease.Next is that rule, a pure function; HandleStatus applies it with
// optimistic locking, so that any number of processes may handle one robot's messages in any order. Run turns expired leases absent
// within a second and feeds Watch; every process runs it, none is special.
//
// Steps are what happened on a robot's way to the fleet: registered, secret, certificate, broker login. Others record them (Record),
// one row per outcome, and Doctor reads them together with the last status into an ordered list of checks: what is wrong, since when,
// which peer and version, and what to do (the words VEC-CLD-07).
//
//	registry.go  Thing, Query, Service          lease.go   the presence rule
//	status.go    HandleStatus                   steps.go   activation steps
//	feed.go      Run, Watch                     doctor.go  checks and advice
package registry
