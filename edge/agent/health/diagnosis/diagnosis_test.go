package diagnosis

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"kennel/certs/ca"
	"kennel/certs/devicecert"
	"kennel/edge/agent/health/conncheck"
	"kennel/edge/agent/ownership/claim"
	"kennel/edge/agent/ownership/tokens"
	"kennel/edge/env/envtest"
	"kennel/edge/env/platform"
	"kennel/edge/env/robotfs"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func states(r Report) string {
	var out []string
	for _, s := range r.Steps {
		switch s.State {
		case NotReached:
			out = append(out, s.Name+"-")
		case OK:
			out = append(out, s.Name+"+")
		case Waiting:
			out = append(out, s.Name+"?"+s.Code)
		case Failed:
			out = append(out, s.Name+"!"+s.Code)
		}
	}
	return strings.Join(out, " ")
}

// TestSteps: whatever the parts know, the account says how far the robot came, why no further, and what to do.
func TestSteps(t *testing.T) {
	at := func(step, code string) *devicecert.State {
		return &devicecert.State{
			Thing: "vic:00e20100", Step: step, Code: code, Problem: "the problem in words", Peer: "cloud.example:8443",
			Name: "cloud.example", At: noon,
		}
	}
	ready := &devicecert.State{
		Thing: "vic:00e20100", Step: devicecert.StepReady, OK: true, Peer: "cloud.example:8443", Name: "cloud.example", At: noon,
		NotAfter: noon.AddDate(0, 3, 0),
	}
	base := Facts{Thing: "vic:00e20100", Agent: "1", OS: "2.0.0.6074", API: "https://cloud.example:8443", System: noon, Believed: noon}
	for _, tc := range []struct {
		name   string
		change func(*Facts)
		want   string
	}{
		{"just started", func(*Facts) {}, "config+ clock+ lookup- tcp- tls- enrol- mqtt- token- documents-"},
		{"no configuration", func(f *Facts) { f.API, f.ConfigErr = "", errors.New("server_config.json: line 3") },
			"config!server_config clock+ lookup- tcp- tls- enrol- mqtt- token- documents-"},
		{"clock reset", func(f *Facts) { f.System = time.Unix(0, 0) }, "config+ clock?clock_behind lookup- tcp- tls- enrol- mqtt- token- documents-"},
		{"name", func(f *Facts) { f.Identity = at("enroll", "name_lookup") }, "config+ clock+ lookup!name_lookup tcp- tls- enrol- mqtt- token- documents-"},
		{"nobody there", func(f *Facts) { f.Identity = at("enroll", "no_connection") }, "config+ clock+ lookup+ tcp!no_connection tls- enrol- mqtt- token- documents-"},
		{"root", func(f *Facts) { f.Identity = at("renew", "unknown_root") }, "config+ clock+ lookup+ tcp+ tls!unknown_root enrol- mqtt- token- documents-"},
		{"claim refused", func(f *Facts) { f.Identity = at("enroll", "claim_refused") }, "config+ clock+ lookup+ tcp+ tls+ enrol!claim_refused mqtt- token- documents-"},
		{"waits", func(f *Facts) { f.Identity = at("enroll", "waiting_approval") }, "config+ clock+ lookup+ tcp+ tls+ enrol?waiting_approval mqtt- token- documents-"},
		{"no claim", func(f *Facts) { f.Identity = at("claim", devicecert.CodeFactory) }, "config+ clock+ lookup- tcp- tls- enrol!factory_identity mqtt- token- documents-"},
		{"broker away", func(f *Facts) {
			f.Identity, f.Link = ready, Link{Peer: "cloud.example:8883", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}, Since: noon}
		}, "config+ clock+ lookup+ tcp+ tls+ enrol+ mqtt!no_connection token- documents-"},
		{"nobody's", func(f *Facts) {
			f.Identity, f.Link, f.Tokens, f.Claim = ready, Link{Up: true, Since: noon}, &tokens.State{}, &claim.State{Known: true}
		}, "config+ clock+ lookup+ tcp+ tls+ enrol+ mqtt+ token?no_owner documents+"},
		{"claimed without app", func(f *Facts) {
			f.Identity, f.Link, f.Tokens, f.Claim = ready, Link{Up: true}, &tokens.State{}, &claim.State{Known: true, Owned: true}
		}, "config+ clock+ lookup+ tcp+ tls+ enrol+ mqtt+ token?no_token documents+"},
		{"used session", func(f *Facts) {
			f.Identity, f.Link, f.Tokens = ready, Link{Up: true}, &tokens.State{Code: "unauthenticated", Problem: "not accepted"}
		}, "config+ clock+ lookup+ tcp+ tls+ enrol+ mqtt+ token!unauthenticated documents+"},
		{"token refused", func(f *Facts) {
			f.Identity, f.Link, f.Tokens = ready, Link{Up: true}, &tokens.State{UserID: "u", Refused: true, Code: "denied", Problem: "not taken"}
		}, "config+ clock+ lookup+ tcp+ tls+ enrol+ mqtt+ token!token_refused documents+"},
		{"documents", func(f *Facts) {
			f.Identity, f.Link, f.Tokens, f.Docs = ready, Link{Up: true}, &tokens.State{UserID: "u"}, []string{"vic.RobotSettings: stale"}
		}, "config+ clock+ lookup+ tcp+ tls+ enrol+ mqtt+ token+ documents!documents"},
		{"well", func(f *Facts) { f.Identity, f.Link, f.Tokens = ready, Link{Up: true}, &tokens.State{UserID: "u"} },
			"config+ clock+ lookup+ tcp+ tls+ enrol+ mqtt+ token+ documents+"},
	} {
		f := base
		tc.change(&f)
		r := f.Report(noon)
		if got := states(r); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
		for _, s := range r.Steps {
			if (s.State == Failed || s.State == Waiting) && (s.Problem == "" || s.Do == "" || s.At.IsZero()) {
				t.Errorf("%s: step %s says no problem, no time or not what to do: %+v", tc.name, s.Name, s)
			}
		}
		if s, bad := r.Worst(); bad != strings.ContainsAny(tc.want, "!?") || bad && !strings.Contains(tc.want, s.Name) {
			t.Errorf("%s: worst %+v", tc.name, s)
		}
		var text, js bytes.Buffer
		if err := errors.Join(r.Text(&text), r.JSON(&js)); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Steps {
			if !strings.Contains(text.String(), s.Name) || s.Problem != "" && !strings.Contains(text.String(), s.Problem) {
				t.Errorf("%s: text lacks %s:\n%s", tc.name, s.Name, &text)
			}
		}
		if back, err := Parse(js.Bytes()); err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("%s: came back as %+v, %v", tc.name, back, err)
		}
	}
}

