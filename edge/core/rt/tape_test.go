package rt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"kennel/edge/body"
)

// pilot is a task with a memory and an outside: what it does hangs on everything that can be recorded.
func pilot(tape *Tape, outside func() []byte) Task {
	var sum float64
	return Task{Name: "pilot", Every: 1, Run: func(f *Frame) {
		in := tape.Input(outside())
		for _, b := range in {
			sum += float64(b) / 7
		}
		sum = 0.9*sum + f.Sense.Values[0] + f.DT.Seconds() + float64(f.Sense.Seq%5)
		if f.Sense.Values[1] > 0 {
			sum = -sum
		}
		f.Act.Set(0, body.Duty, sum/100)
		f.Act.Set(1, body.Duty, -sum/300)
	}}
}

// recorded runs a loop for n steps through silences, commands, failed writes and a new body, and returns the recording.
func recorded(t testing.TB, seed uint64, n int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 4))
	w := &world{period: framePeriod, jitter: func() time.Duration { return time.Duration(rng.IntN(int(time.Millisecond))) }}
	tape := NewTape(0)
	l := start(t, w, Config{Tape: tape}, pilot(tape, func() []byte {
		in := make([]byte, rng.IntN(4))
		for i := range in {
			in[i] = byte(rng.Uint32())
		}
		return in
	}))
	var out bytes.Buffer
	for range n {
		switch rng.IntN(40) {
		case 0:
			l.Post(Command{Kind: Resume})
		case 1:
			l.Halt()
		case 2, 3:
			l.Post(Command{Kind: Resume})
		case 4:
			w.silent = w.now + time.Duration(rng.IntN(200))*time.Millisecond
		case 5:
			w.wrErr = body.ErrFull
		case 6:
			w.epoch++
		case 7:
			l.begin(w, w.now) // the body was opened again
		}
		if err := l.Step(l.read()); err != nil {
			t.Fatal(err)
		}
		w.wrErr = nil
		if _, err := tape.Flush(&out); err != nil {
			t.Fatal(err)
		}
	}
	if tape.Lost() != 0 {
		t.Fatalf("%d records lost", tape.Lost())
	}
	return out.Bytes()
}

func replayed(b []byte) (Replayed, error) {
	return Replay(bytes.NewReader(b), Config{},
		func(tape *Tape, _ body.Description) []Task { return []Task{pilot(tape, func() []byte { return nil })} }, nil)
}

// The same tasks do the same on the recording, bit by bit (issue: what must hold 5).
func TestReplay(t *testing.T) {
	for seed := range uint64(20) {
		done, err := replayed(recorded(t, seed, 500))
		if err != nil || done.Steps != 500 || done.Cut != nil {
			t.Fatalf("seed %d: %+v, %v; want 500 steps", seed, done, err)
		}
	}
}

// Tasks that do something else are found at the first step where they do.
func TestReplayFindsADifference(t *testing.T) {
	b := recorded(t, 1, 1000)
	for name, tasks := range map[string]func(*Tape, body.Description) []Task{
		"no task": func(*Tape, body.Description) []Task { return nil },
		"other inputs": func(tape *Tape, _ body.Description) []Task {
			return []Task{{Name: "deaf", Every: 1, Run: func(*Frame) {}}}
		},
		"one more input": func(tape *Tape, _ body.Description) []Task {
			p := pilot(tape, func() []byte { return nil })
			return []Task{p, {Name: "greedy", Every: 1, Run: func(*Frame) { tape.Input(nil) }}}
		},
		"one bit in step 200": func(tape *Tape, _ body.Description) []Task {
			n := 0
			return []Task{pilot(tape, func() []byte { return nil }), {Name: "bit", Every: 1, Run: func(f *Frame) {
				if n++; n >= 200 {
					f.Act.Values[0] *= 1 + 1e-15
				}
			}}}
		},
		"lights": func(tape *Tape, _ body.Description) []Task {
			return []Task{pilot(tape, func() []byte { return nil }), {Name: "lights", Every: 1, Run: func(f *Frame) { f.Act.Set(2, body.Level, 1) }}}
		},
	} {
		done, err := Replay(bytes.NewReader(b), Config{}, tasks, nil)
		if !errors.Is(err, ErrDiffers) {
			t.Errorf("%s: %+v, %v; want %v", name, done, err, ErrDiffers)
		}
		if strings.Contains(name, "200") && (done.Steps < 199 || done.Steps > 600) {
			t.Errorf("%s: found after %d steps", name, done.Steps)
		}
	}
	if _, err := Replay(bytes.NewReader(b), Config{StaleAfter: time.Hour}, func(tape *Tape, _ body.Description) []Task {
		return []Task{pilot(tape, func() []byte { return nil })}
	}, nil); !errors.Is(err, ErrDiffers) {
		t.Errorf("another StaleAfter: %v, want %v", err, ErrDiffers)
	}
}

// Every field of a measurement and of a command is in the recording: one that is added to them and not to the tape fails here.
func TestTapeHoldsEveryField(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var want body.Sense
	fill(rng, reflect.ValueOf(&want).Elem())
	tape := NewTape(0)
	d := body.Description{
		Species: "vic", Timing: body.Timing{Rhythm: framePeriod}, Channels: make([]body.Channel, body.MaxChannels),
		Drives: make([]body.Drive, body.MaxDrives),
	}
	tape.begin(&d, time.Hour)
	tape.open(2*time.Hour, &want, nil)
	tape.close(nil)
	var out bytes.Buffer
	if _, err := tape.Flush(&out); err != nil {
		t.Fatal(err)
	}
	var got body.Sense
	_, _ = Replay(&out, Config{StaleAfter: time.Nanosecond}, func(*Tape, body.Description) []Task {
		return []Task{{Name: "look", Every: 1, Run: func(f *Frame) { got = *f.Sense }}}
	}, nil) // it differs: nothing was written
	want.Fresh = got.Fresh // a fill may be false
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if n := reflect.TypeFor[Command]().NumField(); n != 1 {
		t.Errorf("a Command has %d fields; Tape.command and playStep know of Kind", n)
	}
}

