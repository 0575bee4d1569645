package pages

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"kennel/cloud/originals/replay"
	"kennel/cmd/e2e/housetest"
	"kennel/infra/api/chipperpb"
	"kennel/infra/api/jdocspb"
	"kennel/infra/errs"
)

func activation(t *testing.T, k *kennelOfComplaints, _ *housetest.Replayed) (string, func()) {
	maker := housetest.NewFactory(t)
	r := k.robot(t, maker, 1)
	session := k.session(t)
	if err := r.Associate(t.Context(), session); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "doctor") {
		t.Errorf("a robot of an unknown maker: %v", err)
	}
	var refused []string
	for line := range strings.Lines(k.Out.String()) {
		if strings.Contains(line, "code=foreign_factory") {
			refused = append(refused, line)
		}
	}
	if len(refused) != 1 || strings.Count(refused[0], " addr=") != 1 {
		t.Errorf("in the log: %q; want one line with one address", refused)
	}
	return k.told(t, r.Thing, "its factory certificate was refused"), func() {
		k.admin.Do("PUT", "/v1/batches/lot-2", map[string]string{"bundle": maker.Bundle()}, nil)
		right := r.Servers.AppKey
		r.Servers.AppKey = "of-another-cloud"
		if err := r.Associate(t.Context(), session); status.Code(err) != codes.Unauthenticated {
			t.Errorf("a wrong app key: %v", err)
		}
		k.told(t, r.Thing, "put one from robots.app_keys_file into its server file")
		r.Servers.AppKey = right
		if err := r.Associate(t.Context(), session); err != nil { // nothing was lost by the attempts: the session is good for one
			t.Errorf("after both were mended: %v", err)
		}
		k.told(t, r.Thing, "all is well now")
	}
}

func hostName(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	// From another subnet and by the operator's own name it is served: no part of it asks mDNS.
	k.at(r, away(2))
	k.associate(t, r)
	if dialed := r.Took(); !slices.ContainsFunc(dialed, func(s string) bool { return strings.HasPrefix(s, named+":") }) {
		t.Errorf("dialed %q, want %s", dialed, named)
	}
	// A name of another cloud is told by the doctor of the robot that called it.
	_, port, _ := net.SplitHostPort(r.Servers.Jdocs)
	r.Servers.Jdocs = net.JoinHostPort("escapepod.local", port)
	if _, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0)); status.Code(err) != codes.Unavailable {
		t.Errorf("by a name that the certificate lacks: %v", err)
	}
	k.told(t, r.Thing, "it called escapepod.local, which the certificate of this port does not carry")
	k.told(t, r.Thing, "Add that name to robots.names, or correct it in the robot's server file or in the DNS of its network")
	result, _, code := k.CheckOriginals(t, "-connect-to="+housetest.UploadHost+":443="+k.RobotsPort())
	if code != 1 || !strings.Contains(result.Sentence, "the name "+named+" is not known here") {
		t.Errorf("kenneld originals check: exit code %d, %s", code, result.Sentence)
	}
	return result.Sentence, nil
}

func dhcp(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	k.at(r, away(3))
	if err := housetest.Wrote(1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{"master_volume":1}`})); err != nil {
		t.Fatal(err)
	}
	other := k.robot(t, k.maker, 0x103)
	k.at(other, home(3))
	k.associate(t, other)
	if err := housetest.Wrote(1)(other.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{"master_volume":5}`})); err != nil {
		t.Fatal(err)
	}
	if one, two := settings(t, r).JsonDoc, settings(t, other).JsonDoc; !strings.Contains(one, "1") || !strings.Contains(two, "5") {
		t.Errorf("documents %s and %s", one, two)
	}
	return k.told(t, r.Thing, "It called from "+home(3)+" before and now from "+away(3)), nil
}

