package beat

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
)

const rate = 15625

// tune is a sound at a time in seconds.
type tune func(s float64) float64

// clicks is a click track.
func clicks(bpm float64) tune {
	return func(s float64) float64 {
		if math.Mod(s, 60/bpm) < 0.004 {
			return 8000
		}
		return 0
	}
}

// music has a bass drum on each beat, a snare on each second one, hi-hats between, and a chord that changes each four beats.
func music(bpm float64) tune {
	r := rand.New(rand.NewPCG(5, 5))
	return func(s float64) float64 {
		beat := s * bpm / 60
		n, at := math.Floor(beat), (beat-math.Floor(beat))*60/bpm
		v := 6000 * math.Exp(-at/0.06) * math.Sin(2*math.Pi*110*at)
		if int(n)%2 == 1 {
			v += 2500 * math.Exp(-at/0.05) * r.NormFloat64()
		}
		if half := math.Mod(beat*2, 1) * 30 / bpm; true {
			v += 800 * math.Exp(-half/0.02) * r.NormFloat64()
		}
		for i, note := range []float64{1, 1.26, 1.5} {
			v += 500 * math.Sin(2*math.Pi*220*note*math.Pow(1.12, float64(int(n)/4%3))*s+float64(i))
		}
		return v
	}
}

func silence(float64) float64 { return 0 }

// hear feeds seconds of a tune over a room's noise, and calls each after every tenth of a second.
func hear(d *Detector, from, seconds float64, noise float64, play tune, each func(at float64, beats int)) {
	r := rand.New(rand.NewPCG(1, 1))
	var part [rate / 10]int16
	for at := from; at < from+seconds-0.05; at += 0.1 {
		for i := range part {
			part[i] = int16(min(max(play(at+float64(i)/rate)+noise*r.NormFloat64(), -32768), 32767))
		}
		n := d.Feed(part[:])
		if each != nil {
			each(at+0.1, n)
		}
	}
}

// tempos are those of the tests; KENNEL_SOAK=1 has more.
var tempos = func() []float64 {
	if os.Getenv("KENNEL_SOAK") == "" {
		return []float64{43, 75, 119}
	}
	return []float64{42.5, 46, 50, 55, 60, 67, 75, 83, 90, 100, 110, 119}
}()

// TestClicks: a click track gives one beat per click (VEC-BEA-01).
func TestClicks(t *testing.T) {
	for _, bpm := range tempos {
		d, got := New(rate), 0
		hear(d, 0, 12, 10, clicks(bpm), func(_ float64, n int) { got += n })
		if want := int(math.Ceil(12 * bpm / 60)); got != want {
			t.Errorf("%v bpm: %d beats, want %d", bpm, got, want)
		}
	}
}

// TestTempo: the tempo of steady music is found within 5 % after one window (VEC-BEA-03), and confirmed soon (VEC-BEA-05).
func TestTempo(t *testing.T) {
	for i, bpm := range tempos {
		if testing.Short() && i > 0 {
			break
		}
		for name, play := range map[string]tune{"clicks": clicks(bpm), "music": music(bpm)} {
			d := New(rate)
			hear(d, 0, 11, 10, play, nil)
			if got := d.Report().DetectorInfo; math.Abs(got.LatestTempoBPM-bpm) > 0.05*bpm || got.PossibleBeatDetected != "yes" {
				t.Errorf("%s of %v bpm after a window: %+v", name, bpm, got)
			}
			confirmed := false
			hear(d, 11, 5, 10, play, func(float64, int) { confirmed = confirmed || d.Report().DetectorInfo.BeatDetected })
			if !confirmed {
				t.Errorf("%s of %v bpm is not confirmed: %+v", name, bpm, d.Report())
			}
		}
	}
}

// TestEnd: the music is over when no beat came for 3 s (VEC-BEA-02).
func TestEnd(t *testing.T) {
	d := New(rate)
	hear(d, 0, 16, 10, music(90), nil)
	if !d.Playing() {
		t.Fatal("no music")
	}
	over := 0.0
	hear(d, 16, 6, 10, silence, func(at float64, _ int) {
		if over == 0 && !d.Playing() {
			over = at - 16
		}
	})
	if over < 2 || over > 3.2 {
		t.Errorf("over after %.1f s, want 3 s after the last beat", over)
	}
	if r := d.Report(); r.DetectorInfo.PossibleBeatDetected != "no" || r.DetectorInfo.BeatDetected {
		t.Errorf("%+v", r)
	}
}

