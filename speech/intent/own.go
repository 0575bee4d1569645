package intent

import "strings"

// ownPrefix begins the names of intents of ours, which the original robots do not have.
const ownPrefix = "kennel_"

// IsOwn reports whether a name is of an intent of ours.
func IsOwn(name string) bool { return strings.HasPrefix(name, ownPrefix) }

// Own are our own intents, in English. UserIntent and Cloud of their Match are their name.
var Own = []Custom{
	{Name: "kennel_lookup", Phrases: []string{"(raise|lift) your head", "head up"}}, // "look up" is imperative_lookatme
	{Name: "kennel_lookdown", Phrases: []string{"look down", "lower your head", "head down"}},
	{Name: "kennel_battery", Phrases: []string{"(how is|check) your battery", "how full is your battery", "battery [level]"}},
}
