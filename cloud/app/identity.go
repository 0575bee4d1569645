package app

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"kennel/certs"
	"kennel/certs/ca"
	"kennel/certs/certsapi"
	"kennel/certs/certsbroker"
	"kennel/certs/certspg"
	"kennel/certs/limit"
	"kennel/cloud/account"
	"kennel/cloud/account/accountapi"
	"kennel/cloud/registry"
	"kennel/cloud/token"
	"kennel/cloud/token/tokenapi"
	"kennel/cloud/token/tokenpg"
	"kennel/infra/durable"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/infra/seal"
	"kennel/infra/thing"
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

// wireCerts makes what decides about certificates.
func (c *Cloud) wireCerts(store *certspg.Store) (err error) {
	c.revoked = certs.NewRevocations(c.revFeed)
	c.denied = certsbroker.New(c.revoked, c.revFeed.Blocked)
	c.crls = ca.NewCRLs(c.ca, c.revoked, c.revFeed.CRLNumber)
	c.Certs, err = certs.New(certs.Config{
		Store: store, Batches: store, Requests: store, Issuer: c.ca, Recorder: c.tellTable(c.tellBroker(recorder{c.Registry, c.log})), TTL: c.cfg.CA.DeviceTTL,
		ByAddr: limit.NewByAddr(c.cfg.Enroll.PerAddressEvery, c.cfg.Enroll.PerAddressBurst), ByThing: limit.New(enrollByThingEvery, enrollByThingBurst),
		NoApproval: c.cfg.Enroll.NoApproval,
	})
	return err
}

// wireTokens makes the token service; documents, owners and accounts are wired before it.
func (c *Cloud) wireTokens(ctx context.Context) error {
	store := tokenpg.New(c.pool)
	c.tokenStore = store
	keys, err := token.NewKeyring(ctx, store, c.seal.For("token/key"), token.Rotation{}, c.log, nil)
	if err != nil {
		return err
	}
	c.tokenKeys = keys
	if c.tokensRevoked, err = token.NewRevocations(ctx, store, c.log, nil); err != nil {
		return err
	}
	c.Verifier = token.NewVerifier(keys, c.tokensRevoked)
	appKeys, err := c.appKeys()
	if err != nil {
		return err
	}
	byAddr := limit.NewByAddr(tokenByAddrEvery, tokenByAddrBurst)
	if c.cfg.Enroll.PerAddressBurst > tokenByAddrBurst { // a house whose robots share one address says so there
		byAddr = limit.NewByAddr(c.cfg.Enroll.PerAddressEvery, c.cfg.Enroll.PerAddressBurst)
	}
	c.Tokens, err = token.New(token.Config{
		Store: store, Inventory: store, Keys: keys, Verifier: c.Verifier, Robots: peers{c}, Services: peers{c}, Sessions: userSessions{c.People}, Owners: c.Owners,
		Docs: c.Docs, STS: c.grants, Certificates: peers{c}, Recorder: tokenSteps{c.Registry, c.log}, ByThing: limit.New(tokenByThingEvery, tokenByThingBurst),
		ByAddr: byAddr, AppKeys: appKeys, Log: c.log,
	})
	return err
}

// appKeys reads robots.app_keys_file; without one it returns a random key that no robot knows.
func (c *Cloud) appKeys() (token.AppKeys, error) {
	if c.cfg.Robots.AppKeysFile == "" {
		return token.ParseAppKeys(seal.New().Text())
	}
	return token.LoadAppKeys(c.cfg.Robots.AppKeysFile)
}

// identityServices keep in every process what all of them must know within a second or two.
func (c *Cloud) identityServices() []runner.Service {
	return []runner.Service{
		{Name: "revocations", Run: c.revoked.Run},
		{Name: "authorities", Run: func(ctx context.Context) error {
			c.writeAuthorities(ctx)
			return c.ca.Run(ctx, func() { c.writeAuthorities(ctx) }, func(err error) {
				c.log.WarnContext(ctx, "authorities unreadable; keeping the last ones", logging.Err, err)
			})
		}},
		{Name: "token keys", Run: c.tokenKeys.Run},
		{Name: "revoked tokens", Run: c.tokensRevoked.Run},
		{Name: "tokens", Run: c.Tokens.Run},
	}
}