func revertingSettings(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	r.OS = "1.6.0.3331"
	k.associate(t, r)
	k.admin.Do("PATCH", "/v1/things/"+r.Thing+"/jdocs/"+housetest.SettingsDoc, map[string]any{"set": map[string]any{"custom_eye_color": map[string]any{"enabled": true, "hue": 0.4, "saturation": 1}}}, nil)
	had := settings(t, r)
	if had.FmtVersion != 1 {
		t.Errorf("the old software gets format %d, want 1", had.FmtVersion)
	}
	if err := housetest.Wrote(had.DocVersion + 1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{DocVersion: had.DocVersion, FmtVersion: 1, JsonDoc: `{"clock_24_hour":true}`})); err != nil {
		t.Fatal(err)
	}
	if out, err := k.Ctl("jdocs", "set", r.Thing, housetest.SettingsDoc, "custom_eye_color.hue=0.5"); err == nil || !strings.Contains(err.Error(), "custom_eye_color: update the robot's software") {
		t.Errorf("a colour while its software has none: %s, %v; want that it is not saved, and why", out, err)
	}
	return k.told(t, r.Thing, "format 1"), func() {
		r.OS = "2.0.1.6076"
		var now struct {
			Clock bool `json:"clock_24_hour"`
			Eyes  struct {
				Enabled bool
				Hue     float64
			} `json:"custom_eye_color"`
		}
		d := settings(t, r)
		if err := housetest.Wrote(d.DocVersion + 1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{DocVersion: d.DocVersion, FmtVersion: 2, JsonDoc: d.JsonDoc})); err != nil {
			t.Error(err)
		}
		if d = settings(t, r); d.FmtVersion != 2 || json.Unmarshal([]byte(d.JsonDoc), &now) != nil || !now.Clock || !now.Eyes.Enabled || now.Eyes.Hue != 0.4 {
			t.Errorf("after the update, format %d: %s", d.FmtVersion, d.JsonDoc)
		}
	}
}

func clientTokens(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	robot := k.Original(t, r.Cert, k.RobotsPort())
	robot.TLS.ServerName = named
	var tokens []string
	for i, sign := range []func() error{
		func() error { return robot.Associate(t.Context(), k.session(t)) },
		func() error { return robot.Secondary(t.Context(), k.session(t), "phone", "companion-app") },
		func() error { return robot.RefreshJWT(t.Context()) },
		func() error { return robot.Secondary(t.Context(), k.session(t), "tablet", "companion-app") },
		func() error { return robot.RefreshJWT(t.Context()) },
	} {
		if err := sign(); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
		if !slices.Contains(tokens, robot.ClientToken) {
			tokens = append(tokens, robot.ClientToken)
		}
	}
	r.Token, r.Claims = robot.Token, robot.Claims
	items, err := r.Read(t.Context(), housetest.ReadItem("vic.AppTokens", 0))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Tokens []struct{ Hash string } `json:"client_tokens"`
	}
	if err := json.Unmarshal([]byte(items[0].Doc.JsonDoc), &doc); err != nil || len(tokens) != 3 || len(doc.Tokens) != 3 {
		t.Fatalf("%d client tokens, document %s: want 3 of each, %v", len(tokens), items[0].Doc.JsonDoc, err)
	}
	for i, one := range doc.Tokens { // as the robot's gateway checks a bearer (peer facts, section 2)
		raw, err := base64.StdEncoding.DecodeString(tokens[i])
		hash, bad := base64.StdEncoding.DecodeString(one.Hash)
		if err != nil || bad != nil || len(hash) != 48 {
			t.Fatalf("app %d: token %v, hash of %d bytes %v", i, err, len(hash), bad)
		}
		if sum := sha256.Sum256(append(raw, hash[32:]...)); string(sum[:]) != string(hash[:32]) {
			t.Errorf("the client token of app %d is no longer good", i)
		}
	}
	shown := k.read(t, "/things/"+r.Thing+"/access")
	for _, app := range []string{"phone", "tablet"} {
		if !strings.Contains(shown, app) {
			t.Errorf("%s is not listed", app)
		}
	}
	return shown, nil
}

