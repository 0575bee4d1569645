package brokeradmin

import (
	"context"
	"fmt"

	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/thing"
)

// Admin gives a broker the orders that no MQTT message carries. Implementations are safe for concurrent use. Errors contain the broker's
// reason; they are errs.Unavailable if it cannot be reached.
type Admin interface {
	// Kick ends the session of a thing and returns nil once the broker has the order, also if there is no session. A thing whose certificate
	// the broker still accepts comes back. Whether its will is published depends on the broker.
	Kick(ctx context.Context, id thing.ID, reason string) error
	// Ready returns nil if the broker would take an order now.
	Ready(ctx context.Context) error
}

// Blocker is an Admin that can refuse things by name. Ask for it once, at construction. Each adapter says what survives a restart of the
// broker; Keep restores the rest.
type Blocker interface {
	// Block ends the session of a thing and refuses it from now on, whatever its certificate. Repeating it changes nothing.
	Block(ctx context.Context, id thing.ID, reason string) error
	// Allow lifts a Block, if there is one. A revoked certificate stays refused by brokers that know of it.
	Allow(ctx context.Context, id thing.ID) error
}

// Provisioner is an Admin of a broker that must be told of each thing before the thing may do anything. Ask for it once, at construction.
type Provisioner interface {
	// Provision gives things the rights to their own topics (VEC-FLE-01). Repeating it changes nothing.
	Provision(ctx context.Context, ids ...thing.ID) error
}

// Publisher is a service's connection to the broker.
type Publisher interface {
	Publish(ctx context.Context, topic string, qos byte, retained bool, payload []byte) error
	Connected() bool
}

// Embedded gives orders to the embedded broker, over the connection that the process has anyway.
type Embedded struct{ Link Publisher }

// Kick ends the thing's session; its will is published.
func (e Embedded) Kick(ctx context.Context, id thing.ID, reason string) error {
	payload, err := brokerapi.Kick{ClientID: string(id), Reason: reason}.Encode()
	if err == nil {
		err = e.Link.Publish(ctx, brokerapi.KickTopic, 1, false, payload)
	}
	if err != nil {
		return fmt.Errorf("kick %s: %w", id, err)
	}
	return nil
}

// Block refuses the thing until Allow, also after a restart of the broker if it keeps a list (broker.Config.Denied).
func (e Embedded) Block(ctx context.Context, id thing.ID, reason string) error {
	if err := e.Deny(ctx, brokerapi.Deny{Block: map[thing.ID]string{id: reason}}); err != nil {
		return fmt.Errorf("block %s: %w", id, err)
	}
	return nil
}

// Allow takes a Block back.
func (e Embedded) Allow(ctx context.Context, id thing.ID) error {
	if err := e.Deny(ctx, brokerapi.Deny{Allow: []thing.ID{id}}); err != nil {
		return fmt.Errorf("allow %s: %w", id, err)
	}
	return nil
}

// Deny gives the broker an order; it is in force and kept when Deny returns nil.
func (e Embedded) Deny(ctx context.Context, d brokerapi.Deny) error {
	parts, err := d.Messages()
	if err != nil {
		return err
	}
	for _, payload := range parts {
		if err := e.Link.Publish(ctx, brokerapi.DenyTopic, 1, false, payload); err != nil {
			return err
		}
	}
	return nil
}

// Ready returns nil while the connection is up.
func (e Embedded) Ready(context.Context) error {
	if !e.Link.Connected() {
		return fmt.Errorf("broker: %w", mqtt.ErrDisconnected)
	}
	return nil
}
