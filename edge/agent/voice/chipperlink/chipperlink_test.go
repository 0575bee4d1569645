package chipperlink_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"kennel/edge/agent/health/conncheck"
	"kennel/edge/agent/voice"
	"kennel/edge/agent/voice/chipperlink"
	"kennel/infra/api/chipperpb"
	"kennel/infra/api/large"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
)

// cloud is the other end. It answers after three messages; how depends on the session.
type cloud struct {
	chipperpb.UnimplementedChipperGrpcServer
	mu    sync.Mutex
	first proto.Message
	text  *chipperpb.TextRequest
	later int // messages after the first that carried more than audio
	sent  []byte

	checks string // how it answers those of the connection; "": as a cloud that is well
}

func (c *cloud) TextIntent(_ context.Context, r *chipperpb.TextRequest) (*chipperpb.IntentResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = r
	return &chipperpb.IntentResponse{IsFinal: true, IntentResult: &chipperpb.IntentResult{Action: "intent_imperative_dance", QueryText: r.TextInput, SpeechConfidence: 0.5,
		Service: chipperpb.IntentService_LEX, Parameters: map[string]string{"a": "b"}}}, nil
}

func (c *cloud) StreamingIntent(st grpc.BidiStreamingServer[chipperpb.StreamingIntentRequest, chipperpb.IntentResponse]) error {
	how := ""
	for n := range 3 {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		c.mu.Lock()
		if c.sent = append(c.sent, m.GetInputAudio()...); n == 0 {
			how, c.first = m.GetSession(), m
		} else if !proto.Equal(m, &chipperpb.StreamingIntentRequest{InputAudio: m.GetInputAudio()}) {
			c.later++
		}
		c.mu.Unlock()
	}
	switch how {
	case "refuse":
		return status.Error(codes.Unavailable, "no recogniser")
	case "end":
		return nil
	case "hang":
		<-st.Context().Done()
		return st.Context().Err()
	case "empty":
		return st.Send(&chipperpb.IntentResponse{IsFinal: true, IntentResult: &chipperpb.IntentResult{}})
	}
	if err := st.Send(&chipperpb.IntentResponse{SpeechResult: &chipperpb.SpeechResult{Transcript: "da"}}); err != nil {
		return err
	}
	return st.Send(&chipperpb.IntentResponse{IsFinal: true, IntentResult: &chipperpb.IntentResult{Action: "intent_imperative_dance"}})
}

func (c *cloud) StreamingKnowledgeGraph(st grpc.BidiStreamingServer[chipperpb.StreamingKnowledgeGraphRequest, chipperpb.KnowledgeGraphResponse]) error {
	m, err := st.Recv()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.first = m
	c.mu.Unlock()
	return st.Send(&chipperpb.KnowledgeGraphResponse{QueryText: "how high", SpokenText: "high", CommandType: "Info", DomainsUsed: []string{"places", "units"}})
}

// serve returns a link to c, whose server wants what the listener of things wants of a robot: its protocol, and then h2.
func serve(t *testing.T, c *cloud) *chipperlink.Link {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"cloud"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	s := kitgrpc.NewServer(&tls.Config{Certificates: []tls.Certificate{pair}, GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		if got := strings.Join(h.SupportedProtos, " "); got != large.ALPN+" h2" {
			t.Errorf("it offers %q", got)
		}
		return nil, nil
	}}, slog.New(slog.DiscardHandler))
	chipperpb.RegisterChipperGrpcServer(s, c)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = kitgrpc.Run(ctx, s, ln, time.Second) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return &chipperlink.Link{Thing: "vic:00e20100", Boot: "b1", OS: "1.2.3", Secure: func() (string, *tls.Config, error) {
		return ln.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{large.ALPN}}, nil
	}}
}

