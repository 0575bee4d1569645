package brokeradmin

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"

	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/wake"
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
	Follow(ctx, List{Denied: a.cfg.Denied, Changed: a.cfg.Changed, Ready: a.client.Connected, Forgot: a.up, Log: a.cfg.Log}, a.Deny, func() {})
	return nil
}
