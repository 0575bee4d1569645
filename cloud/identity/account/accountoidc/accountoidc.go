// Package accountoidc asks an OpenID Connect provider who an operator is: authorization code with PKCE, state and nonce, and a role by one of the
// token's claims. It is off unless it is configured.
package accountoidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"kennel/cloud/identity/account"
	"kennel/infra/auth"
	"kennel/infra/errs"
)

const timeout = 10 * time.Second // of one request to the provider

// Config is the provider and what its word is worth here.
type Config struct {
	Issuer           string            `koanf:"issuer"` // "": off
	Name             string            `koanf:"name"`   // the provider's name on the sign-in page; "": the issuer's host
	ClientID         string            `koanf:"client_id"`
	ClientSecretFile string            `koanf:"client_secret_file"` // "": a public client, PKCE alone
	RoleClaim        string            `koanf:"role_claim"`         // a word or a list of words; "": groups
	Roles            map[string]string `koanf:"roles"`              // maps a word of the claim to viewer, support, release-manager or admin; the highest role counts
	Scopes           []string          `koanf:"scopes"`             // beside openid and email
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	if c.Issuer == "" {
		return nil
	}
	u, err := url.Parse(c.Issuer)
	local := err == nil && (u.Hostname() == "localhost" || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1")
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && local):
		return errs.New(errs.Invalid, "oidc: issuer %.120q: want https://host", c.Issuer)
	case len(c.Name) > 60:
		return errs.New(errs.Invalid, "oidc: name of %d bytes: want at most 60, which fit on a button", len(c.Name))
	case c.ClientID == "":
		return errs.New(errs.Invalid, "oidc: client_id is empty")
	case len(c.Roles) == 0:
		return errs.New(errs.Invalid, "oidc: roles is empty: want at least one value of the claim with its role")
	}
	for word, role := range c.Roles {
		if !slices.Contains(auth.People[1:], auth.Role(role)) {
			return errs.New(errs.Invalid, "oidc: roles.%s: role %.40q: want one of %s", word, role, errs.List(auth.People[1:]))
		}
	}
	return nil
}

// Provider is an accountapi.IdentityProvider. It looks the provider up when it is first needed, and again until that succeeds: a cloud starts
// without it. Safe for concurrent use.
type Provider struct {
	cfg      Config
	redirect string
	secret   string
	client   *http.Client

	mu       sync.Mutex
	provider *oidc.Provider
}

// New returns the provider of a valid configuration; redirect is where it sends people back: https://kennel.example/login/oidc/callback.
func New(cfg Config, redirect string) (*Provider, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Issuer == "" {
		return nil, errs.New(errs.Invalid, "oidc: issuer is empty")
	}
	p := &Provider{cfg: cfg, redirect: redirect, client: &http.Client{Timeout: timeout}}
	if cfg.ClientSecretFile != "" {
		b, err := os.ReadFile(cfg.ClientSecretFile)
		if err != nil {
			return nil, fmt.Errorf("oidc: client secret: %w", err)
		}
		p.secret = strings.TrimSpace(string(b))
	}
	return p, nil
}

// Name returns what people call the provider.
func (p *Provider) Name() string {
	if p.cfg.Name != "" {
		return p.cfg.Name
	}
	u, err := url.Parse(p.cfg.Issuer)
	if err != nil { // New has parsed it
		return p.cfg.Issuer
	}
	return u.Hostname()
}

func (p *Provider) lookUp(ctx context.Context) (*oidc.Provider, *oauth2.Config, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.provider == nil {
		// The provider keeps the context for fetching keys later on, so it must not be the request's.
		got, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.cfg.Issuer)
		if err != nil {
			return nil, nil, errs.RetryLater(5*time.Second, "the identity provider does not answer", err)
		}
		p.provider = got
	}
	return p.provider, &oauth2.Config{ClientID: p.cfg.ClientID, ClientSecret: p.secret, Endpoint: p.provider.Endpoint(), RedirectURL: p.redirect,
		Scopes: append([]string{oidc.ScopeOpenID, "email"}, p.cfg.Scopes...)}, nil
}

// URL returns where to send a browser.
func (p *Provider) URL(ctx context.Context, state, nonce, verifier string) (string, error) {
	_, c, err := p.lookUp(ctx)
	if err != nil {
		return "", err
	}
	return c.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), nil
}

// Identity exchanges the code that a browser brought back. Errors: account.ErrIdentity with the reason, for the log; Unavailable.
func (p *Provider) Identity(ctx context.Context, code, nonce, verifier string) (account.Identity, error) {
	provider, c, err := p.lookUp(ctx)
	if err != nil {
		return account.Identity{}, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := c.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	if err != nil {
		if r, ok := errors.AsType[*oauth2.RetrieveError](err); ok && r.Response.StatusCode < 500 {
			return account.Identity{}, refused("the provider refuses the code: %s", r.ErrorCode) // its body may repeat the code
		}
		return account.Identity{}, errs.RetryLater(5*time.Second, "the identity provider does not answer", err)
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return account.Identity{}, refused("no id_token")
	}
	id, err := provider.Verifier(&oidc.Config{ClientID: p.cfg.ClientID}).Verify(ctx, raw)
	if err != nil {
		return account.Identity{}, refused("id_token: %w", err)
	}
	if id.Nonce == "" || id.Nonce != nonce {
		return account.Identity{}, refused("id_token: the nonce belongs to another sign-in")
	}
	var claims map[string]json.RawMessage
	var known struct {
		Email    string `json:"email"`
		Verified any    `json:"email_verified"`
		For      string `json:"azp"`
	}
	if err := errors.Join(id.Claims(&claims), id.Claims(&known)); err != nil {
		return account.Identity{}, refused("id_token: claims: %w", err)
	}
	if (len(id.Audience) > 1 || known.For != "") && known.For != p.cfg.ClientID {
		return account.Identity{}, refused("id_token: audience %.80q is not ours", known.For)
	}
	return account.Identity{Issuer: id.Issuer, Subject: id.Subject, Email: known.Email, EmailVerified: known.Verified == true, Role: p.role(claims)}, nil
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: %w", account.ErrIdentity, fmt.Errorf(format, args...))
}

// role returns the highest role that the claim's words give.
func (p *Provider) role(claims map[string]json.RawMessage) auth.Role {
	name := p.cfg.RoleClaim
	if name == "" {
		name = "groups"
	}
	var words []string
	var word string
	if json.Unmarshal(claims[name], &word) == nil {
		words = []string{word}
	} else if json.Unmarshal(claims[name], &words) != nil {
		return ""
	}
	best := -1
	for _, w := range words {
		if role, ok := p.cfg.Roles[w]; ok {
			best = max(best, slices.Index(auth.People, auth.Role(role)))
		}
	}
	if best < 0 {
		return ""
	}
	return auth.People[best]
}
