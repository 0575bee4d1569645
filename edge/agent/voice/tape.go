package voice

import (
	"encoding/binary"
	"time"

	"kennel/edge/mic"
)

// Lengths of sound, own defaults. Original robots send pieces of 120 ms (peer facts, section 1); an answer comes half a piece later.
const (
	pieceSamples = mic.Rate * 60 / 1000   // of one message to the cloud
	tapeChunks   = 200                    // 2 s: what is kept while no person speaks to the robot
	beforeButton = 500 * time.Millisecond // people begin to speak while they press
	beforeWake   = 50 * time.Millisecond  // before the end of the wake word
	// The end of the wake word is found up to 0.3 s early, and fades; the cloud would take what is left of it before a pause for the whole sentence. So what follows
	// is looked at for that long, and for the least pause that is no consonant.
	nameEnds   = 400*time.Millisecond + leastPause
	leastPause = 120 * time.Millisecond
	quiet      = 300.0 // times less power than the loudest of the last second: 25 dB
	// maxSent is how many pieces wait for a slow network: the tape, and all until the deadline.
	maxSent = tapeChunks*mic.ChunkSamples/pieceSamples + int(Deadline/time.Second)*mic.Rate/pieceSamples + 2
)

// tape holds the newest sound. The zero value is empty.
type tape struct {
	chunks [tapeChunks]mic.Chunk
	n      int // ever put
}

func (t *tape) put(c *mic.Chunk) {
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

// pause returns the end of the last pause between from and to; from if there is none.
func (t *tape) pause(from, to time.Duration) time.Duration {
	var power [tapeChunks]float64
	loudest := 0.0
	first := max(0, t.n-tapeChunks)
	for i := first; i < t.n; i++ {
		c := &t.chunks[i%tapeChunks]
		if c.At <= from-time.Second || c.At > to {
			continue
		}
		for _, v := range c.Samples {
			power[i%tapeChunks] += float64(v) * float64(v)
		}
		loudest = max(loudest, power[i%tapeChunks])
	}
	end, since := from, from
	for i := first; i < t.n; i++ {
		c := &t.chunks[i%tapeChunks]
		switch {
		case c.At <= from || c.At > to:
		case power[i%tapeChunks]*quiet > loudest:
			since = c.At
		case c.At-since >= leastPause:
			end = c.At
		}
	}
	return end
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
