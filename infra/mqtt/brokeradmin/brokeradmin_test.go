package brokeradmin_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"kennel/infra/mqtt"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/mqtt/brokeradmin/brokeradmintest"
	"kennel/infra/mqtt/mqtttest"
)

func TestEmbedded(t *testing.T) {
	brokeradmintest.Run(t, func(t *testing.T) *brokeradmintest.Broker {
		b := mqtttest.New(t)
		b.Config.Denied = filepath.Join(t.TempDir(), "denied.json")
		b.Start(t)
		link, err := mqtt.New(mqtt.Config{
			URL: b.URL, ClientID: "kenneld-admin", TLS: b.Cloud(t), MinBackoff: 10 * time.Millisecond,
			MaxBackoff: 50 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- link.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-done })
		return &brokeradmintest.Broker{
			Things: b, Services: b, Admin: brokeradmin.Embedded{Link: link}, Stop: b.Stop, Start: func() { b.Start(t) }, EndsForbidden: true, SaysWill: true,
		}
	})
}
