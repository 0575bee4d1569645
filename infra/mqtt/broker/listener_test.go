package broker

import (
	"log/slog"
	"net"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"

	"kennel/infra/admission"
)

// A client that leaves at the moment when the broker stops does not keep it from stopping: mochi's list of the clients of a listener waits for itself
// if another goroutine waits to change it.
func TestStopsWhileClientsLeave(t *testing.T) {
	server := mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})
	left := make(chan struct{})
	go func() {
		for {
			select {
			case <-left:
				return
			default:
				server.Clients.Delete("vic:00e20100")
			}
		}
	}()
	defer close(left)
	stopped := make(chan error, 1)
	go func() {
		for range 2000 {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				stopped <- err
				return
			}
			l := &listener{ln: &admission.Listener{Listener: ln}, endSessions: func() { endSessions(server) }}
			l.Close(func(id string) { _ = server.Clients.GetByListener(id) }) // as the server's
		}
		stopped <- nil
	}()
	select {
	case err := <-stopped:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the broker never stops")
	}
}
