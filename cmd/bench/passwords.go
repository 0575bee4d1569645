package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/argon2"

	"kennel/cloud/account/accountapi"
	"kennel/cloud/account/accounthash"
	"kennel/infra/bench"
	"kennel/infra/bench/house"
)

const (
	floodLogins = 300 // at once: more than the waiting line takes
	hashTurn    = 2 * time.Second
)

// passwords: what argon2id costs. Logins at kenneld's public API that all come in one moment, each from an address of its own, and how much
// memory kenneld takes for them, beside the memory of the hashes that its waiting line lets through at once; and hashes a second by way of the
// waiting line, beside bare argon2id.
func passwords(ctx context.Context, env *bench.Env, h *house.House) ([]bench.Result, error) {
	hasher := accounthash.New()
	const right = "correct horse"
	stored, err := hasher.Hash(ctx, right)
	if err != nil {
		return nil, err
	}
	cost, err := costOf(stored)
	if err != nil {
		return nil, err
	}
	memory, err := floods(ctx, env, h, cost)
	if err != nil {
		return nil, err
	}
	turn := bench.Part(env, hashTurn)
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	pairs, err := bench.Pairs(ctx, env.Count, func(ctx context.Context) (float64, error) {
		return during(ctx, turn, accounthash.Parallel+accounthash.MaxWaiting, func(ctx context.Context) error {
			ok, err := hasher.Verify(ctx, stored, right)
			if err == nil && !ok {
				err = errors.New("the right password is refused")
			}
			return err
		})
	}, func(ctx context.Context) (float64, error) {
		return during(ctx, turn, accounthash.Parallel, func(context.Context) error {
			argon2.IDKey([]byte(right), salt, cost.passes, cost.memory, cost.lanes, 32)
			return nil
		})
	})
	if err != nil {
		return memory, err
	}
	return append(memory, bench.Line{Name: "passwords/rate", Unit: "hashes/s",
		Note: fmt.Sprintf("%s; %d callers, %d at work, the rest in line; reference: bare argon2id, %d at once",
			cost, accounthash.Parallel+accounthash.MaxWaiting, accounthash.Parallel, accounthash.Parallel)}.Result(pairs)), nil
}

// argonCost is what a stored hash says that it took.
type argonCost struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
}

func costOf(stored string) (c argonCost, err error) {
	settings, _, _ := strings.Cut(strings.TrimPrefix(stored, "$argon2id$v=19$"), "$")
	if _, err := fmt.Sscanf(settings, "m=%d,t=%d,p=%d", &c.memory, &c.passes, &c.lanes); err != nil || c.memory == 0 || c.passes == 0 || c.lanes == 0 {
		return c, fmt.Errorf("a new hash begins with %.40q: want $argon2id$v=19$m=,t=,p=", stored) // of a password that is no secret
	}
	return c, nil
}

func (c argonCost) String() string {
	return fmt.Sprintf("argon2id with m=%d KiB, t=%d, p=%d", c.memory, c.passes, c.lanes)
}

// floods measures what kenneld's resident memory rises to.
func floods(ctx context.Context, env *bench.Env, h *house.House, cost argonCost) ([]bench.Result, error) {
	pid, err := h.Pid("kenneld")
	if err != nil {
		return nil, err
	}
	people, err := loginClients(h, bench.Part(env, floodLogins))
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, p := range people {
			p.CloseIdleConnections()
		}
	}()
	// Connections are there before the flood: their memory is not that of passwords.
	if _, err := many(len(people), loginAtOnce, func(i int) error { return ask(ctx, people[i], "GET", h.URL("api")+"/ok", nil, http.StatusOK) }); err != nil {
		return nil, err
	}
	before, err := settledRSS(ctx, pid) // of all turns: memory that a flood has left is not given back at once
	if err != nil {
		return nil, err
	}
	var looked, refused atomic.Int64
	turn := 0
	bound := float64(accounthash.Parallel) * float64(cost.memory) / 1024 // MiB
	pairs, err := bench.Pairs(ctx, env.Count, func(ctx context.Context) (float64, error) {
		turn++
		if err := forgetPeak(pid); err != nil {
			return 0, err
		}
		if _, err := many(len(people), len(people), func(i int) error {
			body, err := json.Marshal(accountapi.LoginRequest{Email: fmt.Sprintf("nobody-%d-%d@example.org", turn, i), Password: "battery staple"})
			if err != nil {
				return err
			}
			got, err := statusOf(ctx, people[i], "POST", h.URL("api")+"/v1/login", body)
			switch {
			case err != nil:
				return err
			case got == http.StatusUnauthorized:
				looked.Add(1)
			case got == http.StatusTooManyRequests, got == http.StatusServiceUnavailable: // no place in line; ten seconds in it, on a machine that is busy
				refused.Add(1)
			default:
				return fmt.Errorf("login of nobody: status %d, want %d, %d or %d", got, http.StatusUnauthorized, http.StatusTooManyRequests, http.StatusServiceUnavailable)
			}
			return nil
		}); err != nil {
			return 0, err
		}
		if looked.Load() == 0 {
			return 0, errors.New("not one password of a flood was hashed")
		}
		peak, err := peakRSS(pid)
		return max(1, peak-before) / 1024, err
	}, func(context.Context) (float64, error) { return bound, nil })
	if err != nil {
		return nil, err
	}
	// Garbage of earlier hashes waits for the collector: as much again as is in use, and again while it works.
	return []bench.Result{bench.Line{Name: "passwords/memory", Unit: "MiB", Less: true, Bound: 0.25,
		Note: fmt.Sprintf("%s; rise of kenneld's resident memory from %.0f MiB while %d logins come at once (in all turns %d hashed, %d told to come back); "+
			"reference: %d hashes, which are all that are computed at once; one for each login would be %.0f MiB",
			cost, before/1024, len(people), looked.Load(), refused.Load(), accounthash.Parallel, float64(len(people))*float64(cost.memory)/1024)}.Result(pairs)}, nil
}

// loginClients makes n clients of the public API, each with an address of its own, because one address may not try often.
func loginClients(h *house.House, n int) ([]*http.Client, error) {
	root, err := os.ReadFile(h.File("root_ca"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(root)
	out := make([]*http.Client, n)
	for i := range out {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(i/250), byte(1+i%250))}}
		out[i] = &http.Client{Timeout: loginTime, Transport: &http.Transport{DialContext: d.DialContext, TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}}}
	}
	return out, nil
}

func statusOf(ctx context.Context, c *http.Client, method, url string, body []byte) (int, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body) // the connection is used again
	return resp.StatusCode, err
}

func ask(ctx context.Context, c *http.Client, method, url string, body []byte, want int) error {
	got, err := statusOf(ctx, c, method, url, body)
	if err == nil && got != want {
		err = fmt.Errorf("%s %s: status %d, want %d", method, url, got, want)
	}
	return err
}

// forgetPeak has the kernel count a process's peak of resident memory from now on (proc(5), clear_refs).
func forgetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600)
}

// peakRSS is the peak of a process's resident memory, in KiB.
func peakRSS(pid int) (float64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			return strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")), 64)
		}
	}
	return 0, fmt.Errorf("/proc/%d/status: no VmHWM", pid)
}
