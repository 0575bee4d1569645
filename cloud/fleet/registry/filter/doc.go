// Package filter is the little language that selects robots of a fleet, the same in an address, on a command line and in a saved cohort:
//
//	presence:offline version:<2.1 -tag:lab,demo battery:<3.6 seen:>3d 00e2
//
// A filter is terms with spaces between; a robot is selected if all of them hold. A term is a word, or key:value; a minus before it turns
// it round; values with commas between are alternatives. Text with spaces, commas or quotes is written in "double quotes", with \ before a
// quote or backslash.
//
//	word                 part of its id, its owner's name for it, a tag, a version or a model; any case
//	presence:            present or online, absent or offline, calls (an original robot, which keeps no connection), never (seen)
//	species:             its word, such as vic (infra/thing has the list)
//	id:                  a thing id; a * at the end matches anything
//	version:             of the release it runs: 2.0.1.6076, a part with *, a comparison <2.1; none
//	agent: body:         of its agent, of its body's firmware; likewise
//	model:               of its body
//	tag:                 a tag; none, any
//	cohort:              those of a saved filter
//	battery:             volts in a comparison, such as <3.6; or low, nominal, full, unknown (VEC-PWR-02). No body reports per cent.
//	problem:             kind of a problem it has (status.Kinds), or kind/code such as fault/914; none, any
//	cert:                time to the end of its certificate: <7d, >30d; expired, none
//	seen: since:         how long ago it was last seen, came or went: >3d, <1h; or when: <2026-11-01. A present robot is seen now.
//	created:             when it was registered; likewise
//	loop:                its real-time loop: ok, late, none; or the p99 of its lateness in a comparison, such as >500us
//	name:                part of its owner's name for it
//	owner:               part of its owner's e-mail; for those alone who may see it
//
// A filter has a cost, which MaxCost bounds: each word, name and owner costs 8, every other value 1, a cohort what its filter costs. Postgres works
// on one question for 5 s at most.
//
// Times are numbers with s, m, h, d or w. Parse and String are a pair. Where a filter is a question to Postgres, package registrypg
// writes it; Match is the same rule for one robot in memory, and a test holds the two together.
package filter
