package hostile

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/chipperpb"
	"kennel/infra/api/large"
	"kennel/infra/api/topics"
	"kennel/infra/bench"
	"kennel/infra/errs"
	"kennel/infra/kit/kitmqtt"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
	"kennel/speech/utterance"
)

// TestHostileVoices (issue 19: what must hold 5): at the port of original robots, at the port of agents and over the broker, whatever is sent in place of
// a voice has an answer, kenneld's memory is bounded, and another robot is served meanwhile. No recogniser is needed: nothing here is speech.
func TestHostileVoices(t *testing.T) {
	h := housetest.New(t, "-robots", "0", "-recognizers", "sphinx")
	h.Start()
	admin := h.Operator(t)
	id, cert := h.Certified(t, admin, "vic:00e2bb01")
	originals := func(from string) chipperpb.ChipperGrpcClient {
		return voiceClient(t, h, from, h.RobotsPort(), h.Trust(t))
	}
	asAgent := h.Trust(t, cert)
	asAgent.NextProtos = []string{large.ALPN, "h2"}
	agents := func() chipperpb.ChipperGrpcClient {
		return voiceClient(t, h, "127.0.0.1", strings.TrimPrefix(h.Ready.Endpoints["api"], "https://"), asAgent)
	}
	served := func(when string) {
		t.Helper()
		for who, c := range map[string]chipperpb.ChipperGrpcClient{"an original": originals("127.0.19.2"), "an agent": agents()} {
			got, err := c.TextIntent(t.Context(), &chipperpb.TextRequest{TextInput: "turn around"})
			if err != nil || got.GetIntentResult().GetAction() != "intent_imperative_turnaround" {
				t.Errorf("%s, %s: %v, %v", when, who, got, err)
			}
		}
	}
	served("at first")
	memory := func() float64 {
		t.Helper()
		kib, err := bench.PeakRSS(h.Cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return kib / 1024
	}
	before := memory()
	var all sync.WaitGroup
	for who, c := range map[string]chipperpb.ChipperGrpcClient{"original": originals("127.0.19.3"), "agent": agents()} {
		for name, m := range misfits {
			all.Go(func() { m.plays(t, who+" "+name, c) })
		}
	}
	all.Go(func() { idles(t, h, func() chipperpb.ChipperGrpcClient { return originals("127.0.19.4") }) })
	served("meanwhile")
	hostileUtterances(t, h, id, cert)
	all.Wait()
	served("afterwards")
	after := memory()
	t.Logf("most memory of kenneld: %.0f MiB, before %.0f MiB", after, before)
	if after > before+96 {
		t.Errorf("kenneld's memory rose from %.0f to %.0f MiB", before, after)
	}
	if admin.Do("GET", "/v1/me", nil, nil); strings.Contains(h.Out.String(), "panicked") {
		t.Error("a call panicked")
	}
}

// voiceClient returns the speech service at an address, as a client at another one reaches it.
func voiceClient(t *testing.T, h *housetest.House, from, addr string, conf *tls.Config) chipperpb.ChipperGrpcClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(conf)), grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(ctx, "tcp", addr)
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return chipperpb.NewChipperGrpcClient(conn)
}

// misfit holds what a robot sends in place of a voice: to the connection check if check is set, and else to the service of intents.
type misfit struct {
	check  func(send func(*chipperpb.StreamingConnectionCheckRequest) error)
	speech func(send func(*chipperpb.StreamingIntentRequest) error)
	want   codes.Code
	says   string // in the answer, or in the status
}

const quiet = 3840 // bytes of 120 ms

