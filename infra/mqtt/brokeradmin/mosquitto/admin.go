package mosquitto

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt"
	"kennel/infra/thing"
	"kennel/infra/wake"
)

// Our own limits (the source gives none).
const (
	answerTime = 10 * time.Second // the plugin answers within milliseconds, or never
	batch      = 20               // things in one message; the plugin of 2.0 writes its whole file twice for each, and serves no client while it does
	page       = 500              // clients asked for in one message
	syncRetry  = 5 * time.Second
)

// Config says how to reach the plugin.
type Config struct {
	// MQTT names the listener of the services, and a certificate that the security file knows as a service. Client id, will and handlers
	// are the Admin's.
	MQTT mqtt.Config
	// Things lists every thing that may use the broker. It is called at each connection, because a Mosquitto that lost its security file must
	// learn the fleet again. If nil, only things named by Provision may.
	Things func(ctx context.Context) ([]thing.ID, error)
	// Blocked lists the things that have no rights, with the reason. It is called with Things and overrides the plugin's file. If nil, the file decides.
	Blocked func(ctx context.Context) (map[thing.ID]string, error)
	Log     *slog.Logger
}

// Admin gives orders to Mosquitto through its dynamic security plugin. It implements brokeradmin.Admin and Provisioner; orders need Run
// running. Safe for concurrent use, also beside Admins of other processes.
type Admin struct {
	cfg    Config
	client *mqtt.Client
	up     wake.Signal // the broker may not know every thing; one slot: it is a state, not a count

	mu      sync.Mutex
	waiting map[string]chan []response // by correlation; one slot each
}

// New returns an Admin that does nothing until Run.
func New(cfg Config) (*Admin, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	a := &Admin{cfg: cfg, up: wake.New(), waiting: map[string]chan []response{}}
	m := cfg.MQTT
	m.ClientID = "kenneld-admin-" + rand.Text()
	m.Will = nil
	m.OnConnect = func(ctx context.Context, c *mqtt.Client) error {
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		defer cancel()
		if err := c.Subscribe(ctx, 1, responseTopic); err != nil {
			return err
		}
		a.up.Set()
		return nil
	}
	m.OnMessage = func(_ string, payload []byte, ack func()) {
		a.hear(payload)
		ack()
	}
	if m.Log == nil {
		m.Log = cfg.Log
	}
	var err error
	if a.client, err = mqtt.New(m); err != nil {
		return nil, fmt.Errorf("mosquitto: %w", err)
	}
	return a, nil
}

// Run keeps the connection and creates things that the broker does not know, until ctx ends; then it returns nil.
func (a *Admin) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { _ = a.client.Run(ctx) }) // nil by contract
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.up:
		}
		for a.client.Connected() {
			err := a.sync(ctx)
			if err == nil || ctx.Err() != nil {
				break
			}
			a.cfg.Log.WarnContext(ctx, "things not registered at the broker; retrying", logging.Err, err, "retry_in", syncRetry)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(syncRetry):
			}
		}
	}
}

// Kick ends the thing's session. Mosquitto ends the sessions of a client whose entry changes, so the order is a change of its
// description, to the reason; no will is published.
func (a *Admin) Kick(ctx context.Context, id thing.ID, reason string) error {
	const most = 200
	if len(reason) > most {
		reason = reason[:most]
	}
	text := fmt.Sprintf("kicked: %s", reason)
	out, err := a.do(ctx, command{Command: "modifyClient", Username: username(id), Description: &text})
	if err == nil && out[0].Error != "" && out[0].Error != clientUnknown { // an unknown client has no session with rights
		err = errors.New(out[0].Error)
	}
	if err != nil {
		return fmt.Errorf("kick %s: %w", id, err)
	}
	return nil
}

// Block takes a thing's rights away and ends its session. The plugin is not asked about logins with a certificate, so the thing may log in
// again but do nothing; only the revocation list (Broker.DeviceCRL) refuses the login. The plugin's file keeps the block.
func (a *Admin) Block(ctx context.Context, id thing.ID, reason string) error {
	const most = 200
	if len(reason) > most {
		reason = reason[:most]
	}
	text := blockedText + reason
	// Created again without a role. It stays known, so that a later Provision gives it none.
	out, err := a.do(ctx, command{Command: "deleteClient", Username: username(id)}, command{Command: "createClient", Username: username(id),
		Description: &text},
		command{Command: "disableClient", Username: username(id)})
	if err == nil {
		for _, r := range out {
			if r.Error != "" && r.Error != clientUnknown {
				err = errors.Join(err, fmt.Errorf("%s: %s", r.Command, r.Error))
			}
		}
	}
	if err != nil {
		return fmt.Errorf("block %s: %w", id, err)
	}
	return nil
}

// blockedText begins the description of a client without rights.
const blockedText = "blocked: "

// Allow gives a blocked thing its rights again.
func (a *Admin) Allow(ctx context.Context, id thing.ID) error {
	// Created again rather than changed back, so that it has the present version of its role and nothing else.
	out, err := a.do(ctx, command{Command: "getClient", Username: username(id)})
	switch {
	case err != nil:
	case out[0].Error == clientUnknown:
		return nil // it gets its rights when it is provisioned
	case out[0].Error != "":
		err = errors.New(out[0].Error)
	case !out[0].Data.Client.blocked():
		return nil
	default:
		if out, err = a.do(ctx, command{Command: "deleteClient", Username: username(id)}); err == nil && out[0].Error != "" &&
			out[0].Error != clientUnknown {
			err = errors.New(out[0].Error)
		}
		if err == nil {
			err = a.provision(ctx, []thing.ID{id})
		}
		if err != nil {
			a.up.Set()
		}
	}
	if err != nil {
		return fmt.Errorf("allow %s: %w", id, err)
	}
	return nil
}

