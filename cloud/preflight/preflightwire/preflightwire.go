// Package preflightwire wires the checks that say whether an installation is ready for the internet.
package preflightwire

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"kennel/cloud/identity/account/accountpg"
	"kennel/cloud/identity/mail"
	"kennel/cloud/page"
	"kennel/cloud/preflight"
	"kennel/cloud/preflight/preflightapi"
	"kennel/cloud/preflight/preflighthost"
	"kennel/cloud/preflight/preflightpg"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/telemetry"
)

// Config tells the checks what they must know of the settings.
type Config struct {
	PublicURL       string
	API             string            // host:port
	MailServer      string            // "": none
	Events, Uploads int               // days
	Postgres        string            // data source name
	S3, MQTT        string            // URLs; S3 "": AWS
	Open            map[string]string // host:port of what strangers may reach, by name
	Closed          map[string]string // and of what they may not
	Parts           []Part            // of this process, beside what has a check of its own
	// Report says how those are. It is called after everything is wired.
	Report func(ctx context.Context) telemetry.Report
}

// Part is a check of readiness whose result the page shows, too.
type Part struct{ Name, Title string }

// look looks for a part in the report.
func (c Config) look(name string) func(context.Context, time.Time) (preflight.Result, error) {
	return func(ctx context.Context, _ time.Time) (preflight.Result, error) {
		for _, p := range c.Report(ctx).Parts {
			if p.Name == name && p.Reason != "" {
				return preflight.Part(telemetry.Warning(p.Reason)), nil
			} else if p.Name == name {
				return preflight.Part(nil), nil
			}
		}
		return preflight.Unknown("Ask a process that has it.", "This process does not have it."), nil
	}
}

// facts are those of a Config that the checks use.
type facts struct {
	host      string // of the public URL
	api       string // host:port to call
	elsewhere []string
	ports     map[uint16]preflight.Listener
}

func (c Config) facts() facts {
	f := facts{host: c.PublicURL, api: c.API, ports: map[uint16]preflight.Listener{}}
	if u, err := url.Parse(c.PublicURL); err == nil && u.Hostname() != "" {
		f.host = u.Hostname()
	}
	if host, port, err := net.SplitHostPort(c.API); err == nil {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			f.api = net.JoinHostPort("127.0.0.1", port)
		}
	}
	if pc, err := pgxpool.ParseConfig(c.Postgres); err == nil {
		f.data("Postgres", net.JoinHostPort(pc.ConnConfig.Host, strconv.Itoa(int(pc.ConnConfig.Port))))
	}
	if u, err := url.Parse(c.S3); err == nil {
		f.data("S3", u.Host)
	}
	if u, err := url.Parse(c.MQTT); err == nil {
		f.port("MQTT broker", u.Host, true)
	}
	for what, addr := range c.Closed {
		f.port(what, addr, false)
	}
	for what, addr := range c.Open { // last: one port may serve both
		f.port(what, addr, true)
	}
	return f
}

func (f *facts) port(what, addr string, meant bool) {
	if _, p, err := net.SplitHostPort(addr); err == nil {
		if n, err := strconv.ParseUint(p, 10, 16); err == nil && n > 0 {
			f.ports[uint16(n)] = preflight.Listener{What: what, Meant: meant}
		}
	}
}

// data notes a store at addr, which strangers may not reach and whose disk may be another machine's.
func (f *facts) data(what, addr string) {
	f.port(what, addr, false)
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		f.elsewhere = append(f.elsewhere, what)
	}
}

// Wire wires the checks.
func Wire(b wire.Base, cfg Config) wire.Slice {
	svc := preflight.New(nil, checks(b, cfg)...)
	return wire.Slice{
		Operations: func(wire.Doors) wire.Operations { return preflightapi.Operations(svc) },
		Pages:      []page.Extra{preflightapi.Page(svc)},
	}
}

