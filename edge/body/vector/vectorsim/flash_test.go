package vectorsim

import (
	"testing"

	"kennel/edge/body/vector/spine"
)

// finish lets the boot-loader work until it answers, and returns the answer and how long it took.
func (b *bench) finish(in ...byte) (answer string, periods int) {
	b.t.Helper()
	for periods = 1; periods < 1000; periods++ {
		frames, err := b.step(in...)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, f := range frames {
			if f.Type == spine.TypeAck {
				return types([]spine.Frame{f}), periods
			}
		}
		in = nil
	}
	b.t.Fatal("the boot-loader does not answer")
	return "", 0
}

func (b *bench) blocks(file []byte) {
	b.t.Helper()
	program := file[16:]
	for at := 0; at < len(program); at += spine.BlockSize {
		m := spine.Firmware{Offset: uint16(at)}
		m.Words = uint16(copy(m.Data[:], program[at:]) / 4)
		if got, _ := b.finish(m.AppendFrame(nil)...); got != "ak" {
			b.t.Fatalf("block at %d: %s", at, got)
		}
	}
}

// The whole way, as VEC-DFU-02 has it, and the boot-loader's rules on it.
func TestBootloaderTakesAProgram(t *testing.T) {
	command := func(t spine.Type) []byte { return spine.AppendCommand(nil, t) }
	b := newBench(t, Config{Start: StartEmpty})
	got, erasing := b.finish(command(spine.TypeErase)...)
	if got != "ak" || erasing < programMost/flashPage/pagesAPeriod {
		t.Errorf("erase: %s after %d periods, want an ACK when it is done (VEC-BODY-H09)", got, erasing)
	}
	file := Image("2.0", 3000, 1)
	b.blocks(file)
	changed := spine.Firmware{Words: 1}
	if got, _ := b.finish(changed.AppendFrame(nil)...); got != "nak" {
		t.Errorf("another word where one is written: %s, want nak until it is erased", got)
	}
	for name, m := range map[string]spine.Firmware{
		"beyond the end": {Offset: programMost, Words: 1}, "over the end": {Offset: programMost - 4, Words: 2}, "between words": {Offset: 4002, Words: 1},
	} {
		if got, _ := b.finish(m.AppendFrame(nil)...); got != "nak" {
			t.Errorf("block %s: %s, want nak", name, got)
		}
	}
	if got, _ := b.finish(command(spine.TypeValidate)...); got != "ak" || b.State().Mode != InApplication {
		t.Errorf("validate: %s, then the board is in its %v", got, b.State().Mode)
	}
	if frames, err := b.step(command(spine.TypeVersion)...); err != nil || types(frames) != "vr fd" || string(frames[0].Payload[24:27]) != "2.0" {
		t.Errorf("version: %q, %v; want what was written", types(frames), err)
	}
	b.powerOn()
	if b.State().Mode != InApplication {
		t.Error("after a power cut the new program does not run")
	}
}

// A power cut in the middle leaves a boot-loader without a program, never half of one that runs (VEC-BOOT-04).
func TestPowerCutWhileMemoryIsWritten(t *testing.T) {
	for _, periods := range []int{1, 5, 40} {
		b := newBench(t, Config{Start: StartBootloader})
		if _, err := b.step(spine.AppendCommand(nil, spine.TypeErase)...); err != nil {
			t.Fatal(err)
		}
		for range periods {
			if frames, err := b.step(spine.AppendCommand(nil, spine.TypeVersion)...); len(frames) != 0 || err != nil {
				t.Fatalf("while it erases: %q, %v; want a boot-loader that hears nothing", types(frames), err)
			}
		}
		b.powerOff()
		b.powerOn()
		if frames, err := b.step(spine.AppendCommand(nil, spine.TypeMode)...); err != nil || types(frames) != "nak bf" {
			t.Errorf("%d periods into an erasure, then started: %q, %v; want nothing to start", periods, types(frames), err)
		}
	}
}

// One wrong bit anywhere, and the program does not start (VEC-BOOT-04).
func TestValidateSeesEveryBit(t *testing.T) {
	var f flash
	file := Image("2.0", imageLeast+400, 1)
	f.load(file)
	if !f.validate() {
		t.Fatal("a sound image is refused")
	}
	for at := range len(file) - 16 {
		f.cells[at] ^= 1 << (at % 8)
		if f.validate() {
			t.Fatalf("a program with a wrong bit in byte %d is taken", at)
		}
		f.cells[at] ^= 1 << (at % 8)
	}
}
