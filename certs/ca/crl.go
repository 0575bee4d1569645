package ca

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kennel/certs"
	"kennel/certs/internal/pemfile"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
)

// Our own limits (the source gives none).
const (
	// crlLife is how long a list may be used. Verifiers of OpenSSL refuse every client once it has ended, so it is long, and lists are made
	// again long before.
	crlLife   = 7 * 24 * time.Hour
	crlRenew  = 24 * time.Hour // after which a list without a change is signed again
	crlMargin = time.Hour      // how much earlier than now a list begins, for verifiers whose clock is behind
)

// CRLPath is the path that CRLs.Mount serves: device.crl (of the signing authority), device.pem (all) and device-N.crl are below it.
const CRLPath = "/v1/crl/"

// RevocationList is the list of one authority.
type RevocationList struct {
	Name string // of the authority, such as device-1
	DER  []byte
}

// DeviceCRLs signs one list for each device authority whose key is here, the signing authority first. Every list names all revoked serial
// numbers whose certificates have not expired, whichever authority issued them: serial numbers are random, so another authority's match no
// certificate.
func (a *Authority) DeviceCRLs(revoked []certs.Revocation, number int64, now time.Time) ([]RevocationList, error) {
	template := &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: now.Add(-crlMargin), NextUpdate: now.Add(crlLife)}
	seen := map[string]bool{}
	for _, r := range revoked {
		serial, ok := new(big.Int).SetString(r.Serial, 16)
		if !ok || serial.Sign() <= 0 || seen[r.Serial] || !r.NotAfter.After(now) { // revoked by key alone, or ended
			continue
		}
		seen[r.Serial] = true
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial,
			RevocationTime: r.At.UTC()})
	}
	var out []RevocationList
	for _, g := range a.now().device.ordered() {
		if g.key == nil {
			continue
		}
		der, err := x509.CreateRevocationList(rand.Reader, template, g.cert(), g.key)
		if err != nil {
			return nil, fmt.Errorf("revocation list of %s: %w", g.name, err)
		}
		out = append(out, RevocationList{g.name, der})
	}
	return out, nil
}

// CRLs publishes the revocation lists of the device authorities. Safe for concurrent use.
type CRLs struct {
	authority *Authority
	revoked   *certs.Revocations
	number    func(ctx context.Context) (int64, error)

	mu    sync.Mutex // also while signing: one list at a time
	lists []RevocationList
	made  time.Time
	last  int64 // position of the feed
	by    *state
}

// NewCRLs returns a publisher. number gives each list its number, ascending over all processes (certspg.Revocations.CRLNumber).
func NewCRLs(a *Authority, revoked *certs.Revocations, number func(ctx context.Context) (int64, error)) *CRLs {
	return &CRLs{authority: a, revoked: revoked, number: number}
}

// Lists returns the current lists, signed again only if something was revoked, the authorities changed, or a day has passed.
func (c *CRLs) Lists(ctx context.Context) (lists []RevocationList, made time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.revoked.Ready(ctx); err != nil {
		return nil, time.Time{}, err
	}
	_, last := c.revoked.List(0)
	now := time.Now()
	if c.lists != nil && last == c.last && c.by == c.authority.now() && now.Sub(c.made).Abs() < crlRenew {
		return c.lists, c.made, nil
	}
	number, err := c.number(ctx)
	if err != nil {
		return nil, time.Time{}, err
	}
	// After the number: a higher number never says less than a lower one, even if that is another process's.
	if err := c.revoked.Read(ctx); err != nil {
		return nil, time.Time{}, err
	}
	by := c.authority.now()
	revoked, last := c.revoked.List(0)
	if lists, err = c.authority.DeviceCRLs(revoked, number, now); err != nil {
		return nil, time.Time{}, err
	}
	c.lists, c.made, c.last, c.by = lists, now, last, by
	return lists, now, nil
}

// PEM returns all lists in one file, as brokers read them (mosquitto.Broker.DeviceCRL).
func (c *CRLs) PEM(ctx context.Context) ([]byte, error) {
	lists, _, err := c.Lists(ctx)
	if err != nil {
		return nil, err
	}
	return encodeCRLs(lists), nil
}

func encodeCRLs(lists []RevocationList) []byte {
	var b bytes.Buffer
	for _, l := range lists {
		_ = pem.Encode(&b, &pem.Block{Type: "X509 CRL", Bytes: l.DER}) // a buffer takes everything
	}
	return b.Bytes()
}

// Keep writes PEM into file, and again whenever it changes, until ctx ends. written, if set, is called after each write, for example to
// make a broker read the file again. If the file cannot be written or the database is away, Keep tries again.
func (c *CRLs) Keep(ctx context.Context, file string, written func(ctx context.Context), trouble func(error)) error {
	root, err := os.OpenRoot(filepath.Dir(file))
	if err != nil {
		return fmt.Errorf("revocation list %s: %w", file, err)
	}
	defer root.Close() // everything was synced
	var last []byte
	tick := time.NewTicker(reloadEvery) // authorities change without an event
	defer tick.Stop()
	for {
		changed := c.revoked.Changed()
		b, err := c.PEM(ctx)
		if err == nil && !bytes.Equal(b, last) {
			if err = pemfile.Write(root, filepath.Base(file), b, 0o644); err == nil {
				if last = b; written != nil {
					written(ctx)
				}
			}
		}
		if err != nil && ctx.Err() == nil && trouble != nil && errs.KindOf(err) != errs.Unavailable {
			trouble(fmt.Errorf("revocation list %s: %w", file, err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		case <-tick.C:
		}
	}
}

// Mount serves the lists: CRLPath + device.crl (DER, of the authority that signs), device-N.crl of
// any (0: the first), device.pem (all of them). They are signed and hold no secret, so they are public.
func (c *CRLs) Mount(mux *http.ServeMux) { mux.HandleFunc("GET "+CRLPath+"{file}", c.serve) }

func (c *CRLs) serve(w http.ResponseWriter, r *http.Request) {
	lists, made, err := c.Lists(r.Context())
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	name := r.PathValue("file")
	body, kind, err := pick(lists, name)
	if err != nil {
		kithttp.WriteError(w, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "max-age=60")
	http.ServeContent(w, r, "", made, bytes.NewReader(body))
}

// pick returns the file of that name.
func pick(lists []RevocationList, name string) (body []byte, kind string, err error) {
	if len(lists) == 0 {
		return nil, "", errs.New(errs.Internal, "no revocation list: %w", errors.New("no key of a device authority in this folder"))
	}
	if name == string(Device)+".pem" {
		return encodeCRLs(lists), "application/x-pem-file", nil
	}
	base, ok := strings.CutSuffix(name, ".crl")
	if ok && base == string(Device) {
		return lists[0].DER, "application/pkix-crl", nil
	}
	for _, l := range lists {
		if ok && (l.Name == base || l.Name == string(Device) && base == string(Device)+"-0") {
			return l.DER, "application/pkix-crl", nil
		}
	}
	return nil, "", errs.New(errs.NotFound, "no revocation list %.60q: want %s.crl, %s.pem, or the .crl of a device authority", name, Device, Device)
}
