// Package identity wires what decides who a robot is and for whom it acts: certificates, tokens, and the credentials of uploads.
package identity

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/certsbroker"
	"kennel/certs/certspg"
	"kennel/cloud/app/link"
	"kennel/cloud/app/people"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/fleet/registry/registrycerts"
	"kennel/cloud/identity/account"
	"kennel/cloud/identity/owner"
	"kennel/cloud/identity/token"
	"kennel/cloud/identity/token/tokenapi"
	"kennel/cloud/identity/token/tokenpg"
	"kennel/cloud/originals"
	"kennel/cloud/originals/door"
	"kennel/cloud/originals/stsapi"
	"kennel/cloud/originals/uploadswire"
	"kennel/cloud/telemetry/uploads/uploadsapi"
	"kennel/cloud/wire"
	"kennel/infra/api/large"
	"kennel/infra/atomicfile"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/mqtt/brokeradmin"
	"kennel/infra/op"
	"kennel/infra/ratelimit"
	"kennel/infra/secretbox"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// CAConfig says where the authorities live.
type CAConfig struct {
	Dir       string        `koanf:"dir"`
	DeviceTTL time.Duration `koanf:"device_ttl"` // life of a device certificate; 0: the default of package certs
	// SealFile is the sealing key, the same for all processes of a cloud; "": seal.key in Dir. kenneld install and kenneld ca init make it.
	SealFile string `koanf:"seal_file"`
	// Files that are kept as the trusted authorities change (kenneld ca): the roots, for robots and people; those of devices and of services,
	// for a broker that reads them. "": none.
	RootFile      string `koanf:"root_file"`
	DeviceBundle  string `koanf:"device_bundle"`
	ServiceBundle string `koanf:"service_bundle"`
}

// EnrollConfig paces attempts to enrol and to renew from one address: a burst for those behind it, then a slow drip.
type EnrollConfig struct {
	PerAddressBurst int           `koanf:"per_address_burst"`
	PerAddressEvery time.Duration `koanf:"per_address_every"`
	NoApproval      bool          `koanf:"no_approval"` // refuse robots without proof, instead of putting them on the list for approval by operators
}

// Attempts to enrol of one thing, beside those of one address (EnrollConfig): for a robot that is switched off and on.
const (
	enrollByThingEvery = 5 * time.Second
	enrollByThingBurst = 20
)

// Requests of one robot, and of those that name none, at the token service: a robot refreshes a few times a day, and tries again when it is
// told no.
const (
	tokenByThingEvery = 2 * time.Second
	tokenByThingBurst = 30
	tokenByAddrEvery  = time.Second
	tokenByAddrBurst  = 120
)

// SealPath returns where the sealing key is.
func (c CAConfig) SealPath() string {
	if c.SealFile != "" {
		return c.SealFile
	}
	return filepath.Join(c.Dir, "seal.key")
}

// Config is the configuration of identities.
type Config struct {
	CA          CAConfig
	Enroll      EnrollConfig
	AppKeysFile string // app keys of original robots; "": a random one that no robot knows
	MQTT        string // the broker's address as robots see it
}

// Needs holds the services that identities are built on.
type Needs struct {
	Authority *ca.Authority
	Link      *link.Link
	Registry  *registry.Service
	Accounts  people.Accounts
	Owners    people.Owners
	Docs      jdocs.Service
	Uploads   Uploads
	Steps     Steps
}

// Identity holds the services that decide who a robot is.
type Identity struct {
	Certs  *certs.Service
	Tokens *token.Service
	Peers  Peers
	Access *token.Verifier
	Slices wire.Slices // the token service first
}

// Wire wires revocations, the broker's orders, certificates and tokens.
func Wire(ctx context.Context, b wire.Base, cfg Config, n Needs) (id Identity, err error) {
	feed := certspg.NewRevocations(b.Pool, b.Log)
	revoked := certs.NewRevocations(feed)
	if err := revoked.Read(ctx); err != nil { // before the ports open: until then every certificate is refused
		return id, err
	}
	denied, crls := certsbroker.New(revoked, feed.Blocked), ca.NewCRLs(n.Authority, revoked, feed.CRLNumber)
	broker, brokerSlice, err := n.Link.Broker(ctx, n.Registry, denied, crls)
	if err != nil {
		return id, err
	}
	svc, certSlice, err := wireCertificates(b, cfg, n, broker)
	if err != nil {
		return id, err
	}
	peers := Peers{svc, n.Authority, revoked}
	tokens, access, tokenSlice, err := wireTokens(ctx, b, cfg, n, peers)
	return Identity{svc, tokens, peers, access, wire.Slices{tokenSlice, certSlice, brokerSlice, revocations(b, cfg.CA, n.Authority, revoked, crls)}}, err
}

