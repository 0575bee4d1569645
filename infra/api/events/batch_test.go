package events

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func many(n int) []Event {
	evs := make([]Event, n)
	for i := range evs {
		evs[i] = usual()
		evs[i].Seq = uint64(100 + i)
	}
	return evs
}

func TestBatchRoundTrip(t *testing.T) {
	evs := many(300)
	evs[7].S1 = "quote \" newline \n é"
	evs = slices.Delete(evs, 20, 25) // quota or quarantine left a gap
	msg, err := EncodeBatch("batch-1", evs)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeBatch(msg)
	if err != nil {
		t.Fatal(err)
	}
	want := Batch{Header{V: 1, Batch: "batch-1", RobotID: "00e20100", BootID: evs[0].BootID, First: 100, Last: 399, Count: 295}, evs, got.Size}
	if !reflect.DeepEqual(got, want) || got.Size < 295*100 {
		t.Errorf("got %+v", got.Header)
	}
	if h, err := DecodeHeader(msg); err != nil || h != want.Header {
		t.Errorf("DecodeHeader = %+v, %v", h, err)
	}
}

// frame makes a batch by hand, so that it may be wrong.
func frame(t testing.TB, h Header, lines ...string) []byte {
	t.Helper()
	head, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	out.Write(append(head, '\n'))
	z := gzip.NewWriter(&out)
	for _, l := range lines {
		_, _ = z.Write([]byte(l + "\n")) // to memory
	}
	_ = z.Close() // to memory
	return out.Bytes()
}

