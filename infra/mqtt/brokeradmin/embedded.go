package brokeradmin

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"sync"
	"time"

	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
	"kennel/infra/wake"
)

// Our own limits (the source gives none).
const (
	retry = time.Second     // after a failure an order is given again
	look  = 2 * time.Second // between checks whether a blocked thing has enrolled again, which no event announces
)

// EmbeddedConfig holds the embedded broker's address and its deny list. All but Log are required.
type EmbeddedConfig struct {
	// MQTT names the broker and a service's certificate. Client id, will and handlers are the Admin's.
	MQTT mqtt.Config
	// Denied returns the certificates revoked after position after, all blocked things (in Block), and the position to continue from.
	Denied func(ctx context.Context, after int64) (d brokerapi.Deny, last int64, err error)
	// Changed returns a channel that is closed when the result of Denied changes next.
	Changed func() <-chan struct{}
	Log     *slog.Logger
}

// EmbeddedAdmin gives orders to the embedded broker over a connection of its own, and sends it the
// deny list: all of it at each connection, because the broker may have lost it, and new entries at
// each change. It implements Admin and Blocker; orders need Run running. Safe for concurrent use,
// also beside Admins of other processes.
type EmbeddedAdmin struct {
	Embedded
	cfg    EmbeddedConfig
	client *mqtt.Client
	up     wake.Signal // the broker may know nothing; one slot: it is a state, not a count
}

// NewEmbedded returns an Admin that does nothing until Run.
func NewEmbedded(cfg EmbeddedConfig) (*EmbeddedAdmin, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &EmbeddedAdmin{cfg: cfg, up: wake.New()}
	m := cfg.MQTT
	m.ClientID = "kenneld-admin-" + rand.Text()
	m.Will, m.OnMessage = nil, nil
	m.OnConnect = func(context.Context, *mqtt.Client) error {
		a.up.Set()
		return nil
	}
	if m.Log == nil {
		m.Log = cfg.Log
	}
	var err error
	if a.client, err = mqtt.New(m); err != nil {
		return nil, err
	}
	a.Embedded = Embedded{Link: a.client}
	return a, nil
}

// Run keeps the connection and the broker's list until ctx ends; then it returns nil.
func (a *EmbeddedAdmin) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = a.client.Run(ctx) }) // nil by contract
	t := told{}
	failed := 0 // times in a row
	for {
		changed := a.cfg.Changed()
		var again <-chan time.Time
		if a.client.Connected() {
			err := a.tell(ctx, &t)
			switch {
			case err != nil:
				if failed++; failed == 2 && ctx.Err() == nil { // once is how a cloud starts: the list is not read yet
					a.cfg.Log.WarnContext(ctx, "deny list not sent to the broker; retrying", logging.Err, err, "retry_in", retry)
				}
				again = time.After(retry)
			case len(t.block) > 0:
				again = time.After(look)
			}
			if err == nil {
				failed = 0
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.up:
			t = told{}
		case <-changed:
		case <-again:
		}
	}
}

// told records what this connection has told the broker.
type told struct {
	last  int64 // position of the certificates
	once  bool
	block map[thing.ID]string
}

func (a *EmbeddedAdmin) tell(ctx context.Context, t *told) error {
	d, last, err := a.cfg.Denied(ctx, t.last)
	if err != nil {
		return err
	}
	block := d.Block
	if d.Reset = !t.once || !maps.Equal(block, t.block); !d.Reset {
		d.Block = nil
	}
	if err := a.Deny(ctx, d); err != nil {
		return err
	}
	*t = told{last, true, block}
	return nil
}
