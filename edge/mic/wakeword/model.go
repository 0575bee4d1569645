package wakeword

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Model is a wake word: a chain of states, each a few Gaussians over the features, and a mixture for all other sounds. It is read-only, and may serve
// several detectors.
//
//	file  "KWS1", then little endian: u8 length and the word; u16 states, Gaussians of a state, Gaussians of other sounds; f32 threshold;
//	      13 f32 mean of the cepstra; of each Gaussian f32 constant, 25 means, 25 inverse variances
type Model struct {
	Word      string
	states    int
	each      int
	threshold float32
	mean      [raw]float32
	word      []gauss // each of a state, one state after the other
	other     []gauss
}

type gauss struct {
	bias    float32 // of its logarithm: weight and width
	mean    vector
	inverse vector // half of the inverse variance
}

const (
	magic      = "KWS1"
	maxStates  = 64
	maxEach    = 16
	maxOther   = 256
	gaussFloat = 1 + 2*dims
)

// log returns the logarithm of the density at v.
func (g *gauss) log(v *vector) float32 {
	sum := g.bias
	for i, x := range v {
		d := x - g.mean[i]
		sum -= d * d * g.inverse[i]
	}
	return sum
}

// best returns the greatest of all.
func best(all []gauss, v *vector) float32 {
	most := float32(math.Inf(-1))
	for i := range all {
		most = max(most, all[i].log(v))
	}
	return most
}

// Append appends the model as a file.
func (m *Model) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, magic...)
	word := m.Word[:min(len(m.Word), math.MaxUint8)]
	b = append(append(b, byte(len(word))), word...)
	for _, n := range []int{m.states, m.each, len(m.other)} {
		b = le.AppendUint16(b, uint16(n))
	}
	put := func(all ...float32) {
		for _, v := range all {
			b = le.AppendUint32(b, math.Float32bits(v))
		}
	}
	put(m.threshold)
	put(m.mean[:]...)
	for _, all := range [][]gauss{m.word, m.other} {
		for i := range all {
			put(all[i].bias)
			put(all[i].mean[:]...)
			put(all[i].inverse[:]...)
		}
	}
	return b
}

// ParseModel reads a model from a file that Append made.
func ParseModel(b []byte) (*Model, error) {
	if len(b) < len(magic)+1 || string(b[:len(magic)]) != magic {
		return nil, errors.New("wake word model: want KWS1 at the start")
	}
	b = b[len(magic):]
	n := int(b[0])
	if b = b[1:]; len(b) < n+3*2 {
		return nil, errors.New("wake word model: truncated header")
	}
	m := &Model{Word: string(b[:n])}
	b = b[n:]
	le := binary.LittleEndian
	var other int
	m.states, m.each, other = int(le.Uint16(b)), int(le.Uint16(b[2:])), int(le.Uint16(b[4:]))
	if b = b[6:]; m.states < 2 || m.states > maxStates || m.each < 1 || m.each > maxEach || other < 1 || other > maxOther {
		return nil, fmt.Errorf("wake word model: %d states of %d components, %d other models; want 2 to %d of 1 to %d, and 1 to %d", m.states, m.each, other, maxStates, maxEach, maxOther)
	}
	if want := 4 * (1 + raw + (m.states*m.each+other)*gaussFloat); len(b) != want {
		return nil, fmt.Errorf("wake word model: %d bytes of numbers, want %d", len(b), want)
	}
	bad := false
	take := func(to []float32) {
		for i := range to {
			to[i] = math.Float32frombits(le.Uint32(b))
			b = b[4:]
			bad = bad || !(math.Abs(float64(to[i])) < 1e9)
		}
	}
	one := []float32{0}
	take(one)
	m.threshold = one[0]
	take(m.mean[:])
	m.word, m.other = make([]gauss, m.states*m.each), make([]gauss, other)
	for _, all := range [][]gauss{m.word, m.other} {
		for i := range all {
			take(one)
			all[i].bias = one[0]
			take(all[i].mean[:])
			take(all[i].inverse[:])
			for _, v := range all[i].inverse {
				bad = bad || v < 0
			}
		}
	}
	if bad || m.threshold <= 0 {
		return nil, errors.New("wake word model: number out of range")
	}
	return m, nil
}

// heyVector is the built-in model, of synthetic voices (TestTrainAll).
//
//go:embed models/hey_vector.kws
var heyVector []byte

// Default returns the built-in model of "hey vector" in English. It knows synthetic voices only: recordings of the people around a robot make a
// better one (robotkit wake train).
func Default() *Model {
	m, err := ParseModel(heyVector)
	if err != nil {
		panic(err) // TestStrangers reads it
	}
	return m
}
