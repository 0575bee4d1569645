// Package presence tells the cloud that the robot is present: it sends a status message at every connect, at intervals, and soon after an
// important change, and sets the connection's last will (infra/api/status says how the cloud reads them).
package presence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/envelope"
	"kennel/infra/api/status"
	"kennel/infra/api/topics"
	"kennel/infra/wake"
)

// seqFile holds the last connect_seq that was used. It survives reboots, so that a later connection always has a larger one.
const seqFile = "data/kennel/connect_seq"

// NextConnectSeq takes the next number of a connection. It is on disk before it is used.
func NextConnectSeq(root *os.Root) (uint64, error) {
	var last uint64
	b, err := robotfs.ReadFile(root, seqFile)
	switch {
	case err == nil:
		// A damaged file starts from zero again: the cloud accepts a smaller number once the old lease has expired.
		last, _ = strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	case !errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("connect sequence: %w", err)
	}
	if err := robotfs.WriteFile(root, seqFile, fmt.Appendf(nil, "%d\n", last+1), 0o644); err != nil {
		return 0, fmt.Errorf("connect sequence: %w", err)
	}
	return last + 1, nil
}

// Our own defaults: the source has no lease.
const (
	Interval  = 10 * time.Second
	Lease     = 3*Interval + leaseMore // two lost messages do not make a robot absent
	leaseMore = 5 * time.Second
	// minGap keeps a flapping value from flooding the broker.
	minGap = 500 * time.Millisecond
)

// Reporter publishes the statuses of one connection after the other. Its methods are safe for concurrent use.
type Reporter struct {
	bootID  string
	collect func() status.Message // everything but the numbers that this package keeps
	changed wake.Signal           // one slot: "something changed" is said once
	every   time.Duration
	now     func() time.Time
}

// Option changes a Reporter.
type Option func(*Reporter)

// Every sets the interval; the lease follows it as Lease follows Interval.
func Every(d time.Duration) Option { return func(r *Reporter) { r.every = d } }

// Clock sets the robot's clock for the times in statuses; by default it is the system's.
func Clock(now func() time.Time) Option { return func(r *Reporter) { r.now = now } }

// New returns a reporter. collect is called for each message and may not block.
func New(bootID string, collect func() status.Message, opts ...Option) *Reporter {
	r := &Reporter{bootID: bootID, collect: collect, changed: wake.New(), every: Interval, now: time.Now}
	for _, o := range opts {
		o(r)
	}
	return r
}

// Changed asks for a status soon.
func (r *Reporter) Changed() {
	r.changed.Set()
}

// Will returns the last will of connection seq.
func (r *Reporter) Will(seq uint64) ([]byte, error) {
	return status.Message{State: status.Gone, BootID: r.bootID, ConnectSeq: seq}.Encode()
}

// Publish sends one message on up/<name>.
type Publish func(ctx context.Context, name string, payload []byte) error

// Run publishes for connection seq until ctx ends. Failures to publish are not errors here: the next interval tries again, and the lease
// says the rest.
func (r *Reporter) Run(ctx context.Context, seq uint64, publish Publish) error {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		m := r.collect()
		m.State, m.BootID, m.ConnectSeq, m.Seq = status.Online, r.bootID, seq, n
		m.Lease = envelope.Millis(3*r.every + leaseMore)
		m.TS = r.now().UnixMilli()
		b, err := m.Encode()
		if err != nil {
			return fmt.Errorf("status: %w", err)
		}
		_ = publish(ctx, topics.Status, b) // see above
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(minGap):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.changed:
		}
	}
}

// Goodbye publishes the end of connection seq, for an orderly stop: the cloud need not wait for the lease.
func (r *Reporter) Goodbye(ctx context.Context, seq uint64, publish Publish) {
	if b, err := r.Will(seq); err == nil {
		_ = publish(ctx, topics.Status, b) // the will says it otherwise
	}
}