// revocations are what every process must know about revoked identities within a second or two, and the files of the authorities.
func revocations(b wire.Base, cfg CAConfig, authority *ca.Authority, revoked *certs.Revocations, crls *ca.CRLs) wire.Slice {
	return wire.Slice{
		Public: func(mux *http.ServeMux, _ wire.Doors) { crls.Mount(mux) },
		Runs: []wire.Run{
			{Name: "revocations", Run: revoked.Run},
			{Name: "authorities", Run: func(ctx context.Context) error {
				write := func() { writeAuthorities(ctx, cfg, authority, b.Log) }
				write()
				return authority.Run(ctx, write, func(err error) {
					b.Log.WarnContext(ctx, "authorities unreadable; keeping the loaded ones", logging.Err, err)
				})
			}},
		},
	}
}

func wireCertificates(b wire.Base, cfg Config, n Needs, broker brokeradmin.Admin) (*certs.Service, wire.Slice, error) {
	store := certspg.New(b.Pool)
	table := registrycerts.Fleet{Registry: n.Registry, Store: store, Log: b.Log}
	svc, err := certs.New(certs.Config{
		Store: store, Batches: store, Requests: store, Issuer: n.Authority, Recorder: table.Table(certsbroker.Tell(broker, table.Steps(), b.Log)), TTL: cfg.CA.DeviceTTL,
		ByAddr: ratelimit.NewByAddr(cfg.Enroll.PerAddressEvery, cfg.Enroll.PerAddressBurst), ByThing: ratelimit.New(enrollByThingEvery, enrollByThingBurst),
		NoApproval: cfg.Enroll.NoApproval,
	})
	desk := func(d wire.Doors) certsapi.Config {
		return certsapi.Config{Root: n.Authority.Root, MQTT: cfg.MQTT, Audit: d.Audit, Log: b.Log, Owns: func(ctx context.Context, account string, id thing.ID) (bool, error) {
			_, ok, err := d.Owns(ctx, account, id)
			return ok, err
		}}
	}
	return svc, wire.Slice{
		Operations: func(d wire.Doors) wire.Operations { return certsapi.Operations(svc, desk(d)) },
	}, err
}

// Uploads are the credentials and the door for what original robots upload, and the list of it.
type Uploads = uploadswire.Uploads

// WireUploads wires what original robots upload. bucket is ours; domains are names under which robots call it beside those of AWS.
func WireUploads(b wire.Base, owners people.Owners, robots *registry.Service, steps Steps, bucket string, domains []string, keepDays int) (Uploads, wire.Slice, error) {
	store := certspg.New(b.Pool)
	return uploadswire.Wire(b, uploadswire.Config{Bucket: bucket, Domains: domains, KeepDays: keepDays, Robots: robots, Owner: owners.Owner, Allowed: owners.Allowed, Consent: owners.Files, Recorder: steps, Acts: tokenpg.New(b.Pool).Acts,
		Revoked: func(ctx context.Context, id thing.ID) (bool, error) {
			st, err := store.Standing(ctx, id, certs.Key{})
			return !st.Revoked.IsZero(), err
		}})
}

