package agentapp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/agent/health/diagnosis"
	"kennel/edge/agent/host"
	"kennel/edge/agent/ownership/gatewaycert"
	"kennel/edge/agent/ownership/wipe"
	"kennel/edge/env/platform"
	"kennel/edge/sim"
	"kennel/infra/api/owners"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

// newRobot makes a robot without a reachable cloud, and its agent.
func newRobot(t *testing.T, change func(*Config)) (dir string, root *os.Root, a *Agent) {
	t.Helper()
	dir, root = born(t, nil)
	return dir, root, newAgent(t, dir, root, change)
}

// born makes a robot without a reachable cloud; releaseKey may sign its releases, nil: it installs none.
func born(t *testing.T, releaseKey []byte) (dir string, root *os.Root) {
	t.Helper()
	// Longer than a socket's address may be.
	dir = filepath.Join(t.TempDir(), strings.Repeat("a-robot-with-a-long-path/", 5))
	var e platform.Endpoints
	e.Kennel.API, e.Kennel.MQTT = "https://127.0.0.1:1", "ssl://127.0.0.1:1"
	if err := sim.Make(dir, sim.Birth{Thing: "vic:00e20100", Secret: "unused", Endpoints: e, RootPEM: rootPEM(t), OSVersion: "2.0.0.6074",
		ReleaseKey: releaseKey}); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return dir, root
}

func newAgent(t *testing.T, dir string, root *os.Root, change func(*Config)) *Agent {
	t.Helper()
	cfg := Config{Root: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if change != nil {
		change(&cfg)
	}
	a, err := New(root, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// runCommand runs agentd's command line.
func runCommand(dir, stdin string, args ...string) (code int, out, errOut string) {
	root := command(func(string) string { return "" })
	root.AddCommand(localCommands()...)
	cli.AddOutput(root)
	root.SetIn(strings.NewReader(stdin))
	var o, e bytes.Buffer
	code = cli.Run(context.Background(), root, append(args, "-root", dir), func(string) string { return "" }, &o, &e)
	return code, o.String(), e.String()
}

// awaitCommand runs a command until it says want on standard error: between two programs the answer is the event there is.
func awaitCommand(t *testing.T, dir, stdin, want string, args ...string) string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		code, _, errOut := runCommand(dir, stdin, args...)
		if strings.Contains(errOut, want) {
			return errOut
		}
		if time.Now().After(end) {
			t.Fatalf("%v: code %d, %s; want %q", args, code, errOut, want)
		}
	}
}

// TestLocalRequests: people at the robot ask the running agent; without a cloud they hear why not; a confirmed wipe ends the agent, and the next
// start does it before anything else (VEC-TOK-10, VEC-DGN-06).
func TestLocalRequests(t *testing.T) {
	dir, root, a := newRobot(t, nil)
	if code, _, errOut := runCommand(dir, "", "claim-code"); code != cli.ExitUnavailable {
		t.Errorf("without an agent: code %d, %s", code, errOut)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	awaitCommand(t, dir, "nobody's token", "not accepted", "authorized")
	if fi, err := root.Stat("run/kennel-agent"); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("folder of the socket: %v, %v; want it for one user", fi, err)
	}
	for _, tc := range []struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		{"", []string{"authorized"}, cli.ExitUsage, "want a client token"},
		{"", []string{"exchange"}, cli.ExitUsage, "want a user session"},
		{strings.Repeat("x", 64<<10), []string{"authorized"}, cli.ExitUsage, "larger than"},
		{"", []string{"clear-user-data"}, cli.ExitUsage, "-yes"},
		{"", []string{"emr"}, cli.ExitOK, ""},
	} {
		if code, _, errOut := runCommand(dir, tc.stdin, tc.args...); code != tc.code || !strings.Contains(errOut, tc.want) {
			t.Errorf("%v: code %d, %s; want %d, %q", tc.args, code, errOut, tc.code, tc.want)
		}
	}
	// The certificate is made beside the start; then only the cloud is missing.
	if errOut := awaitCommand(t, dir, "kst_of-somebody", "no connection", "exchange"); strings.Contains(errOut, "kst_") {
		t.Errorf("the error shows the session: %s", errOut)
	}

	// The report: the way ends at an address without a listener.
	if code, out, errOut := runCommand(dir, "", "doctor", "-o", "json"); code != cli.ExitFailed {
		t.Errorf("doctor: code %d, %s", code, errOut)
	} else {
		var r diagnosis.Report
		if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Steps) != len(diagnosis.Steps) ||
			!strings.HasPrefix(r.Name, "Vector-") && r.Name != "" {
			t.Errorf("doctor: %v, %+v", err, r)
		}
		for _, s := range r.Steps {
			if want := map[string]diagnosis.State{diagnosis.Config: diagnosis.OK, diagnosis.TCP: diagnosis.Failed}[s.Name]; want != "" && s.State != want {
				t.Errorf("step %s is %s, want %s", s.Name, s.State, want)
			}
		}
	}

	if _, err := root.Stat(gatewaycert.NameFile); err != nil {
		t.Fatal(err)
	}
	if code, _, errOut := runCommand(dir, "", "clear-user-data", "-yes"); code != cli.ExitOK {
		t.Fatalf("clear: code %d, %s", code, errOut)
	}
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "user data") {
			t.Errorf("agentd ended with %v, want the reason", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("agentd goes on with data that are to be cleared")
	}
	if !wipe.Requested(root) {
		t.Error("the wipe is not noted")
	}
	again := newAgent(t, dir, root, nil)
	if _, err := root.Stat(gatewaycert.NameFile); err == nil {
		t.Error("the robot's name is there after the wipe")
	}
	if !wipe.NewTeller(root, nil, nil, nil).Pending() {
		t.Error("the cloud was not told of the wipe")
	}
	// Until the cloud knows, no app comes in: it would be one of the former owner's robot.
	if _, err := again.people.Exchange(t.Context(), "kst_x", "app", ""); errs.CodeOf(err) != "wipe_untold" {
		t.Errorf("exchange before the cloud knows of the wipe: %v", err)
	}
}

