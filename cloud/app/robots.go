package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"kennel/cloud/access"
	"kennel/cloud/app/front"
	"kennel/cloud/app/records"
	"kennel/cloud/originals/originalswire"
	"kennel/cloud/wire"
	"kennel/infra/errs"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/logging"
	"kennel/infra/mdns"
	"kennel/infra/protomux"
	"kennel/infra/runner"
	"kennel/infra/tlsserver"
)

// RobotsConfig is the port of original robots: plain HTTP, HTTPS and gRPC on one (infra/adr/0010).
type RobotsConfig struct {
	Listen string `koanf:"listen"` // host:port; "": none
	// Uploads is a second host:port that serves the same: port 443, to which original robots send their logs whatever Listen is. "": none.
	Uploads string `koanf:"uploads"`
	// Public is host:port in the configuration of original robots; "": MDNS, or the first of Names, or of api.names, with the port of Uploads or Listen.
	Public string `koanf:"public"`
	// Advice is a sentence for operators where nothing listens at port 443.
	Advice string `koanf:"-"`
	// Names in the certificate that the authority in ca.dir issues, beside the one to which robots upload; empty: those of api.names. Not used
	// with CertFile.
	Names    []string `koanf:"names"`
	CertFile string   `koanf:"cert_file"` // certificate chain and key, for instance of a public authority
	KeyFile  string   `koanf:"key_file"`
	// MDNS is a name such as escapepod.local under which this machine answers multicast DNS on its networks, for robots that look for it there; "": none.
	MDNS string `koanf:"mdns"`
	// AppKeysFile holds the app keys that robots and apps are configured with, one a line (VEC-CLD-01).
	AppKeysFile string `koanf:"app_keys_file"`
	// Intake is where robots send events, logs and crashes; empty paths: /das, /logs/ and /crash.
	Intake records.IntakePaths `koanf:"intake"`
	// S3Domains are names under which robots call a bucket, as in BUCKET.s3.example.org, beside those of AWS.
	S3Domains []string `koanf:"s3_domains"`
}

// validate reports the first setting that cannot work.
func (c RobotsConfig) validate() error {
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errs.New(errs.Invalid, "robots.cert_file %q and robots.key_file %q: want both or neither", c.CertFile, c.KeyFile)
	}
	if c.Listen == "" {
		return nil
	}
	for setting, addr := range map[string]string{"listen": c.Listen, "uploads": cmp.Or(c.Uploads, c.Listen), "public": cmp.Or(c.Public, c.Listen)} {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return errs.New(errs.Invalid, "robots.%s %q: want host:port", setting, addr)
		}
	}
	if c.MDNS != "" {
		if err := mdns.Check(c.MDNS); err != nil {
			return fmt.Errorf("robots.mdns: %w", err)
		}
	}
	if err := c.Intake.Validate(); err != nil {
		return err
	}
	if c.AppKeysFile == "" {
		return errs.New(errs.Invalid, "robots.app_keys_file is empty: want a file with the app keys of the robots that call %s", c.Listen)
	}
	return nil
}

// graceTime is how long calls of robots may continue when the process ends.
const graceTime = 5 * time.Second

