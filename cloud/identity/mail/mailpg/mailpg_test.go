package mailpg_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	netmail "net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/jackc/pgx/v5/pgxpool"
	gomail "github.com/wneessen/go-mail"

	"kennel/cloud/identity/mail"
	"kennel/cloud/identity/mail/mailpg"
	"kennel/cloud/identity/mail/mailsmtp"
	"kennel/infra/errs"
	"kennel/infra/jobs"
	"kennel/infra/pg"
	"kennel/infra/pg/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// server is a real mail server that wants TLS and a login.
type server struct {
	port     int
	root     string // file with its certificate
	got      chan received
	temp     atomic.Int64 // refuse so many letters for now
	noSender atomic.Bool
	hold     chan struct{} // not nil: the end of a letter waits here
	holding  chan struct{}
}

type received struct{ from, to, raw string }

const (
	smtpUser     = "kennel"
	smtpPassword = "mail sesame"
)

func newServer(t *testing.T, implicit bool) *server {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}, &x509.Certificate{SerialNumber: big.NewInt(1)}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{got: make(chan received, 64), root: filepath.Join(t.TempDir(), "root.pem"), holding: make(chan struct{}, 8)}
	if err := os.WriteFile(s.root, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	back := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{s: s, c: c}, nil }))
	back.Domain, back.EnableSMTPUTF8 = "localhost", true
	if implicit {
		l = tls.NewListener(l, conf)
	} else {
		back.TLSConfig = conf
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = back.Serve(l) }()
	t.Cleanup(func() { _ = back.Close(); <-done })
	return s
}

type session struct {
	s      *server
	c      *smtp.Conn
	signed bool
	r      received
}

func (x *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (x *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if _, secure := x.c.TLSConnectionState(); !secure || user != smtpUser || password != smtpPassword {
			return smtp.ErrAuthFailed
		}
		x.signed = true
		return nil
	}), nil
}

func (x *session) Mail(from string, _ *smtp.MailOptions) error {
	if !x.signed {
		return smtp.ErrAuthRequired
	}
	if x.s.noSender.Load() {
		return &smtp.SMTPError{Code: 550, Message: "sender " + from + " is not wanted"}
	}
	x.r = received{from: from}
	return nil
}

func (x *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	if strings.HasPrefix(to, "gone@") {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no mailbox " + to + " here"}
	}
	x.r.to = to
	return nil
}

func (x *session) Data(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if x.s.hold != nil {
		x.s.holding <- struct{}{}
		<-x.s.hold
	}
	if x.s.temp.Add(-1) >= 0 {
		return &smtp.SMTPError{Code: 451, Message: "not now, " + x.r.to}
	}
	x.r.raw = string(b)
	x.s.got <- x.r
	return nil
}

func (x *session) Reset()        {}
func (x *session) Logout() error { return nil }