func checks(b wire.Base, cfg Config) []preflight.Check {
	f := cfg.facts()
	records, accounts := preflightpg.New(b.Pool), accountpg.New(b.Pool)
	// last judges the records of a kind.
	last := func(k preflight.Kind, rule func(preflight.Last, time.Time) preflight.Result) func(context.Context, time.Time) (preflight.Result, error) {
		return func(ctx context.Context, now time.Time) (preflight.Result, error) {
			l, err := records.Last(ctx, k)
			return rule(l, now), err
		}
	}
	all := []preflight.Check{
		{Name: "name", Title: "Public name", Look: func(ctx context.Context, _ time.Time) (preflight.Result, error) {
			var found []netip.Addr
			var err error
			if _, e := netip.ParseAddr(f.host); e != nil {
				found, err = preflighthost.Addresses(ctx, f.host)
			}
			return preflight.Name(f.host, found, err), nil
		}},
		{Name: "certificate", Title: "Certificate", Look: func(ctx context.Context, now time.Time) (preflight.Result, error) {
			chain, err := preflighthost.Chain(ctx, f.api, f.host)
			if err != nil {
				return preflight.Unknown("Look at kenneld's log: the public side does not answer.", "The public side at %s did not show its certificate.", f.api), nil
			}
			return preflight.Certificate(f.host, chain, nil, now), nil
		}},
		{Name: "mail", Title: "Mail", Look: last(preflight.Mail, func(l preflight.Last, now time.Time) preflight.Result {
			return preflight.MailSent(cfg.MailServer, l, now)
		})},
		{Name: "factors", Title: "Second factors of operators", Look: func(ctx context.Context, _ time.Time) (preflight.Result, error) {
			all, without, err := accounts.PasswordOnly(ctx)
			return preflight.Factors(all, without), err
		}},
		{Name: "backup", Title: "Backup", Look: last(preflight.Backup, preflight.Backups)},
		{Name: "drill", Title: "Restore drill", Look: last(preflight.Drill, preflight.Drills)},
		{Name: "disk", Title: "Disk", Look: func(ctx context.Context, _ time.Time) (preflight.Result, error) {
			var fine []string
			trouble := b.Volumes.Check(ctx) // it has looked when Uses answers
			for _, u := range b.Volumes.Uses() {
				fine = append(fine, fmt.Sprintf("%s in %s has %s", u.Name, u.Folder, u.Space))
			}
			return preflight.Disks(trouble, fine, f.elsewhere), nil
		}},
		{Name: "time", Title: "Time", Look: func(context.Context, time.Time) (preflight.Result, error) {
			synced, off, err := preflighthost.Clock()
			return preflight.Clock(synced, off), err
		}},
		{Name: "retention", Title: "Retention", Look: func(context.Context, time.Time) (preflight.Result, error) {
			return preflight.Retention(cfg.Events, cfg.Uploads), nil
		}},
		{Name: "ports", Title: "Open ports", Look: func(context.Context, time.Time) (preflight.Result, error) {
			all, err := preflighthost.Listeners(f.ports)
			return preflight.Ports(all), err
		}},
	}
	for _, p := range cfg.Parts {
		all = append(all, preflight.Check{Name: p.Name, Title: p.Title, Look: cfg.look(p.Name)})
	}
	return all
}

// Noted returns to, and records when a letter was last taken, and when one was not.
func Noted(pool *pgxpool.Pool, to mail.Transport, log *slog.Logger) mail.Transport {
	return noted{preflightpg.New(pool), to, log}
}

type noted struct {
	store preflight.Store
	to    mail.Transport
	log   *slog.Logger
}

// Send implements mail.Transport.
func (n noted) Send(ctx context.Context, m mail.Message) error {
	err := n.to.Send(ctx, m)
	if errs.KindOf(err) == errs.Invalid && err != nil { // the address is to blame, not the server
		return err
	}
	r := preflight.Record{Kind: preflight.Mail, OK: err == nil, At: time.Now()}
	if rerr := n.store.Record(context.WithoutCancel(ctx), r); rerr != nil {
		n.log.WarnContext(ctx, "delivery of a letter not recorded", logging.Err, rerr)
	}
	return err
}
