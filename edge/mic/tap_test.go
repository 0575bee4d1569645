package mic

import (
	"testing"
)

// TestTap: each who listens gets each chunk; one that is slow misses some, and the next that it gets counts their frames. What is on its way when the microphones are switched
// off is heard by no one.
func TestTap(t *testing.T) {
	var tap Tap
	changes := 0
	tap.Changed = func() { changes++ }
	tap.Put(&Chunk{Seq: 1}) // no one listens
	quick, leave := tap.Listen()
	slow, end := tap.Listen()
	if changes != 1 || !tap.Heard() {
		t.Errorf("%d changes, heard %v", changes, tap.Heard())
	}
	const more = 3
	for i := range uint64(tapChunks + more) {
		tap.Put(&Chunk{Seq: i + 2, Lost: i % 2})
		if c := <-quick.Chunks; c.Seq != i+2 || c.Lost != i%2 {
			t.Fatalf("chunk %d lost %d; want %d and %d", c.Seq, c.Lost, i+2, i%2)
		}
	}
	frames := uint64(0)
	for range tapChunks {
		frames += 2 + (<-slow.Chunks).Lost
	}
	tap.Put(&Chunk{Seq: 100})
	frames += 2 + (<-slow.Chunks).Lost
	if want := uint64(2*(tapChunks+more+1) + (tapChunks+more)/2); frames != want {
		t.Errorf("a slow listener heard or lost %d frames, want %d", frames, want)
	}
	<-quick.Chunks
	tap.Put(&Chunk{Seq: 101})
	tap.SetOff("off")
	tap.SetOff("off")
	tap.Put(&Chunk{Seq: 102})
	if len(quick.Chunks) != 0 || len(quick.Off) != 1 || tap.Why() != "off" {
		t.Errorf("switched off: %d chunks, told %d times, %q", len(quick.Chunks), len(quick.Off), tap.Why())
	}
	tap.SetOff("")
	tap.Put(&Chunk{Seq: 103})
	if c := <-quick.Chunks; c.Seq != 103 {
		t.Errorf("switched on: chunk %d", c.Seq)
	}
	leave()
	if !tap.Heard() || changes != 1 {
		t.Error("one of two has left, and the tap says that all have")
	}
	end()
	if tap.Heard() || changes != 2 {
		t.Error("all have left, and the tap does not say so")
	}
}
