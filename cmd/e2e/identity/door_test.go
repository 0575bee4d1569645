package identity

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/chipperpb"
)

// TestOriginalRobotIsARobot (issue 15, build 2): an unregistered original robot appears with its first token call, with its version
// and an honest last call; whatever is refused to it, before and after, is on its page in words; what belongs to no robot is in a list.
func TestOriginalRobotIsARobot(t *testing.T) {
	h := housetest.New(t, "-robots", "0")
	h.Start()
	admin, maker := h.Operator(t), housetest.NewFactory(t)
	admin.Do("PUT", "/v1/batches/lot-1", map[string]string{"bundle": maker.Bundle()}, nil)
	ada := h.Owner(t, "ada@example.com", "Ada")
	const id = "vic:00e2aa01"
	robot := h.Original(t, maker.Make(id, nil), h.RobotsPort())
	hears := func(what string, words ...string) {
		t.Helper()
		housetest.Await(t, 20*time.Second, what, func() error {
			d := admin.Doctor(id)
			for _, w := range words {
				if !strings.Contains(d, w) {
					return fmt.Errorf("no %q in %s", w, d)
				}
			}
			return nil
		})
	}

	// Before it has the root: it breaks the handshake off, and its name is unknown.
	fresh := h.Original(t, maker.Make(id, nil), h.RobotsPort())
	fresh.TLS.RootCAs = x509.NewCertPool()
	if err := fresh.Associate(t.Context(), "x"); status.Code(err) != codes.Unavailable {
		t.Fatalf("a robot without our root: %v", err)
	}
	var strangers []struct{ Address, Code, Detail, Do string }
	housetest.Await(t, 20*time.Second, "the operator sees the stranger", func() error {
		if admin.Do("GET", "/v1/strangers", nil, &strangers); len(strangers) != 1 || strangers[0].Code != "root_distrusted" || !strings.Contains(strangers[0].Detail, "localhost") || strangers[0].Do == "" {
			return fmt.Errorf("strangers %+v", strangers)
		}
		return nil
	})

	// Its first call with a proof makes its row, and takes over what was refused to its address.
	if err := robot.Associate(t.Context(), ada.AppSession(robot.AppKey)); err != nil {
		t.Fatal(err)
	}
	var thing struct {
		Presence string    `json:"presence"`
		LastSeen time.Time `json:"last_seen"`
	}
	housetest.Await(t, 20*time.Second, "the fleet knows it", func() error {
		if code, b := admin.Try("GET", "/v1/things/"+id, nil); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, b)
		}
		return nil
	})
	if admin.Do("GET", "/v1/things/"+id, nil, &thing); thing.Presence != "calls" || time.Since(thing.LastSeen) > time.Minute {
		t.Errorf("%+v, want one that called just now", thing)
	}
	var page []struct{ Thing string }
	if admin.Do("GET", "/v1/things?filter=version:2.0.1.6076+presence:calls", nil, &page); len(page) != 1 || page[0].Thing != id {
		t.Errorf("by its version: %v", page)
	}
	hears("its own broken handshake", "it called localhost and does not trust the certificate: its clock is not between ", "(told by its address alone)", "root certificate", `"signed in for its owner`,
		"called localhost", "all is well now; the last refusal was")
	if admin.Do("GET", "/v1/strangers", nil, &strangers); len(strangers) != 0 {
		t.Errorf("still strangers: %+v", strangers)
	}
	if d := admin.Doctor(id); strings.Contains(d, `"check":"broker"`) || strings.Contains(d, `"check":"loop"`) {
		t.Errorf("checks that are not for an original robot: %s", d)
	}

	// Calls of services that are not there, by a token, by a certificate, and by HTTP from its address.
	conn, err := grpc.NewClient("passthrough:///"+robot.Addr, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: robot.TLS.RootCAs, ServerName: "localhost"})),
		grpc.WithUserAgent("Victor/2.0.1.6076"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // at the end
	ctx := metadata.AppendToOutgoingContext(t.Context(), "anki-access-token", robot.Token, "anki-app-key", robot.AppKey)
	if err := conn.Invoke(ctx, "/chippergrpc2.OffboardVisionGrpc/AnalyzeImage", new(emptypb.Empty), new(emptypb.Empty)); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "doctor") {
		t.Errorf("an unknown service: %v", err)
	}
	hears("the service that is not there", "asked for /chippergrpc2.OffboardVisionGrpc/AnalyzeImage", "this cloud does not offer that service")
	voice, err := chipperpb.NewChipperGrpcClient(conn).StreamingIntentGraph(ctx)
	if err == nil {
		err = voice.Send(&chipperpb.StreamingIntentGraphRequest{DeviceId: id})
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := voice.Recv(); status.Code(err) != codes.Unimplemented || !strings.Contains(err.Error(), "does not understand speech yet") {
		t.Errorf("voice: %v", err)
	}
	hears("voice", "speech_missing", "speech recognition is not set up")
	check, err := chipperpb.NewChipperGrpcClient(conn).StreamingConnectionCheck(ctx)
	for i := 0; err == nil && i < 50; i++ {
		err = check.Send(&chipperpb.StreamingConnectionCheckRequest{DeviceId: id, TotalAudioMs: 6000, AudioPerRequest: 120, InputAudio: make([]byte, 1000)})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := check.Recv(); err != nil || got.Status != "Success" || got.FramesReceived != 50 {
		t.Errorf("connection check: %v, %v", got, err)
	}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: robot.TLS.RootCAs, ServerName: "localhost"}}}
	resp, err := web.Get(h.Ready.Endpoints["robots"] + "/vic/prod/full/latest.ota")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	hears("the path that is not served", "asked for the update /vic/prod/full/latest.ota, which this cloud does not have (told by its address alone)")
	if d := admin.Doctor(id); strings.Contains(d, "all is well") {
		t.Errorf("after a refusal: %s", d)
	}

	// The pages say the same in words, and the command does.
	read := func(path string) string {
		req, err := http.NewRequestWithContext(t.Context(), "GET", admin.API+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+admin.Token)
		resp, err := admin.HTTP.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", path, resp.Status, err)
		}
		return string(b)
	}
	for path, words := range map[string][]string{
		"/things/" + id: {"calls in", "last call", "it connects only when it needs something", "speech recognition is not set up", "2.0.1.6076"},
		"/things":       {"Call in", "called "}, "/strangers": {"Nothing was refused in the last week"}, "/": {"call in"},
	} {
		text := read(path)
		for _, w := range words {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q:\n%s", path, w, text)
			}
		}
		if strings.Contains(text, "never seen</p>") || path != "/" && strings.Contains(text, "does not know") {
			t.Errorf("%s: %s", path, text)
		}
	}
	if os.Getenv("KENNEL_SHOW") != "" {
		t.Log(admin.Doctor(id))
	}
}
