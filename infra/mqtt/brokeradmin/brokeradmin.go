package brokeradmin

import (
	"context"
	"fmt"

	"kennel/certs/thing"
	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokerapi"
)

// Admin gives a broker the orders that no MQTT message carries. Implementations are safe for concurrent use. Errors say what the broker
// said; that it cannot be reached is errs.Unavailable.
type Admin interface {
	// Kick ends the session of a thing and returns nil once the broker has the order; also if there is no session. A thing whose
	// certificate the broker still accepts comes back. Whether its will is published is the broker's habit.
	Kick(ctx context.Context, id thing.ID, reason string) error
	// Ready returns nil if the broker would take an order now.
	Ready(ctx context.Context) error
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

// Ready returns nil while the connection is up.
func (e Embedded) Ready(context.Context) error {
	if !e.Link.Connected() {
		return fmt.Errorf("broker: %w", mqtt.ErrDisconnected)
	}
	return nil
}
