package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"kennel/infra/mqtt"
)

// session is a connection made with the client that robots and cloud use.
type session struct {
	*mqtt.Client
	cancel context.CancelFunc
	ended  chan struct{}
}

// connect connects p under clientID and returns when it has subscribed to filters. hear must not block. The connection comes back by itself
// until stop.
func connect(ctx context.Context, url, clientID string, p peer, hear func(topic string, payload []byte), filters ...string) (*session, error) {
	up := make(chan struct{})
	var once sync.Once
	return dialSession(ctx, mqtt.Config{URL: url, ClientID: clientID, TLS: p.credentials, MinBackoff: 100 * time.Millisecond,
		OnConnect: func(ctx context.Context, c *mqtt.Client) error {
			if len(filters) > 0 {
				if err := c.Subscribe(ctx, 1, filters...); err != nil {
					return err
				}
			}
			once.Do(func() { close(up) })
			return nil
		},
		OnMessage: func(topic string, payload []byte, taken func()) {
			hear(topic, payload)
			taken()
		}}, up)
}

func dialSession(ctx context.Context, cfg mqtt.Config, up <-chan struct{}) (*session, error) {
	var last error // why it is not up yet
	downs := make(chan error, 1)
	cfg.OnDown = func(err error) {
		select {
		case downs <- err:
		default: // one is enough to tell
		}
	}
	c, err := mqtt.New(cfg)
	if err != nil {
		return nil, err
	}
	rctx, cancel := context.WithCancel(context.Background())
	s := &session{c, cancel, make(chan struct{})}
	go func() {
		defer close(s.ended)
		_ = c.Run(rctx) // nil by contract
	}()
	limit := time.NewTimer(loginTime)
	defer limit.Stop()
	for {
		select {
		case <-up:
			return s, nil
		case last = <-downs:
		case <-limit.C:
			s.stop()
			return nil, fmt.Errorf("%s is not connected after %v: %v", cfg.ClientID, loginTime, last)
		case <-ctx.Done():
			s.stop()
			return nil, context.Cause(ctx)
		}
	}
}

func (s *session) stop() {
	s.cancel()
	<-s.ended
}
