package palette

import (
	_ "embed"
	"encoding/json"
	"sync"
)

//go:embed stored.json
var stored []byte

// Stored returns the numbers under which bodies whose speaker plays nothing but its own memory have Kennel's sounds, by the names of events. Package
// soundset of the AmigoBot writes such a memory. Callers do not change the map.
var Stored = sync.OnceValue(func() map[string]int {
	var m map[string]int
	if err := json.Unmarshal(stored, &m); err != nil {
		panic(err) // a file of our own, which the tests read
	}
	return m
})
