package vectorsdk

import (
	"context"
	"sync"
	"time"

	"kennel/edge/agent/health/conncheck"
	"kennel/edge/agent/release"
	"kennel/infra/api/vectorpb"
	"kennel/infra/errs"
)

// Updates are the robot's (edge/agent/release.Agent).
type Updates interface {
	Start(release.Order) (release.Report, error)
	Report() (release.Report, error)
	Restart(context.Context) error
}

// debugReason is the word stored with logs that a program asked for.
const debugReason = "sdk"

// checks is the check of the way to the cloud. It takes seconds and sends data, so all who ask during one get its report.
type checks struct {
	mu    sync.Mutex // held during a check
	ended time.Time
	last  conncheck.Report
}

// run returns the report of a check that ended after began, when the call did.
func (x *checks) run(ctx context.Context, began time.Time, check func(context.Context) conncheck.Report) conncheck.Report {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended.Before(began) {
		report := check(ctx)
		if ctx.Err() != nil {
			return report // of a client that has gone
		}
		x.last, x.ended = report, time.Now()
	}
	return x.last
}

// checkCloudConnection tries the way to the cloud to its end, a stream of sound to the speech service (VEC-DIA-01, VEC-CLD-07).
func (f *Facade) checkCloudConnection(ctx context.Context, _ client, _ *vectorpb.CheckCloudRequest) (*vectorpb.CheckCloudResponse, error) {
	r := f.checks.run(ctx, time.Now(), f.cfg.Check)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a := &vectorpb.CheckCloudResponse{Status: heard(), Code: vectorpb.CheckCloudResponse_ConnectionCode(r.Result.ConnectionCode()), StatusMessage: cut(r.Problem, maxText)}
	for _, p := range r.Probes {
		a.NumPackets, a.ExpectedPackets = int32(p.Seen), int32(p.Expected)
	}
	return a, nil
}

// uploadDebugLogs collects the robot's logs, whose upload follows when there is a connection (part of VEC-DIA-02). It is denied unless the owner allows that
// data are collected. The cloud shows logs to the owner and gives out no address of them, so the answer has none.
func (f *Facade) uploadDebugLogs(ctx context.Context, _ client, _ *vectorpb.UploadDebugLogsRequest) (*vectorpb.UploadDebugLogsResponse, error) {
	name, err := f.cfg.SendLogs(ctx, debugReason)
	if err != nil {
		return nil, err
	}
	f.cfg.Log.InfoContext(ctx, "logs collected for a program", "name", name)
	return &vectorpb.UploadDebugLogsResponse{Status: begun()}, nil
}

// updateStatus returns how far an update is, in the published numbers (VEC-UPD-01).
func updateStatus(r release.Report) *vectorpb.CheckUpdateStatusResponse {
	a := &vectorpb.CheckUpdateStatusResponse{Status: fine(), UpdateStatus: vectorpb.CheckUpdateStatusResponse_UpdateStatus(r.SDK), Expected: r.Expected, Progress: r.Progress,
		UpdateVersion: string(r.Version), UpdatePhase: string(r.Phase), Error: r.Error, ExitCode: int64(r.Code)}
	if a.UpdateStatus == vectorpb.CheckUpdateStatusResponse_NO_UPDATE && r.Soon() {
		a.UpdateStatus, a.UpdateVersion = vectorpb.CheckUpdateStatusResponse_IN_PROGRESS_STARTING, string(r.Wanted)
	}
	return a
}

// startUpdateEngine begins an update to the release that the cloud wants, or to the newest, and says how far it is. One that runs continues.
func (f *Facade) startUpdateEngine(context.Context, client, *vectorpb.CheckUpdateStatusRequest) (*vectorpb.CheckUpdateStatusResponse, error) {
	r, err := f.cfg.Updates.Start(release.Order{})
	if err != nil {
		return nil, err
	}
	return updateStatus(r), nil
}

func (f *Facade) checkUpdateStatus(context.Context, client, *vectorpb.CheckUpdateStatusRequest) (*vectorpb.CheckUpdateStatusResponse, error) {
	r, err := f.cfg.Updates.Report()
	if err != nil {
		return nil, err
	}
	return updateStatus(r), nil
}

// updateAndRestart starts the system that an update installed. NOT_FOUND: none waits for that (VEC-UPD-02).
func (f *Facade) updateAndRestart(ctx context.Context, _ client, _ *vectorpb.UpdateAndRestartRequest) (*vectorpb.UpdateAndRestartResponse, error) {
	err := f.cfg.Updates.Restart(ctx)
	if errs.KindOf(err) == errs.NotFound {
		return &vectorpb.UpdateAndRestartResponse{Status: answered(vectorpb.ResponseStatus_NOT_FOUND)}, nil
	}
	return &vectorpb.UpdateAndRestartResponse{Status: begun()}, err
}

// progress returns the event that tells how far an update is, if that is not as in told; nil: it is, or the robot installs no releases. told nil is the
// beginning of a stream, which hears nothing of the past.
func (f *Facade) progress(told **release.Report) *vectorpb.Event {
	now, err := f.cfg.Updates.Report()
	if err != nil {
		return nil
	}
	before := *told
	*told = &now
	if before == nil || *before == now {
		return nil
	}
	return &vectorpb.Event{EventType: &vectorpb.Event_CheckUpdateStatusResponse{CheckUpdateStatusResponse: updateStatus(now)}}
}
