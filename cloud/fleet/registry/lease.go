package registry

import (
	"time"

	"kennel/infra/api/status"
)

// Bounds of a lease, whatever a robot asks for.
const (
	MinLease     = 5 * time.Second
	MaxLease     = 5 * time.Minute
	DefaultLease = 45 * time.Second // a status that names none
	// WillGrace is how long a robot stays present after its will: long enough to reconnect without being seen to leave.
	WillGrace = 2 * time.Second
)

// Lease decides whether a robot is present.
type Lease struct {
	BootID     string
	ConnectSeq uint64
	Seq        uint64 // of the last status accepted within this connection
	Until      time.Time
	Gone       bool // the will of this connection came

	Present  bool
	Since    time.Time // of Present; zero: never seen
	LastSeen time.Time // receipt of the last status accepted
}

// Change is a robot's coming or going.
type Change struct {
	At      time.Time `json:"at"`
	Present bool      `json:"present"`
}

// Next returns the lease after m was received at now, and what changed with it, oldest first. ok is false if m must be ignored: an old
// will, a reordered or repeated message.
//
//   - A will counts only for the very connection (boot_id, connect_seq) the lease belongs to, and only shortens it.
//   - A robot raises connect_seq at every connect and keeps it on disk, so a lower one is an old message. A wiped robot starts counting
//     again: another boot_id is accepted with any connect_seq once the lease ran out.
//   - Within one connection seq must rise. After its will a connection is dead; a status of it that was overtaken by the will is
//     ignored until the lease ran out.
func (l Lease) Next(m status.Message, now time.Time) (next Lease, changes []Change, ok bool) {
	running := l.Until.After(now)
	same := m.BootID == l.BootID && m.ConnectSeq == l.ConnectSeq
	if m.State == status.Gone {
		if !same || l.Gone {
			return l, nil, false
		}
		l.Gone = true
		if end := now.Add(WillGrace); end.Before(l.Until) {
			l.Until = end
		}
		return l, nil, true
	}
	switch {
	case same && (m.Seq <= l.Seq || l.Gone && running),
		!same && m.BootID == l.BootID && m.ConnectSeq < l.ConnectSeq,
		!same && m.BootID != l.BootID && m.ConnectSeq <= l.ConnectSeq && running:
		return l, nil, false
	}
	if l.Present && !running {
		// The lease ran out and was not swept yet: the robot left, then came back.
		changes = append(changes, Change{l.Until, false})
		l.Present = false
	}
	if !l.Present {
		changes = append(changes, Change{now, true})
		l.Present, l.Since = true, now
	}
	l.BootID, l.ConnectSeq, l.Seq, l.Gone = m.BootID, m.ConnectSeq, m.Seq, false
	l.LastSeen, l.Until = now, now.Add(leaseOf(m))
	return l, changes, true
}

func leaseOf(m status.Message) time.Duration {
	if m.Lease <= 0 {
		return DefaultLease
	}
	return min(max(time.Duration(m.Lease), MinLease), MaxLease)
}
