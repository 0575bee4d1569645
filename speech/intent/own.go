package intent

import (
	"maps"
	"slices"
	"strings"
)

// ownPrefix begins the names of intents of ours, which the original robots do not have.
const ownPrefix = "kennel_"

// IsOwn reports whether a name is of an intent of ours.
func IsOwn(name string) bool { return strings.HasPrefix(name, ownPrefix) }

// Own are our own intents. UserIntent and Cloud of their Match are their name.
var Own = slices.Concat(own([]string{"en-US", "en-GB", "en-AU"}, map[string][]string{
	"kennel_lookup":   {"(raise|lift) your head", "head up"}, // "look up" is imperative_lookatme
	"kennel_lookdown": {"look down", "lower your head", "head down"},
	"kennel_battery":  {"(how is|check) your battery", "how full is your battery", "battery [level]"},
}), own([]string{"de-DE"}, map[string][]string{
	"kennel_lookup":   {"(heb|nimm) [deinen|den] kopf [hoch|an]", "kopf hoch"},
	"kennel_lookdown": {"(schau|sieh|guck) (nach unten|runter|auf den boden)", "(senk|senke|nimm) [deinen|den] kopf [runter]", "kopf runter"},
	"kennel_battery":  {"wie (voll|leer|geladen) ist [dein|der|deine|die] (akku|batterie)", "wie (ist|steht es um) (dein|deinen|der|den) (akku|akkustand)", "(akkustand|ladestand|akku)", "(prüf|prüfe|überprüfe) [deinen|den] (akku|akkustand)"},
}))

func own(languages []string, phrases map[string][]string) (all []Custom) {
	for _, name := range slices.Sorted(maps.Keys(phrases)) {
		all = append(all, Custom{Name: name, Phrases: phrases[name], Languages: languages})
	}
	return all
}
