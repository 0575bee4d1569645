package chipperapi_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"kennel/infra/api/chipperpb"
	"kennel/infra/ratelimit"
	"kennel/infra/testwait"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/chipperapi"
	"kennel/speech/recognizer"
)

// patience is how long an original robot waits for an answer (peer facts, section 1).
const patience = 9 * time.Second

// call is one of the streams of the service.
type call struct {
	name   string
	open   func(context.Context, chipperpb.ChipperGrpcClient) (grpc.ClientStream, error)
	say    func(chipperpb.AudioEncoding, []byte) proto.Message
	answer func() proto.Message
}

// spokenCalls are the streams of speech; checkCall is the connection check.
var (
	spokenCalls = []call{
		{"intent", func(ctx context.Context, c chipperpb.ChipperGrpcClient) (grpc.ClientStream, error) {
			return c.StreamingIntent(ctx)
		},
			func(e chipperpb.AudioEncoding, b []byte) proto.Message {
				return &chipperpb.StreamingIntentRequest{AudioEncoding: e, InputAudio: b}
			}, func() proto.Message { return new(chipperpb.IntentResponse) }},
		{"knowledge", func(ctx context.Context, c chipperpb.ChipperGrpcClient) (grpc.ClientStream, error) {
			return c.StreamingKnowledgeGraph(ctx)
		}, func(e chipperpb.AudioEncoding, b []byte) proto.Message {
			return &chipperpb.StreamingKnowledgeGraphRequest{AudioEncoding: e, InputAudio: b}
		}, func() proto.Message { return new(chipperpb.KnowledgeGraphResponse) }},
		{"graph", func(ctx context.Context, c chipperpb.ChipperGrpcClient) (grpc.ClientStream, error) {
			return c.StreamingIntentGraph(ctx)
		}, func(e chipperpb.AudioEncoding, b []byte) proto.Message {
			return &chipperpb.StreamingIntentGraphRequest{AudioEncoding: e, InputAudio: b}
		}, func() proto.Message { return new(chipperpb.IntentGraphResponse) }},
	}
	checkCall = call{"check", func(ctx context.Context, c chipperpb.ChipperGrpcClient) (grpc.ClientStream, error) {
		return c.StreamingConnectionCheck(ctx)
	}, func(_ chipperpb.AudioEncoding, b []byte) proto.Message {
		return &chipperpb.StreamingConnectionCheckRequest{InputAudio: b, TotalAudioMs: 6000, AudioPerRequest: 120}
	}, func() proto.Message { return new(chipperpb.ConnectionCheckResponse) }}
	pcmCode, opusCode = chipperpb.AudioEncoding_LINEAR_PCM, chipperpb.AudioEncoding_OGG_OPUS
)

// bubble is the service in the time of a bubble. dial makes connections to it.
func bubble(t *testing.T, cfg chipperapi.Config) (dial func() client, end func()) {
	l := bufconn.Listen(1 << 16)
	stop := start(t, l, func(s grpc.ServiceRegistrar) { chipperapi.Register(s, cfg) })
	var conns []client
	return func() client {
			c := connect(t, l.DialContext)
			conns = append(conns, c)
			return c
		}, func() {
			for _, c := range conns {
				_ = c.Close()
			}
			stop()
		}
}

// stuck is a recogniser that never answers, nor hears that it shall end.
type stuck struct{ stop chan struct{} }

func (s stuck) Name() string                                                       { return "stuck" }
func (s stuck) Open(context.Context, recognizer.Expect) (recognizer.Stream, error) { return s, nil }
func (s stuck) Write([]int16) error                                                { return nil }
func (s stuck) Partial() string                                                    { return "" }
func (s stuck) Finish() (recognizer.Result, error)                                 { <-s.stop; return recognizer.Result{}, nil }
func (s stuck) Close() error                                                       { return nil }