func wireTokens(ctx context.Context, b wire.Base, cfg Config, n Needs, p Peers) (*token.Service, *token.Verifier, wire.Slice, error) {
	store := tokenpg.New(b.Pool)
	keys, err := token.NewKeyring(ctx, store, b.Seal.For("token/key"), token.Rotation{}, b.Log, nil)
	if err != nil {
		return nil, nil, wire.Slice{}, err
	}
	revoked, err := token.NewRevocations(ctx, store, b.Log, nil)
	if err != nil {
		return nil, nil, wire.Slice{}, err
	}
	appKeys, err := token.ParseAppKeys(secretbox.New().Text())
	if cfg.AppKeysFile != "" {
		appKeys, err = token.LoadAppKeys(cfg.AppKeysFile)
	}
	if err != nil {
		return nil, nil, wire.Slice{}, err
	}
	byAddr := ratelimit.NewByAddr(tokenByAddrEvery, tokenByAddrBurst)
	if cfg.Enroll.PerAddressBurst > tokenByAddrBurst { // a house whose robots share one address says so there
		byAddr = ratelimit.NewByAddr(cfg.Enroll.PerAddressEvery, cfg.Enroll.PerAddressBurst)
	}
	access := token.NewVerifier(keys, revoked)
	svc, err := token.New(token.Config{
		Store: store, Inventory: store, Keys: keys, Verifier: access, Robots: p, Services: p, Certificates: p, Sessions: userSessions{n.Accounts.Apps, originals.NewSessions(b.Seal)},
		Owners: n.Owners, Docs: n.Docs, STS: n.Uploads.Grants, Recorder: n.Steps, ByThing: ratelimit.New(tokenByThingEvery, tokenByThingBurst),
		ByAddr: byAddr, AppKeys: appKeys, Log: b.Log,
		Gateway: func(ctx context.Context, id thing.ID) (string, error) {
			r, err := n.Registry.Thing(ctx, id)
			if err != nil || r.Status == nil {
				return "", err
			}
			return r.Status.Gateway, nil
		},
	})
	if err != nil {
		return nil, nil, wire.Slice{}, err
	}
	return svc, access, wire.Slice{
		Requests: tokenapi.Handlers(svc, b.Log),
		Calls:    func(s grpc.ServiceRegistrar) { tokenapi.Register(s, svc, b.Log) },
		Operations: func(d wire.Doors) wire.Operations {
			return tokenapi.Operations(svc, tokenapi.Config{Known: d.Known, Audit: d.Audit})
		},
		Public: func(mux *http.ServeMux, _ wire.Doors) { tokenapi.Mount(mux, svc, keys.JWKS) },
		Runs:   []wire.Run{{Name: "token keys", Run: keys.Run}, {Name: "revoked tokens", Run: revoked.Run}, {Name: "tokens", Run: svc.Run}},
		Personal: []wire.Holding{{Name: "tokens", Keeps: []string{"token_association", "token_token"}, Data: svc,
			Ended: func(ctx context.Context, t owner.Tenure) error {
				return svc.TenureEnded(ctx, t.Thing, t.Account, t.Ended)
			}}},
	}, nil
}

// writeAuthorities keeps the files that others read.
func writeAuthorities(ctx context.Context, cfg CAConfig, authority *ca.Authority, log *slog.Logger) {
	for file, pem := range map[string][]byte{cfg.RootFile: authority.Root(), cfg.DeviceBundle: authority.DeviceBundle(), cfg.ServiceBundle: authority.ServiceBundle()} {
		if file == "" {
			continue
		}
		if err := replaceFile(file, pem); err != nil {
			log.ErrorContext(ctx, "authorities not written", "file", file, logging.Err, err)
		}
	}
}

// replaceFile writes a public file whole or not at all.
func replaceFile(file string, b []byte) error {
	dir, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close() // the file was synced
	return atomicfile.Write(dir, filepath.Base(file), b, 0o644, 0o755)
}

// Peers judges client certificates: robots with ours or with a factory's, services with ours.
type Peers struct {
	svc       *certs.Service
	authority *ca.Authority
	revoked   *certs.Revocations
}

func (p Peers) trust() certs.Trust {
	return certs.Trust{Devices: p.authority.DevicePool(), Services: p.authority.ServicePool(), Check: p.revoked.Check}
}

// Ready reports whether the revocations were read.
func (p Peers) Ready(ctx context.Context) error { return p.revoked.Ready(ctx) }

// Thing returns which robot a request's connection proves to be.
func (p Peers) Thing(r *http.Request) (thing.ID, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return "", errs.Coded(errs.Unauthenticated, "no_certificate", "want a robot's TLS client certificate, which is requested when the handshake offers the protocol %s", large.ALPN)
	}
	peer, err := certs.Trust{Devices: p.authority.DevicePool(), Check: p.revoked.Check}.Identify(r.TLS.PeerCertificates, time.Now())
	if err != nil {
		return "", errs.Coded(errs.Unauthenticated, "client_certificate", "%w", err)
	}
	return peer.Thing, nil
}

