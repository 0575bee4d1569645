package wakeword

import (
	"bytes"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"kennel/edge/mic"
	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
	"kennel/infra/wav"
)

var update = flag.Bool("update", false, "train the built-in model again; under KENNEL_SOAK=1")

// full is whether the long form runs.
var full = os.Getenv("KENNEL_SOAK") != ""

func synthesisers(t testing.TB) {
	t.Helper()
	for _, p := range []string{"flite", "espeak-ng"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("%s is not installed: make setup-test", p)
		}
	}
}

// TestTrainAll trains a model with the voices of the trainers, of which the light form takes one of each synthesiser. It hears those voices before a command. The
// full form compares it with the built-in model.
func TestTrainAll(t *testing.T) {
	synthesisers(t)
	all := trainers()
	if !full {
		all = []speaker{all[0], all[len(all)-1]}
	}
	var said, other [][]int16
	for i, s := range all {
		said = append(said, say(t, s, "hey vector", 20), say(t, s, "hey vector", 150))
		for j := range 6 {
			other = append(other, say(t, s, otherSpeech[(i*5+j)%len(otherSpeech)], 20))
		}
	}
	m, err := Train("hey vector", said, other)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d recordings of the word, %d of others: %d states, threshold %.2f, %d bytes", len(said), len(other), m.states, m.threshold, len(m.Append(nil)))
	d, missed := NewSpotter(m), 0
	for _, s := range all {
		d.Reset()
		if _, ok := d.Feed(say(t, s, "hey vector, what time is it", 20)); !ok {
			missed++
		}
	}
	if missed > len(all)/4 {
		t.Errorf("%d of %d of its own voices are not heard", missed, len(all))
	}
	if !full {
		return
	}
	if *update {
		if err := os.WriteFile("models/hey_vector.kws", m.Append(nil), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(m.Append(nil), heyVector) {
		t.Log("the built-in model is of another training, or other synthesisers")
	}
}

// TestStrangers: voices that the model was not made of say the word, alone and before a command, and other things. The table is printed.
func TestStrangers(t *testing.T) {
	synthesisers(t)
	all, said, noises := strangers(), []string{"hey vector, what time is it"}, []float64{60}
	speech := unseenSpeech[:3]
	if full {
		said = append(said, "hey vector", "hey vector, turn around")
		noises = append(noises, 20, 200)
		speech = append(unseenSpeech, otherSpeech...)
	} else {
		all = slices.DeleteFunc(all, func(s speaker) bool { return len(s.name)%2 == 0 })
		if testing.Short() {
			all = all[:2]
		}
	}
	d := NewSpotter(Default())
	heard := func(s []int16) (hits []Hit) {
		d.Reset()
		for len(s) > 0 {
			n := min(len(s), hop)
			if h, ok := d.Feed(s[:n]); ok {
				hits = append(hits, h)
			}
			s = s[n:]
		}
		return hits
	}
	tried, hits, alarms, seconds := 0, 0, 0, 0.0
	by := map[string]int{} // false alarms
	for _, v := range all {
		mine, wrong := 0, 0
		for _, text := range said {
			for _, noise := range noises {
				tried++
				s := say(t, v, text, noise)
				if h := heard(s); len(h) > 0 {
					mine++
					if h[0].End <= h[0].Begin || h[0].End > uint64(len(s)) || h[0].Score < 1 {
						t.Errorf("%s: %+v in %d samples", v.name, h[0], len(s))
					}
				}
			}
		}
		for _, text := range speech {
			s := say(t, v, text, 30)
			seconds += float64(len(s)) / rate
			n := len(heard(s))
			if wrong += n; n > 0 {
				by[text] += n
			}
		}
		hits, alarms = hits+mine, alarms+wrong
		t.Logf("%-32s hits %d of %d, false alarms %d in %d phrases", v.name, mine, len(said)*len(noises), wrong, len(speech))
	}
	t.Logf("hits %d of %d (%.0f %%); %d false alarms in %.0f s of speech without a pause, %.0f an hour", hits, tried, 100*float64(hits)/float64(tried),
		alarms, seconds, float64(alarms)*3600/seconds)
	for _, text := range slices.Sorted(maps.Keys(by)) {
		t.Logf("%d false alarms in %q", by[text], text)
	}
	if float64(hits) < 0.7*float64(tried) || float64(alarms) > max(2, seconds/40) {
		t.Error("want 70 % of hits, and a false alarm in 40 s of speech at most")
	}
}

// TestNoise: an hour (light form: two minutes) of noise of a room that comes and goes has no false alarm.
func TestNoise(t *testing.T) {
	seconds := 120
	if full {
		seconds = 3600
	} else if testing.Short() {
		seconds = 10
	}
	d, r := NewSpotter(Default()), rand.New(rand.NewPCG(3, 3))
	var part [hop]int16
	loud, last := 50.0, 0.0
	for i := range seconds * rate / hop {
		if i%100 == 0 {
			loud = 20 + 3000*r.Float64()*r.Float64()*r.Float64()
		}
		for j := range part {
			last = 0.7*last + loud*r.NormFloat64()
			part[j] = int16(last)
		}
		if h, ok := d.Feed(part[:]); ok {
			t.Fatalf("noise is the word: %+v", h)
		}
	}
}

// TestTrain: a few recordings of one voice make a model that tells the word from other speech of that voice, and that survives its file.
func TestTrain(t *testing.T) {
	synthesisers(t)
	v := func(speed string) speaker { return espeak("en-us+m3", speed, "50") }
	word := "open sesame"
	var said, other [][]int16
	for _, speed := range []string{"150", "165", "180"} {
		said = append(said, say(t, v(speed), word, 20))
	}
	for _, text := range otherSpeech[:4] {
		other = append(other, say(t, v("160"), text, 20))
	}
	m, err := Train(word, said, other)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseModel(m.Append(nil))
	if err != nil || again.Word != word {
		t.Fatalf("%+v, %v", again, err)
	}
	d := NewSpotter(again)
	if h, ok := d.Feed(say(t, v("157"), word+" quickly", 20)); !ok {
		t.Error("the word is not heard")
	} else if s := float64(h.Begin) / rate; s < 0.15 || s > 0.6 {
		t.Errorf("it begins at %.2f s, want about 0.3 s", s)
	}
	d.Reset()
	if h, ok := d.Feed(say(t, v("157"), otherSpeech[5], 20)); ok {
		t.Errorf("other speech is the word: %+v", h)
	}
	for name, bad := range map[string]struct{ said, other [][]int16 }{
		"too few": {said[:2], other}, "no others": {said, nil}, "no word": {[][]int16{make([]int16, 8000), make([]int16, 8000), make([]int16, 8000)}, other},
	} {
		if _, err := Train(word, bad.said, bad.other); err == nil {
			t.Errorf("%s: trained", name)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	d := NewSpotter(Default())
	var part [hop]int16
	if a := testing.AllocsPerRun(100, func() { d.Feed(part[:]) }); a != 0 {
		t.Errorf("%v allocations in 10 ms", a)
	}
}

func BenchmarkSecond(b *testing.B) {
	d, r := NewSpotter(Default()), rand.New(rand.NewPCG(3, 3))
	second := make([]int16, rate)
	for i := range second {
		second[i] = int16(500 * r.NormFloat64())
	}
	b.ReportAllocs()
	began := time.Now()
	for b.Loop() {
		d.Feed(second)
	}
	b.ReportMetric(100*time.Since(began).Seconds()/float64(b.N), "%ofOneCore")
}

// FuzzParseModel: a file is refused, or is a model that hears anything without harm and is written as it was.
func FuzzParseModel(f *testing.F) {
	f.Add(heyVector)
	f.Add([]byte("KWS1\x00\x02\x00\x01\x00\x01\x00"))
	noise := make([]int16, rate)
	for i := range noise {
		noise[i] = int16(i * 7919)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseModel(b)
		if err != nil {
			return
		}
		if !bytes.Equal(m.Append(nil), b) {
			t.Fatal("written differently")
		}
		NewSpotter(m).Feed(noise)
	})
}

// throughPipeline plays samples of 16 kHz to four microphones in a room with a noise, and returns the wake words behind the whole path. Of the frames
// those that lost names are missing.
func throughPipeline(samples []int16, noise float64, lost func(frame int) bool) (hits []Hit, chunks int) {
	s := (&wav.Sound{Rate: rate, Channels: 1, Samples: samples}).Resample(geometry.Rate).Samples
	s = slices.Concat(make([]int16, geometry.Rate), s, make([]int16, geometry.Rate/2)) // a quiet room before it
	r := rand.New(rand.NewPCG(4, 4))
	p, g := mic.New(mic.Config{}), NewGated(NewSpotter(Default()))
	missing := uint64(0)
	for at := 0; at+geometry.Samples <= len(s); at += geometry.Samples {
		if lost(at / geometry.Samples) {
			missing++
			continue
		}
		f := miclink.Frame{Lost: missing}
		missing = 0
		for i := range geometry.Samples {
			for ch := range geometry.Mics {
				f.Mics[i*geometry.Mics+ch] = geometry.Idle + s[at+i]/2 + int16(noise*r.NormFloat64())
			}
		}
		var c mic.Chunk
		if !p.Feed(&f, false, &c) {
			continue
		}
		chunks++
		Gap(g, &c)
		if h, ok := g.Hear(&c); ok {
			hits = append(hits, h)
		}
	}
	return hits, chunks
}

// TestPath: strangers are heard through the whole path of the robot: microphones, noise gate, voice detector (VEC-WAK-01).
func TestPath(t *testing.T) {
	synthesisers(t)
	all := strangers()
	if !full {
		all = all[2:8:8]
		if testing.Short() {
			all = all[:2]
		}
	}
	heard := 0
	for _, v := range all {
		hits, chunks := throughPipeline(say(t, v, "hey vector, what time is it", 0), 25, func(int) bool { return false })
		switch {
		case len(hits) == 0:
			t.Logf("%s is not heard", v.name)
			continue
		case hits[0].Begin < rate || hits[0].Begin > 7*rate/4 || hits[0].End > uint64(chunks)*hop:
			t.Errorf("%s: %+v; the word begins 1.3 to 1.6 s after the start", v.name, hits[0])
		}
		heard++
	}
	t.Logf("%d of %d heard", heard, len(all))
	if heard < len(all)*3/4 {
		t.Errorf("%d of %d heard", heard, len(all))
	}
}

// TestLost: the word is heard although some frames of it are missing, wherever they are.
func TestLost(t *testing.T) {
	synthesisers(t)
	said := say(t, flite("slt", "1.0", ""), "hey vector", 0)
	for n, least := range map[int]int{1: 14, 4: 14, 10: 11} {
		tried, heard := 0, 0
		for from := 254; from < 380; from += 9 { // the word begins after 1.3 s, which are 254 frames
			tried++
			if hits, _ := throughPipeline(said, 25, func(frame int) bool { return frame >= from && frame < from+n }); len(hits) > 0 {
				heard++
			}
		}
		if heard < least {
			t.Errorf("%d frames lost: heard %d of %d times, want %d", n, heard, tried, least)
		}
	}
}