// TestPersistence: a tempo that persists outranks a stronger one that comes and goes (VEC-BEA-04); what is not heard is cleared.
func TestPersistence(t *testing.T) {
	var d Detector
	seen := [most]bool{}
	rank := func() float64 {
		top := candidate{}
		for i := range d.board {
			if d.board[i].score *= forget; d.board[i].score > top.score {
				top = d.board[i]
			}
		}
		seen = [most]bool{}
		return top.hz
	}
	for range 10 {
		d.note(1.5, 0.5, &seen)
		rank()
	}
	d.note(1.0, 1, &seen)
	if got := rank(); got != 1.5 {
		t.Errorf("after one strong update the tempo is %v Hz", got)
	}
	for range 8 {
		d.note(1.0, 1, &seen)
		rank()
	}
	if got := rank(); got != 1.0 {
		t.Errorf("after many the tempo is %v Hz", got)
	}
	full := New(rate)
	hear(full, 0, 14, 10, clicks(100), nil)
	hear(full, 14, 30, 10, silence, nil)
	if r := full.Report(); len(r.BeatInfo) > 0 {
		t.Errorf("after half a minute of silence: %+v", r)
	}
}

// TestNoMusic: noise and speech-like sounds have no confirmed beat.
func TestNoMusic(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	next, loud := 0.0, 0.0
	for name, play := range map[string]tune{
		"silence": silence,
		"hiss":    func(float64) float64 { return 3000 * r.NormFloat64() },
		"words": func(s float64) float64 { // bursts of irregular lengths
			if s >= next {
				next = s + 0.08 + 0.5*r.Float64()
				loud = 4000 * r.Float64() * float64(r.IntN(2))
			}
			return loud * math.Sin(2*math.Pi*140*s)
		},
	} {
		d, confirmed, n := New(rate), 0, 0
		next = 0
		hear(d, 0, 40, 10, play, func(float64, int) {
			n++
			if d.Report().DetectorInfo.BeatDetected {
				confirmed++
			}
		})
		if confirmed > 3 {
			t.Errorf("%s has %d confirmed beats in 40 s", name, confirmed)
		}
	}
}

// TestReport: the message has the original's structures (VEC-BEA-06).
func TestReport(t *testing.T) {
	d := New(rate)
	if b, err := json.Marshal(d.Report()); err != nil ||
		string(b) != `{"beatInfo":[],"detectorInfo":{"beatDetected":false,"latestConf":0,"latestTempo_bpm":0,"possibleBeatDetected":"no"}}` {
		t.Errorf("%s, %v", b, err)
	}
	hear(d, 0, 12, 10, clicks(60), nil)
	b, err := json.Marshal(d.Report())
	for _, key := range []string{`"aboveThresh":true`, `"conf":`, `"tempo_bpm":`, `"timeSinceBeat":`} {
		if err != nil || !strings.Contains(string(b), key) {
			t.Errorf("%s, %v: want %s", b, err, key)
		}
	}
}

func BenchmarkSecond(b *testing.B) {
	d, play := New(rate), music(100)
	var second [rate]int16
	for i := range second {
		second[i] = int16(min(max(play(float64(i)/rate), -32768), 32767))
	}
	if a := testing.AllocsPerRun(20, func() { d.Feed(second[:]) }); a != 0 {
		b.Errorf("%v allocations", a)
	}
	began := time.Now()
	for b.Loop() {
		d.Feed(second[:])
	}
	b.ReportMetric(100*time.Since(began).Seconds()/float64(b.N), "%ofOneCore")
}

func ExampleDetector() {
	d := New(rate)
	hear(d, 0, 15, 10, clicks(90), nil)
	fmt.Printf("%.0f beats a minute\n", d.Report().DetectorInfo.LatestTempoBPM)
	// Output: 90 beats a minute
}
