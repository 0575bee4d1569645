package chipperapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"kennel/infra/api/chipperpb"
	"kennel/infra/bench"
	"kennel/infra/testwait"
	"kennel/speech"
	"kennel/speech/chipperapi"
	"kennel/speech/recognizer/fixed"
)

// seconds of audio in a session, in pieces of 120 ms: as an original robot sends them (peer facts, section 1).
const (
	seconds    = 6
	pieceBytes = 2 * 16000 * 120 / 1000
	turnTime   = time.Second
)

// BenchmarkSpeechBesideDrain has sessions of 6 s of PCM, as fast as they go, beside a bare stream that drains the same bytes (issue 19, "what must
// hold" 4). BenchmarkOpusBesideDrain is the same in Ogg Opus, whose decoding is most of the cost.
func BenchmarkSpeechBesideDrain(b *testing.B) {
	besideDrain(b, 1, pcm(b), chipperpb.AudioEncoding_LINEAR_PCM, 0.5)
}
func BenchmarkSpeechOf8ClientsBesideDrain(b *testing.B) {
	besideDrain(b, 8, pcm(b), chipperpb.AudioEncoding_LINEAR_PCM, 0.5)
}
func BenchmarkOpusBesideDrain(b *testing.B) {
	besideDrain(b, 1, opus(b), chipperpb.AudioEncoding_OGG_OPUS, 0)
}
func BenchmarkOpusOf8ClientsBesideDrain(b *testing.B) {
	besideDrain(b, 8, opus(b), chipperpb.AudioEncoding_OGG_OPUS, 0)
}

func TestSpeechBesideDrain(t *testing.T) {
	besideDrain(t, 2, pcm(t), chipperpb.AudioEncoding_LINEAR_PCM, 0)
	besideDrain(t, 2, opus(t), chipperpb.AudioEncoding_OGG_OPUS, 0)
}

// pcm is a person who speaks for 6 s.
func pcm(tb testing.TB) (out [][]byte) {
	say := read(tb, "robot.pcm")[4000:]
	var all []byte
	for len(all) < seconds*2*16000 {
		all = append(all, say...)
	}
	for at := 0; at < seconds*2*16000; at += pieceBytes {
		out = append(out, all[at:at+pieceBytes])
	}
	return out
}

// opus is the same in Ogg: the pages of the recording over and over, one to a piece.
func opus(tb testing.TB) (out [][]byte) {
	b := read(tb, "robot.opus")
	var pages [][]byte
	for len(b) > 0 {
		n := 27 + int(b[26])
		for _, l := range b[27 : 27+int(b[26])] {
			n += int(l)
		}
		pages, b = append(pages, b[:n]), b[n:]
	}
	out = [][]byte{append(append([]byte{}, pages[0]...), pages[1]...)}
	audio := pages[3 : len(pages)-2] // the words
	for len(out) < seconds*1000/120 {
		out = append(out, audio[len(out)%len(audio)])
	}
	return out
}