func tokenLoop(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	session := k.session(t)
	if err := r.Associate(t.Context(), session); err != nil {
		t.Fatal(err)
	}
	if err := r.Associate(t.Context(), session); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the session again: %v", err)
	}
	k.told(t, r.Thing, "A session works for one robot, once: sign in again in the app and try again")
	good := r.Token
	parts := strings.Split(good, ".")
	parts[0] = base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256","kid":"of-another-cloud","typ":"JWT"}`))
	r.Token = strings.Join(parts, ".")
	r.Took()
	if _, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0)); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a token of another cloud: %v", err)
	}
	if dialed := r.Took(); !r.Stopped || r.Forced != 0 || len(dialed) != 2 {
		t.Errorf("stopped %v, %d forced refreshes, dialed %q; want one refresh that is refused, and no more", r.Stopped, r.Forced, dialed)
	}
	return k.told(t, r.Thing, "a refresh of its token refused"), func() {
		r.Stopped, r.Token = false, ""
		k.associate(t, r)
		k.told(t, r.Thing, "signed in for its owner")
	}
}

func malformed(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	var resp *jdocspb.WriteDocResp
	colon := r.WriteFor(t.Context(), strings.TrimPrefix(r.Thing, "vic:"), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{}`}, &resp)
	for what, err := range map[string]error{"a thing without a colon": colon, "no JSON": second(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{"a":`})),
		"too deep": second(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: strings.Repeat("[", 100_000)})), "a name that is a path": second(r.Read(t.Context(), housetest.ReadItem("../../etc/passwd", 0)))} {
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "want") && !strings.Contains(err.Error(), "at most") && !strings.Contains(err.Error(), "byte") {
			t.Errorf("%s: %v, want InvalidArgument that says what is wrong and where", what, err)
		}
	}
	conn, err := r.Dial(t.Context(), "tcp", r.Servers.Jdocs)
	if err != nil {
		t.Fatal(err)
	}
	secure := tls.Client(conn, &tls.Config{RootCAs: r.Roots, ServerName: named, NextProtos: []string{"h2"}})
	_, _ = secure.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff\x00", 4096))) // the peer may hang up
	_ = secure.Close()                                                                                 // as it does
	if err := housetest.Wrote(1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{}`})); err != nil {
		t.Errorf("the next request: %v", err)
	}
	return fmt.Sprint(colon), nil
}

func second[T any](_ T, err error) error { return err }

func update203(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.Roots, ServerName: named}, DialContext: r.Dial, DisableKeepAlives: true}}
	for _, path := range []string{"/vic/prod/diff/2.0.1.6076.ota", "/vic/prod/full/latest.ota?victorversion=2.0.1.6076&victortarget=1"} {
		resp, err := web.Get("https://" + r.Servers.Tms + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it was read
		if err != nil || resp.StatusCode != http.StatusNotFound || !strings.Contains(string(b), "no channel of this cloud offers that update") {
			t.Errorf("%s: %s %s, %v", path, resp.Status, b, err)
		}
	}
	k.told(t, r.Thing, "it asked for the update /vic/prod/full/latest.ota, which this cloud does not have")
	return k.told(t, r.Thing, "error 203"), nil
}

func unsupportedVersion(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	r.OS = "2.0.1.6091"
	if err := r.Refresh(t.Context()); err == nil {
		t.Error("a robot without a token refreshed it")
	}
	return k.told(t, r.Thing, "Sign it in with its maker's app, or install software before 2.0.1.6090"), func() {
		k.associate(t, r)
		k.told(t, r.Thing, "runs 2.0.1.6091, which this cloud serves")
	}
}

func voiceEOF(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	r.FramePause = 300 * time.Millisecond // slower than it speaks
	err := r.Voice(t.Context())
	if errors.Is(err, replay.ErrEOF) || status.Code(err) != codes.Unimplemented || !strings.Contains(status.Convert(err).Message(), "does not understand speech yet") {
		t.Errorf("a voice request: %v; want a status with a sentence", err)
	}
	r.FramePause = time.Millisecond
	if err := r.CheckStream(t.Context()); err != nil {
		t.Errorf("connection check: %v", err)
	}
	return k.told(t, r.Thing, "Nothing is wrong with the robot: speech recognition is not set up on this cloud"), nil
}

func substring(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	conn, err := grpc.NewClient("passthrough:///"+r.Servers.Chipper, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: r.Roots, ServerName: named})),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return r.Dial(ctx, "tcp", addr) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // at the end
	ctx := metadata.AppendToOutgoingContext(t.Context(), "anki-access-token", r.Token, "anki-app-key", r.Servers.AppKey)
	for _, sentence := range []string{"my sister is good at sitting down", "what would a robot dance to", "the stopwatch is on sale"} {
		answer, err := chipperpb.NewChipperGrpcClient(conn).TextIntent(ctx, &chipperpb.TextRequest{Session: "0123-4567-89abcd", DeviceId: r.Thing, TextInput: sentence})
		if got := answer.GetIntentResult(); err != nil || got.GetAction() != "intent_system_unmatched" || len(got.GetParameters()) > 0 {
			t.Errorf("%q: %v, %v; want the answer that it means nothing", sentence, answer, err)
		}
	}
	var out []byte
	housetest.Await(t, time.Minute, "three requests that meant nothing", func() (err error) {
		if out, err = k.Ctl("voice", "sessions", r.Thing); err == nil && strings.Count(string(out), " match ") != 3 {
			err = fmt.Errorf("%s", out)
		}
		return err
	})
	return string(out), nil
}

func timeZone(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	if err := housetest.Wrote(1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{"time_zone":"GMT+1","clock_24_hour":true}`})); err != nil {
		t.Fatal(err)
	}
	return k.told(t, r.Thing, "Choose a tz database name in its settings, such as Europe/Paris"), func() {
		if out, err := k.Ctl("jdocs", "set", r.Thing, housetest.SettingsDoc, "time_zone=Mars/Olympus"); err == nil || !strings.Contains(err.Error(), "no such time zone: want a tz database name such as America/Los_Angeles") {
			t.Errorf("a zone that is none: %s, %v", out, err)
		}
		if out, err := k.Ctl("jdocs", "set", r.Thing, housetest.SettingsDoc, "time_zone=Europe/Berlin"); err != nil {
			t.Errorf("a zone: %s, %v", out, err)
		}
		k.told(t, r.Thing, "Europe/Berlin, where it is ")
		k.told(t, r.Thing, "; clocks there go ")
		if text := settings(t, r).JsonDoc; !strings.Contains(text, `"Europe/Berlin"`) || !strings.Contains(text, `"clock_24_hour":true`) {
			t.Errorf("the robot reads %s", text)
		}
	}
}

