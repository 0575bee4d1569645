package brokeradmin

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"

	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokerapi"
)

// retry is how long after a failure an order is given again.
const retry = time.Second

// EmbeddedConfig says how to reach the embedded broker, and what it must refuse. All but Log are required.
type EmbeddedConfig struct {
	// MQTT names the broker and a service's certificate. Client id, will and handlers are the Admin's.
	MQTT mqtt.Config
	// Denied returns the certificates that were revoked after position after, in Block all blocked things, and the position to go on from.
	Denied func(ctx context.Context, after int64) (d brokerapi.Deny, last int64, err error)
	// Changed returns a channel that is closed at the next change of what Denied returns.
	Changed func() <-chan struct{}
	Log     *slog.Logger
}

// EmbeddedAdmin gives orders to the embedded broker over a connection of its own, and tells it whom to refuse: everything at each
// connection, because the broker may have lost its list, and what is new at each change. It implements Admin and Blocker; orders need Run
// running. Safe for concurrent use, also beside Admins of other processes.
type EmbeddedAdmin struct {
	Embedded
	cfg    EmbeddedConfig
	client *mqtt.Client
	up     chan struct{} // the broker may know nothing; one slot: it is a state, not a count
}

// NewEmbedded returns an Admin that does nothing until Run.
func NewEmbedded(cfg EmbeddedConfig) (*EmbeddedAdmin, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &EmbeddedAdmin{cfg: cfg, up: make(chan struct{}, 1)}
	m := cfg.MQTT
	m.ClientID = "kenneld-admin-" + rand.Text()
	m.Will, m.OnMessage = nil, nil
	m.OnConnect = func(context.Context, *mqtt.Client) error {
		select {
		case a.up <- struct{}{}:
		default:
		}
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
	var told int64                          // position that the broker knows
	var again <-chan time.Time
	for {
		changed := a.cfg.Changed()
		if a.client.Connected() {
			last, err := a.tell(ctx, told)
			if again = nil; err == nil {
				told = last
			} else if ctx.Err() == nil {
				a.cfg.Log.WarnContext(ctx, "broker not told whom to refuse, trying again", logging.Err, err, "retry_in", retry)
				again = time.After(retry)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.up:
			told = 0
		case <-changed:
		case <-again:
		}
	}
}

func (a *EmbeddedAdmin) tell(ctx context.Context, told int64) (last int64, err error) {
	d, last, err := a.cfg.Denied(ctx, told)
	if err != nil {
		return told, err
	}
	d.Reset = true
	return last, a.Deny(ctx, d)
}
