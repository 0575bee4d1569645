package replay_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/cloud/identity/token/tokentest"
	"kennel/cloud/originals/replay"
	"kennel/infra/api/chipperpb"
	"kennel/infra/api/jdocspb"
	"kennel/infra/api/tokenpb"
	"kennel/infra/kit/kitgrpc"
)

// bad is a cloud that answers as a test wants.
type bad struct {
	tokenpb.UnimplementedTokenServer
	jdocspb.UnimplementedJdocsServer
	chipperpb.UnimplementedChipperGrpcServer

	refresh func(*tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error)
	read    func(*jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error)
	voice   func(grpc.BidiStreamingServer[chipperpb.StreamingIntentGraphRequest, chipperpb.IntentGraphResponse]) error
	check   func(grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]) error

	mu    sync.Mutex
	heard []string // call, and the CN of the certificate that came with it
}

func (b *bad) note(ctx context.Context, call string) {
	cn := "no certificate"
	if chain := kitgrpc.PeerFrom(ctx).Chain; len(chain) > 0 {
		cn = chain[0].Subject.CommonName
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = append(b.heard, call+" with "+cn+" as "+strings.Split(kitgrpc.Value(ctx, "user-agent"), " ")[0])
}

func (b *bad) RefreshToken(ctx context.Context, m *tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error) {
	b.note(ctx, "refresh")
	return b.refresh(m)
}

func (b *bad) ReadDocs(ctx context.Context, m *jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error) {
	b.note(ctx, "read")
	return b.read(m)
}

func (b *bad) StreamingIntentGraph(s grpc.BidiStreamingServer[chipperpb.StreamingIntentGraphRequest, chipperpb.IntentGraphResponse]) error {
	b.note(s.Context(), "voice")
	return b.voice(s)
}

func (b *bad) StreamingConnectionCheck(s grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]) error {
	b.note(s.Context(), "check")
	return b.check(s)
}

// start serves b and returns a robot that calls it.
func (b *bad) start(t *testing.T) *replay.Robot {
	t.Helper()
	maker := tokentest.NewAuthority(t, "all")
	server := maker.Leaf(t, x509.Certificate{Subject: pkix.Name{CommonName: "cloud"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	s := kitgrpc.NewServer(&tls.Config{Certificates: []tls.Certificate{server}}, slog.New(slog.DiscardHandler))
	tokenpb.RegisterTokenServer(s, b)
	jdocspb.RegisterJdocsServer(s, b)
	chipperpb.RegisterChipperGrpcServer(s, b)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := kitgrpc.Run(ctx, s, l, time.Second); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); wg.Wait() })
	addr := l.Addr().String()
	r, err := replay.New(replay.ServerConfig{Jdocs: addr, Tms: addr, Chipper: addr, AppKey: "k"}, maker.Pool(), maker.Factory(t, "vic:00e20100"), true)
	if err != nil {
		t.Fatal(err)
	}
	r.FramePause, r.RetryPause = 0, time.Millisecond
	return r
}

func bundle(b *tokenpb.TokenBundle) func(*tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error) {
	return func(*tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error) {
		return &tokenpb.RefreshTokenResponse{Data: b}, nil
	}
}

// TestSentAgain: what a cloud cannot store now is sent again, and what it refuses is not.
func TestSentAgain(t *testing.T) {
	var left, code int
	asked := 0
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked <= left {
			w.WriteHeader(code)
		}
	}))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	r := (&bad{}).start(t)
	r.Roots = roots
	for _, tc := range []struct{ left, code, want, asked int }{
		{0, 0, http.StatusOK, 1},
		{3, http.StatusServiceUnavailable, http.StatusOK, 4},
		{9, http.StatusServiceUnavailable, http.StatusServiceUnavailable, 4},
		{9, http.StatusForbidden, http.StatusForbidden, 1},
	} {
		left, code, asked = tc.left, tc.code, 0
		if a, err := r.PutLog(t.Context(), s.URL+"/logs/", "a.log", "a log"); err != nil || a.Status != tc.want || asked != tc.asked {
			t.Errorf("%d answers with %d: %+v, %v after %d requests; want %d after %d", left, code, a, err, asked, tc.want, tc.asked)
		}
	}
}