func emptyList(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	if text := k.read(t, "/things"); !strings.Contains(text, "none has reached it. kenneld originals check says whether one can") {
		t.Errorf("before any robot called:\n%s", text)
	}
	if out, err := k.Ctl("robots", "list"); err != nil || !strings.Contains(string(out), "No robots yet. kennelctl doctor") {
		t.Errorf("kennelctl robots list: %s, %v", out, err)
	}
	trusted := r.Roots
	r.Roots = x509.NewCertPool()
	if err := r.Associate(t.Context(), "x"); status.Code(err) != codes.Unavailable {
		t.Errorf("a robot without our root: %v", err)
	}
	shown := ""
	housetest.Await(t, time.Minute, "the empty list to say why", func() error {
		if shown = k.read(t, "/things"); !strings.Contains(shown, "A client at "+home(13)+" called the original robots' port and was refused ") {
			return errors.New(shown)
		}
		return nil
	})
	if !strings.Contains(shown, "it does not have this cloud's root certificate, or has not read it yet") || !strings.Contains(shown, "it called "+named) {
		t.Errorf("the list says neither what to do nor by which name it was called:\n%s", shown)
	}
	for _, other := range []string{k.read(t, "/"), k.read(t, "/strangers"), k.doctorOfStrangers()} {
		if !strings.Contains(other, "lacks the root") {
			t.Errorf("elsewhere:\n%s", other)
		}
	}
	return shown, func() {
		r.Roots = trusted
		k.associate(t, r)
		if text := k.read(t, "/things"); !strings.Contains(text, r.Thing) || strings.Contains(text, "No robots yet") {
			t.Errorf("once it has the root:\n%s", text)
		}
	}
}

