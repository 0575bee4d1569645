package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/infra/bench"
	"kennel/infra/bench/house"
	"kennel/infra/mqtt/broker"
	"kennel/infra/proc"
)

// partCommand is this program again, as a process of its own: a reference, clients whose memory is to be seen apart, or the hand that
// holds a process still.
func partCommand() *cobra.Command {
	part := &cobra.Command{Use: "part", Hidden: true, Short: "Processes that benches start", Example: "  bench part listen -ca DIR"}
	var dir, addr, kind, dsn, key, root string
	var pid int
	listen := &cobra.Command{
		Use: "listen", Short: "A bare mutual-TLS listener", Example: "  bench part listen -ca DIR", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return bareListener(cmd.Context(), dir, cmd.OutOrStdout()) },
	}
	clients := &cobra.Command{
		Use: "clients", Short: "Idle connections, as many as each line of standard input says", Example: "  bench part clients -ca DIR -addr HOST:PORT -kind mqtt",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return idleClients(cmd.Context(), dir, addr, kind, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	hold := &cobra.Command{
		Use: "hold", Short: "Stop a process and its children until standard input ends", Example: "  bench part hold -pid PID", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return holdStill(cmd.Context(), pid, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	refresh := &cobra.Command{
		Use: "refresh", Short: "The least that refreshes tokens", Example: "  bench part refresh -ca DIR -dsn FILE -key FILE", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bareRefresh(cmd.Context(), dir, dsn, key, cmd.OutOrStdout())
		},
	}
	spinning := &cobra.Command{
		Use: "spin", Short: "A process that never waits", Example: "  bench part spin", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return spin(cmd.Context()) },
	}
	pestering := &cobra.Command{
		Use: "pester", Short: "A peer of robotd that asks without end", Example: "  bench part pester -root DIR", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return pester(cmd.Context(), root, cmd.OutOrStdout()) },
	}
	var period, long time.Duration
	ticking := &cobra.Command{
		Use: "tick", Short: "The real-time loop without a body, for a while", Example: "  bench part tick -period 1ms -for 10s", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return tick(cmd.Context(), period, long, cmd.OutOrStdout())
		},
	}
	ticking.Flags().DurationVar(&period, "period", time.Millisecond, "between two steps")
	ticking.Flags().DurationVar(&long, "for", 10*time.Second, "how long")
	pestering.Flags().StringVar(&root, "root", "", "the robot's root folder")
	for _, c := range []*cobra.Command{listen, clients, refresh} {
		c.Flags().StringVar(&dir, "ca", "", "folder with the authorities")
	}
	clients.Flags().StringVar(&addr, "addr", "", "host:port to connect to")
	clients.Flags().StringVar(&kind, "kind", "mqtt", "mqtt or tls")
	hold.Flags().IntVar(&pid, "pid", 0, "of the process")
	refresh.Flags().StringVar(&dsn, "dsn", "", "file with the address of the database")
	refresh.Flags().StringVar(&key, "key", "", "file with the key that signs")
	part.AddCommand(listen, clients, hold, refresh, spinning, pestering, ticking)
	return part
}

// startPart starts this program as a part. deathsig is what it hears when we die; 0: SIGKILL.
func startPart(deathsig syscall.Signal, args ...string) (*bench.Program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return bench.Start(proc.Spec{Name: "part " + args[0], Path: self, Args: append([]string{"part"}, args...), Deathsig: deathsig})
}

// startListener starts a bare listener and returns its address.
func startListener(ctx context.Context, caDir string) (*bench.Program, string, error) {
	return startServer(ctx, "listen", "-ca", caDir)
}

// startServer starts a part that listens, and returns its address.
func startServer(ctx context.Context, args ...string) (*bench.Program, string, error) {
	p, err := startPart(0, args...)
	if err != nil {
		return nil, "", err
	}
	addr, err := p.Await(ctx, "listening on ")
	if err != nil {
		p.Stop()
		return nil, "", err
	}
	return p, addr, nil
}

// bareListener is the least that a server with mutual TLS can be: it checks the client's chain, says so with one byte, and then reads
// what nobody sends.
func bareListener(ctx context.Context, dir string, out io.Writer) error {
	a, err := ca.Load(dir)
	if err != nil {
		return err
	}
	conf, err := bareTLS(a)
	if err != nil {
		return err
	}
	addr, err := house.FreeAddr()
	if err != nil {
		return err
	}
	ln, err := tls.Listen("tcp", addr, conf)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { ln.Close() })
	fmt.Fprintln(out, "listening on "+addr)
	for {
		conn, err := ln.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			if _, err := conn.Write([]byte{1}); err == nil { // shakes hands first
				_, _ = io.Copy(io.Discard, conn) // until the other side hangs up
			}
		}()
	}
}

