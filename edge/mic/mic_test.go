package mic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
)

// source is a sound at a time in samples of a microphone.
type source func(t float64) float64

// room plays sources from directions, in radians, over the noise of a room.
type room struct {
	r     *rand.Rand
	noise float64 // of each microphone
	at    int
	heard []struct {
		src   source
		later [geometry.Mics]float64
	}
}

func newRoom(noise float64) *room { return &room{r: rand.New(rand.NewPCG(1, 1)), noise: noise} }

func (r *room) play(s source, direction float64) {
	r.heard = append(r.heard[:0], struct {
		src   source
		later [geometry.Mics]float64
	}{s, geometry.Delays(direction)})
}

func (r *room) frame() *miclink.Frame {
	f := &miclink.Frame{Seq: uint64(r.at), At: time.Duration(r.at)}
	for i := range geometry.Samples {
		for ch := range geometry.Mics {
			v := geometry.Idle + r.noise*r.r.NormFloat64()
			for _, h := range r.heard {
				v += h.src(float64(r.at+i) - h.later[ch])
			}
			f.Mics[i*geometry.Mics+ch] = int16(min(max(math.Round(v), -1<<15), 1<<15-1))
		}
	}
	r.at += geometry.Samples
	return f
}

// chunks feeds seconds of the room and returns the chunks.
func (r *room) chunks(p *Pipeline, seconds float64) (out []Chunk) {
	for range int(seconds * geometry.Rate / geometry.Samples) {
		var c Chunk
		if p.Feed(r.frame(), false, &c) {
			out = append(out, c)
		}
	}
	return out
}

func share(all []Chunk, ok func(*Chunk) bool) float64 {
	n := 0
	for i := range all {
		if ok(&all[i]) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(all)))
}

// vowels is like a voice: harmonics of a gliding pitch under formants, in syllables.
func vowels(loud float64) source {
	return func(t float64) float64 {
		s := t / geometry.Rate
		envelope := math.Max(0, math.Sin(2*math.Pi*4*s)) // four syllables a second
		phase := 2 * math.Pi * (140*s + 3*math.Sin(2*math.Pi*0.7*s))
		sum := 0.0
		for h := 1.0; h*140 < 3800; h++ {
			f := h * 140
			sum += math.Sin(h*phase) * (1/(1+math.Pow((f-600)/200, 2)) + 0.6/(1+math.Pow((f-1700)/250, 2)) + 0.4/(1+math.Pow((f-2600)/300, 2)))
		}
		return loud * envelope * sum
	}
}

// hissing is a second of noise.
var hissing = func() (out [1 << 14]float64) {
	r := rand.New(rand.NewPCG(7, 7))
	for i := range out {
		out[i] = r.NormFloat64()
	}
	return out
}()

func hiss(loud float64) source { // the same for all microphones
	return func(t float64) float64 {
		i := math.Floor(t)
		a, b := hissing[int(i)&(len(hissing)-1)], hissing[int(i+1)&(len(hissing)-1)]
		return loud * (a + (t-i)*(b-a))
	}
}

// TestDirections: a voice from each of the 12 directions is found in its bin, with a confidence (VEC-MIC-03); a quiet room has none.
func TestDirections(t *testing.T) {
	for d := range geometry.Bins {
		if os.Getenv("KENNEL_SOAK") == "" && d%4 != 1 || testing.Short() && d != 5 {
			continue
		}
		r, p := newRoom(20), New(Config{})
		if quiet := r.chunks(p, 0.5); share(quiet, func(c *Chunk) bool { return c.Direction != NoDirection || c.Voice }) > 0 {
			t.Error("a quiet room has a voice")
		}
		r.play(vowels(1500), geometry.Direction(d))
		all := r.chunks(p, 1)[20:]
		right := share(all, func(c *Chunk) bool { return c.Direction == d && c.Histogram[d] == 255 })
		sure := share(all, func(c *Chunk) bool { return c.Confidence > 0.5 })
		if right < 0.95 || sure < 0.9 {
			t.Errorf("direction %d: right in %.0f %% of the chunks, sure in %.0f %%; got %d %.2f %v", d, 100*right, 100*sure,
				all[50].Direction, all[50].Confidence, all[50].Histogram)
		}
	}
	for bin, want := range map[int]float64{0: 0, 3: -math.Pi / 2, 9: math.Pi / 2, 6: math.Pi} { // clock positions: ahead, right, left, behind
		if got := geometry.Direction(bin); math.Cos(got-want) < 1-1e-9 {
			t.Errorf("bin %d is at %.3f rad, want %.3f", bin, got, want)
		}
	}
}

