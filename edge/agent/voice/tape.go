package voice

import (
	"encoding/binary"
	"time"

	"kennel/edge/sound"
)

// Lengths of sound, own defaults. Original robots send pieces of 120 ms (peer facts, section 1); an answer comes half a piece later.
const (
	pieceSamples = sound.Rate * 60 / 1000 // of one message to the cloud
	tapeChunks   = 200                    // 2 s: what is kept while no person speaks to the robot
	beforeButton = 500 * time.Millisecond // people begin to speak while they press
	beforeWake   = 200 * time.Millisecond // before the end of the wake word
	// maxSent is how many pieces wait for a slow network: the tape, and all until the deadline.
	maxSent = tapeChunks*sound.ChunkSamples/pieceSamples + int(Deadline/time.Second)*sound.Rate/pieceSamples + 2
)

// tape holds the newest sound. The zero value is empty.
type tape struct {
	chunks [tapeChunks]sound.Chunk
	n      int // ever put
}

func (t *tape) put(c *sound.Chunk) {
	t.chunks[t.n%tapeChunks] = *c
	t.n++
}

// since returns the samples that came after at, CLOCK_MONOTONIC, oldest first, as far as they are kept.
func (t *tape) since(at time.Duration) (out []int16) {
	for i := max(0, t.n-tapeChunks); i < t.n; i++ {
		if c := &t.chunks[i%tapeChunks]; c.At > at {
			out = append(out, c.Samples[:]...)
		}
	}
	return out
}

// erase forgets all sound.
func (t *tape) erase() { *t = tape{} }

// pieces cuts samples into messages. The zero value is empty.
type pieces struct{ rest []byte }

// add appends samples and calls send with each piece that is full.
func (p *pieces) add(samples []int16, send func([]byte)) {
	for _, s := range samples {
		p.rest = binary.LittleEndian.AppendUint16(p.rest, uint16(s))
		if len(p.rest) == 2*pieceSamples {
			send(p.rest)
			p.rest = make([]byte, 0, 2*pieceSamples)
		}
	}
}
