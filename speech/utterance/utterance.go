// Package utterance is a whole spoken request in one message, for robots that reach the broker and nothing else (design section 4). Nine seconds of
// 16-bit samples do not fit a message, so the audio is IMA ADPCM, 4 bits a sample: recognisers do not notice.
//
//	0   u16  length of the header, little-endian
//	2        header: JSON of Header
//	2+n      ADPCM, two samples a byte, the first in the low half; predictor and step begin at 0
package utterance

import (
	"encoding/binary"
	"encoding/json"

	"kennel/infra/errs"
)

// The service and its methods in requests over MQTT. A text has a Header with Text, and no audio.
const (
	Service = "speech"
	Listen  = "listen"
	Say     = "say"
)

// Rate is samples a second, one channel. MaxSamples are the most of a message: 9.5 s, 76 kB.
const (
	Rate       = 16000
	MaxSamples = 95 * Rate / 10
	maxHeader  = 8 << 10
)

// Header says what is to be understood, and for whom.
type Header struct {
	Session  string `json:"session"`
	Question bool   `json:"question,omitempty"` // what is said is one
	Language string `json:"language,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	Timezone string `json:"timezone,omitempty"`
	SkipDAS  bool   `json:"skip_das,omitempty"`
	Text     string `json:"text,omitempty"`
}

// Answer is the cloud's.
type Answer struct {
	Intent     string            `json:"intent"`
	Params     map[string]string `json:"params,omitempty"`
	Text       string            `json:"text,omitempty"`
	Confidence float64           `json:"confidence,omitempty"`
}

// Append appends a request to dst. Samples beyond MaxSamples are left out.
func Append(dst []byte, h Header, samples []int16) ([]byte, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if len(head) > maxHeader {
		return nil, errs.New(errs.Invalid, "header of an utterance: %d bytes, want at most %d", len(head), maxHeader)
	}
	dst = append(binary.LittleEndian.AppendUint16(dst, uint16(len(head))), head...)
	var c coder
	for i, s := range samples[:min(len(samples), MaxSamples)] {
		if n := c.encode(s); i%2 == 0 {
			dst = append(dst, n)
		} else {
			dst[len(dst)-1] |= n << 4
		}
	}
	return dst, nil
}

// Parse reads a request. An odd number of samples comes back with one more.
func Parse(b []byte) (h Header, samples []int16, err error) {
	if len(b) < 2 {
		return h, nil, errs.New(errs.Invalid, "utterance of %d bytes: want at least 2", len(b))
	}
	n := int(binary.LittleEndian.Uint16(b))
	if n > maxHeader || n > len(b)-2 {
		return h, nil, errs.New(errs.Invalid, "header of an utterance: %d bytes, want at most %d and the %d that follow", n, maxHeader, len(b)-2)
	}
	if err := json.Unmarshal(b[2:2+n], &h); err != nil {
		return h, nil, errs.New(errs.Invalid, "header of an utterance: %w", err)
	}
	b = b[2+n:]
	if len(b) > MaxSamples/2 {
		return h, nil, errs.New(errs.Invalid, "utterance of %d bytes of audio: want at most %d", len(b), MaxSamples/2)
	}
	samples = make([]int16, 0, 2*len(b))
	var c coder
	for _, v := range b {
		samples = append(samples, c.decode(v&15), c.decode(v>>4))
	}
	return h, samples, nil
}

// coder is IMA ADPCM's state.
type coder struct{ predictor, index int }

var steps = [89]int{7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 19, 21, 23, 25, 28, 31, 34, 37, 41, 45, 50, 55, 60, 66, 73, 80, 88, 97, 107, 118, 130, 143, 157, 173, 190,
	209, 230, 253, 279, 307, 337, 371, 408, 449, 494, 544, 598, 658, 724, 796, 876, 963, 1060, 1166, 1282, 1411, 1552, 1707, 1878, 2066, 2272, 2499, 2749, 3024,
	3327, 3660, 4026, 4428, 4871, 5358, 5894, 6484, 7132, 7845, 8630, 9493, 10442, 11487, 12635, 13899, 15289, 16818, 18500, 20350, 22385, 24623, 27086, 29794, 32767}

var moves = [8]int{-1, -1, -1, -1, 2, 4, 6, 8}

func (c *coder) encode(s int16) (nibble byte) {
	diff, step := int(s)-c.predictor, steps[c.index]
	if diff < 0 {
		nibble, diff = 8, -diff
	}
	for bit := byte(4); bit > 0; bit >>= 1 {
		if diff >= step {
			nibble |= bit
			diff -= step
		}
		step >>= 1
	}
	c.decode(nibble)
	return nibble
}

func (c *coder) decode(nibble byte) int16 {
	step := steps[c.index]
	diff := step >> 3
	for bit := byte(4); bit > 0; bit >>= 1 {
		if nibble&bit != 0 {
			diff += step
		}
		step >>= 1
	}
	if nibble&8 != 0 {
		diff = -diff
	}
	c.predictor = min(max(c.predictor+diff, -1<<15), 1<<15-1)
	c.index = min(max(c.index+moves[nibble&7], 0), len(steps)-1)
	return int16(c.predictor)
}