// writeAuthorities keeps the files that others read.
func (c *Cloud) writeAuthorities(ctx context.Context) {
	for file, pem := range map[string][]byte{c.cfg.CA.RootFile: c.ca.Root(), c.cfg.CA.DeviceBundle: c.ca.DeviceBundle(), c.cfg.CA.ServiceBundle: c.ca.ServiceBundle()} {
		if file == "" {
			continue
		}
		if err := replaceFile(file, pem); err != nil {
			c.log.ErrorContext(ctx, "authorities not written", "file", file, logging.Err, err)
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
	return durable.Write(dir, filepath.Base(file), b, 0o644, 0o755)
}

// public adds what anybody may read: keys of tokens, certificates to pin, revocation lists, the connection check.
func (c *Cloud) public(mux *http.ServeMux) {
	mux.HandleFunc("GET /ok", connectionCheck)
	c.crls.Mount(mux)
	tokenapi.Mount(mux, c.Tokens, tokenapi.Config{Known: c.known, Owner: c.Owners.Owner, Audit: accountapi.Auditor(c.Accounts), Keys: c.tokenKeys.JWKS, Log: c.log})
}

// mountIdentity adds the endpoints of robots' identities to the public API.
func (c *Cloud) mountIdentity(mux *http.ServeMux) {
	mqttURL := c.cfg.API.PublicMQTT
	if mqttURL == "" {
		mqttURL = c.cfg.MQTT.URL
	}
	certsapi.Mount(mux, c.Certs, certsapi.Config{Root: c.ca.Root, MQTT: mqttURL, Owns: c.owns, Audit: accountapi.Auditor(c.Accounts), Log: c.log})
	c.public(mux)
}

// owns says whether a robot is an account's.
func (c *Cloud) owns(ctx context.Context, account string, id thing.ID) (bool, error) {
	_, ok, err := c.Owners.Owns(ctx, account, id)
	return ok, err
}

// peers judges client certificates: robots with ours or with a factory's, services with ours.
type peers struct{ c *Cloud }

func (p peers) trust() certs.Trust {
	return certs.Trust{Devices: p.c.ca.DevicePool(), Services: p.c.ca.ServicePool(), Check: p.c.revoked.Check}
}

// factoryTime bounds the look at the batches, which are remembered for a second.
const factoryTime = 5 * time.Second

// Identify implements token.Robots.
func (p peers) Identify(chain []*x509.Certificate) (thing.ID, error) {
	if len(chain) > 0 && p.c.ca.VerifyDevice(chain[0]) == nil {
		peer, err := p.trust().Identify(chain, time.Now())
		return peer.Thing, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), factoryTime)
	defer cancel()
	return p.c.Certs.IdentifyFactory(ctx, chain)
}

// Service implements token.Services.
func (p peers) Service(chain []*x509.Certificate) (string, error) {
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
func (p peers) RevokeFactory(ctx context.Context, certificateID, by string) (thing.ID, error) {
	return "", p.c.Certs.RevokeFactoryCertificate(ctx, certificateID, "by "+by)
}

// userSessions lets robots burn the sessions of apps.
type userSessions struct{ people *account.Owners }

func (u userSessions) Burn(ctx context.Context, raw string, by thing.ID) (string, error) {
	id, err := u.people.BurnUserSession(ctx, logging.Secret(raw), string(by))
	return string(id), err
}

// tokenSteps keeps the steps of the token service for the doctor.
type tokenSteps struct {
	registry *registry.Service
	log      *slog.Logger
}

func (t tokenSteps) Record(ctx context.Context, s token.Step) {
	if s.Thing == "" {
		return // no robot to show it for; the log has it
	}
	step := registry.Step{Thing: s.Thing, At: s.At, Name: s.Step, OK: s.OK, Code: s.Code, Peer: s.Peer, Version: s.Version, Detail: s.Reason, Shown: registry.Shown(s.Shown)}
	if err := t.registry.Record(ctx, step); err != nil {
		t.log.WarnContext(ctx, "step not recorded", logging.Thing, s.Thing, "step", s.Step, logging.Err, err)
	}
}