// TestAnswersThatKill: the answers that stop an original robot (peer facts, top) stop this one.
func TestAnswersThatKill(t *testing.T) {
	items := func(all ...*jdocspb.ReadDocsResp_Item) func(*jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error) {
		return func(*jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error) {
			return &jdocspb.ReadDocsResp{Items: all}, nil
		}
	}
	read := func(r *replay.Robot) error {
		_, err := r.Read(t.Context(), &jdocspb.ReadDocsReq_Item{DocName: "vic.RobotSettings"})
		return err
	}
	sts := func(r *replay.Robot) error { return r.RefreshSTS(t.Context()) }
	jwt := func(r *replay.Robot) error { return r.Refresh(t.Context()) }
	none := &jdocspb.ReadDocsResp_Item{Status: jdocspb.ReadDocsResp_NOT_FOUND}
	for name, tc := range map[string]struct {
		cloud *bad
		do    func(*replay.Robot) error
		want  string // "": it lives
	}{
		"a document":                 {&bad{read: items(&jdocspb.ReadDocsResp_Item{Doc: &jdocspb.Jdoc{}})}, read, ""},
		"NOT_FOUND without doc":      {&bad{read: items(none)}, read, "item vic.RobotSettings is NOT_FOUND and has no doc"},
		"no item":                    {&bad{read: items()}, read, "0 items for 1 documents"},
		"credentials":                {&bad{refresh: bundle(&tokenpb.TokenBundle{StsToken: &tokenpb.StsToken{Expiration: "2026-11-22T10:00:00Z"}})}, sts, ""},
		"no credentials":             {&bad{refresh: bundle(&tokenpb.TokenBundle{Token: token(claims)})}, sts, "without sts_token"},
		"a refresh without a bundle": {&bad{refresh: bundle(nil)}, sts, "without data"},
		"a token":                    {&bad{refresh: bundle(&tokenpb.TokenBundle{Token: token(claims)})}, jwt, ""},
		"a token with a number":      {&bad{refresh: bundle(&tokenpb.TokenBundle{Token: token(strings.Replace(claims, `"1"`, "1", 1))})}, jwt, "claim token_id is a float64"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.cloud.start(t)
			err := tc.do(r)
			if dead, ok := errors.AsType[replay.Fatal](err); ok != (tc.want != "") || ok && !strings.Contains(dead.What, tc.want) || !ok && err != nil {
				t.Errorf("%v, want Fatal %q", err, tc.want)
			}
			want := map[bool]string{true: "read with no certificate as Victor/2.0.1.6076", false: "refresh with vic:00e20100 as Victor/2.0.1.6076"}[tc.cloud.read != nil]
			if len(tc.cloud.heard) != 1 || tc.cloud.heard[0] != want {
				t.Errorf("the cloud heard %q, want %q: only the token service sees the certificate", tc.cloud.heard, want)
			}
		})
	}
}

// TestForcedRefresh: PermissionDenied makes the robot refresh until that succeeds, or is refused itself (peer facts, section 1).
func TestForcedRefresh(t *testing.T) {
	denied := status.Error(codes.PermissionDenied, "no")
	tries := 0
	cloud := &bad{read: func(*jdocspb.ReadDocsReq) (*jdocspb.ReadDocsResp, error) { return nil, denied }}
	cloud.refresh = func(*tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error) {
		if tries++; tries < 3 {
			return nil, status.Error(codes.Unavailable, "later")
		}
		return &tokenpb.RefreshTokenResponse{Data: &tokenpb.TokenBundle{Token: token(claims)}}, nil
	}
	r := cloud.start(t)
	if _, err := r.Read(t.Context()); status.Code(err) != codes.PermissionDenied || tries != 3 || r.Forced != 1 || r.Stopped || r.User() != "u" {
		t.Errorf("%v after %d tries; %d forced, stopped %v", err, tries, r.Forced, r.Stopped)
	}
	cloud.refresh = func(*tokenpb.RefreshTokenRequest) (*tokenpb.RefreshTokenResponse, error) { tries++; return nil, denied }
	for range 2 {
		if _, err := r.Read(t.Context()); status.Code(err) != codes.PermissionDenied || tries != 4 || r.Forced != 1 || !r.Stopped {
			t.Errorf("%v after %d tries; %d forced, stopped %v", err, tries, r.Forced, r.Stopped)
		}
	}
}

// TestVoiceReadsTheSentence: a stream that is refused after its first message tells why; the connection check wants Success and all its pieces.
func TestVoiceReadsTheSentence(t *testing.T) {
	cloud := &bad{voice: func(s grpc.BidiStreamingServer[chipperpb.StreamingIntentGraphRequest, chipperpb.IntentGraphResponse]) error {
		m, err := s.Recv()
		if err != nil || m.DeviceId != "vic:00e20100" || !strings.HasSuffix(m.BootId, "\n") || !m.SaveAudio || !strings.HasPrefix(string(m.InputAudio), "OggS") {
			t.Errorf("first message %v, %v", m, err)
		}
		return status.Error(codes.Unimplemented, "not yet, says the cloud")
	}}
	answer, pieces := &chipperpb.ConnectionCheckResponse{}, 0
	cloud.check = func(s grpc.BidiStreamingServer[chipperpb.StreamingConnectionCheckRequest, chipperpb.ConnectionCheckResponse]) error {
		for pieces = 0; pieces < 50; pieces++ {
			if _, err := s.Recv(); err != nil {
				return err
			}
		}
		return s.Send(answer)
	}
	r := cloud.start(t)
	if err := r.Voice(t.Context()); status.Code(err) != codes.Unimplemented || status.Convert(err).Message() != "not yet, says the cloud" {
		t.Errorf("voice: %v", err)
	}
	for _, tc := range []struct {
		status string
		frames uint32
		want   string
	}{{"Success", 50, ""}, {"Success", 256 + 50, ""}, {"Success", 49, "49 chunks arrived, want 50"}, {"Error", 50, `"Error", want Success`}} {
		answer = &chipperpb.ConnectionCheckResponse{Status: tc.status, FramesReceived: tc.frames}
		err := r.CheckStream(t.Context())
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) || pieces != 50 {
			t.Errorf("%s with %d: %v after %d pieces, want %q", tc.status, tc.frames, err, pieces, tc.want)
		}
	}
	for _, heard := range cloud.heard {
		if !strings.Contains(heard, "no certificate") {
			t.Errorf("the speech service heard %q", heard)
		}
	}
}
