package plane

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"hash"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/lives.sha256 anew, on amd64")

// TestLivesAreTheSameOnEveryProcessor: what happens in worlds, and what is measured there, has the sum that it has on amd64, bit by bit. Under the
// emulator (make arm) here is an ARM v7.
func TestLivesAreTheSameOnEveryProcessor(t *testing.T) {
	sum := sha256.New()
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 11))
		m := labyrinth(rng)
		w, err := New(m, rover(), seed)
		for err != nil { // no room for it
			m = labyrinth(rng)
			w, err = New(m, rover(), seed)
		}
		live(w, rng, sum, 800)
	}
	for _, name := range Names() {
		m, err := Builtin(name)
		must(t, err)
		live(with(t, m), rand.New(rand.NewPCG(1, 12)), sum, 800)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	file := filepath.Join("testdata", "lives.sha256")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(file, []byte(got+"\n"), 0o644))
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if got != strings.TrimSpace(string(want)) {
		t.Errorf("lives here have the sum %s, want %s (-update writes it anew, on amd64)", got, want)
	}
}

// live drives, carries and charges a robot as rng says, and adds all that can be seen and measured after each step to sum.
func live(w *World, rng *rand.Rand, sum hash.Hash, steps int) {
	var b []byte
	add := func(all ...float64) {
		for _, v := range all {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
	}
	flag := func(v bool) {
		if b = append(b, 0); v {
			b[len(b)-1] = 1
		}
	}
	var left, right float64
	for range steps {
		b = b[:0]
		switch rng.IntN(160) {
		case 0, 1:
			left = rng.Float64()*0.7 - 0.2
			right = left
		case 2, 3:
			right = left + rng.Float64()*0.1 - 0.05
		case 4:
			flag(w.PickUp() == nil)
			flag(w.PutDown(Pose{rng.Float64()*2 - 1, rng.Float64()*2 - 1, rng.Float64()}) == nil)
		case 5:
			flag(w.PutOnCharger() == nil)
		}
		add(w.Step(tick, left, right))
		add(w.Range())
		s := w.State()
		add(s.Pose[:]...)
		for i := range s.Objects {
			add(s.Objects[i][:]...)
			flag(s.Gone[i])
		}
		flag(s.Blocked)
		flag(s.Below)
		flag(w.Contact())
		b = append(append(b, s.Posture...), byte(s.Falls))
		for i := range 4 {
			flag(w.Floor(i))
		}
		in := w.Inertia()
		add(in.Accel[:]...)
		add(in.Gyro[:]...)
		sum.Write(b)
	}
}