func knowledgeSettings(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	const name, text = "vic.KnowledgeSettings", `{"provider":"of a later release","key":"k-1", "nested":{"on":[1,2,3]}}`
	if err := housetest.Wrote(1)(r.Write(t.Context(), name, &jdocspb.Jdoc{FmtVersion: 1, JsonDoc: text})); err != nil {
		t.Fatal(err)
	}
	k.KillTree()
	k.Start()
	items, err := r.Read(t.Context(), housetest.ReadItem(name, 0))
	if err != nil || items[0].Doc.JsonDoc != text || items[0].Doc.DocVersion != 1 {
		t.Errorf("after the crash: %v, %v", items, err)
	}
	return k.told(t, r.Thing, name), nil
}

func containers(t *testing.T, k *kennelOfComplaints, _ *housetest.Replayed) (string, func()) {
	readme := func(path string) string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	top := readme("../../../README.md")
	for _, want := range []string{"[infra/compose](infra/compose/README.md)", "make run", "None needs Docker", "[infra/systemd](infra/systemd)"} {
		if !strings.Contains(top, want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
	services := housetest.LoadCompose(t, "compose.yaml", housetest.ComposeEnv).Services
	if len(services) == 0 {
		t.Error("compose.yaml has no services")
	}
	for name, s := range services {
		image, _, _ := strings.Cut(s.Image, ":")
		if !slices.Contains(slices.Collect(maps.Keys(housetest.Substitutes)), image) {
			t.Errorf("service %s is of image %s, which TestComposeStarts does not bring up", name, s.Image)
		}
	}
	if _, err := os.Stat(filepath.Join(housetest.ComposeDir, "Dockerfile")); err != nil {
		t.Error(err)
	}
	help, err := exec.Command(filepath.Join(housetest.Bin, "kenneld"), "onebox", "-help").CombinedOutput()
	if err != nil || !strings.Contains(string(help), "-originals") {
		t.Errorf("kenneld onebox -help: %s, %v", help, err)
	}
	return readme(filepath.Join(housetest.ComposeDir, "README.md")), nil
}

func versions(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	if err := housetest.Wrote(1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{"master_volume":1}`})); err != nil {
		t.Fatal(err)
	}
	late, err := r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{DocVersion: 0, FmtVersion: 2, JsonDoc: `{"master_volume":2}`})
	if err != nil || late.LatestDocVersion != 1 {
		t.Errorf("the second writer: %v, %v", late, err)
	}
	ahead, err := r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{DocVersion: 9, FmtVersion: 2, JsonDoc: `{"master_volume":3}`})
	if err != nil || ahead.Status != jdocspb.WriteDocResp_REJECTED_BAD_DOC_VERSION || ahead.LatestDocVersion != 1 {
		t.Errorf("a writer that is ahead: %v, %v", ahead, err)
	}
	items, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 1), housetest.ReadItem(housetest.SettingsDoc, 0), housetest.ReadItem(housetest.SettingsDoc, 9), housetest.ReadItem("vic.Nothing", 0))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range items {
		got = append(got, fmt.Sprintf("%v %q", i.Status, i.Doc.JsonDoc))
	}
	if want := []string{`UNCHANGED ""`, `CHANGED "{\"master_volume\":1}"`, `CHANGED "{\"master_volume\":1}"`, `NOT_FOUND ""`}; !slices.Equal(got, want) {
		t.Errorf("read with versions 1, 0, 9, and one that is not there: %q, want %q", got, want)
	}
	return late.Status.String(), nil
}

func uncheckedToken(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	k.associate(t, r)
	good := r.Token
	if err := housetest.Wrote(1)(r.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{FmtVersion: 2, JsonDoc: `{}`})); err != nil {
		t.Fatal(err)
	}
	r.Stopped = true // the robot would refresh
	for what, c := range map[string]struct {
		token string
		want  codes.Code
	}{"made up": {"a.b.c", codes.PermissionDenied}, "cut short": {good[:len(good)-4], codes.PermissionDenied}, "none": {"", codes.Unauthenticated}} {
		r.Token = c.token
		if _, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0)); status.Code(err) != c.want {
			t.Errorf("token %s: %v, want %v", what, err, c.want)
		}
	}
	r.Token = good
	var resp *jdocspb.WriteDocResp
	if err := r.WriteFor(t.Context(), "vic:00e50010", housetest.SettingsDoc, &jdocspb.Jdoc{DocVersion: 1, FmtVersion: 2, JsonDoc: `{}`}, &resp); status.Code(err) != codes.PermissionDenied {
		t.Errorf("another robot's document: %v, %v", resp, err)
	}
	r.Token = ""
	if _, err := r.Read(t.Context(), housetest.ReadItem(housetest.SettingsDoc, 0)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("no token: %v", err)
	}
	return k.told(t, r.Thing, "It sent no access token"), nil
}

func oneFile(t *testing.T, k *kennelOfComplaints, r *housetest.Replayed) (string, func()) {
	other := k.robot(t, k.maker, 0x112)
	k.at(other, away(18))
	for _, one := range []*housetest.Replayed{r, other} {
		k.associate(t, one)
	}
	conn, err := grpc.NewClient("passthrough:///"+r.Servers.Chipper, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: r.Roots, ServerName: named})),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return r.Dial(ctx, "tcp", addr) }))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() // at the end
	check, err := chipperpb.NewChipperGrpcClient(conn).StreamingConnectionCheck(metadata.AppendToOutgoingContext(t.Context(), "anki-access-token", r.Token))
	for range 50 {
		if err == nil {
			err = check.Send(&chipperpb.StreamingConnectionCheckRequest{DeviceId: r.Thing, TotalAudioMs: 6000, AudioPerRequest: 0, InputAudio: make([]byte, 990)})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := check.Recv(); err != nil || got.Status != "Success" {
		t.Errorf("audio_per_request of 0: %v, %v", got, err)
	}

	// Both write until kenneld is killed. The version that was accepted last is stored then, or the one after it, whose answer was lost.
	type last struct {
		version uint64
		err     error
	}
	begun, ended := make(chan struct{}, 2), make(chan last, 2)
	for _, one := range []*housetest.Replayed{r, other} {
		go func() {
			for v := uint64(0); ; v++ {
				resp, err := one.Write(t.Context(), housetest.SettingsDoc, &jdocspb.Jdoc{DocVersion: v, FmtVersion: 2, JsonDoc: fmt.Sprintf(`{"written":%d}`, v+1)})
				if err == nil && (resp.Status != jdocspb.WriteDocResp_ACCEPTED || resp.LatestDocVersion != v+1) {
					err = errs.New(errs.Corrupt, "write %d: %v", v+1, resp)
				}
				if err != nil {
					ended <- last{v, err}
					return
				}
				if v == 5 {
					begun <- struct{}{}
				}
			}
		}()
	}
	<-begun
	<-begun
	k.KillTree()
	accepted := []last{<-ended, <-ended}
	k.Start()
	var stored []uint64
	for _, one := range []*housetest.Replayed{r, other} {
		d := settings(t, one)
		if d.JsonDoc != fmt.Sprintf(`{"written":%d}`, d.DocVersion) {
			t.Errorf("version %d is %s", d.DocVersion, d.JsonDoc)
		}
		stored = append(stored, d.DocVersion)
	}
	slices.Sort(stored)
	slices.SortFunc(accepted, func(a, b last) int { return int(a.version) - int(b.version) })
	for i, a := range accepted {
		if status.Code(a.err) != codes.Unavailable || stored[i] != a.version && stored[i] != a.version+1 {
			t.Errorf("%d writes were accepted (then %v), and version %d is stored", a.version, a.err, stored[i])
		}
	}
	return k.told(t, r.Thing, "all is well"), nil
}