// part of VEC-BOOT-11: a line for each program of the robot, and one for each step that failed.
func TestStartText(t *testing.T) {
	var b bytes.Buffer
	r := Facts{Start: []Start{{"system", "start", 20510, ""}, {"robotd", "socket", 1, ""}, {"robotd", "body", 3000, "no such port"},
		{"robotd", "first_frame", 20, ""}, {"agentd", "identity", 2, ""}}}.Report(time.Now())
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	const want = "start       system, ms: start 20510\nstart       robotd, ms: socket 1, body 3000, first_frame 20\n            body: no " +
		"such port\nstart       agentd, ms: identity 2\n"
	if !strings.Contains(b.String(), want) {
		t.Errorf("got\n%s\nwant in it\n%s", &b, want)
	}
}

// The agent writes when something is new, and a step whose state is the same keeps its time.
func TestKeeper(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := Read(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	now := noon
	f := Facts{Thing: "vic:00e20100", API: "https://cloud.example", System: now, Believed: now}
	k := NewKeeper(root, func() Facts { f.System, f.Believed = now, now; return f }, func() time.Time { return now }, slog.New(slog.DiscardHandler))
	writes := 0
	keep := func() Report {
		t.Helper()
		before, _ := root.Stat(File)
		if err := k.Keep(); err != nil {
			t.Fatal(err)
		}
		after, err := root.Stat(File)
		if err != nil {
			t.Fatal(err)
		}
		if before == nil || !os.SameFile(before, after) {
			writes++
		}
		r, err := Read(root)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	keep()
	now = now.Add(time.Minute)
	if r := keep(); writes != 1 || !r.At.Equal(noon) {
		t.Errorf("%d writes without news, %v", writes, r.At)
	}
	f.Link = Link{Up: true, Peer: "cloud.example:8883", Since: now}
	r := keep()
	if writes != 2 || !r.step(Config).At.Equal(noon) || !r.step(MQTT).At.Equal(now) {
		t.Errorf("%d writes, %+v", writes, r.Steps)
	}
	synctest.Test(t, func(t *testing.T) {
		f := f
		k := NewKeeper(root, func() Facts { return f }, time.Now, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- k.Run(ctx) }()
		synctest.Wait()
		f.Name = "Vector-E5S6"
		k.Changed()
		synctest.Wait()
		if r, err := Read(root); err != nil || r.Name != "Vector-E5S6" {
			t.Errorf("%q, %v", r.Name, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestDoctor: without an agent, against a cloud that is there in one way or another.
func TestDoctor(t *testing.T) {
	authority, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, err := ca.Init(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := authority.IssueServer([]string{"127.0.0.1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	defer srv.Close()
	lookup := func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	for _, tc := range []struct {
		name   string
		root   []byte
		d      Doctor
		want   string // of lookup, tcp, tls
		result conncheck.Result
	}{
		{"there", authority.Root(), Doctor{Lookup: lookup}, "lookup+ tcp+ tls+", conncheck.Available},
		{"another's root", other.Root(), Doctor{Lookup: lookup}, "lookup+ tcp+ tls!unknown_root", conncheck.BadCertificate},
		{"no name", authority.Root(), Doctor{Lookup: func(context.Context, string) ([]string, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "cloud.example", IsNotFound: true}
		}}, "lookup!name_lookup tcp- tls-", conncheck.Available},
		{"nobody", authority.Root(), Doctor{Lookup: lookup, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
		}}, "lookup+ tcp!no_connection tls-", conncheck.Unreachable},
		{"offline", authority.Root(), Doctor{Offline: true}, "lookup- tcp- tls-", conncheck.Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			var e platform.Endpoints
			e.Kennel.API, e.Check = srv.URL, strings.TrimPrefix(srv.URL, "https://")+"/ok"
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(devicecert.WriteRoot(root, tc.root), robotfs.WriteFile(root, platform.ServerConfigFile, b, 0o644)); err != nil {
				t.Fatal(err)
			}
			d := tc.d
			d.Root, d.Hardware, d.Version = root, envtest.Hardware{ESN: "00e20100"}, "1"
			r := d.Run(t.Context())
			if got := states(Report{Steps: r.Steps[2:5]}); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			if (r.Check == nil) != d.Offline || r.Check != nil && r.Check.Result != tc.result {
				t.Errorf("connection check %+v", r.Check)
			}
			if s := r.step(MQTT); s.Code != "no_agent" || s.Do == "" {
				t.Errorf("without an agent: %+v", s)
			}
			if tc.want == "lookup+ tcp+ tls+" && (len(r.Shown) != 1 || !strings.Contains(r.step(TLS).Seen, "127.0.0.1")) {
				t.Errorf("certificate seen: %+v, %+v", r.Shown, r.step(TLS))
			}
			if _, err := root.Stat("persist"); err == nil {
				t.Error("doctor wrote to the robot")
			}

			// With an agent's report, what only the agent knows is shown too.
			k := NewKeeper(root, func() Facts {
				return Facts{Thing: "vic:00e20100", Name: "Vector-E5S6", Boot: "b", Link: Link{Up: true, Peer: "x:1"}, Tokens: &tokens.State{UserID: "u"}}
			}, time.Now, slog.New(slog.DiscardHandler))
			if err := k.Keep(); err != nil {
				t.Fatal(err)
			}
			d.Offline = true
			if r := d.Run(t.Context()); r.step(MQTT).State != OK || r.step(Token).State != OK || r.Name != "Vector-E5S6" {
				t.Errorf("with an agent: %s", states(r))
			}
		})
	}
}

// A robot without serial number and configuration is told as that, with the fault (VEC-TOK-08).
func TestDoctorOnNothing(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r := Doctor{Root: root, Hardware: envtest.Hardware{}, Version: "1"}.Run(t.Context())
	if len(r.Faults) != 1 || !strings.Contains(r.Faults[0], "fault 852") || r.step(Config).State != Failed {
		t.Errorf("faults %q, %s", r.Faults, states(r))
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"thing":"vic:1","steps":[{"name":"tls","state":"ok"}],"check":{"result":"available"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err != nil {
			return
		}
		if err := errors.Join(r.Text(&bytes.Buffer{}), r.JSON(&bytes.Buffer{})); err != nil {
			t.Fatal(err)
		}
	})
}