// TestModes: each mode has its signal path (VEC-MIC-04); the spatial stage is bypassed until a person speaks.
func TestModes(t *testing.T) {
	power := func(all []Chunk) (sum float64) {
		for _, c := range all {
			for _, v := range c.Samples {
				sum += float64(v) * float64(v)
			}
		}
		return math.Sqrt(sum / float64(len(all)*ChunkSamples))
	}
	quiet := map[Mode]float64{}
	for _, m := range []Mode{Off, Fast, Directional, VoiceDetect} {
		t.Run(m.String(), func(t *testing.T) {
			r, p := newRoom(100), New(Config{Mode: m})
			before := r.chunks(p, 1)
			quiet[m] = power(before)
			r.play(vowels(2000), math.Pi/2)
			after := r.chunks(p, 1)
			directed := share(after, func(c *Chunk) bool { return c.Direction == 9 })
			voiced := share(after, func(c *Chunk) bool { return c.Voice })
			switch m {
			case Off:
				if len(before)+len(after) > 0 {
					t.Error("chunks")
				}
			case Directional:
				if directed < 0.8 || voiced < 0.9 || share(before, func(c *Chunk) bool { return c.Direction != NoDirection }) > 0 {
					t.Errorf("directed %.2f, voiced %.2f", directed, voiced)
				}
			default:
				if directed > 0 || voiced < 0.9 {
					t.Errorf("directed %.2f, voiced %.2f", directed, voiced)
				}
			}
		})
	}
	// Four microphones hear half of the noise of one.
	if ratio := quiet[VoiceDetect] / quiet[Fast]; ratio < 0.4 || ratio > 0.6 {
		t.Errorf("noise of four microphones over that with one: %.2f, want 0.5", ratio)
	}
	if s := fmt.Sprint(Mode(9), VoiceDetect); s != "mode 9 voice detect" {
		t.Error(s)
	}
}

// TestBeam: between a voice and a noise from elsewhere the beam takes the side of the voice, compared with the mean of the microphones.
func TestBeam(t *testing.T) {
	level := func(m Mode, from float64, s source) float64 {
		r, p := newRoom(5), New(Config{Mode: m})
		r.chunks(p, 0.5)
		r.play(vowels(3000), 0)
		r.chunks(p, 0.5)
		g := p.gate
		p.spatial.beam = 0
		voice := [geometry.Mics][window]float32{}
		later := geometry.Delays(from)
		for ch := range voice {
			for i := range voice[ch] {
				voice[ch][i] = float32(s(float64(i) - later[ch]))
			}
		}
		for ch := range voice {
			g.load(&voice[ch])
			g.plan.Forward(p.spatial.mics[ch][:], g.time)
		}
		sum := 0.0
		for k := 80; k < 131; k++ {
			v := complex64(0)
			for ch := range p.spatial.mics {
				turn := complex64(1)
				if m == Directional {
					turn = p.spatial.steer[0][ch][k]
				}
				v += p.spatial.mics[ch][k] * turn / geometry.Mics
			}
			sum += float64(real(v)*real(v) + imag(v)*imag(v))
		}
		return sum
	}
	tone := func(t float64) float64 { return 1000 * math.Sin(2*math.Pi*3000/geometry.Rate*t) }
	for _, m := range []Mode{Directional} {
		ahead, behind := level(m, 0, tone), level(m, math.Pi, tone)
		if db := 10 * math.Log10(ahead/behind); db < 6 {
			t.Errorf("%v: a tone of 3 kHz from behind is %.1f dB lower, want 6", m, db)
		}
	}
}

// TestActivity: a sound above the noise of the room is activity; a steady noise is none once it is known (VEC-MIC-06).
func TestActivity(t *testing.T) {
	active := func(c *Chunk) bool { return c.Active }
	r, p := newRoom(20), New(Config{})
	if a := share(r.chunks(p, 3), active); a > 0 {
		t.Errorf("a quiet room is active in %.2f of the time", a)
	}
	r.play(hiss(500), 0)
	first := r.chunks(p, 2)
	r.chunks(p, 6)
	later := r.chunks(p, 3)
	if a, b := share(first, active), share(later, active); a < 0.9 || b > 0 {
		t.Errorf("a fan that is switched on is active in %.2f of the time, and later in %.2f", a, b)
	}
	last := later[len(later)-1]
	if last.Level-last.Floor > 3 || last.Floor < first[0].Floor+20 {
		t.Errorf("the fan is %.0f dB over a floor of %.0f", last.Level, last.Floor)
	}
	r.play(func(t float64) float64 { return hiss(500)(t) + vowels(9000)(t) }, 0)
	if a := share(r.chunks(p, 2), active); a < 0.3 {
		t.Errorf("a voice over the fan is active in %.2f of the time", a)
	}
}

