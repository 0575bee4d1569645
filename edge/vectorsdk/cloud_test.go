package vectorsdk_test

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/agent/health/conncheck"
	"kennel/edge/agent/release"
	"kennel/edge/update"
	"kennel/edge/vectorsdk"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
)

// updates are those of a robot whose updater a test plays.
type updates struct {
	mu       sync.Mutex
	now      release.Report
	err      error
	started  int
	restarts int
}

func (u *updates) say(s update.Status) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now = release.Report{Status: s, Running: "2.1.0.7", SDK: s.SDK()}
}

func (u *updates) Start(o release.Order) (release.Report, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if o != (release.Order{}) {
		return u.now, errs.New(errs.Invalid, "order %+v", o)
	}
	u.started++
	return u.now, u.err
}

func (u *updates) Report() (release.Report, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.now, u.err
}

func (u *updates) Restart(context.Context) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.now.Done {
		return errs.New(errs.NotFound, "no update waits")
	}
	u.restarts++
	return nil
}

// TestUpdates: a program begins an update, follows it by calls and events in the published numbers, and starts the new system (VEC-UPD-01), which is NOT_FOUND
// before there is one (VEC-UPD-02).
func TestUpdates(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.dial(t)
	l := d.listen(t, &vectorpb.EventRequest{})
	l.primary()
	l.await(func(e *vectorpb.Event) bool { return e.GetKeepAlive() != nil }) // it has seen that there is no update
	if _, _, body := d.post(t, "all", "/v1/update_and_restart", "{}"); !sameJSON(body, `{"status":{"code":101}}`) {
		t.Error(body)
	}
	if a, err := c.StartUpdateEngine(as(t, "all"), &vectorpb.CheckUpdateStatusRequest{}); err != nil || a.UpdateStatus != vectorpb.CheckUpdateStatusResponse_NO_UPDATE || d.updates.started != 1 {
		t.Errorf("%v, %v, begun %d times", a, err, d.updates.started)
	}
	if _, err := c.StartUpdateEngine(as(t, "look"), &vectorpb.CheckUpdateStatusRequest{}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a token that may only look: %v", err)
	}
	d.updates.say(update.Status{Phase: update.Downloading, Version: "2.2.0.1", Expected: 1000, Progress: 250})
	const downloading = `{"status":{"code":3},"update_status":2,"expected":"1000","progress":"250","update_version":"2.2.0.1","update_phase":"download","error":"","exit_code":"0"}`
	if _, _, body := d.post(t, "look", "/v1/check_update_status", ""); !sameJSON(body, downloading) {
		t.Error(body)
	}
	e := l.await(func(e *vectorpb.Event) bool { return e.GetCheckUpdateStatusResponse() != nil }).GetCheckUpdateStatusResponse()
	if e.UpdateStatus != vectorpb.CheckUpdateStatusResponse_IN_PROGRESS_DOWNLOAD || e.Progress != 250 {
		t.Errorf("event: %v", e)
	}
	d.updates.say(update.Status{Phase: update.Finished, Version: "2.2.0.1", Done: true})
	e = l.await(func(e *vectorpb.Event) bool { return e.GetCheckUpdateStatusResponse() != nil }).GetCheckUpdateStatusResponse()
	if e.UpdateStatus != vectorpb.CheckUpdateStatusResponse_READY_TO_INSTALL {
		t.Errorf("event: %v", e)
	}
	if a, err := c.UpdateAndRestart(as(t, "all"), &vectorpb.UpdateAndRestartRequest{}); err != nil || a.Status.Code != vectorpb.ResponseStatus_REQUEST_PROCESSING || d.updates.restarts != 1 {
		t.Errorf("%v, %v, %d restarts", a, err, d.updates.restarts)
	}
	d.updates.err = errs.New(errs.Unavailable, "this robot does not install releases")
	if _, err := c.CheckUpdateStatus(as(t, "look"), &vectorpb.CheckUpdateStatusRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a robot without an updater: %v", err)
	}
}

// check is the way to the cloud as a test has it.
type check struct {
	mu     sync.Mutex
	report conncheck.Report
}

func (c *check) run() conncheck.Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.report
}

func (c *check) say(r conncheck.Result, problem string, seen int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report = conncheck.Report{Result: r, Problem: problem, Probes: []conncheck.Probe{{Name: "https"}, {Name: "speech", Seen: seen, Expected: 50}}}
}

// TestCheckCloud: each verdict has its published number, with the packets that were sent and seen (VEC-DIA-01).
func TestCheckCloud(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for r, code := range map[conncheck.Result]vectorpb.CheckCloudResponse_ConnectionCode{conncheck.Unknown: 0, conncheck.Available: 1, conncheck.NoNetwork: 2,
		conncheck.Unreachable: 2, conncheck.BadCertificate: 3, conncheck.BadCredentials: 4, conncheck.TooSlow: 5} {
		d.check.say(r, "why", 7)
		a, err := d.dial(t).CheckCloudConnection(as(t, "look"), &vectorpb.CheckCloudRequest{})
		if err != nil || a.Code != code || a.StatusMessage != "why" || a.NumPackets != 7 || a.ExpectedPackets != 50 {
			t.Errorf("%v: %v, %v", r, a, err)
		}
	}
}

// TestSharedCheck: a program that asked before a check ended has its report; one that asks later has a check of its own, and so has one after a program that left.
func TestSharedCheck(t *testing.T) {
	run, began, n := vectorsdk.Checks(), time.Now(), 0
	check := func(context.Context) conncheck.Report {
		n++
		return conncheck.Report{Problem: strconv.Itoa(n)}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	run(gone, began, check)
	for i, want := range []string{"2", "2", "2"} {
		if r := run(t.Context(), began, check); r.Problem != want {
			t.Errorf("call %d: check %s, want %s", i, r.Problem, want)
		}
	}
	if r := run(t.Context(), time.Now().Add(time.Second), check); r.Problem != "3" {
		t.Errorf("a later call: check %s", r.Problem)
	}
}

// TestUploadDebugLogs: logs are collected with a reason, unless the owner does not allow it (part of VEC-DIA-02).
func TestUploadDebugLogs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if _, _, body := d.post(t, "all", "/v1/upload_debug_logs", "{}"); !sameJSON(body, `{"status":{"code":2},"url":""}`) {
		t.Error(body)
	}
	d.private.Store(true)
	if got, _, body := d.post(t, "all", "/v1/upload_debug_logs", "{}"); got != http.StatusForbidden {
		t.Errorf("%d %s", got, body)
	}
}