var misfits = map[string]misfit{
	"never starts": {speech: func(func(*chipperpb.StreamingIntentRequest) error) {}, want: codes.InvalidArgument, says: "no first message"},
	"says nothing more": {speech: func(send func(*chipperpb.StreamingIntentRequest) error) {
		_ = send(&chipperpb.StreamingIntentRequest{})
	}, says: "intent_system_noaudio"},
	"never ends": {speech: func(send func(*chipperpb.StreamingIntentRequest) error) {
		for send(&chipperpb.StreamingIntentRequest{InputAudio: make([]byte, 1)}) == nil {
			time.Sleep(100 * time.Millisecond) // the pace of a robot that never ends
		}
	}, says: "intent_system_noaudio"},
	"100 MB": {speech: func(send func(*chipperpb.StreamingIntentRequest) error) {
		for n := 0; n < 100<<20 && send(&chipperpb.StreamingIntentRequest{InputAudio: make([]byte, 50*quiet)}) == nil; n += 50 * quiet {
		}
	}, says: "intent_system_noaudio"},
	"100 MB that are no audio": {speech: func(send func(*chipperpb.StreamingIntentRequest) error) {
		boot := strings.Repeat("x", 200<<10)
		for n := 0; n < 100<<20 && send(&chipperpb.StreamingIntentRequest{BootId: boot}) == nil; n += len(boot) {
		}
	}, says: "intent_system_noaudio"},
	"a message of a megabyte": {speech: func(send func(*chipperpb.StreamingIntentRequest) error) {
		_ = send(&chipperpb.StreamingIntentRequest{InputAudio: make([]byte, 1<<20)})
	}, want: codes.ResourceExhausted, says: "larger than max"},
	"garbage for Opus": {speech: func(send func(*chipperpb.StreamingIntentRequest) error) {
		_ = send(&chipperpb.StreamingIntentRequest{AudioEncoding: chipperpb.AudioEncoding_OGG_OPUS, InputAudio: bytes.Repeat([]byte{0x5a}, 1000)})
	}, want: codes.InvalidArgument, says: "want the start of an Ogg page"},
	"an unknown encoding": {speech: func(send func(*chipperpb.StreamingIntentRequest) error) {
		_ = send(&chipperpb.StreamingIntentRequest{AudioEncoding: -1})
	}, want: codes.InvalidArgument, says: "audio_encoding -1"},
	"a check of pieces of 0 ms": {check: func(send func(*chipperpb.StreamingConnectionCheckRequest) error) {
		for send(&chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 1200}) == nil {
		}
	}, says: "frames_received:10"},
	"a check of pieces below 0": {check: func(send func(*chipperpb.StreamingConnectionCheckRequest) error) {
		_ = send(&chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 6000, AudioPerRequest: ^uint32(0)})
	}, says: "frames_received:1"},
	"a check of 300 pieces": {check: func(send func(*chipperpb.StreamingConnectionCheckRequest) error) {
		for send(&chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 36000, AudioPerRequest: 120}) == nil {
		}
	}, says: "frames_received:300"},
	"a check of 4,294,967,295 pieces": {check: func(send func(*chipperpb.StreamingConnectionCheckRequest) error) {
		_ = send(&chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: ^uint32(0), AudioPerRequest: 1})
	}, want: codes.InvalidArgument, says: "want at most 1000"},
	"a check that never ends": {check: func(send func(*chipperpb.StreamingConnectionCheckRequest) error) {
		_ = send(&chipperpb.StreamingConnectionCheckRequest{TotalAudioMs: 6000, AudioPerRequest: 120})
	}, says: "Timeout"},
}

// robotWaits is how long an original robot waits for an answer (peer facts, section 1). A loaded machine gets five times as long, unless the long
// tests were asked for.
func robotWaits() time.Duration {
	if housetest.Soak() {
		return 9 * time.Second
	}
	return 45 * time.Second
}

func (m misfit) plays(t *testing.T, name string, c chipperpb.ChipperGrpcClient) {
	began := time.Now()
	var answer fmt.Stringer
	var err error
	var sends sync.WaitGroup
	if m.check != nil {
		var st grpc.BidiStreamingClient[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]
		if st, err = c.StreamingConnectionCheck(t.Context()); err == nil {
			sends.Go(func() { m.check(st.Send) })
			answer, err = st.Recv()
		}
	} else {
		var st grpc.BidiStreamingClient[chipperpb.StreamingIntentRequest, chipperpb.IntentResponse]
		if st, err = c.StreamingIntent(t.Context()); err == nil {
			sends.Go(func() { m.speech(st.Send) })
			answer, err = st.Recv()
		}
	}
	took := time.Since(began)
	said := status.Convert(err).Message()
	if err == nil {
		said = strings.ReplaceAll(answer.String(), "  ", " ")
	}
	if errors.Is(err, io.EOF) || status.Code(err) != m.want || !strings.Contains(said, m.says) || took > robotWaits() {
		t.Errorf("%s: %v, %q after %v; want %v, %q", name, err, said, took, m.want, m.says)
	}
	sends.Wait()
}

