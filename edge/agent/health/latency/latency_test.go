package latency

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"kennel/edge/env/platform"
	"kennel/infra/api/events"
	"kennel/infra/testwait"
)

func cloud(addr string) platform.Endpoints {
	e := platform.Endpoints{Check: addr + "/ok", Chipper: addr, Jdocs: "jdocs.example", TMS: addr}
	e.Kennel.API = "https://" + addr
	return e
}

// TestEndpoints: each address is measured once, whatever it is used for (VEC-CLD-08).
func TestEndpoints(t *testing.T) {
	e := cloud("cloud.example:8443")
	e.Kennel.MQTT, e.LogFiles = "ssl://cloud.example:8883", ":"
	if got := endpoints(e); !slices.Equal(got, []endpoint{{"kennel.api check chipper tms", "cloud.example", "8443"}, {"kennel.mqtt", "cloud.example", "8883"},
		{"jdocs", "jdocs.example", "443"}}) {
		t.Errorf("%v", got)
	}
}

// TestMeasure: the times of the name servers and of the connection are told, and which of them failed (VEC-CLD-08).
func TestMeasure(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const slow = 30 * time.Millisecond
	lookup := func(_ context.Context, host string) ([]string, error) {
		time.Sleep(slow) // the time that is measured
		if host == "nowhere.example" {
			return nil, errors.New("unknown")
		}
		return []string{"127.0.0.1"}, nil
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	c := Config{Lookup: lookup}
	if e := c.measure(t.Context(), endpoint{"check", "cloud.example", port}); e.Name != "cloud.latency" || e.S1 != "check" || e.S2 != "cloud.example" || e.S3 != "" ||
		!e.I1.Set || !e.I2.Set || e.I2.N < slow.Milliseconds() {
		t.Errorf("%+v", e)
	}
	if e := c.measure(t.Context(), endpoint{"check", "127.0.0.1", port}); e.S3 != "" || !e.I1.Set || e.I2.Set {
		t.Errorf("an address in numbers: %+v", e)
	}
	if e := c.measure(t.Context(), endpoint{"check", "nowhere.example", port}); e.S3 != "no address" || e.I1.Set || e.I2.Set {
		t.Errorf("no such name: %+v", e)
	}
	l.Close()
	if e := c.measure(t.Context(), endpoint{"check", "cloud.example", port}); e.S3 != "no connection" || e.I1.Set || !e.I2.Set {
		t.Errorf("nothing listens: %+v", e)
	}
}

// TestRun: it measures again and again until it is ended.
func TestRun(t *testing.T) {
	got := make(chan events.Event, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Config{Endpoints: cloud("127.0.0.1:1"), Every: 2 * time.Millisecond, Emit: func(e events.Event) {
			select {
			case got <- e:
			default:
			}
		}, Lookup: func(context.Context, string) ([]string, error) { return nil, nil }}.Run(ctx)
	}()
	for range 4 {
		testwait.For(t, got, "a measurement")
	}
	cancel()
	if err := testwait.For(t, ended, "its end"); err != nil {
		t.Error(err)
	}
}
