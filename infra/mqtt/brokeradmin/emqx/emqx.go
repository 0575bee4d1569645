// Package emqx makes EMQX 5.3 or newer a broker of Kennel: its configuration and rules, and the orders that its HTTP interface takes.
//
// EMQX cannot run in our tests: Admin is tested against a hand-written server that checks method, path and credentials as EMQX's
// documentation states them, and the files are compared with golden ones. That EMQX agrees is not shown here.
package emqx

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Our own limits (the source gives none).
const (
	requestTime = 10 * time.Second
	maxAnswer   = 1 << 20
)

// Config says how to reach the HTTP interface.
type Config struct {
	URL string `koanf:"url"` // https://HOST:18083
	// Files with the API key and its secret, one line each, as the dashboard or api_key.bootstrap_file made them. Read for every order.
	KeyFile    string `koanf:"key_file"`
	SecretFile string `koanf:"secret_file"`
}

// Validate reports the first setting that cannot work (kind Invalid).
func (c Config) Validate() error {
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || strings.Trim(u.Path, "/") != "" {
		return errs.New(errs.Invalid, "mqtt.emqx.url %q: want https://HOST:18083", c.URL)
	}
	if c.KeyFile == "" || c.SecretFile == "" {
		return errs.New(errs.Invalid, "mqtt.emqx.key_file %q and secret_file %q: want both", c.KeyFile, c.SecretFile)
	}
	return nil
}

// Admin gives orders to EMQX. It implements brokeradmin.Admin and Blocker and is safe for concurrent use.
type Admin struct {
	cfg    Config
	client *http.Client
}

// New returns an Admin; it does not talk to EMQX.
func New(cfg Config) (*Admin, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Admin{cfg: cfg, client: &http.Client{Timeout: requestTime}}, nil
}

// Kick ends the thing's session on whichever node of the cluster has it.
func (a *Admin) Kick(ctx context.Context, id thing.ID, reason string) error {
	// Not found: there was no session to end.
	if _, err := a.ask(ctx, http.MethodDelete, "/api/v5/clients/"+url.PathEscape(string(id)), nil, http.StatusNoContent,
		http.StatusNotFound); err != nil {
		return fmt.Errorf("kick %s (%s): %w", id, reason, err)
	}
	return nil
}

// ban is one entry of EMQX's list. Versions differ in how they write a ban without an end, so ours ends in the far future.
type ban struct {
	As     string `json:"as"`
	Who    string `json:"who"`
	By     string `json:"by"`
	Reason string `json:"reason"`
	Until  string `json:"until"`
}

const never = "2999-12-31T23:59:59Z"

// Block bans the thing's client id, which EMQX takes from the certificate, and ends its session: the list is looked at when a client logs
// in. EMQX keeps the list on the disks of its cluster.
func (a *Admin) Block(ctx context.Context, id thing.ID, reason string) error {
	const most = 200
	if len(reason) > most {
		reason = reason[:most]
	}
	body, err := json.Marshal(ban{"clientid", string(id), "kennel", strings.ToValidUTF8(reason, ""), never})
	if err != nil {
		return err
	}
	_, err = a.ask(ctx, http.MethodPost, "/api/v5/banned", body, http.StatusOK)
	if said, ok := errors.AsType[*answer](err); ok && said.Status == http.StatusBadRequest && strings.HasPrefix(said.Code, "ALREADY_EXIST") {
		err = nil // banned already
	}
	if err != nil {
		return fmt.Errorf("block %s: %w", id, err)
	}
	return a.Kick(ctx, id, reason)
}

// Allow lifts the ban.
func (a *Admin) Allow(ctx context.Context, id thing.ID) error {
	// Not found: there was none.
	if _, err := a.ask(ctx, http.MethodDelete, "/api/v5/banned/clientid/"+url.PathEscape(string(id)), nil, http.StatusNoContent,
		http.StatusNotFound); err != nil {
		return fmt.Errorf("allow %s: %w", id, err)
	}
	return nil
}

// Ready returns nil if EMQX takes our key and a node of its cluster runs.
func (a *Admin) Ready(ctx context.Context) error {
	body, err := a.ask(ctx, http.MethodGet, "/api/v5/nodes", nil, http.StatusOK)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return running(body)
}

// running reads the answer of /api/v5/nodes.
func running(body []byte) error {
	var nodes []struct {
		Node   string `json:"node"`
		Status string `json:"node_status"`
	}
	if err := json.Unmarshal(body, &nodes); err != nil {
		return errs.New(errs.Corrupt, "broker: list of nodes: %w", err)
	}
	for _, n := range nodes {
		if strings.EqualFold(n.Status, "running") {
			return nil
		}
	}
	return errs.Coded(errs.Unavailable, "no_node", "broker: none of %d nodes is running", len(nodes))
}

// ask makes one request; an answer with another status than want is an error with EMQX's own words.
func (a *Admin) ask(ctx context.Context, method, path string, body []byte, want ...int) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(a.cfg.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	key, err := os.ReadFile(a.cfg.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("mqtt.emqx.key_file: %w", err)
	}
	secret, err := os.ReadFile(a.cfg.SecretFile)
	if err != nil {
		return nil, fmt.Errorf("mqtt.emqx.secret_file: %w", err)
	}
	req.SetBasicAuth(strings.TrimSpace(string(key)), strings.TrimSpace(string(secret)))
	req.Header.Set("Accept", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, errs.Coded(errs.Unavailable, "unreachable", "%w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, errs.Coded(errs.Unavailable, "unreachable", "%s %s: %w", method, path, err)
	}
	if slices.Contains(want, resp.StatusCode) {
		return body, nil
	}
	kind := errs.Internal
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		kind = errs.Unauthenticated
	case resp.StatusCode == http.StatusForbidden:
		kind = errs.Denied
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= 500:
		kind = errs.Unavailable
	}
	said := &answer{Status: resp.StatusCode}
	_ = json.Unmarshal(body, said) // a body that is not JSON has no reason to repeat
	return nil, errs.New(kind, "%s %s: %w; want %v", method, path, said, want)
}

// answer is the body of EMQX's refusal.
type answer struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (a *answer) Error() string {
	return fmt.Sprintf("status %d %.100s %.300s", a.Status, a.Code, a.Message)
}