func read(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile("../ogg/testdata/" + name)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// drain reads a stream to its end.
type drain struct {
	chipperpb.UnimplementedChipperGrpcServer
}

func (drain) StreamingIntent(st grpc.BidiStreamingServer[chipperpb.StreamingIntentRequest, chipperpb.IntentResponse]) error {
	for {
		if _, err := st.Recv(); errors.Is(err, io.EOF) {
			return st.Send(&chipperpb.IntentResponse{IsFinal: true})
		} else if err != nil {
			return err
		}
	}
}

func hears() chipperapi.Config {
	return chipperapi.Config{Speech: speech.New(speech.Config{Recognizer: &fixed.Recognizer{Text: "set a timer for ten minutes"}, Match: match}), Prove: stranger}
}

// spoken makes one session: every is the time between two pieces.
func spoken(ctx context.Context, c chipperpb.ChipperGrpcClient, pieces [][]byte, encoding chipperpb.AudioEncoding, every time.Duration) (*chipperpb.IntentResponse, error) {
	st, err := c.StreamingIntent(ctx)
	if err != nil {
		return nil, err
	}
	for _, b := range pieces {
		if err := st.Send(&chipperpb.StreamingIntentRequest{Session: "1", InputAudio: b, AudioEncoding: encoding}); err != nil {
			break // the answer tells why
		}
		if every > 0 {
			if err := bench.Pass(ctx, every); err != nil {
				return nil, err
			}
		}
	}
	if err := st.CloseSend(); err != nil {
		return nil, err
	}
	got, err := st.Recv()
	if err == nil {
		if _, end := st.Recv(); !errors.Is(end, io.EOF) {
			err = fmt.Errorf("after the answer: %w", end)
		}
	}
	return got, err
}

func besideDrain(tb testing.TB, clients int, pieces [][]byte, encoding chipperpb.AudioEncoding, bound float64) {
	tb.Helper()
	bare := func(s grpc.ServiceRegistrar) { chipperpb.RegisterChipperGrpcServer(s, drain{}) }
	ours := func(s grpc.ServiceRegistrar) { chipperapi.Register(s, hears()) }
	rate := func(register func(grpc.ServiceRegistrar), want string) func(context.Context) (float64, error) {
		dial := serveThe(tb, register)
		calls := make([]chipperpb.ChipperGrpcClient, clients)
		for i := range calls {
			calls[i] = dial()
		}
		return func(ctx context.Context) (float64, error) {
			return bench.During(ctx, bench.Part(tb, turnTime), clients, func(_ context.Context, caller int) error {
				got, err := spoken(tb.Context(), calls[caller], pieces, encoding, 0)
				if err == nil && got.GetIntentResult().GetAction() != want {
					err = fmt.Errorf("answered %v, want %q", got, want)
				}
				return err
			})
		}
	}
	bench.Beside(tb, bench.Line{Name: fmt.Sprintf("speech/%v_of_%d", encoding, clients), Unit: "sessions/s", Bound: bound,
		Note: "6 s of audio each, with a fixed recogniser, beside a stream that drains the same bytes"}, rate(ours, "intent_clock_settimer_extend"), rate(bare, ""))
}

// TestManySpeakAtOnce: robots that speak in real time all have their answer, and memory and goroutines stay flat (issue 19, "what must hold" 4).
func TestManySpeakAtOnce(t *testing.T) {
	robots, turns, every := 30, 2, time.Duration(0)
	if os.Getenv("KENNEL_SOAK") != "" {
		robots, turns, every = 500, 5, 120*time.Millisecond
	}
	dial, pieces := serveThe(t, func(s grpc.ServiceRegistrar) { chipperapi.Register(s, hears()) }), pcm(t)
	var calls []chipperpb.ChipperGrpcClient
	for range (robots + 49) / 50 { // a connection takes 100 streams at once
		calls = append(calls, dial())
	}
	heap := func() (m runtime.MemStats) {
		runtime.GC()
		runtime.GC() // pools are empty after the second
		runtime.ReadMemStats(&m)
		return m
	}
	began, goroutines, worst, first := heap(), runtime.NumGoroutine(), atomic.Int64{}, uint64(0)
	for turn := range turns {
		var wg sync.WaitGroup
		for i := range robots {
			wg.Go(func() {
				time.Sleep(every * time.Duration(i) / time.Duration(robots)) // not all in step
				at := time.Now()
				if got, err := spoken(t.Context(), calls[i%len(calls)], pieces, chipperpb.AudioEncoding_LINEAR_PCM, every); err != nil || got.GetIntentResult().GetAction() != "intent_clock_settimer_extend" {
					t.Errorf("%v, %v", got, err)
				}
				if late := time.Since(at) - time.Duration(len(pieces))*every; late.Nanoseconds() > worst.Load() {
					worst.Store(late.Nanoseconds())
				}
			})
		}
		wg.Wait()
		m := heap()
		t.Logf("turn %d: %d robots, heap %d KiB (%d at the start), worst answer %v after the last piece", turn, robots, m.HeapAlloc>>10, began.HeapAlloc>>10, time.Duration(worst.Load()))
		if turn == 0 {
			first = m.HeapAlloc // with the buffers of the connections
		}
		if m.HeapAlloc > first+16<<20 {
			t.Errorf("heap grew from %d to %d bytes", first, m.HeapAlloc)
		}
	}
	testwait.Until(t, 20*time.Second, "the goroutines of the sessions to end", testwait.Holds(func() bool { return runtime.NumGoroutine() <= goroutines+20*len(calls) }))
}