// TestAlwaysAnswered: whatever a robot sends, and however long, it reads an answer or a status with words before it gives up, and the next robot is
// served.
func TestAlwaysAnswered(t *testing.T) {
	pages, loud := opus(t), pcm(t)
	noise := make([]byte, 1000)
	_, _ = rand.Read(noise) // never fails
	empty := bytes.Clone(pages[1][:27])
	empty[26] = 0 // a page without a packet
	again := func(e chipperpb.AudioEncoding, every time.Duration, first []byte, then ...[]byte) func(say func(chipperpb.AudioEncoding, []byte) bool) {
		return func(say func(chipperpb.AudioEncoding, []byte) bool) {
			for n, on := 0, say(e, first); on; n++ {
				time.Sleep(every)
				on = say(e, then[n%len(then)])
			}
		}
	}
	const piece = 120 * time.Millisecond
	type robotOf func(say func(chipperpb.AudioEncoding, []byte) bool)
	for _, tc := range []struct {
		name string
		does robotOf
		all  bool         // also of the connection check, which is answered
		want []codes.Code // nil: an answer
	}{
		{"it never starts", func(func(chipperpb.AudioEncoding, []byte) bool) {}, true, []codes.Code{codes.InvalidArgument}},
		{"it starts and says nothing", func(say func(chipperpb.AudioEncoding, []byte) bool) { say(pcmCode, nil) }, true, nil},
		{"it starts late and says nothing", func(say func(chipperpb.AudioEncoding, []byte) bool) {
			time.Sleep(4900 * time.Millisecond)
			say(pcmCode, nil)
		}, true, nil},
		{"a byte at a time, without an end", again(pcmCode, piece, nil, []byte{1}), false, nil},
		{"a byte now and then, without an end", again(pcmCode, 2900*time.Millisecond, []byte{1}, []byte{1}), true, nil},
		{"messages without audio, without an end", again(pcmCode, 10*time.Millisecond, nil, nil), false, nil},
		{"silence without an end", again(pcmCode, piece, make([]byte, pieceBytes), make([]byte, pieceBytes)), false, nil},
		{"speech without an end", again(pcmCode, piece, loud[0], loud...), false, nil},
		{"speech that breaks off", func(say func(chipperpb.AudioEncoding, []byte) bool) {
			for _, b := range loud[:8] {
				say(pcmCode, b)
				time.Sleep(piece)
			}
		}, false, nil},
		{"Opus without an end", again(opusCode, piece, pages[0], pages[1:]...), false, nil},
		{"Opus that breaks off", func(say func(chipperpb.AudioEncoding, []byte) bool) { say(opusCode, pages[0][:40]) }, false, nil},
		{"pages without packets, without an end", again(opusCode, 10*time.Millisecond, pages[0], empty), false, nil},
		{"garbage for Opus", again(opusCode, piece, noise, noise), false, []codes.Code{codes.InvalidArgument}},
		{"garbage after the head of Opus", again(opusCode, piece, pages[0], noise), false, []codes.Code{codes.InvalidArgument}},
		{"garbage in pages of Opus", again(opusCode, piece, pages[0], garbled(pages[1], noise)), false, []codes.Code{codes.OK, codes.InvalidArgument}},
		{"PCM that is said to be Opus", again(opusCode, piece, loud[0], loud...), false, []codes.Code{codes.InvalidArgument}},
	} {
		for _, c := range append(slices.Clone(spokenCalls), checkCall) {
			if c.name == checkCall.name && !tc.all {
				continue
			}
			t.Run(tc.name+", "+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					dial, end := bubble(t, heard("set a timer for ten minutes"))
					defer end()
					robot := dial()
					began := time.Now()
					st, err := c.open(t.Context(), robot)
					if err != nil {
						t.Fatal(err)
					}
					var sends sync.WaitGroup
					sends.Go(func() {
						tc.does(func(e chipperpb.AudioEncoding, b []byte) bool { return st.SendMsg(c.say(e, b)) == nil })
					})
					answer := c.answer()
					err = st.RecvMsg(answer)
					if check, ok := answer.(*chipperpb.ConnectionCheckResponse); ok && err == nil && check.Status != "Timeout" {
						t.Errorf("check: %v, want Timeout", check)
					}
					if took := time.Since(began); took >= patience {
						t.Errorf("answered after %v", took)
					}
					want := tc.want
					if c.name == checkCall.name {
						want = nil
					}
					if got := status.Code(err); errors.Is(err, io.EOF) || want == nil && err != nil || want != nil && !slices.Contains(want, got) {
						t.Errorf("%v, want %v", err, want)
					}
					if err != nil && strings.TrimSpace(status.Convert(err).Message()) == "" {
						t.Errorf("%v: no words", err)
					}
					sends.Wait()
					if got, err := spoken(t.Context(), robot, loud, pcmCode, 0); err != nil || got.GetIntentResult().GetAction() != timer {
						t.Errorf("afterwards: %v, %v", got, err)
					}
				})
			})
		}
	}
}

