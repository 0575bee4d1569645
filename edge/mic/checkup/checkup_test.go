package checkup

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"kennel/edge/faultcode"
	"kennel/edge/mic"
	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
	"kennel/infra/api/events"
)

// bench is a room with microphones of which some are broken.
type bench struct {
	p      *mic.Pipeline
	m      *Microphones
	r      *rand.Rand
	at     time.Duration
	broken func(f *geometry.Frame)
	events []string
	faults []string
}

func newBench() *bench {
	b := &bench{p: mic.New(mic.Config{}), r: rand.New(rand.NewPCG(2, 2))}
	b.m = New(func(e events.Event) { b.events = append(b.events, fmt.Sprint(e.Name, " ", e.S1, e.I1)) },
		func(c faultcode.Code, err error) { b.faults = append(b.faults, fmt.Sprint(int(c), " ", err)) })
	return b
}

func (b *bench) live(d time.Duration, loud float64) {
	for end := b.at + d; b.at < end; b.at += 5120 * time.Microsecond {
		f := miclink.Frame{At: b.at}
		for i := range f.Mics {
			f.Mics[i] = geometry.Idle + int16(loud*b.r.NormFloat64())
		}
		if b.broken != nil {
			b.broken(&f.Mics)
		}
		var c mic.Chunk
		if b.p.Feed(&f, false, &c) {
			b.m.Heard(b.p, &c)
		}
	}
}

// TestFaults: a microphone that is dead or has a stuck bit at power-on raises its own fault, once (VEC-MIC-11); robots with four good ones have none.
func TestFaults(t *testing.T) {
	b := newBench()
	b.live(5*time.Second, 30)
	if want := []string{"robot.microphone_on <nil>"}; len(b.faults) > 0 || len(b.events) != 1 || b.events[0][:19] != want[0][:19] {
		t.Errorf("four good ones: %q, %q", b.faults, b.events)
	}
	for ch, code := range []int{870, 871, 872, 873} {
		for bit, why := range map[int]string{-1: "its level never changes", 2: "bit 2 of its samples never changes"} {
			b := newBench()
			b.broken = func(f *geometry.Frame) {
				for i := ch; i < len(f); i += geometry.Mics {
					if f[i] |= 1 << max(bit, 0); bit < 0 {
						f[i] = 0
					}
				}
			}
			b.live(8*time.Second, 30)
			if want := []string{fmt.Sprintf("%d microphone %s: %s", code, names[ch], why)}; !reflect.DeepEqual(b.faults, want) {
				t.Errorf("%q, want %q", b.faults, want)
			}
			stuck := 0
			for _, e := range b.events {
				if e[:11] == "robot.stuck" {
					stuck++
				}
			}
			if want := map[bool]int{true: 1}[bit >= 0]; stuck != want {
				t.Errorf("%q: %d events of stuck bits, want %d", b.events, stuck, want)
			}
		}
	}
}

// TestLater: a microphone that breaks later did not fail its test at power-on.
func TestLater(t *testing.T) {
	b := newBench()
	b.live(3*time.Second, 30)
	b.broken = func(f *geometry.Frame) {
		for i := 0; i < len(f); i += geometry.Mics {
			f[i] &^= 1 << 3
		}
	}
	b.live(6*time.Second, 30)
	if len(b.faults) > 0 || len(b.events) != 2 || b.events[1][:30] != "robot.stuck_mic_bit front righ" {
		t.Errorf("%q, %q", b.faults, b.events)
	}
}

// TestEvents: a sound after quiet is reacted to, not more often than once a minute; voices are summed up (VEC-MIC-10).
func TestEvents(t *testing.T) {
	b := newBench()
	count := func(name string) (n int) {
		for _, e := range b.events {
			if e[:len(name)] == name {
				n++
			}
		}
		return n
	}
	b.live(6*time.Second, 30)
	for range 3 {
		b.live(time.Second, 2000)
		b.live(6*time.Second, 30)
	}
	if n := count("robot.reacted_to_sound"); n != 1 {
		t.Errorf("%d reactions in a minute: %q", n, b.events)
	}
	b.live(60*time.Second, 30)
	b.live(time.Second, 2000)
	if n := count("robot.reacted_to_sound"); n != 2 {
		t.Errorf("%d reactions in two minutes", n)
	}
	var c mic.Chunk
	for i := range 15000 { // 150 s: a voice for 1 s in 10 s
		c.At, c.Voice = b.at+time.Duration(i)*10*time.Millisecond, i%1000 < 100
		b.m.Heard(b.p, &c)
	}
	if n := count("wakeword.vad"); n < 2 || n > 3 {
		t.Errorf("%d sums of voices: %q", n, b.events)
	}
}