func TestDecodeBatchRefuses(t *testing.T) {
	line := func(seq int, spoil ...func(*Event)) string {
		e := Event{Seq: uint64(seq), Level: Info, RobotID: "r1", BootID: "b1", Name: "a.b"}
		for _, f := range spoil {
			f(&e)
		}
		return string(AppendLine(nil, &e))
	}
	head := Header{V: 1, Batch: "x", RobotID: "r1", BootID: "b1", First: 1, Last: 3, Count: 3}
	with := func(f func(*Header)) Header { h := head; f(&h); return h }
	good := []string{line(1), line(2), line(3)}
	for _, tc := range []struct {
		name string
		msg  []byte
		code string
		bad  []uint64
		says string
	}{
		{"empty", nil, "header", nil, "no header"},
		{"no JSON", []byte("hello\n"), "header", nil, "header"},
		{"version", frame(t, with(func(h *Header) { h.V = 2 }), good...), "header", nil, "version 2"},
		{"batch id", frame(t, with(func(h *Header) { h.Batch = "a/b" }), good...), "header", nil, "batch id"},
		{"robot id", frame(t, with(func(h *Header) { h.RobotID = "" }), good...), "header", nil, "robot_id"},
		{"boot id", frame(t, with(func(h *Header) { h.BootID = "b 1" }), good...), "header", nil, "boot_id"},
		{"count 0", frame(t, with(func(h *Header) { h.Count = 0 }), good...), "header", nil, "count 0"},
		{"seq range", frame(t, with(func(h *Header) { h.Last = 2 }), good...), "header", nil, "count 3"},
		{"not gzip", []byte(`{"v":1,"batch":"x","robot_id":"r1","boot_id":"b1","first":1,"last":1,"count":1}` + "\nabc"), "encoding", nil, "not gzip"},
		{"cut short", frame(t, head, good...)[:120], "encoding", nil, "gzip at byte"},
		{"too few lines", frame(t, head, good[:2]...), "count", nil, "2 lines"},
		{"too many lines", frame(t, head, append(good, line(4))...), "count", nil, "than the 3"},
		{"bomb", frame(t, head, strings.Repeat(" ", MaxInflated+1)), "too_large", nil, "decompresses"},
		{"too large", append(frame(t, head, good...), make([]byte, MaxWire)...), "too_large", nil, "bytes"},
		{"poisoned event", frame(t, head, line(1), line(2, func(e *Event) { e.S1 = "a\x00" }), line(3)), "events", []uint64{2}, "line 2 (seq 2): s1"},
		{"two poisoned", frame(t, head, line(1, func(e *Event) { e.Name = "x" }), line(2), line(3, func(e *Event) { e.TS = -4 })), "events", []uint64{1, 3}, "line 3 (seq 3): ts -4"},
		{"other robot", frame(t, head, line(1), line(2, func(e *Event) { e.RobotID = "r2" }), line(3)), "events", []uint64{2}, `robot_id "r2"`},
		{"other boot", frame(t, head, line(1), line(2), line(3, func(e *Event) { e.BootID = "b2" })), "events", []uint64{3}, `boot_id "b2"`},
		{"repeated seq", frame(t, head, line(1), line(1), line(3)), "events", []uint64{1}, "out of order"},
		{"beyond last", frame(t, head, line(1), line(2), line(4)), "events", []uint64{4}, "out of order"},
		{"deep", frame(t, head, line(1), `{"seq":2,"x":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+"}", line(3)), "events", []uint64{2}, "line 2"},
		{"deeper than is read", frame(t, head, line(1), strings.Repeat("[", 50_000), line(3)), "events", nil, "line 2: not an event"},
		{"no event", frame(t, head, line(1), "{}", line(3)), "events", nil, "line 2: not an event"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := DecodeBatch(tc.msg)
			var e *BatchError
			if !errors.As(err, &e) {
				t.Fatalf("err = %v; want a *BatchError", err)
			}
			if e.Code != tc.code || !slices.Equal(e.Bad, tc.bad) || !strings.Contains(e.Reason, tc.says) {
				t.Errorf("got %s %v %q; want %s %v %q", e.Code, e.Bad, e.Reason, tc.code, tc.bad, tc.says)
			}
		})
	}
	if _, err := DecodeBatch(frame(t, head, good...)); err != nil {
		t.Errorf("the good batch: %v", err)
	}
}

func TestEncodeTooLarge(t *testing.T) {
	evs := many(40)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range evs {
		for _, s := range []*string{&evs[i].S1, &evs[i].S2, &evs[i].S3, &evs[i].S4} {
			b := make([]byte, MaxText)
			for j := range b {
				b[j] = ' ' + byte(rnd.IntN(94))
			}
			*s = string(b)
		}
	}
	if _, err := EncodeBatch("x", evs); !errors.Is(err, ErrTooLarge) {
		t.Errorf("err = %v; want ErrTooLarge", err)
	}
	if _, err := EncodeBatch("x", many(MaxEvents+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("err = %v; want ErrTooLarge", err)
	}
	if _, err := EncodeBatch("x", evs[:1]); err != nil {
		t.Errorf("one event of the largest kind must pass: %v", err)
	}
}

func FuzzDecodeBatch(f *testing.F) {
	msg, err := EncodeBatch("batch-1", many(3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(msg)
	f.Add(frame(f, Header{V: 1, Batch: "x", RobotID: "r1", BootID: "b1", First: 1, Last: 2, Count: 2}, `{"seq":1}`, `{"seq":2,"event":"a.b"}`))
	f.Fuzz(func(t *testing.T, msg []byte) {
		b, err := DecodeBatch(msg)
		if err != nil {
			var e *BatchError
			if !errors.As(err, &e) || e.Reason == "" || len(e.Bad) > MaxEvents {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		again, err := EncodeBatch(b.Batch, b.Events)
		if errors.Is(err, ErrTooLarge) {
			return // another compressor, or escapes that the sender did without
		}
		if err != nil {
			t.Fatal(err)
		}
		back, err := DecodeBatch(again)
		if err != nil || back.Header != b.Header || !slices.Equal(b.Events, back.Events) {
			t.Fatalf("%+v\nread again %+v, %v", b.Header, back.Header, err)
		}
	})
}

func BenchmarkDecodeBatch(b *testing.B) {
	msg, err := EncodeBatch("batch-1", many(1000))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeBatch(msg); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*1000/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(len(msg))/1000, "wireB/event")
}
