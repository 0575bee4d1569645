// Package faultcode holds the numbered faults of the robot and their published texts (annex F of the technical reference,
// VEC-FLT-01 and 02). Every failure that a program must report maps to a code here and nowhere else.
//
// The number spaces overlap: 16 is a playpen result and a status of the body-board's firmware update, 1 a start-up status and a playpen
// result. So a code is looked up in a domain. 914 and 915 differ (did not start, hangs), as do 916 and 917; the source names two services for
// 917, of which vic-anim is the one that agrees with the codes around it.
package faultcode

import (
	"maps"
	"slices"
	"strconv"
)

// Code is a numbered fault. 0 is no fault, except in the Playpen domain.
type Code uint16

// Domain is a number space. The zero value is System, the one whose codes the robot shows on its display.
type Domain uint8

// The number spaces of annex F.
const (
	System  Domain = iota // faults, shutdown reasons, update status
	Playpen               // results of the factory test
	Rampost               // status of the body-board's firmware update at start
)

var domainNames = [...]string{"system", "playpen", "rampost"}

func (d Domain) String() string {
	if int(d) < len(domainNames) {
		return domainNames[d]
	}
	return "domain(" + strconv.Itoa(int(d)) + ")"
}

// Class is the subject of a code, by its range.
type Class uint8

// The classes. Of 001 to 099 only 1 to 10 are start-up, the rest belong to the factory test.
const (
	Unclassed Class = iota
	StartUp
	Factory
	BodyBoard
	Update
	Process
	Shutdown
	SelfCheck
	PlaypenResult
	FirmwareStatus
)

var classNames = [...]string{"unclassed", "start-up", "factory", "body-board", "update", "process", "shutdown", "self-check", "playpen", "rampost"}

func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "class(" + strconv.Itoa(int(c)) + ")"
}

// Reach says which of the robot's services a fault stops (VEC-FLT-06).
type Reach uint8

// The reaches.
const (
	NoService    Reach = iota // the robot keeps running
	OneService                // the service that the code names
	EveryService              // all of them: the check at their start is repeated, or the body board cuts the power
)

var reachNames = [...]string{"no service", "one service", "every service"}

func (r Reach) String() string {
	if int(r) < len(reachNames) {
		return reachNames[r]
	}
	return "reach(" + strconv.Itoa(int(r)) + ")"
}

// reaches are the ranges of faults that stop services. The source says only that there is such a table: the first three lines are the
// specification's, the last is our own for the services that end in 920 to 929.
var reaches = [...]struct {
	first, last Code
	reach       Reach
}{{800, 899, EveryService}, {980, 999, EveryService}, {910, 919, OneService}, {920, 929, OneService}}

// Stops returns which services the handler stops for c, a fault of the System domain (VEC-FLT-06).
func (c Code) Stops() Reach {
	for _, r := range reaches {
		if c >= r.first && c <= r.last {
			return r.reach
		}
	}
	return NoService
}

// Text returns the published text of c in the System domain, or its number if it has none.
func (c Code) Text() string { return System.Text(c) }

// String returns the number as the display shows it, with three digits.
func (c Code) String() string {
	s := strconv.Itoa(int(c))
	for len(s) < 3 {
		s = "0" + s
	}
	return s
}

// Class returns the class of c in the System domain.
func (c Code) Class() Class { return System.Class(c) }

// Text returns the published text of c in d, or "fault " and its number if annex F does not list it.
func (d Domain) Text(c Code) string {
	if t, ok := d.table()[c]; ok {
		return t
	}
	return "fault " + c.String()
}

// Known reports whether annex F lists c in d.
func (d Domain) Known(c Code) bool { _, ok := d.table()[c]; return ok }

// Codes returns the listed codes of d in ascending order.
func (d Domain) Codes() []Code { return slices.Sorted(maps.Keys(d.table())) }

// Class returns the class of c in d by the published ranges, listed or not.
func (d Domain) Class(c Code) Class {
	switch d {
	case Playpen:
		return PlaypenResult
	case Rampost:
		return FirmwareStatus
	case System:
	default:
		return Unclassed
	}
	switch {
	case c == 0 || c > 999:
		return Unclassed
	case c <= 10:
		return StartUp
	case c < 100:
		return Factory
	case c < 200:
		return BodyBoard
	case c < 220:
		return Update
	case c < 300:
		return Process
	case c >= 700 && c <= 705:
		return Shutdown
	case c < 800:
		return Factory
	}
	return SelfCheck
}

func (d Domain) table() map[Code]string {
	switch d {
	case System:
		return systemTexts
	case Playpen:
		return playpenTexts
	case Rampost:
		return rampostTexts
	}
	return nil
}
