package pages

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
)

// hookEvent is one request of a webhook.
type hookEvent struct {
	Kind, Thing string
	Data        struct {
		Kind, Code, Release string
		Robots              int
		I1                  int64
	}
	came time.Time
}

// hookReceiver keeps what a webhook sends.
type hookReceiver struct {
	*httptest.Server
	mu   sync.Mutex
	came []hookEvent
}

func newHookReceiver(t *testing.T) *hookReceiver {
	r := &hookReceiver{}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		e := hookEvent{came: time.Now()}
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			t.Errorf("a webhook that cannot be read: %v, %s", err, body)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.came = append(r.came, e)
	}))
	t.Cleanup(r.Close)
	return r
}

// await returns the first event that is wanted, which may have come before.
func (r *hookReceiver) await(t *testing.T, limit time.Duration, what string, want func(hookEvent) bool) (e hookEvent) {
	t.Helper()
	housetest.Await(t, limit, what, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		i := slices.IndexFunc(r.came, want)
		if i < 0 {
			return fmt.Errorf("of %+v none", r.came)
		}
		e = r.came[i]
		return nil
	})
	return e
}

// TestProblemsAsData: a fault planted on a robot arrives at a webhook, is one of its problems wherever those are listed, and becomes an alert
// when enough robots of its release have it; what a robot says of a problem in words changes no filter.
func TestProblemsAsData(t *testing.T) {
	const (
		promised = 2 * time.Second  // from the fault to the receiver
		look     = 15 * time.Second // alert.LookEvery
		ceiling  = 5                // a loaded machine may take that many times as long
	)
	r := newHookReceiver(t)
	roots := filepath.Join(t.TempDir(), "receiver.crt")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	h := housetest.New(t, "-robots", "2", "-robot-env", "KENNEL_FLUSH_MS=200", "-webhook-allow", "127.0.0.0/8", "-webhook-roots", roots)
	h.Start()
	things := h.AwaitPresent(2)
	run := func(args ...string) string {
		t.Helper()
		out, err := h.Ctl(args...)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	run("alerts", "rule", "-robots", "2", "-share", "0.9")
	run("webhooks", "add", r.URL+"/hook", "-kind", "problem.raised,problem.gone,fault.raised,alert.firing,alert.resolved,event:robot.fault")
	fault := func(thing string, args ...string) time.Time {
		t.Helper()
		began := time.Now()
		fault(t, h, thing, args...)
		return began
	}
	selected := func(filter string, want ...string) {
		t.Helper()
		housetest.Await(t, time.Minute, filter+" selects "+strings.Join(want, ", "), func() error {
			var rows []housetest.RobotRow
			if err := h.CtlJSON(&rows, "robots", "list", filter); err != nil {
				return err
			}
			var got []string
			for _, row := range rows {
				got = append(got, row.Thing)
			}
			if slices.Sort(got); !slices.Equal(got, want) {
				return fmt.Errorf("it selects %q", got)
			}
			return nil
		})
	}
	alerts := func() (firing int) {
		t.Helper()
		var list []struct {
			Kind, Code string
			Resolved   *time.Time
		}
		if err := h.CtlJSON(&list, "alerts", "list"); err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if a.Kind == "fault" && a.Code == "921" && a.Resolved == nil {
				firing++
			}
		}
		return firing
	}
	of := func(kind, thing string) func(hookEvent) bool {
		return func(e hookEvent) bool {
			return e.Kind == kind && e.Thing == thing && (e.Data.Kind == "" || e.Data.Kind == "fault") && (e.Data.Code == "" || e.Data.Code == "921")
		}
	}

	// One robot: a problem, and no alert.
	planted := fault(things[0], "post", "921")
	raised := r.await(t, ceiling*promised, "the fault at the webhook", of("problem.raised", things[0]))
	t.Logf("FIGURE fault planted to webhook received: %v (promised %v)", raised.came.Sub(planted).Round(time.Millisecond), promised)
	r.await(t, time.Minute, "the fault as a kind of its own", of("fault.raised", things[0]))
	if e := r.await(t, time.Minute, "the robot's event", of("event:robot.fault_code", things[0])); e.Data.I1 != 921 {
		t.Errorf("event %+v", e)
	}
	selected("problem:fault", things[0])
	selected("problem:fault/921", things[0])
	selected("problem:fault/922")
	for _, args := range [][]string{{"robots", "list", "problem:fault"}, {"robots", "show", things[0]}} {
		if out := run(args...); !strings.Contains(out, "fault 921") {
			t.Errorf("%v does not name the fault: %s", args, out)
		}
	}
	if out, _ := h.Ctl("doctor", things[0]); !strings.Contains(string(out), "problems") || !strings.Contains(string(out), "fault 921") { // it fails when it finds something
		t.Errorf("the doctor does not name the fault: %s", out)
	}
	if out := run("robots", "counts", "problem:fault"); !strings.Contains(out, "fault") {
		t.Errorf("counts: %s", out)
	}
	if n := alerts(); n != 0 {
		t.Errorf("%d alerts for one robot", n)
	}

	// Other words for a problem: another reason to be held.
	for _, reason := range []string{"a wheel is off", "loop: fault 1: other words"} {
		run("robot", "hold", things[1], "-reason", reason)
		housetest.Await(t, time.Minute, "the reason", func() error {
			if out := run("robots", "show", things[1]); !strings.Contains(out, reason) {
				return fmt.Errorf("%s", out)
			}
			return nil
		})
		selected("problem:held", things[1])
		selected("problem:fault", things[0])
		run("robot", "release", things[1])
		selected("problem:held")
	}

	// Both: an alert, until one is well again.
	planted = fault(things[1], "post", "921")
	firing := r.await(t, ceiling*look, "the alert at the webhook", of("alert.firing", ""))
	t.Logf("FIGURE fault planted on the second robot to alert received: %v (looked for every %v)", firing.came.Sub(planted).Round(time.Millisecond), look)
	if firing.Data.Robots != 2 || firing.Data.Release == "" {
		t.Errorf("alert %+v", firing)
	}
	if n := alerts(); n != 1 {
		t.Errorf("%d alerts fire, want 1", n)
	}
	fault(things[0], "clear")
	r.await(t, time.Minute, "the end of the problem", of("problem.gone", things[0]))
	r.await(t, ceiling*look, "the end of the alert", of("alert.resolved", ""))
	if n := alerts(); n != 0 {
		t.Errorf("%d alerts fire after one robot is well", n)
	}
}

// fault has a robot's agent post or clear a fault.
func fault(t *testing.T, h *housetest.House, thing string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(housetest.Bin, "agentd"), append(append([]string{"fault"}, args...), "-root", h.RobotRoot(thing))...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("agentd fault %v: %v %s", args, err, out)
	}
}
