package das

import (
	"encoding/json"
	"time"

	"kennel/infra/thing"
)

// RawBatch is one batch as it came, inside a raw object.
type RawBatch struct {
	Thing    thing.ID
	Received time.Time
	Payload  []byte
}

type rawHeader struct {
	Thing    thing.ID  `json:"thing"`
	Received time.Time `json:"received"`
	Bytes    int       `json:"bytes"`
}

// AppendRaw appends b to a raw object: a line of JSON that says whose and how long, the payload, a newline.
func AppendRaw(dst []byte, b RawBatch) []byte {
	head, err := json.Marshal(rawHeader{b.Thing, b.Received.UTC(), len(b.Payload)})
	if err != nil {
		panic(err) // of plain fields; only a year beyond 9999 could fail, and the time is our own
	}
	dst = append(append(dst, head...), '\n')
	return append(append(dst, b.Payload...), '\n')
}