// idles opens a thousand streams from one address, half of which send their first message: all have an answer.
func idles(t *testing.T, h *housetest.House, dial func() chipperpb.ChipperGrpcClient) {
	var streams sync.WaitGroup
	var mu sync.Mutex
	answers := map[codes.Code]int{}
	var c chipperpb.ChipperGrpcClient
	for i := range 1000 {
		if i%100 == 0 {
			c = dial()
		}
		conn := c
		streams.Go(func() {
			began := time.Now()
			st, err := conn.StreamingIntentGraph(t.Context())
			if err == nil && i%2 == 0 {
				err = st.Send(&chipperpb.StreamingIntentGraphRequest{Session: "idle"})
			}
			if err == nil || errors.Is(err, io.EOF) {
				_, err = st.Recv()
			}
			if took := time.Since(began); errors.Is(err, io.EOF) || took > robotWaits() {
				t.Errorf("idle stream: %v after %v", err, took)
			}
			mu.Lock()
			answers[status.Code(err)]++
			mu.Unlock()
		})
	}
	streams.Wait()
	t.Logf("a thousand idle streams: %v", answers)
	// From one address about a hundred are let in at once; the others are told to come back.
	if answers[codes.OK] < 10 || answers[codes.OK]+answers[codes.InvalidArgument]+answers[codes.Unavailable] != 1000 {
		t.Errorf("a thousand idle streams: %v", answers)
	}
}

// hostileUtterances asks over the broker, and over HTTPS with what does not fit.
func hostileUtterances(t *testing.T, h *housetest.House, id thing.ID, cert tls.Certificate) {
	t.Helper()
	var ask *kitmqtt.Client
	up := make(chan struct{}, 10)
	c, err := mqtt.New(mqtt.Config{URL: h.Ready.Endpoints["mqtt"], ClientID: string(id), TLS: func() (*tls.Config, error) { return h.Trust(t, cert), nil },
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			err := c.Subscribe(ctx, 1, topics.ThingFilters(id)...)
			up <- struct{}{}
			return err
		},
		OnMessage: func(topic string, payload []byte, taken func()) {
			_ = ask.Deliver(topic, payload) // what it does not know is no answer that is awaited
			taken()
		}})
	if err != nil {
		t.Fatal(err)
	}
	ask = kitmqtt.NewClient(id, func(ctx context.Context, topic string, payload []byte) error {
		return c.Publish(ctx, topic, 0, false, payload)
	})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	defer func() { stop(); <-done }()
	select {
	case <-up:
	case <-time.After(time.Minute):
		t.Fatal("the thing is not let in")
	}
	good, err := utterance.Append(nil, utterance.Header{Session: "s", Text: "turn around"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	silence, err := utterance.Append(nil, utterance.Header{}, make([]int16, utterance.MaxSamples))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, method string
		body         []byte
		want         errs.Kind // 0: an answer
		intent       string
	}{
		{"text", "say", good, 0, "intent_imperative_turnaround"},
		{"nothing", "listen", nil, errs.Invalid, ""},
		{"a header without an end", "listen", []byte{255, 255, '{'}, errs.Invalid, ""},
		{"no audio", "listen", []byte{2, 0, '{', '}'}, errs.Invalid, ""},
		{"too much audio", "listen", append([]byte{2, 0, '{', '}'}, make([]byte, utterance.MaxSamples/2+1)...), errs.Invalid, ""},
		{"garbage", "listen", bytes.Repeat([]byte{0xa5}, 100_000), errs.Invalid, ""},
		{"as much as an utterance has, silence", "listen", silence, 0, "intent_system_noaudio"},
		{"text, afterwards", "say", good, 0, "intent_imperative_turnaround"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), robotWaits())
		b, err := ask.Do(ctx, utterance.Service, tc.method, tc.body)
		cancel()
		var a utterance.Answer
		if err == nil {
			err = json.Unmarshal(b, &a)
		}
		if tc.want == 0 && (err != nil || a.Intent != tc.intent) || tc.want != 0 && errs.KindOf(err) != tc.want {
			t.Errorf("over the broker, %s: %+v, %v", tc.name, a, err)
		}
	}
	for size, want := range map[int]int{200 << 10: http.StatusBadRequest, 4 << 20: http.StatusRequestEntityTooLarge} {
		if code, b := h.RobotPosts(t, cert, large.Path(utterance.Service, utterance.Listen), string(append([]byte{2, 0, '{', '}'}, make([]byte, size)...))); code != want && code != http.StatusBadRequest {
			t.Errorf("over HTTPS, %d bytes: %d %.200s, want %d", size, code, b, want)
		}
	}
}