// The answers of the plugin.
const (
	clientUnknown = "Client not found"
	clientKnown   = "Client already exists"
	roleKnown     = "Role already exists"
)

// Provision gives things the rights to their own topics. A thing that has them already keeps them and its session. After an error Run
// provisions the whole fleet again.
func (a *Admin) Provision(ctx context.Context, ids ...thing.ID) error {
	err := a.provision(ctx, ids)
	if err != nil {
		a.up.Set()
	}
	return err
}

func (a *Admin) provision(ctx context.Context, ids []thing.ID) error {
	for part := range slices.Chunk(ids, batch) {
		var commands []command
		for _, id := range part {
			commands = append(commands,
				command{Command: "createRole", Rolename: roleName(id), ACLs: thingACLs(id)},
				command{Command: "createClient", Username: username(id), Roles: []roleRef{{roleName(id)}}})
		}
		out, err := a.do(ctx, commands...)
		if err != nil {
			return fmt.Errorf("register %d things at the broker: %w", len(part), err)
		}
		for i, r := range out {
			if r.Error != "" && r.Error != clientKnown && r.Error != roleKnown {
				return fmt.Errorf("register %s at the broker: %s: %s", part[i/2], r.Command, r.Error)
			}
		}
	}
	return nil
}

// sync creates every thing that the broker does not know, or knows by an older version of its role.
func (a *Admin) sync(ctx context.Context) error {
	if a.cfg.Things == nil {
		return nil
	}
	things, err := a.cfg.Things(ctx)
	if err != nil {
		return fmt.Errorf("list things: %w", err)
	}
	var blocked map[thing.ID]string
	if a.cfg.Blocked != nil {
		if blocked, err = a.cfg.Blocked(ctx); err != nil {
			return fmt.Errorf("list blocked things: %w", err)
		}
	}
	known, err := a.known(ctx)
	if err != nil {
		return err
	}
	for id, c := range known {
		if reason, yes := blocked[id]; yes && (!c.blocked() || len(c.Roles) > 0) {
			if err := a.Block(ctx, id, reason); err != nil {
				return err
			}
		}
	}
	missing := slices.DeleteFunc(slices.Clone(things), func(id thing.ID) bool {
		if _, yes := blocked[id]; yes { // a thing that the plugin does not know has no rights either
			return true
		}
		c := known[id]
		return c.blocked() && a.cfg.Blocked == nil || len(c.Roles) > 0 && c.Roles[0].Name == roleName(id) && !c.Disabled
	})
	for _, id := range missing {
		if _, ok := known[id]; ok { // its session ends too; the robot reconnects
			if _, err := a.do(ctx, command{Command: "deleteClient", Username: username(id)}); err != nil {
				return fmt.Errorf("renew the role of %s: %w", id, err)
			}
		}
	}
	if err := a.provision(ctx, missing); err != nil {
		return err
	}
	if len(missing) > 0 {
		a.cfg.Log.InfoContext(ctx, "things registered at the broker", "known", len(known), "told", len(missing))
	}
	return nil
}

// known returns the things in the plugin's file.
func (a *Admin) known(ctx context.Context) (map[thing.ID]client, error) {
	out := map[thing.ID]client{}
	for offset := 0; ; {
		answers, err := a.do(ctx, command{Command: "listClients", Verbose: true, Count: page, Offset: offset})
		if err == nil && answers[0].Error != "" {
			err = errors.New(answers[0].Error)
		}
		if err != nil {
			return nil, fmt.Errorf("list clients: %w", err)
		}
		d := answers[0].Data
		for _, c := range d.Clients {
			if id, ok := thingOf(c.Username); ok {
				out[id] = c
			}
		}
		if offset += len(d.Clients); len(d.Clients) == 0 || offset >= d.TotalCount {
			return out, nil
		}
	}
}

// Ready returns nil if the plugin answers this service now.
func (a *Admin) Ready(ctx context.Context) error {
	out, err := a.do(ctx, command{Command: "getDefaultACLAccess"})
	if err == nil && out[0].Error != "" {
		err = errors.New(out[0].Error)
	}
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

// do sends commands as one message and returns the responses, one for each. The plugin handles a message's commands without another's in
// between.
func (a *Admin) do(ctx context.Context, commands ...command) ([]response, error) {
	id := rand.Text()
	for i := range commands {
		commands[i].Correlation = id
	}
	payload, err := json.Marshal(struct {
		Commands []command `json:"commands"`
	}{commands})
	if err != nil {
		return nil, err
	}
	answer := make(chan []response, 1)
	a.mu.Lock()
	a.waiting[id] = answer
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.waiting, id)
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errs.Coded(errs.Unavailable, "no_answer",
		"the dynamic security plugin did not answer within %v: is it loaded, and does its file know this service?", answerTime))
	defer cancel()
	if err := a.client.Publish(ctx, controlTopic, 1, false, payload); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case out := <-answer:
		if len(out) != len(commands) {
			return nil, fmt.Errorf("the dynamic security plugin answered %d of %d commands", len(out), len(commands))
		}
		return out, nil
	}
}

// hear passes an answer of the plugin to its order. Answers to other services' orders are ignored.
func (a *Admin) hear(payload []byte) {
	out, err := parseResponses(payload)
	if err != nil {
		a.cfg.Log.Warn("broker message unreadable", logging.Err, err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if w, ok := a.waiting[out[0].Correlation]; ok {
		delete(a.waiting, out[0].Correlation)
		w <- out
	}
}