// garbled returns a page whose packets are noise.
func garbled(page, noise []byte) []byte {
	out := bytes.Clone(page)
	copy(out[27+int(page[26]):], noise)
	return out
}

// TestStuck: a recogniser that hangs costs robots nothing but the answer, and at most as many wait as may speak at once.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuck{make(chan struct{})}
		dial, end := bubble(t, chipperapi.Config{Speech: speech.New(speech.Config{Recognizer: s, Match: match, AtOnce: 10}), Prove: stranger})
		defer end()
		robot, loud := dial(), pcm(t)
		var late atomic.Int64
		var robots sync.WaitGroup
		for range 15 {
			robots.Go(func() {
				began := time.Now()
				if _, err := spoken(t.Context(), robot, loud, pcmCode, 0); status.Code(err) != codes.Unavailable || time.Since(began) >= patience {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				if time.Since(began) > time.Second {
					late.Add(1)
				}
			})
		}
		robots.Wait()
		if late.Load() != 10 {
			t.Errorf("%d waited for the recogniser, want 10", late.Load())
		}
		if _, err := robot.TextIntent(t.Context(), &chipperpb.TextRequest{TextInput: "set a timer for ten minutes"}); err != nil {
			t.Errorf("text: %v", err)
		}
		close(s.stop)
		synctest.Wait()
	})
}