// bareTLS is the configuration of a listener that lets things in.
func bareTLS(a *ca.Authority) (*tls.Config, error) {
	pair, err := a.IssueServer([]string{"localhost", "127.0.0.1"}, certLife)
	if err != nil {
		return nil, err
	}
	cert, err := pair.TLS()
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.DevicePool()}, err
}

// idleClients connects until there are as many connections as the line says, and says "clients up N".
func idleClients(ctx context.Context, dir, addr, kind string, in io.Reader, out io.Writer) error {
	is, err := openIssuer(dir)
	if err != nil {
		return err
	}
	connect := map[string]func(peer, context.Context, string) (net.Conn, error){"mqtt": peer.login, "tls": peer.handshake}[kind]
	if connect == nil {
		return fmt.Errorf("-kind %.20q: want mqtt or tls", kind)
	}
	have := 0
	for sc := bufio.NewScanner(in); sc.Scan(); {
		want, err := strconv.Atoi(sc.Text())
		if err != nil || want < have {
			return fmt.Errorf("line %.40q: want a number from %d on", sc.Text(), have)
		}
		peers, err := is.things(have, want-have)
		if err != nil {
			return err
		}
		conns, _, err := crowd(ctx, peers, 16, func(ctx context.Context, p peer) (net.Conn, error) { return connect(p, ctx, addr) })
		if err != nil {
			return err
		}
		for _, c := range conns {
			go func() { _, _ = io.Copy(io.Discard, c) }() // as an agent waits for messages; ends with this process
		}
		have = want
		fmt.Fprintln(out, "clients up", have)
	}
	return nil
}

// holdStill stops the family of pid and lets it go on when in or ctx ends: also when the bench was killed, because then both do.
func holdStill(ctx context.Context, pid int, in io.Reader, out io.Writer) error {
	if pid <= 1 {
		return fmt.Errorf("-pid %d: want the process to hold", pid)
	}
	// The parent first: it makes no more children then.
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	family := bench.Family(pid)
	defer func() {
		for _, p := range family {
			_ = syscall.Kill(p, syscall.SIGCONT) // a child that has ended needs no more
		}
	}()
	for _, p := range family[1:] {
		if err := syscall.Kill(p, syscall.SIGSTOP); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", p, err)
		}
	}
	fmt.Fprintln(out, "holding", len(family))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in) // the end is what matters
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}

// loneBroker is the embedded broker without a cloud behind it.
type loneBroker struct {
	issuer
	dir     string // of the authorities
	addr    string
	program *bench.Program
	tmp     string
}

// startBroker starts the broker of onebox from the built kenneld, with authorities of its own.
func startBroker(ctx context.Context, env *bench.Env) (_ *loneBroker, err error) {
	b := &loneBroker{}
	if b.tmp, err = os.MkdirTemp("", "kennel-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			b.stop()
		}
	}()
	b.dir = filepath.Join(b.tmp, "ca")
	if b.ca, err = ca.Init(b.dir); err != nil {
		return nil, err
	}
	pair, err := b.ca.IssueServer([]string{"localhost", "127.0.0.1"}, certLife)
	if err != nil {
		return nil, err
	}
	if b.addr, err = house.FreeAddr(); err != nil {
		return nil, err
	}
	file := func(name string) string { return filepath.Join(b.tmp, name) }
	cfg := broker.Config{Listen: b.addr, Cert: file("crt"), Key: file("key"), DeviceCA: file("device-ca"), ServiceCA: file("service-ca"), LogLevel: "info"}
	conf, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{cfg.Cert: pair.Chain, cfg.Key: pair.Key, cfg.DeviceCA: b.ca.DeviceBundle(), cfg.ServiceCA: b.ca.ServiceBundle(), file("json"): conf} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return nil, err
		}
	}
	b.program, err = bench.Start(proc.Spec{Name: "broker", Path: filepath.Join(env.Bin, "kenneld"), Args: []string{"part", "broker", "-config", file("json")}})
	if err != nil {
		return nil, fmt.Errorf("%w (make build makes the programs)", err)
	}
	_, err = b.program.Await(ctx, listeningLine)
	return b, err
}

// listeningLine is what the broker logs when it accepts connections.
const listeningLine = "broker listening"

func (b *loneBroker) stop() {
	if b.program != nil {
		b.program.Stop()
	}
	_ = os.RemoveAll(b.tmp) // the temporary folder is cleaned by others too
}

func (b *loneBroker) url() string { return "ssl://" + b.addr }

// comm is the name of a process as the kernel keeps it; "" if it is gone.
func comm(pid int) string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(b))
}
