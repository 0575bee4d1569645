package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"kennel/infra/admission"
	"kennel/infra/api/topics"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerapi"
	"kennel/infra/mqtt/brokerauth"
)

// maxPacket is topics.MaxPayload and room for a header with a topic. It also bounds the cost of a stranger's CONNECT.
const maxPacket = topics.MaxPayload + 2<<10

// How many messages may wait for a client's socket. mochi allocates eight bytes for each when the client connects. A message that does not
// fit is dropped, and its sender sends it again (infra/adr/0001). A thing receives answers and hints, a service the reports of all things.
const (
	thingQueue   = 256
	serviceQueue = 8192
)

// withQueue is the same broker for clients with another queue: mochi knows one size for all. A Server is nothing but references, which
// both share.
func withQueue(s *mochi.Server, queue int32) *mochi.Server {
	server, opts, caps := *s, *s.Options, *s.Options.Capabilities
	caps.MaximumClientWritesPending = queue
	opts.Capabilities, server.Options = &caps, &opts
	return &server
}

// Run serves until ctx ends, then closes every connection without publishing wills and returns nil. An address in use, or certificate
// files that do not load, are errors at once. Two brokers may run in one process.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("broker configuration: %w", err)
	}
	if cfg.MaxClients == 0 {
		cfg.MaxClients = 20_000
	}
	door, err := admission.New(admission.Config{Proven: int(cfg.MaxClients), Log: log})
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	files := &trustFiles{cfg: cfg}
	now, err := loadTrust(cfg)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	files.now.Store(now)
	deny, err := brokerauth.OpenDenied(cfg.Denied)
	if err != nil {
		return fmt.Errorf("broker: deny list: %w", err)
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("broker: listen on %s: %w", cfg.Listen, err)
	}
	defer ln.Close()

	caps := mochi.NewDefaultServerCapabilities()
	caps.MaximumPacketSize = maxPacket
	caps.MaximumQos = 1
	caps.MaximumClientWritesPending = thingQueue
	caps.MaximumMessageExpiryInterval = 0 // else mochi forgets retained messages after a day
	caps.TopicAliasMaximum = 0
	server := mochi.New(&mochi.Options{
		Capabilities: caps,
		InlineClient: true,
		// The rest of a larger packet is read straight into the packet. TLS has a buffer below it.
		ClientNetReadBufferSize: 512,
		SysTopicResendInterval:  10,                            // seconds; the tick of our stats
		Logger:                  slog.New(slog.DiscardHandler), // it logs payloads; the hook logs the important events
	})
	h := newHook(server, deny, door, log)
	if err := server.AddHook(h, nil); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	l := &listener{ln: door.Listen("mqtt", ln), trust: files, refuse: h.refuse, log: log, service: withQueue(server, serviceQueue).EstablishConnection,
		endSessions: func() { endSessions(server) }, open: map[net.Conn]struct{}{}}
	if err := server.AddListener(l); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := server.Subscribe(brokerapi.KickTopic, 1, h.kick); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := server.Serve(); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	log.InfoContext(ctx, "broker listening", logging.Addr, ln.Addr().String())
	if cfg.Listening != nil {
		cfg.Listening(ln.Addr())
	}
	var wg sync.WaitGroup
	wg.Go(func() { files.watch(ctx, log) })
	<-ctx.Done()
	h.stopping.Store(true)
	err = server.Close()
	wg.Wait()
	log.Info("broker stopped")
	if err != nil {
		return fmt.Errorf("broker: stop: %w", err)
	}
	return nil
}

func endSessions(server *mochi.Server) {
	for _, cl := range server.Clients.GetAll() {
		if !cl.Net.Inline {
			_ = server.DisconnectClient(cl, packets.ErrServerShuttingDown)
		}
	}
}