// TestEveryBoundary: a robot that ends its side, gives up or loses its connection after any of its messages is answered if it still listens, and the
// next robot is, too.
func TestEveryBoundary(t *testing.T) {
	dial := serveThe(t, func(s grpc.ServiceRegistrar) { chipperapi.Register(s, hears()) })
	robot, loud, pages := dial(), pcm(t), opus(t)
	for _, c := range append(slices.Clone(spokenCalls), checkCall) {
		for e, pieces := range map[chipperpb.AudioEncoding][][]byte{pcmCode: loud[:8], opusCode: pages[:8]} {
			for n := range len(pieces) {
				for _, how := range []string{"ends its side", "gives up", "loses its connection"} {
					conn := robot
					ctx, leave := context.WithCancel(t.Context())
					if how == "loses its connection" {
						conn = dial()
					}
					st, err := c.open(ctx, conn)
					for i := 0; err == nil && i < n; i++ {
						err = st.SendMsg(c.say(e, pieces[i]))
					}
					if err != nil {
						t.Fatalf("%s, %v, message %d: %v", c.name, e, n, err)
					}
					want := codes.OK
					switch how {
					case "ends its side":
						err = st.CloseSend()
					case "gives up":
						leave()
						want = codes.Canceled
					default:
						err = conn.Close()
						want = codes.Canceled
					}
					if err == nil {
						err = st.RecvMsg(c.answer())
					}
					got := status.Code(err)
					if how == "loses its connection" && got == codes.Unavailable { // as the client may say of it, too
						got = want
					}
					if got != want {
						t.Errorf("%s, %v, %s after %d messages: %v, want %v", c.name, e, how, n, err, want)
					}
					leave()
				}
			}
		}
	}
	if got, err := spoken(t.Context(), robot, loud, pcmCode, 0); err != nil || got.GetIntentResult().GetAction() != timer {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// live returns how much of the heap the last collection of garbage found in use.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// settled is live after all that can be freed is.
func settled() uint64 {
	runtime.GC()
	runtime.GC() // pools are empty after the second
	return live()
}

// most returns the most that live is above before, until the function that it returns is called.
func most(before uint64) (end func() uint64) {
	stop, worst := make(chan struct{}), make(chan uint64, 1)
	go func() {
		var top uint64
		for {
			if n := live(); n > before+top {
				top = n - before
			}
			select {
			case <-stop:
				worst <- top
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); return <-worst }
}

// TestTooMuch: a robot that sends 100 MB is answered, whatever they are, and neither while it sends nor afterwards are more than a few of them held.
func TestTooMuch(t *testing.T) {
	const all, size = 100 << 20, 200 << 10
	robot := serveWith(t, hears())
	pages := slices.Concat(opus(t)[1:]...)
	pages = bytes.Repeat(pages, size/len(pages))
	var loud []byte
	for _, b := range pcm(t) {
		loud = append(loud, b...)
	}
	text := strings.Repeat("x", size)
	for name, tc := range map[string]struct {
		call  call
		first proto.Message
		then  proto.Message
	}{
		"speech":     {spokenCalls[0], spokenCalls[0].say(pcmCode, loud), spokenCalls[0].say(pcmCode, loud)},
		"silence":    {spokenCalls[1], spokenCalls[1].say(pcmCode, nil), spokenCalls[1].say(pcmCode, make([]byte, size))},
		"Opus":       {spokenCalls[2], spokenCalls[2].say(opusCode, opus(t)[0]), spokenCalls[2].say(opusCode, pages)},
		"no audio":   {spokenCalls[0], spokenCalls[0].say(pcmCode, nil), &chipperpb.StreamingIntentRequest{BootId: text, FirmwareVersion: text[:1000]}},
		"one packet": {spokenCalls[2], spokenCalls[2].say(opusCode, opus(t)[0]), spokenCalls[2].say(opusCode, endless(opus(t)[1], size))},
		"a check":    {checkCall, checkCall.say(pcmCode, make([]byte, size)), checkCall.say(pcmCode, make([]byte, size))},
	} {
		t.Run(name, func(t *testing.T) {
			before := settled()
			end := most(before)
			st, err := tc.call.open(t.Context(), robot)
			sent := 0
			for m := tc.first; err == nil && sent < all; m = tc.then {
				err = st.SendMsg(m)
				sent += size
			}
			if err == nil {
				err = st.CloseSend()
			}
			if err != nil && !errors.Is(err, io.EOF) { // EOF: the answer tells why the rest is not taken
				t.Fatal(err)
			}
			err = st.RecvMsg(tc.call.answer())
			if got := status.Code(err); got != codes.OK && got != codes.InvalidArgument && got != codes.ResourceExhausted {
				t.Errorf("after %d bytes: %v", sent, err)
			}
			worst := end()
			t.Logf("%d bytes sent; at most %d KiB held, client and server; %v", sent, worst>>10, err)
			if worst > 24<<20 {
				t.Errorf("%d bytes were held", worst)
			}
			testwait.Until(t, testwait.Long, "what was sent is let go", func() error { // the call may still be ending in the server
				if after := settled(); after > before+4<<20 {
					return fmt.Errorf("heap grew from %d to %d bytes", before, after)
				}
				return nil
			})
		})
	}
	if got, err := spoken(t.Context(), robot, pcm(t), pcmCode, 0); err != nil || got.GetIntentResult().GetAction() != timer {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// endless returns pages of one packet that never ends.
func endless(page []byte, size int) (out []byte) {
	head := append(bytes.Clone(page[:26]), 255)
	head[5] |= 1 // continued
	for len(out) < size {
		out = append(append(append(out, head...), bytes.Repeat([]byte{255}, 255)...), make([]byte, 255*255)...)
	}
	return out
}

// TestIdle: a thousand streams that say nothing, at all or after their first message, cost little while they last, a robot that speaks meanwhile is
// answered, and they are gone when their connections are. TestIdleEnds awaits their answers.
func TestIdle(t *testing.T) {
	const streams, perConn = 1000, 100
	var in atomic.Int64
	cfg := hears()
	cfg.Prove = func(context.Context) (thing.ID, error) { in.Add(1); return "", nil }
	dial := serveThe(t, func(s grpc.ServiceRegistrar) { chipperapi.Register(s, cfg) })
	robot := dial()
	if _, err := spoken(t.Context(), robot, pcm(t), pcmCode, 0); err != nil {
		t.Fatal(err)
	}
	before, goroutines := settled(), runtime.NumGoroutine()
	in.Store(0)
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var conns []client
	for i := range streams {
		if i%perConn == 0 {
			conns = append(conns, dial())
		}
		kind := spokenCalls[i%len(spokenCalls)]
		st, err := kind.open(ctx, conns[i/perConn])
		if err == nil && i%2 == 0 {
			err = st.SendMsg(kind.say(pcmCode, nil))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, 20*time.Second, "all streams", testwait.Holds(func() bool { return in.Load() == streams }))
	held := settled() - before
	t.Logf("%d idle streams hold %d KiB, client and server", streams, held>>10)
	if held > streams*64<<10 {
		t.Errorf("%d idle streams hold %d bytes", streams, held)
	}
	if got, err := spoken(t.Context(), robot, pcm(t), pcmCode, 0); err != nil || got.GetIntentResult().GetAction() != timer {
		t.Errorf("beside them: %v, %v", got, err)
	}
	for _, c := range conns {
		_ = c.Close() // its streams end with it
	}
	testwait.Until(t, 20*time.Second, "the streams' end", testwait.Holds(func() bool { return runtime.NumGoroutine() <= goroutines+20 }))
	if after := settled(); after > before+8<<20 {
		t.Errorf("heap grew from %d to %d bytes", before, after)
	}
}

// TestIdleEnds: all of a thousand idle streams are answered before a robot gives up; a robot that comes then is served.
func TestIdleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dial, end := bubble(t, hears())
		defer end()
		var c client
		var streams sync.WaitGroup
		for i := range 1000 {
			if i%100 == 0 {
				c = dial()
			}
			kind := spokenCalls[i%len(spokenCalls)]
			began := time.Now()
			st, err := kind.open(t.Context(), c)
			if err == nil && i%2 == 0 {
				err = st.SendMsg(kind.say(pcmCode, nil))
			}
			if err != nil {
				t.Fatal(err)
			}
			streams.Go(func() {
				err := st.RecvMsg(kind.answer())
				if took := time.Since(began); took >= patience || (err == nil) != (i%2 == 0) || err != nil && status.Code(err) != codes.InvalidArgument {
					t.Errorf("%d: %v after %v", i, err, took)
				}
			})
		}
		streams.Wait()
		if got, err := spoken(t.Context(), dial(), pcm(t), pcmCode, 0); err != nil || got.GetIntentResult().GetAction() != timer {
			t.Errorf("afterwards: %v, %v", got, err)
		}
	})
}

// paced is a limiter that counts whom it refuses.
type paced struct {
	chipperapi.Limiter
	refused *atomic.Int64
}

func (c paced) Allow(key string) time.Duration {
	d := c.Limiter.Allow(key)
	if d > 0 {
		c.refused.Add(1)
	}
	return d
}

// TestFloodFromOneAddress: streams that one address opens beyond its pace, and that never start, take no place of a robot at another.
func TestFloodFromOneAddress(t *testing.T) {
	var refused atomic.Int64
	cfg := hears()
	cfg.ByAddr = paced{ratelimit.NewByAddr(time.Hour, 100), &refused}
	dial := serveFor(t, func(s grpc.ServiceRegistrar) { chipperapi.Register(s, cfg) })
	var conn client
	for i := range 2500 {
		if i%100 == 0 {
			conn = dial("127.0.0.2")
		}
		if _, err := spokenCalls[0].open(t.Context(), conn); err != nil {
			t.Fatal(err)
		}
	}
	testwait.Until(t, 20*time.Second, "the streams", testwait.Holds(func() bool { return refused.Load() == 2400 }))
	if got, err := spoken(t.Context(), dial("127.0.0.1"), pcm(t), pcmCode, 0); err != nil || got.GetIntentResult().GetAction() != timer {
		t.Errorf("a robot at another address: %v, %v", got, err)
	}
}
