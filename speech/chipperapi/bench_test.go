package chipperapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
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
	"kennel/speech/recognizer"
	"kennel/speech/recognizer/fixed"
)

// seconds of audio in a session, in pieces of 120 ms: as an original robot sends them (peer facts, section 1).
const (
	seconds    = 6
	pieceBytes = 2 * 16000 * 120 / 1000
	turnTime   = time.Second
)

// BenchmarkSpeechBesideDrain has one client make sessions of 6 s of PCM, as fast as they go, beside a bare stream that drains the same bytes (issue 19,
// "what must hold" 4).
func BenchmarkSpeechBesideDrain(b *testing.B) {
	besideDrain(b, 1, pcm(b), chipperpb.AudioEncoding_LINEAR_PCM, 0.5)
}

// BenchmarkSpeechOf8ClientsBesideDrain is BenchmarkSpeechBesideDrain with eight clients.
func BenchmarkSpeechOf8ClientsBesideDrain(b *testing.B) {
	besideDrain(b, 8, pcm(b), chipperpb.AudioEncoding_LINEAR_PCM, 0.5)
}

// BenchmarkOpusBesideDrain is BenchmarkSpeechBesideDrain in Ogg Opus, whose decoding is most of the cost.
func BenchmarkOpusBesideDrain(b *testing.B) {
	besideDrain(b, 1, opus(b), chipperpb.AudioEncoding_OGG_OPUS, 0)
}

// BenchmarkOpusOf8ClientsBesideDrain is BenchmarkOpusBesideDrain with eight clients.
func BenchmarkOpusOf8ClientsBesideDrain(b *testing.B) {
	besideDrain(b, 8, opus(b), chipperpb.AudioEncoding_OGG_OPUS, 0)
}

func TestSpeechBesideDrain(t *testing.T) {
	besideDrain(t, 2, pcm(t), chipperpb.AudioEncoding_LINEAR_PCM, 0)
	besideDrain(t, 2, opus(t), chipperpb.AudioEncoding_OGG_OPUS, 0)
}

func TestCrowdBesideDrain(t *testing.T) {
	bench.Soak(t) // it takes the time that speech takes
	crowdBesideDrain(t, pcm(t), chipperpb.AudioEncoding_LINEAR_PCM)
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
	return hearsBy(&fixed.Recognizer{Text: "set a timer for ten minutes"})
}

func hearsBy(r recognizer.Recognizer) chipperapi.Config {
	return chipperapi.Config{Speech: speech.New(speech.Config{Recognizer: r, Match: match}), Prove: stranger}
}

// counting counts what a recogniser is given, and how often.
type counting struct {
	fixed.Recognizer
	sessions, samples atomic.Int64
}

func (c *counting) Open(ctx context.Context, e recognizer.Expect) (recognizer.Stream, error) {
	c.sessions.Add(1)
	st, err := c.Recognizer.Open(ctx, e)
	return counted{st, c}, err
}

type counted struct {
	recognizer.Stream
	by *counting
}

func (c counted) Write(samples []int16) error {
	c.by.samples.Add(int64(len(samples)))
	return c.Stream.Write(samples)
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
	by := &counting{Recognizer: fixed.Recognizer{Text: "set a timer for ten minutes"}}
	ours := func(s grpc.ServiceRegistrar) { chipperapi.Register(s, hearsBy(by)) }
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
		Note: "6 s of audio each, with a fixed recogniser, beside a stream that drains the same bytes"}, rate(ours, timer), rate(bare, ""))
	if each := time.Duration(by.samples.Load()/by.sessions.Load()) * time.Second / recognizer.Rate; each < (seconds-1)*time.Second {
		tb.Errorf("the recogniser got %v of each session: want nearly %d s, as the reference reads", each, seconds)
	}
}

// BenchmarkCrowdBesideDrain has 500 robots speak for 6 s in real time, beside as many whose audio is drained (issue 19, "what must hold" 4).
func BenchmarkCrowdBesideDrain(b *testing.B) {
	crowdBesideDrain(b, pcm(b), chipperpb.AudioEncoding_LINEAR_PCM)
}

// BenchmarkOpusCrowdBesideDrain is BenchmarkCrowdBesideDrain in Ogg Opus.
func BenchmarkOpusCrowdBesideDrain(b *testing.B) {
	crowdBesideDrain(b, opus(b), chipperpb.AudioEncoding_OGG_OPUS)
}