// factoryTime bounds the look at the batches, which are remembered for a second.
const factoryTime = 5 * time.Second

// Identify implements token.Robots.
func (p Peers) Identify(chain []*x509.Certificate) (thing.ID, error) {
	if len(chain) > 0 && p.authority.VerifyDevice(chain[0]) == nil {
		peer, err := p.trust().Identify(chain, time.Now())
		return peer.Thing, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), factoryTime)
	defer cancel()
	return p.svc.IdentifyFactory(ctx, chain)
}

// Knows says whether a certificate is of a robot that we know.
func (p Peers) Knows(chain []*x509.Certificate) bool {
	id, err := p.Identify(chain)
	return err == nil && id != ""
}

// Service implements token.Services.
func (p Peers) Service(chain []*x509.Certificate) (string, error) {
	peer, err := p.trust().Identify(chain, time.Now())
	switch {
	case err != nil:
		return "", err
	case peer.Service == "":
		return "", errs.Coded(errs.Unauthenticated, "not_a_service", "certificate of %s: want one of our services", peer.Thing)
	}
	return peer.Service, nil
}

// RevokeFactory implements token.Certificates. Which robot a factory certificate is for shows only when it calls: what it has here it keeps
// until then, and cannot refresh.
func (p Peers) RevokeFactory(ctx context.Context, certificateID, by string) (thing.ID, error) {
	return "", p.svc.RevokeFactoryCertificate(ctx, certificateID, "by "+by)
}

// userSessions lets robots burn the sessions of apps, and the robot of a self-test its own.
type userSessions struct {
	apps *account.Apps
	test originals.Sessions
}

func (u userSessions) Burn(ctx context.Context, raw string, by thing.ID) (string, error) {
	if account, ok, err := u.test.Burn(raw, by, time.Now()); ok {
		return account, err
	}
	id, err := u.apps.Burn(ctx, logging.Secret(raw), string(by))
	return string(id), err
}

// Proves returns the robot that a certificate or an access token proves; "" if neither does.
func (id Identity) Proves(ctx context.Context, chain []*x509.Certificate, raw logging.Secret) thing.ID {
	if len(chain) > 0 {
		if who, err := id.Peers.Identify(chain); err == nil && who != "" {
			return who
		}
	}
	if raw == "" {
		return ""
	}
	a, err := id.Access.Verify(ctx, raw)
	if err != nil {
		return ""
	}
	return a.Thing
}

// Steps keeps the steps of the token service and of uploads for the doctor. What proves no robot goes to the door.
type Steps struct {
	Registry *registry.Service
	Door     *door.Door
	Log      *slog.Logger
}

// Paused records that a robot must wait before it sends more events (das.Config.Paused).
func (t Steps) Paused(ctx context.Context, id thing.ID, code, detail string) {
	t.Record(ctx, token.Step{Thing: id, At: time.Now(), Step: registry.StepEvents, Code: code, Reason: detail})
}

// Record implements token.Recorder.
func (t Steps) Record(ctx context.Context, s token.Step) {
	if !s.OK && (s.Thing == "" || registry.Unproved(s.Code)) {
		t.Door.Refused(ctx, door.Refusal{Addr: s.Peer, Claim: s.Thing, Step: s.Step, Code: s.Code, Detail: s.Reason, Version: s.Version, Logged: true})
	}
	if s.Thing == "" {
		return
	}
	if s.OK && s.Step == stsapi.StepUpload {
		t.Door.Seen(ctx, registry.Call{Thing: s.Thing, What: registry.CallUploads, Peer: s.Peer, Version: s.Version})
	}
	step := registry.Step{Thing: s.Thing, At: s.At, Name: s.Step, OK: s.OK, Code: s.Code, Peer: s.Peer, Version: s.Version, Detail: s.Reason, Shown: registry.Shown(s.Shown)}
	if err := t.Registry.Record(ctx, step); err != nil {
		t.Log.WarnContext(ctx, "step not recorded", logging.Thing, s.Thing, "step", s.Step, logging.Err, err)
	}
}

// Operations lists the operations of certificates, tokens and uploads, for their declarations alone.
func Operations() op.List {
	return slices.Concat(
		certsapi.Operations(nil, certsapi.Config{}),
		tokenapi.Operations(nil, tokenapi.Config{}),
		uploadsapi.Operations(nil, uploadsapi.Config{}),
	)
}
