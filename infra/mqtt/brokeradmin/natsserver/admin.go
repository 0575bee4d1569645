package natsserver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
	"kennel/infra/thing"
)

// Our own limits (the source gives none).
const (
	askTime   = 3 * time.Second // for all servers' answers; one that died a moment ago is still counted and does not answer
	maxKicked = 64              // sessions that one order ends: a client id has one, and a second while it moves between servers
)

// Config says which servers, and whom to let in. All but Refused are required.
type Config struct {
	Servers Servers
	Trust   func() brokerauth.Trust // the authorities now
	// Denied and Changed are those of brokeradmin.EmbeddedConfig.
	Denied  func(ctx context.Context, after int64) (d brokerapi.Deny, last int64, err error)
	Changed func() <-chan struct{}
	// Refused hears of logins that were refused, at most twenty a second. It must not block for long.
	Refused func(ctx context.Context, r brokerapi.Refusal)
}

// Admin lets clients into the servers and gives them orders. It implements brokeradmin.Admin and Blocker. Logins and orders need Run
// running. Every kenneld runs one; the servers ask any of them. Safe for concurrent use.
type Admin struct {
	cfg    Config
	log    *slog.Logger
	denied *brokerauth.Denied
	owed   map[thing.ID]string // sessions to end, with the reason; of take

	answering     chan struct{} // closed once logins are answered
	answeringOnce sync.Once

	named, nameless    *logging.Sparse
	accepted, refusals atomic.Int64

	mu     sync.Mutex
	system *nats.Conn // nil unless Run runs
	logins *nats.Conn // nil unless logins are answered
}

var (
	_ brokeradmin.Admin   = (*Admin)(nil)
	_ brokeradmin.Blocker = (*Admin)(nil)
)

// New returns an Admin that does nothing until Run.
func New(cfg Config) (*Admin, error) {
	if err := cfg.Servers.Validate(); err != nil {
		return nil, err
	}
	if cfg.Servers.Log == nil {
		cfg.Servers.Log = slog.New(slog.DiscardHandler)
	}
	denied, err := brokerauth.OpenDenied("") // in memory: the database has it
	if err != nil {
		return nil, err
	}
	return &Admin{
		cfg: cfg, log: cfg.Servers.Log, denied: denied, owed: map[thing.ID]string{}, answering: make(chan struct{}), named: logging.NewSparse(time.Second/20, 100), nameless: logging.NewSparse(10*time.Second, 50),
	}, nil
}

// Answering blocks until this process answers the servers' questions for the first time: a login before that waits in vain.
func (a *Admin) Answering(ctx context.Context) error {
	select {
	case <-a.answering:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("logins are not answered yet: %w", ctx.Err())
	}
}

// Logins returns how many logins this process has accepted and refused.
func (a *Admin) Logins() (accepted, refused int64) { return a.accepted.Load(), a.refusals.Load() }

// Run answers the servers' questions until ctx ends; then it returns nil. It begins once the list of the denied is read: no revoked client is let in
// for want of it.
func (a *Admin) Run(ctx context.Context) error {
	system, err := a.cfg.Servers.connect("kenneld-admin", a.cfg.Servers.Keys.system)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	defer system.Close()
	service, err := a.cfg.Servers.connect("kenneld-logins", a.cfg.Servers.Keys.service)
	if err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	defer service.Close()
	a.mu.Lock()
	a.system = system
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.system, a.logins = nil, nil
	}()
	var wg sync.WaitGroup
	defer wg.Wait()
	first := make(chan struct{})
	wg.Go(func() {
		brokeradmin.Follow(ctx, brokeradmin.List{Denied: a.cfg.Denied, Changed: a.cfg.Changed, Log: a.log}, a.take, sync.OnceFunc(func() { close(first) }))
	})
	select {
	case <-first:
	case <-ctx.Done():
		return nil
	}
	logins := make(chan *nats.Msg, calloutWaiting)
	if _, err := service.ChanQueueSubscribe(calloutSubject, calloutGroup, logins); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	a.mu.Lock()
	a.logins = service
	a.mu.Unlock()
	wg.Go(func() { a.announce(ctx, service) })
	for range calloutWorkers {
		wg.Go(func() { a.answers(ctx, logins) })
	}
	<-ctx.Done()
	return nil
}

// announce says that logins are answered once a server has taken the subscription.
func (a *Admin) announce(ctx context.Context, service *nats.Conn) {
	for {
		limited, cancel := context.WithTimeout(ctx, askTime)
		err := service.FlushWithContext(limited)
		cancel()
		if err == nil {
			a.answeringOnce.Do(func() { close(a.answering) })
			return
		}
		if backoff.Sleep(ctx, reconnectWait) != nil {
			return
		}
	}
}

func (a *Admin) answers(ctx context.Context, logins <-chan *nats.Msg) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-logins:
			out, err := a.answer(ctx, m.Data, time.Now())
			if err == nil {
				err = m.Respond(out)
			}
			if err != nil {
				a.log.WarnContext(ctx, "login not answered", logging.Err, err)
			}
		}
	}
}