// TestVoice: a voice is found soon and to its end, and no hiss, click or quiet is taken for one (VEC-WAK-01).
func TestVoice(t *testing.T) {
	voice := func(c *Chunk) bool { return c.Voice }
	for name, s := range map[string]source{
		"hiss": hiss(1000),
		"clicks": func(t float64) float64 {
			if math.Mod(t, 8000) < 8 {
				return 8000
			}
			return 0
		},
		"quiet": func(float64) float64 { return 0 },
		"hum":   func(t float64) float64 { return 2000 * math.Sin(2*math.Pi*50/geometry.Rate*t) },
	} {
		r, p := newRoom(20), New(Config{})
		r.chunks(p, 0.5)
		r.play(s, 1)
		if v := share(r.chunks(p, 4), voice); v > 0.02 {
			t.Errorf("%s is a voice in %.2f of the time", name, v)
		}
	}
	r, p := newRoom(20), New(Config{})
	r.chunks(p, 0.5)
	r.play(vowels(600), 1)
	said := r.chunks(p, 2)
	if v := share(said, voice); v < 0.9 {
		t.Errorf("a voice is heard in %.2f of the time", v)
	}
	r.play(func(float64) float64 { return 0 }, 1)
	if v := r.chunks(p, 1); v[10].Voice != true || v[60].Voice {
		t.Error("the voice does not end 0.3 s after it")
	}
}

// TestGate: the noise of the room is 10 dB lower in the pauses, and the voice keeps its power.
func TestGate(t *testing.T) {
	r, p := newRoom(200), New(Config{Mode: VoiceDetect})
	r.chunks(p, 1)
	power := func(all []Chunk) (sum float64) {
		for _, c := range all {
			for _, v := range c.Samples {
				sum += float64(v) * float64(v) / ChunkSamples
			}
		}
		return sum / float64(len(all))
	}
	if quiet, db := power(r.chunks(p, 1)), 0.0; true {
		if db = 10 * math.Log10(200*200/geometry.Mics/quiet); db < 9 {
			t.Errorf("the noise is %.1f dB lower", db)
		}
	}
	r.play(vowels(3000), 0)
	in, out := 0.0, power(r.chunks(p, 1))
	for i := range geometry.Rate {
		v := vowels(3000)(float64(i))
		in += v * v / geometry.Rate
	}
	if db := 10 * math.Log10(out/in); db < -2 || db > 1 {
		t.Errorf("the voice is %.1f dB, want 0", db)
	}
}

// TestOwn: while our own sound plays, and shortly after, nothing is heard (VEC-MIC-05). Missing frames are told.
func TestOwn(t *testing.T) {
	r, p := newRoom(20), New(Config{})
	r.chunks(p, 0.513) // whole chunks
	r.play(vowels(3000), 1)
	own, deaf := 0, 0
	for i := range 400 {
		var c Chunk
		f := r.frame()
		f.Lost = uint64(i % 2)
		if !p.Feed(f, i < 200, &c) {
			continue
		}
		if c.Lost != 1 {
			t.Fatalf("lost %d", c.Lost)
		}
		if c.Own {
			own++
			if c.Voice || c.Active || c.Samples != [ChunkSamples]int16{} {
				deaf--
			}
			deaf++
		} else if i < 200 {
			t.Fatal("heard while it plays")
		}
	}
	if own != deaf || own != 100+deafAfter-1 {
		t.Errorf("%d chunks are our own, %d without a sound; want %d", own, deaf, 100+deafAfter-1)
	}
}

// TestStuck: a microphone that is dead, or one bit of which never changes, is told from those that work (VEC-MIC-10).
func TestStuck(t *testing.T) {
	r, p := newRoom(20), New(Config{})
	for i := range stuckFrames {
		if _, known := p.Stuck(); known {
			t.Fatalf("known after %d frames", i)
		}
		f := r.frame()
		for i := 0; i < len(f.Mics); i += geometry.Mics {
			f.Mics[i+1] = geometry.Idle
			f.Mics[i+2] |= 1 << 3
			for ch := range geometry.Mics {
				f.Mics[i+ch] &^= 1 // the converter is not that fine
			}
		}
		p.Feed(f, false, new(Chunk))
	}
	if got, known := p.Stuck(); !known || got != [geometry.Mics]Defect{Works, Dead, StuckBit + 3, Works} {
		t.Errorf("%v, %v", got, known)
	}
}

// TestNoAllocations: a pipeline in its stride allocates nothing, while a person speaks too.
func TestNoAllocations(t *testing.T) {
	r, p := newRoom(20), New(Config{})
	r.chunks(p, 0.5)
	r.play(vowels(3000), 1)
	frames := []*miclink.Frame{}
	for range 400 {
		frames = append(frames, r.frame())
	}
	var c Chunk
	i := 0
	if a := testing.AllocsPerRun(300, func() { p.Feed(frames[i], false, &c); i++ }); a != 0 {
		t.Errorf("%v allocations a frame", a)
	}
	if !c.Voice {
		t.Error("no voice")
	}
}

// TestRate: samples are taken as 16,000 a second, in chunks of 160 (VEC-MIC-02).
func TestRate(t *testing.T) {
	if Rate != 16000 || ChunkSamples != 160 {
		t.Errorf("chunks of %d samples at %d Hz, want 160 at 16000", ChunkSamples, Rate)
	}
}