// fill gives every field another value.
func fill(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(rng, v.Field(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(rng, v.Index(i))
		}
	case reflect.Float64:
		v.SetFloat(rng.NormFloat64())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64:
		v.SetInt(int64(rng.Uint64() >> 1))
	default:
		v.SetUint(rng.Uint64())
	}
}

// A ring that is not emptied loses records and says so; the records before the gap can be replayed.
func TestTapeThatOverflows(t *testing.T) {
	w := &world{period: framePeriod}
	tape := NewTape(0)
	l := start(t, w, Config{Tape: tape}, pilot(tape, func() []byte { return []byte{1} }))
	steps(t, l, 2000)
	lost := tape.Lost()
	if lost == 0 {
		t.Fatal("2000 steps fit into 64 KiB")
	}
	var out bytes.Buffer
	if _, err := tape.Flush(&out); err != nil {
		t.Fatal(err)
	}
	steps(t, l, 10)
	if _, err := tape.Flush(&out); err != nil {
		t.Fatal(err)
	}
	done, err := replayed(out.Bytes())
	if !errors.Is(err, ErrGap) || done.Steps != 2000-lost || tape.Lost() != lost {
		t.Errorf("%+v, %v; want %d steps, then %v", done, err, 2000-lost, ErrGap)
	}
}

// A recording that breaks off, or is damaged anywhere, is replayed up to there.
func TestRecordingThatEndsAnywhere(t *testing.T) {
	b := recorded(t, 2, 8)
	var last uint64
	for n := range len(b) {
		done, err := replayed(b[:n])
		if n < len(tapeMagic) {
			if !errors.Is(err, ErrRecording) {
				t.Fatalf("first %d bytes: %v, want %v", n, err, ErrRecording)
			}
			continue
		}
		if err != nil || done.Steps < last || done.Steps > last+1 {
			t.Fatalf("first %d bytes: %+v after %d steps, %v", n, done, last, err)
		}
		last = done.Steps
	}
	if last != 7 {
		t.Errorf("without the last byte %d steps, want 7", last)
	}
	for at := range b {
		bad := bytes.Clone(b)
		bad[at] ^= 0x40
		if done, err := replayed(bad); err == nil && done.Cut == nil {
			t.Fatalf("byte %d damaged: %+v, want it noticed", at, done)
		}
	}
}

func TestTapeAllocatesNothing(t *testing.T) {
	w := &world{period: framePeriod}
	tape := NewTape(1 << 20)
	in := []byte{1, 2, 3}
	l := start(t, w, Config{Tape: tape}, pilot(tape, func() []byte { return in }))
	if n := testing.AllocsPerRun(500, func() {
		l.Post(Command{Kind: Resume})
		if err := l.Step(l.read()); err != nil {
			t.Fatal(err)
		}
		if _, err := tape.Flush(io.Discard); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a recorded step allocates %v times", n)
	}
}

// A loop and the one that empties its tape run at once.
func TestTapeIsEmptiedMeanwhile(t *testing.T) {
	w := &world{period: framePeriod}
	tape := NewTape(1 << 20)
	l := start(t, w, Config{Tape: tape}, pilot(tape, func() []byte { return []byte{5} }))
	ended, flushed := make(chan struct{}), make(chan error, 1)
	var out bytes.Buffer
	go func() {
		for {
			select {
			case <-ended:
				_, err := tape.Flush(&out)
				flushed <- err
				return
			default:
				if _, err := tape.Flush(&out); err != nil {
					flushed <- err
					return
				}
				runtime.Gosched()
			}
		}
	}()
	steps(t, l, 3000)
	close(ended)
	if err := <-flushed; err != nil {
		t.Fatal(err)
	}
	done, err := replayed(out.Bytes())
	if tape.Lost() == 0 && (err != nil || done.Steps != 3000) || tape.Lost() > 0 && !errors.Is(err, ErrGap) {
		t.Errorf("%+v, %v; %d lost", done, err, tape.Lost())
	}
}

// Whatever the bytes are, the replay ends with what is wrong. A fuzzer knows no checksums: they are made good here.
func FuzzReplay(f *testing.F) {
	f.Add(recorded(f, 1, 5))
	f.Add([]byte(tapeMagic + "B\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for at := len(tapeMagic); at+recordHead <= len(b); {
			size := recordHead + int(binary.LittleEndian.Uint16(b[at+1:]))
			if at+size+recordSum > len(b) {
				break
			}
			binary.LittleEndian.PutUint32(b[at+size:], crc32.ChecksumIEEE(b[at:at+size]))
			at += size + recordSum
		}
		if _, err := replayed(b); err != nil && !errors.Is(err, ErrRecording) && !errors.Is(err, ErrDiffers) && !errors.Is(err, ErrGap) {
			t.Fatal(err)
		}
	})
}

// A recording of another version is refused by its number; one that is none, by its beginning.
func TestRecordingOfAnotherVersion(t *testing.T) {
	b := recorded(t, 2, 8)
	for want, magic := range map[string]string{`version "3", want "4"`: "KRT3", `starts with "RIFF"`: "RIFF", `starts with "KR`: "KR"} {
		bad := append([]byte(magic), b[len(magic):]...)
		if len(magic) < len(tapeMagic) {
			bad = bad[:len(magic)]
		}
		if _, err := replayed(bad); !errors.Is(err, ErrRecording) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", magic, err, want)
		}
	}
}