// take has the list in force and ends the sessions that it is about. It is called by one goroutine, and again until it returns nil.
func (a *Admin) take(ctx context.Context, d brokerapi.Deny) error {
	for _, c := range d.Certs {
		if c.Thing != "" && !a.denied.Revoked(c) {
			a.owed[c.Thing] = c.Reason
		}
	}
	for id, reason := range d.Block {
		if !a.denied.Blocked(id) {
			a.owed[id] = reason
		}
	}
	if _, err := a.denied.Take(d, time.Now()); err != nil {
		return err
	}
	for id, reason := range a.owed {
		if err := a.Kick(ctx, id, reason); err != nil {
			return err
		}
		delete(a.owed, id)
	}
	return nil
}

// Block refuses the thing until Allow, in this process; brokeradmin.Keep does so in each, from the database.
func (a *Admin) Block(ctx context.Context, id thing.ID, reason string) error {
	if _, err := a.denied.Take(brokerapi.Deny{Block: map[thing.ID]string{id: reason}}, time.Now()); err != nil {
		return fmt.Errorf("block %s: %w", id, err)
	}
	if err := a.Kick(ctx, id, reason); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	return nil
}

// Allow takes a Block back.
func (a *Admin) Allow(_ context.Context, id thing.ID) error {
	if _, err := a.denied.Take(brokerapi.Deny{Allow: []thing.ID{id}}, time.Now()); err != nil {
		return fmt.Errorf("allow %s: %w", id, err)
	}
	return nil
}

// Kick ends the thing's session on whichever server has it; its will is published.
func (a *Admin) Kick(ctx context.Context, id thing.ID, reason string) error {
	if err := a.kick(ctx, id, reason); err != nil {
		return fmt.Errorf("kick %s: %w", id, classify(err))
	}
	return nil
}

// Ready returns nil if a server answers now and this process is there for logins.
func (a *Admin) Ready(ctx context.Context) error {
	a.mu.Lock()
	logins := a.logins
	a.mu.Unlock()
	if logins == nil || !logins.IsConnected() {
		return errs.Coded(errs.Unavailable, "disconnected", "broker: no connection for logins")
	}
	servers, err := a.Members(ctx)
	if err == nil && len(servers) == 0 {
		err = errs.Coded(errs.Unavailable, "no_answer", "no server answered within %v", askTime)
	}
	if err != nil {
		return fmt.Errorf("broker: %w", classify(err))
	}
	return nil
}

func (a *Admin) kick(ctx context.Context, id thing.ID, reason string) error {
	type connz struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
		Data struct {
			Connections []struct {
				CID uint64 `json:"cid"`
			} `json:"connections"`
		} `json:"data"`
	}
	members, err := a.Members(ctx)
	if err != nil {
		return err
	}
	found, err := ask[connz](ctx, a, "$SYS.REQ.SERVER.PING.CONNZ", map[string]any{"mqtt_client": string(id), "limit": maxKicked}, len(members))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return errs.Coded(errs.Unavailable, "no_answer", "no server said which sessions it has")
	}
	for _, at := range found {
		for _, c := range at.Data.Connections {
			done, err := ask[struct{}](ctx, a, "$SYS.REQ.SERVER."+at.Server.ID+".KICK", map[string]any{"cid": c.CID}, 1)
			if err != nil {
				return err
			}
			if len(done) == 0 {
				return errs.Coded(errs.Unavailable, "no_answer", "server %s did not say that it ended the session", at.Server.ID)
			}
			a.log.InfoContext(ctx, "session ended", logging.Thing, id, "reason", reason)
		}
	}
	return nil
}

// ask sends a request to servers and returns the answers: the first want of them, or as many as came within askTime. want 0: until one of the
// answers says how many servers there are.
func ask[T any](ctx context.Context, a *Admin, subject string, options any, want int) ([]T, error) {
	a.mu.Lock()
	conn := a.system
	a.mu.Unlock()
	if conn == nil || !conn.IsConnected() {
		return nil, errs.Coded(errs.Unavailable, "disconnected", "no connection to the broker")
	}
	payload, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	inbox := conn.NewInbox()
	sub, err := conn.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // the connection's end does the same
	if err := conn.PublishRequest(subject, inbox, payload); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var out []T
	for want == 0 || len(out) < want {
		m, err := sub.NextMsgWithContext(limited)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case limited.Err() != nil:
			return out, nil
		case err != nil:
			return out, err
		}
		var one T
		if err := json.Unmarshal(m.Data, &one); err != nil {
			return out, fmt.Errorf("answer to %s: %w", subject, err)
		}
		out = append(out, one)
		if c, ok := any(one).(counted); ok && want == 0 {
			want = c.servers()
		}
	}
	return out, nil
}

// counted is an answer that says how many servers there are.
type counted interface{ servers() int }