// TestListen: the first message says whose the audio is, the later ones carry audio alone (peer facts, section 1).
func TestListen(t *testing.T) {
	c := &cloud{}
	l := serve(t, c)
	listen := func(ctx context.Context, r voice.Request) (voice.Reply, error) {
		audio := make(chan []byte, 4)
		for _, p := range []string{"ab", "cd", "ef", "gh"} {
			audio <- []byte(p)
		}
		return l.Listen(ctx, r, audio)
	}
	got, err := listen(t.Context(), voice.Request{Session: "s1", Language: "de-DE", SkipDAS: true})
	if err != nil || got.Intent != "intent_imperative_dance" {
		t.Errorf("%+v, %v", got, err)
	}
	c.mu.Lock()
	want := &chipperpb.StreamingIntentRequest{Session: "s1", DeviceId: "vic:00e20100", FirmwareVersion: "1.2.3", BootId: "b1", LanguageCode: chipperpb.LanguageCode_GERMAN,
		SkipDas: true, SingleUtterance: true, InputAudio: []byte("ab")}
	if !proto.Equal(c.first, want) || c.later != 0 || string(c.sent) != "abcdef" {
		t.Errorf("first %v, %d later ones with more than audio, audio %q", c.first, c.later, c.sent)
	}
	c.mu.Unlock()
	for session, want := range map[string]string{"refuse": "no recogniser", "end": "ended the session without an answer", "empty": "no intent in the answer"} {
		if got, err := listen(t.Context(), voice.Request{Session: session}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %s", session, got, err, want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := listen(ctx, voice.Request{Session: "hang"}); !errors.Is(err, context.DeadlineExceeded) { // whichever end notices first: the robot says that it took too long
		t.Errorf("%+v, %v", got, err)
	}
	got, err = listen(t.Context(), voice.Request{Question: true, Timezone: "Europe/Berlin"})
	if want := (voice.Reply{Intent: "intent_knowledge_response_extend", Metadata: voice.Metadata{Text: "how high"}, Params: map[string]string{"answer": "high",
		"answer_type": "Info", "query_text": "how high", "domains.0": "places", "domains.1": "units"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.first.(*chipperpb.StreamingKnowledgeGraphRequest); !ok || m.GetTimezone() != "Europe/Berlin" || !m.GetSaveAudio() || m.GetSkipDas() {
		t.Errorf("%v", c.first)
	}
}

func (c *cloud) StreamingConnectionCheck(st grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]) error {
	out := &chipperpb.ConnectionCheckResponse{Status: "Success"}
	for want := uint32(1); out.FramesReceived < want; out.FramesReceived++ {
		m, err := st.Recv()
		if err != nil {
			return err
		}
		c.mu.Lock()
		if out.FramesReceived == 0 {
			c.first, want = m, m.GetTotalAudioMs()/m.GetAudioPerRequest()
		}
		how := c.checks
		c.sent = append(c.sent, m.GetInputAudio()...)
		c.mu.Unlock()
		switch how {
		case "refuse":
			return status.Error(codes.Unauthenticated, "unknown robot")
		case "slow":
			return st.Send(&chipperpb.ConnectionCheckResponse{Status: "Timeout", FramesReceived: 1})
		}
	}
	return st.Send(out)
}

// TestCheck: the check sends as many pieces of sound as it announces, and tells a network that is too slow from a cloud that refuses the robot.
func TestCheck(t *testing.T) {
	c := &cloud{}
	l := serve(t, c)
	n, err := l.Check(t.Context(), 5, 2*time.Millisecond)
	if err != nil || n != 5 || len(c.sent) != 5*64 {
		t.Errorf("%d pieces, %d bytes, %v", n, len(c.sent), err)
	}
	if m, ok := c.first.(*chipperpb.StreamingConnectionCheckRequest); !ok || m.GetDeviceId() != "vic:00e20100" || m.GetTotalAudioMs() != 10 || m.GetAudioPerRequest() != 2 {
		t.Errorf("first: %v", c.first)
	}
	c.checks = "slow"
	if n, err := l.Check(t.Context(), 5, 2*time.Millisecond); n != 1 || !errors.Is(err, conncheck.ErrSlow) {
		t.Errorf("%d, %v", n, err)
	}
	c.checks = "refuse"
	if _, err := l.Check(t.Context(), 5, 2*time.Millisecond); conncheck.Classify(err) != conncheck.BadCredentials {
		t.Errorf("%v", err)
	}
	l.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
	if _, err := l.Check(t.Context(), 5, 2*time.Millisecond); conncheck.Classify(err) != conncheck.Unreachable {
		t.Errorf("%v", err)
	}
}

// broker is another way to the cloud.
type broker struct{}

func (broker) Listen(context.Context, voice.Request, <-chan []byte) (voice.Reply, error) {
	return voice.Reply{Intent: "heard"}, nil
}

func (broker) Text(_ context.Context, _ voice.Request, text string) (voice.Reply, error) {
	return voice.Reply{Intent: "text " + text}, nil
}

// TestText: a typed sentence, and a cloud that is not there.
func TestText(t *testing.T) {
	c := &cloud{}
	l := serve(t, c)
	got, err := l.Text(t.Context(), voice.Request{Session: "s2", Language: "en-US"}, "dance")
	if want := (voice.Reply{Intent: "intent_imperative_dance", Params: map[string]string{"a": "b"}, Metadata: voice.Metadata{Text: "dance", Confidence: 0.5, Handler: "LEX"}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if c.text.GetTextInput() != "dance" || c.text.GetSession() != "s2" || c.text.GetLanguageCode() != chipperpb.LanguageCode_ENGLISH_US {
		t.Errorf("%v", c.text)
	}
	l.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }
	if got, err := l.Text(t.Context(), voice.Request{}, "dance"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%+v, %v", got, err)
	}
	l.Else = broker{}
	if got, err := l.Text(t.Context(), voice.Request{}, "dance"); err != nil || got.Intent != "text dance" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := l.Listen(t.Context(), voice.Request{}, nil); err != nil || got.Intent != "heard" {
		t.Errorf("%+v, %v", got, err)
	}
	l.Else = nil
	l.Secure = func() (string, *tls.Config, error) {
		return "", nil, errs.New(errs.Unavailable, "no connection to the cloud")
	}
	if got, err := l.Listen(t.Context(), voice.Request{}, nil); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("%+v, %v", got, err)
	}
}
