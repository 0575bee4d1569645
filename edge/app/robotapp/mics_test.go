package robotapp

import (
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kennel/edge/body/vector/vectorsim"
	"kennel/edge/mic"
	"kennel/edge/mic/geometry"
	"kennel/edge/mic/miclink"
	"kennel/edge/mic/wakeword"
	"kennel/infra/testwait"
	"kennel/infra/wav"
)

// TestMicrophones: another program of the robot hears what is played to the body's microphones (VEC-MIC-01), and robotd counts no worse for it.
func TestMicrophones(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.powerOn()
	b.start(nil, "-device", b.device)
	mics := b.mics()
	steps := &wav.Sound{Rate: geometry.Rate, Channels: 4, Samples: make([]int16, 4*geometry.Rate/10)}
	for i := range steps.Samples {
		steps.Samples[i] = int16(2000 * (1 + i%4))
	}
	s, err := vectorsim.ParseWAV(wav.Append(nil, steps), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.board.PlayOnce(s)
	for last := (miclink.Frame{}); ; {
		f, err := mics.Next()
		if err != nil {
			t.Fatal(err)
		}
		if f.At < last.At { // frames that a late read brings together came at one time
			t.Fatalf("a frame of %v after one of %v", f.At, last.At)
		}
		loud := 0
		for ch, v := range f.Mics[:4] {
			if want := geometry.Idle + 2000*(1+ch); int(v) > want-100 && int(v) < want+100 {
				loud++
			}
		}
		if last = f; loud == 4 {
			return
		}
	}
}

// TestWakeWord: "hey vector" out of a loudspeaker on the robot's right is heard through its body, robotd and its microphones' socket, and from there
// (part of VEC-WAK-02, VEC-MIC-03).
func TestWakeWord(t *testing.T) {
	t.Parallel()
	said := filepath.Join(t.TempDir(), "said.wav")
	if out, err := exec.Command("flite", "-voice", "slt", "-t", "hey vector, what time is it", "-o", said).CombinedOutput(); errors.Is(err, exec.ErrNotFound) {
		t.Fatal("flite is not installed: make setup-test")
	} else if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	file, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	s, err := vectorsim.ParseWAV(file, -math.Pi/2)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t)
	b.powerOn()
	b.start(nil, "-device", b.device)
	mics := b.mics()
	p, word, directions := mic.New(mic.Config{}), wakeword.NewGated(wakeword.NewSpotter(wakeword.Default())), map[int]int{}
	for hit := false; !hit || directions[3] == 0; {
		f, err := mics.Next()
		if err != nil {
			t.Fatal(err)
		}
		var c mic.Chunk
		if !p.Feed(&f, false, &c) {
			continue
		}
		if c.Seq == 50 { // the noise of the room is known
			b.board.PlayOnce(s)
		}
		directions[c.Direction]++
		if h, ok := word.Hear(&c); ok {
			hit = true
			t.Logf("score %.2f, directions %v", h.Score, directions)
		}
		if c.Seq > 600 {
			t.Fatalf("not heard: directions %v", directions)
		}
	}
	for d, n := range directions {
		if d != mic.NoDirection && n > directions[3] {
			t.Errorf("direction %d in %d chunks, 3 in %d", d, n, directions[3])
		}
	}
}

// mics connects to the microphones.
func (b *bench) mics() (mics *miclink.Conn) {
	testwait.Until(b.t, testwait.Long, "the socket", func() (err error) {
		mics, err = miclink.Dial(b.t.Context(), filepath.Join(b.root, miclink.SocketPath))
		return err
	})
	b.t.Cleanup(func() { _ = mics.Close() }) // read only
	return mics
}