// robots opens the port of original robots and returns what serves it; nothing without robots.listen.
func (c *Cloud) robots() ([]runner.Service, error) {
	r := c.cfg.Robots
	if r.Listen == "" {
		return nil, nil
	}
	cert, err := c.web().Certificate("robots", r.CertFile, r.KeyFile, c.cfg.robotNames())
	if err != nil {
		return nil, err
	}
	// TLS does not decide about client certificates: every refusal has a status code and a reason (design section 4). Old robots speak TLS 1.2.
	conf := tlsserver.Config()
	if c.acme != nil { // a robot that was erased trusts public authorities alone
		cert, conf.NextProtos = c.acme.Get(cert), []string{c.acme.Protocol()}
	}
	conf.GetCertificate, conf.ClientAuth = cert, tls.RequestClientCert
	watch := c.watched.Watch(c.Identity.Proves)
	calls := kitgrpc.NewServer(conf, c.base.Log, grpc.ChainUnaryInterceptor(c.base.Meters.Call, watch.Unary),
		grpc.ChainStreamInterceptor(c.base.Meters.Stream, watch.Stream), watch.Unserved())
	c.slices.Register(calls)
	if err := checkCalls(calls); err != nil {
		return nil, err
	}
	var out []runner.Service
	if r.MDNS != "" {
		announced, err := mdns.Listen(r.MDNS, c.base.Log)
		if err != nil {
			return nil, fmt.Errorf("robots.mdns: %w", err)
		}
		out = append(out, runner.Service{Name: "mdns", Run: announced.Run})
	}
	names := map[string]string{"robots.listen": "robots", "robots.uploads": "uploads"}
	for setting, addr := range map[string]string{"robots.listen": r.Listen, "robots.uploads": r.Uploads} {
		if addr == "" {
			continue
		}
		l, err := c.front.Listen(names[setting], addr, c.cfg.API.Proxies)
		if err != nil && addr == r.Uploads && addr != r.Listen { // another program may have it: all else works without
			c.base.Log.Warn("port of log uploads not opened", "addr", addr, logging.Err, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", setting, err)
		}
		port := protomux.Split(l, conf, c.base.Log)
		port.Broken, port.Known = watch.Broken(cert), c.Identity.Peers.Knows
		out = append(out,
			runner.Service{Name: setting, Run: port.Run, Fatal: true},
			c.front.Serve(setting+" http", port.Plain, c.releases.Files(watch.Plain(connectionCheck))),
			c.front.Serve(setting+" https", port.HTTPS, front.BoundReads(front.WithAddr(c.releases.Files(c.robotsHTTPS(watch.Routes))), front.StreamTime)),
			runner.Service{Name: setting + " grpc", Fatal: true, Run: func(ctx context.Context) error { return kitgrpc.Run(ctx, calls, port.GRPC, graceTime) }})
	}
	return out, nil
}

// checkCalls refuses calls that are not in the access table.
func checkCalls(s *grpc.Server) error {
	for service, info := range s.GetServiceInfo() {
		for _, m := range info.Methods {
			if err := access.Calls.Check("/"+service+"/"+m.Name, ""); err != nil {
				return fmt.Errorf("calls of robots: %w", err)
			}
		}
	}
	return nil
}

// robotNames returns the names in the certificate of the robots' port.
func (c Config) robotNames() []string {
	names := c.Robots.Names
	if len(names) == 0 {
		names = c.API.Names
	}
	return originalswire.Names(names, c.S3.Bucket)
}

// door says how original robots reach this cloud.
func (c Config) door() originalswire.Config {
	d := originalswire.Config{Listen: c.Robots.Listen, Uploads: c.Robots.Uploads, Public: c.Robots.Public, Bucket: c.S3.Bucket, AppKeys: c.Robots.AppKeysFile, Advice: c.Robots.Advice, Intake: c.Robots.Intake}
	if c.Robots.CertFile == "" {
		d.Names = c.robotNames()
	}
	if _, port, err := net.SplitHostPort(cmp.Or(c.Robots.Uploads, c.Robots.Listen)); err == nil && d.Public == "" && c.Robots.MDNS != "" {
		d.Public = net.JoinHostPort(c.Robots.MDNS, port)
	}
	if c.API.ACME.Directory != "" {
		d.ACME = c.API.ACME.Names
	}
	return d
}

// wireIntake wires what takes files and events of robots over HTTP; n says who they are.
func (c *Cloud) wireIntake(events records.Events, n records.Intake) wire.Slice {
	n.Logs, n.Events, n.Crashes, n.Thing, n.Grants, n.Paths = c.uploads.Logs, events.Ingester, events.Crashes, c.Identity.Peers.Thing, c.uploads.Grants, c.cfg.Robots.Intake
	in, slice := records.WireIntake(c.base, n)
	c.intake = in.Handler
	return slice
}

// connectionCheck answers VEC-CLD-07.
func connectionCheck(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write([]byte("ok\n")) // the client may have hung up
}

// robotsHTTPS serves the HTTPS requests of original robots and their clients: S3 uploads, the connection check, certificates to pin, keys.
func (c *Cloud) robotsHTTPS(watched func(*http.ServeMux, http.Handler) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ok", connectionCheck)
	c.slices.MountPublic(mux, c.doors)
	guarded := c.intake(watched(mux, access.HTTP.Guard(mux, c.base.Log)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c.uploads.Door.Serves(r) {
			c.uploads.Door.ServeHTTP(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}