func crowdBesideDrain(tb testing.TB, pieces [][]byte, encoding chipperpb.AudioEncoding) {
	tb.Helper()
	robots := bench.Part(tb, 500)
	run := func(register func(grpc.ServiceRegistrar), want string) func() (crowd, error) {
		calls := connections(serveThe(tb, register), robots)
		return func() (crowd, error) {
			return speakAtOnce(tb.Context(), calls, robots, pieces, encoding, 120*time.Millisecond, want)
		}
	}
	ours := run(func(s grpc.ServiceRegistrar) { chipperapi.Register(s, hears()) }, timer)
	bare := run(func(s grpc.ServiceRegistrar) { chipperpb.RegisterChipperGrpcServer(s, drain{}) }, "")
	var late, memory, cpu []bench.Pair
	bench.Turns(tb, func() error {
		value, err := ours()
		if err != nil {
			return err
		}
		reference, err := bare()
		late = append(late, bench.Pair{Value: value.p99.Seconds() * 1e3, Reference: reference.p99.Seconds() * 1e3})
		memory = append(memory, bench.Pair{Value: float64(value.held) / float64(robots) / 1024, Reference: float64(reference.held) / float64(robots) / 1024})
		cpu = append(cpu, bench.Pair{Value: value.cpu.Seconds() * 1e3 / float64(robots), Reference: reference.cpu.Seconds() * 1e3 / float64(robots)})
		return err
	})
	name, note := fmt.Sprintf("speech/%v_crowd_", encoding), fmt.Sprintf("%d robots at once in real time, 6 s each, client and server; reference: a stream that drains the same bytes; ", robots)
	bench.Report(tb, bench.Line{Name: name + "answer", Unit: "ms", Less: true, Note: note + "p99 from the last piece to the answer"}, late)
	bench.Report(tb, bench.Line{Name: name + "memory", Unit: "KiB/robot", Less: true, Note: note + "most of the heap above that before"}, memory)
	bench.Report(tb, bench.Line{Name: name + "cpu", Unit: "ms/session", Less: true, Note: note + "processor time"}, cpu)
}

// connections returns the clients of so many robots: a connection takes 100 streams at once.
func connections(dial func() client, robots int) (out []client) {
	for range (robots + 49) / 50 {
		out = append(out, dial())
	}
	return out
}

// crowd holds the cost of robots that speak at once.
type crowd struct {
	p99, worst time.Duration // from the last piece to the answer
	held       uint64        // most that the heap was above its size before
	cpu        time.Duration
}

// speakAtOnce has robots speak, each a little later than the one before, in pieces of which each takes every.
func speakAtOnce(ctx context.Context, calls []client, robots int, pieces [][]byte, encoding chipperpb.AudioEncoding, every time.Duration, want string) (crowd, error) {
	used := func() time.Duration {
		u, _ := bench.UsageOf(os.Getpid()) // of this process it can be read
		return u.CPU
	}
	began, end := used(), most(settled())
	late, errc := make([]time.Duration, robots), make(chan error, robots)
	var wg sync.WaitGroup
	for i := range robots {
		wg.Go(func() {
			errc <- func() error {
				if err := bench.Pass(ctx, every*time.Duration(i)/time.Duration(robots)); err != nil {
					return err
				}
				at := time.Now()
				got, err := spoken(ctx, calls[i%len(calls)], pieces, encoding, every)
				if err == nil && got.GetIntentResult().GetAction() != want {
					err = fmt.Errorf("answered %v, want %q", got, want)
				}
				late[i] = time.Since(at) - time.Duration(len(pieces))*every
				return err
			}()
		})
	}
	wg.Wait()
	close(errc)
	out := crowd{held: end(), cpu: used() - began}
	slices.Sort(late)
	out.p99, out.worst = late[(robots-1)*99/100], late[robots-1]
	var all []error
	for err := range errc {
		all = append(all, err)
	}
	return out, errors.Join(all...)
}

// TestManySpeakAtOnce: robots that speak in real time all have their answer, and memory and goroutines stay flat (issue 19, "what must hold" 4).
func TestManySpeakAtOnce(t *testing.T) {
	robots, turns, every := 10, 2, time.Duration(0)
	if os.Getenv("KENNEL_SOAK") != "" {
		robots, turns, every = 500, 5, 120*time.Millisecond
	}
	most := map[chipperpb.AudioEncoding]int{chipperpb.AudioEncoding_LINEAR_PCM: 64, chipperpb.AudioEncoding_OGG_OPUS: 256} // KiB of a session, client and server; its audio has 188
	for encoding, pieces := range map[chipperpb.AudioEncoding][][]byte{chipperpb.AudioEncoding_LINEAR_PCM: pcm(t), chipperpb.AudioEncoding_OGG_OPUS: opus(t)} {
		calls := connections(serveThe(t, func(s grpc.ServiceRegistrar) { chipperapi.Register(s, hears()) }), robots)
		goroutines, first := runtime.NumGoroutine(), uint64(0)
		for turn := range turns {
			c, err := speakAtOnce(t.Context(), calls, robots, pieces, encoding, every, timer)
			if err != nil {
				t.Error(err)
			}
			after := settled()
			t.Logf("%v, turn %d: %d robots, most of the heap %d KiB more than before, %d KiB afterwards, answers %v after the last piece (p99), %v (worst), %v of processor time", encoding, turn, robots,
				c.held>>10, after>>10, c.p99, c.worst, c.cpu)
			if c.held > uint64(robots*most[encoding])<<10+16<<20 {
				t.Errorf("the heap rose by %d bytes", c.held)
			}
			if turn == 0 {
				first = after // with the buffers of the connections
			}
			if after > first+4<<20 {
				t.Errorf("heap grew from %d to %d bytes", first, after)
			}
		}
		testwait.Until(t, 20*time.Second, "the goroutines of the sessions to end", testwait.Holds(func() bool { return runtime.NumGoroutine() <= goroutines+20*len(calls) }))
	}
}