// TestConsentFollowsOwner is VEC-DAS-08: events of a robot with an owner wait for their yes; a robot without an owner has no person's data.
func TestConsentFollowsOwner(t *testing.T) {
	_, _, a := newRobot(t, nil)
	for _, tc := range []struct {
		s    owners.Status
		want bool
	}{
		{owners.Status{}, true},
		{owners.Status{Owned: true, UserID: "u"}, false},
		{owners.Status{Owned: true, UserID: "u", DataCollection: true}, true},
		{owners.Status{Owned: true, UserID: "v"}, false},
		{owners.Status{}, true},
	} {
		if a.Publish(host.Consent(tc.s)); a.events.AllowUpload() != tc.want {
			t.Errorf("%+v: events are sent %v, want %v", tc.s, !tc.want, tc.want)
		}
	}
}

// TestFaultsAreTold: a factory identity that is not good is fault 850, and the robot keeps running (VEC-TOK-08).
func TestFaultsAreTold(t *testing.T) {
	dir, root, _ := newRobot(t, nil)
	if err := root.MkdirAll("factory/cloud", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile("factory/cloud/AnkiRobotDeviceCert.pem", []byte("none"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := newAgent(t, dir, root, nil)
	if got := strings.Join(a.Status().Problems, "; "); !strings.Contains(got, "fault 850") {
		t.Errorf("problems: %q, want fault 850", got)
	}
	if f := a.facts(); len(f.Faults) != 1 {
		t.Errorf("the report has faults %q", f.Faults)
	}
}

// TestFrugalRobotIsNobodys: robots of a fleet in one process have nothing that concerns people.
func TestFrugalRobotIsNobodys(t *testing.T) {
	_, root, a := newRobot(t, func(c *Config) { c.Frugal = true })
	if _, err := root.Stat("data/data/com.anki.victor/persistent/kennel/profile_id"); err == nil {
		t.Error("a frugal robot has a profile")
	}
	if f := a.facts(); f.Tokens != nil || f.Claim != nil {
		t.Errorf("%+v", f)
	}
}