func (s *server) config(t *testing.T, mode string) mailsmtp.Config {
	t.Helper()
	pw := filepath.Join(t.TempDir(), "pw")
	if err := os.WriteFile(pw, []byte(smtpPassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return mailsmtp.Config{Host: "localhost", Port: s.port, TLS: mode, User: smtpUser, PasswordFile: pw, RootFile: s.root}
}

func (s *server) transport(t *testing.T, mode string) *mailsmtp.Transport {
	t.Helper()
	tr, err := mailsmtp.New(s.config(t, mode))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func (s *server) next(t *testing.T) received {
	t.Helper()
	select {
	case r := <-s.got:
		return r
	case <-time.After(60 * time.Second):
		t.Fatal("no letter in 60 s")
		return received{}
	}
}

// house is the whole way of a letter on one database.
type house struct {
	mail.Queue
	svc     *mail.Service
	pool    *pgxpool.Pool
	log     *lockedBuilder
	bounced chan string
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func compose(_ context.Context, m mail.Mail) (mail.Letter, bool, error) {
	if m.Kind == "nothing" {
		return mail.Letter{}, false, nil
	}
	return mail.Letter{Template: m.Kind, Link: "https://kennel.example/account/reset?code=S3CRET", Code: "S3CRET", Expires: time.Now().Add(time.Hour)}, true, nil
}

func build(t testing.TB, pool *pgxpool.Pool, transport mail.Transport) *house {
	t.Helper()
	if _, err := jobs.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	o, err := jobs.NewOrders(pool)
	if err != nil {
		t.Fatal(err)
	}
	box := mailpg.New(pool, o)
	h := &house{Queue: mail.Queue{Outbox: box}, pool: pool, log: new(lockedBuilder), bounced: make(chan string, 8)}
	h.svc, err = mail.New(mail.Config{Outbox: box, Compose: compose, Transport: transport, From: "Kennel <home@example.org>", Log: slog.New(slog.NewTextHandler(h.log, nil)),
		Addresses: func(_ context.Context, account string) ([]string, error) {
			if account == "ada" {
				return []string{"ada@example.com"}, nil
			}
			return nil, nil
		},
		Bounced: func(_ context.Context, m mail.Mail, code string) error { h.bounced <- m.To + " " + code; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// run works on the letters until the test or the returned function ends it.
func (h *house) run(t testing.TB) (stop func()) {
	t.Helper()
	r, err := jobs.New(h.pool, slog.New(slog.NewTextHandler(h.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Handle(jobs.Task{Name: mail.TaskSend, Run: h.svc.Send}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func (h *house) post(t testing.TB, kind, to, account string) {
	t.Helper()
	if err := h.Post(t.Context(), mail.Mail{Kind: kind, To: to, Account: account}); err != nil {
		t.Fatal(err)
	}
}

func (h *house) waiting(t testing.TB) (n int) {
	t.Helper()
	if err := h.pool.QueryRow(t.Context(), `SELECT count(*) FROM mail_outbox`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Through a real mail server, with STARTTLS and with TLS from the first byte; also when it says "not now" first. Afterwards nothing is left of
// the letter but its id, and no error or log has the address, which the server's answers repeat.
func TestThroughAServer(t *testing.T) {
	for _, mode := range []string{mailsmtp.STARTTLS, mailsmtp.Implicit} {
		t.Run(mode, func(t *testing.T) {
			s := newServer(t, mode == mailsmtp.Implicit)
			h := build(t, pgtest.New(t), s.transport(t, mode))
			s.temp.Store(1)
			h.run(t)
			h.post(t, "reset", "ada@example.com", "ada")
			got := s.next(t)
			if got.from != "home@example.org" || got.to != "ada@example.com" || !strings.Contains(got.raw, "S3CRET") || !strings.Contains(got.raw, "Subject: A new password for Kennel") {
				t.Errorf("got %+v", got)
			}
			h.post(t, "nothing", "ada@example.com", "")
			h.post(t, "reset", "gone@example.com", "")
			select {
			case b := <-h.bounced:
				if b != "gone@example.com smtp 550" {
					t.Errorf("bounced %q", b)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("no bounce in 30 s")
			}
			for deadline := time.Now().Add(30 * time.Second); h.waiting(t) > 0; {
				if time.Now().After(deadline) {
					t.Fatalf("%d letters still wait", h.waiting(t))
				}
			}
			var traces string
			if err := h.pool.QueryRow(t.Context(), `SELECT string_agg(to_jsonb(j)::text, ' ') FROM river_job j`).Scan(&traces); err != nil || !strings.Contains(traces, "answer 451") {
				t.Errorf("River's table: %s, %v", traces, err)
			}
			for _, secret := range []string{"example.com", "S3CRET", smtpPassword} {
				if strings.Contains(traces, secret) || strings.Contains(h.log.String(), secret) {
					t.Errorf("%q is in River's table or the log:\n%s\n%s", secret, traces, h.log)
				}
			}
		})
	}
}

// Nothing is sent in the clear, to a stranger, or with a wrong password; and it says why.
func TestServerIsNotTrustedBlindly(t *testing.T) {
	s := newServer(t, false)
	msg := message("1", "ada@example.com", "x")
	good := s.config(t, mailsmtp.STARTTLS)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	stripped := s.plainProxy(t)
	for name, c := range map[string]struct {
		change func(*mailsmtp.Config)
		want   string
	}{
		"unknown authority": {func(c *mailsmtp.Config) { c.RootFile = "" }, "certificate"},
		"wrong name":        {func(c *mailsmtp.Config) { c.Host = "127.0.0.1" }, "certificate"},
		"wrong password":    {func(c *mailsmtp.Config) { c.PasswordFile = empty }, "answer 535"},
		"STARTTLS cut out":  {func(c *mailsmtp.Config) { c.Port = stripped }, "no STARTTLS"},
		"nobody there":      {func(c *mailsmtp.Config) { c.Port = 1 }, "refused"},
	} {
		cfg := good
		c.change(&cfg)
		tr, err := mailsmtp.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		err = tr.Send(t.Context(), msg)
		if err == nil || !strings.Contains(err.Error(), c.want) || errs.KindOf(err) != errs.Unavailable || strings.Contains(err.Error(), "ada@") {
			t.Errorf("%s: %v, want %q and Unavailable", name, err, c.want)
		}
	}
	s.noSender.Store(true) // ours to mend, not the recipient's fault
	if err := s.transport(t, "").Send(t.Context(), msg); errs.KindOf(err) != errs.Unavailable || strings.Contains(err.Error(), "home@") {
		t.Errorf("sender refused: %v", err)
	}
	select {
	case got := <-s.got:
		t.Errorf("sent anyway: %+v", got)
	default:
	}
	// A server that hangs is left when the time is up.
	s.noSender.Store(false)
	s.hold = make(chan struct{})
	defer close(s.hold)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-s.holding; cancel() }()
	if err := s.transport(t, "").Send(ctx, msg); err == nil {
		t.Error("a letter that the server never took counts as sent")
	}
}

// plainProxy is a man in the middle who removes STARTTLS from the server's offer.
func (s *server) plainProxy(t *testing.T) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		up, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", s.port))
		if err != nil {
			return
		}
		defer up.Close()
		go func() { _, _ = io.Copy(up, c); _ = up.Close() }()
		b := make([]byte, 4096)
		for {
			n, err := up.Read(b)
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, strings.ReplaceAll(string(b[:n]), "STARTTLS", "XXXXXXXX"))
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().(*net.TCPAddr).Port
}

func TestConfig(t *testing.T) {
	for name, c := range map[string]mailsmtp.Config{"no host": {}, "plain far away": {Host: "mail.example.org", TLS: "none"}, "odd tls": {Host: "a", TLS: "ssl"},
		"user without password": {Host: "a", User: "u"}, "port": {Host: "a", Port: 70000}, "a URL": {Host: "smtp://a"}} {
		if err := c.Validate(); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := mailsmtp.New(mailsmtp.Config{Host: "a", User: "u", PasswordFile: "/does/not/exist"}); err == nil {
		t.Error("a password file that is not there was accepted")
	}
}

const killEnv = "KENNEL_MAIL_TEST"

// TestKilledHouse is the process that TestLetterOutlivesItsProcess kills.
func TestKilledHouse(t *testing.T) {
	args := strings.Split(os.Getenv(killEnv), "\n")
	if len(args) != 4 {
		return // the other test starts it
	}
	pool, err := pg.Open(t.Context(), pg.Config{DSN: args[0]})
	if err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Sscan(args[1], &port); err != nil {
		t.Fatal(err)
	}
	tr, err := mailsmtp.New(mailsmtp.Config{Host: "localhost", Port: port, User: smtpUser, PasswordFile: args[3], RootFile: args[2]})
	if err != nil {
		t.Fatal(err)
	}
	h := build(t, pool, tr)
	h.post(t, "reset", "ada@example.com", "ada")
	h.run(t)
	<-t.Context().Done()
}

// A process posts a letter and is killed while the server reads it: another sends it. It may arrive twice, under one Message-ID.
func TestLetterOutlivesItsProcess(t *testing.T) {
	s := newServer(t, false)
	s.hold = make(chan struct{})
	dsn := pgtest.DSN(t)
	cfg := s.config(t, "")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledHouse$")
	cmd.Env = append(os.Environ(), killEnv+"="+strings.Join([]string{dsn, fmt.Sprint(s.port), cfg.RootFile, cfg.PasswordFile}, "\n"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.holding:
	case <-time.After(60 * time.Second):
		t.Fatal("the process sent nothing in 60 s")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() {
		t.Fatalf("ended with %v, want killed", err)
	}
	s.temp.Store(1) // its letter is refused: it was not there any more to hear it
	close(s.hold)
	pool, err := pg.Open(t.Context(), pg.Config{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	// River counts a run as dead after a minute, and a leader as gone when its term ends.
	if _, err := pool.Exec(t.Context(), `UPDATE river_job SET attempted_at = attempted_at - interval '2 minutes' WHERE state = 'running'`); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `DELETE FROM river_leader`); err != nil {
		t.Fatal(err)
	}
	h := build(t, pool, s.transport(t, ""))
	h.run(t)
	if got := s.next(t); got.to != "ada@example.com" || !strings.Contains(got.raw, "Message-ID:") && !strings.Contains(got.raw, "Message-Id:") {
		t.Errorf("got %+v", got)
	}
}

// message is a letter that says text.
func message(id, to, text string) mail.Message {
	m := gomail.NewMsg()
	m.FromMailAddress(&netmail.Address{Address: "home@example.org"})
	m.ToMailAddress(&netmail.Address{Address: to})
	m.SetBodyString(gomail.TypeTextPlain, text)
	return mail.Message{ID: id, To: to, Msg: m}
}
