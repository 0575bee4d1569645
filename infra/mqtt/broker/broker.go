package broker

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"

	"kennel/cloud/api/topics"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokerapi"
)

// maxPacket is topics.MaxPayload and room for a header with a topic. It also bounds what a stranger's CONNECT can cost.
const maxPacket = topics.MaxPayload + 2<<10

// Run serves until ctx ends, then closes every connection without publishing wills and returns nil. An address in use, or certificate
// files that do not load, are errors at once. Two brokers may run in one process.
func Run(ctx context.Context, cfg Config, log *slog.Logger) error {
	if err := cfg.validate(); err != nil {
		return fmt.Errorf("broker configuration: %w", err)
	}
	if cfg.MaxClients == 0 {
		cfg.MaxClients = 20_000
	}
	files := &trustFiles{cfg: cfg}
	now, err := loadTrust(cfg)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	files.now.Store(now)
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return fmt.Errorf("broker: listen on %s: %w", cfg.Listen, err)
	}
	defer ln.Close()

	caps := mochi.NewDefaultServerCapabilities()
	caps.MaximumPacketSize = maxPacket
	caps.MaximumQos = 1
	caps.MaximumClientWritesPending = 4096 // 32 kB for each client; what does not fit is dropped and sent again by the robot
	caps.MaximumMessageExpiryInterval = 0  // else mochi forgets retained messages after a day
	caps.TopicAliasMaximum = 0
	server := mochi.New(&mochi.Options{
		Capabilities:           caps,
		InlineClient:           true,
		SysTopicResendInterval: 10,                            // seconds; the tick of our stats
		Logger:                 slog.New(slog.DiscardHandler), // it logs payloads; what matters is logged by the hook
	})
	h := newHook(server, log)
	if err := server.AddHook(h, nil); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	l := &listener{ln: ln, trust: files, limit: cfg.MaxClients, refuse: h.refuse, log: log,
		slots: make(chan struct{}, handshakes), open: map[net.Conn]struct{}{}}
	if err := server.AddListener(l); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := server.Subscribe(brokerapi.KickTopic, 1, h.kick); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	if err := server.Serve(); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	log.InfoContext(ctx, "broker listens", logging.Addr, ln.Addr().String())
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
