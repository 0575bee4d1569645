package gateway

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"kennel/edge/agent/localapi"
	"kennel/edge/env/robotfs"
	"kennel/infra/api/status"
	"kennel/infra/errs"
)

// programsFile keeps the programs that were let in at the robot itself. It goes with the user data.
const programsFile = "data/kennel/programs.json"

const (
	maxPrograms = 64
	maxHours    = 24 * 366
)

// Program is one that was let in at the robot itself, by a person who may read its files: no cloud has a part in it.
type Program struct {
	Name   string    `json:"name"`
	Rights []string  `json:"rights"`
	Made   time.Time `json:"made"`
	Until  time.Time `json:"until,omitzero"` // zero: for good
	Hash   string    `json:"hash,omitempty"` // SHA-256 of the token, in hex; not told
}

// AddProgram asks to let a program in. One of the same name gets another token.
type AddProgram struct {
	Name   string   `json:"name"`
	Rights []string `json:"rights"` // none: all but Hear
	Hours  int      `json:"hours"`  // 0: for good
}

// RemoveProgram asks to let a program in no longer.
type RemoveProgram struct {
	Name string `json:"name"`
}

// Place is the file by which a program finds the robot, trusts it and is let in.
type Place struct {
	Thing       string `json:"thing"`
	Address     string `json:"address"`
	Name        string `json:"name"`        // in the certificate
	Certificate string `json:"certificate"` // PEM
	Token       string `json:"token"`
}

// programs are those of programsFile. Safe for concurrent use.
type programs struct {
	root *os.Root
	now  func() time.Time

	mu  sync.Mutex
	all []Program
}

func openPrograms(root *os.Root, now func() time.Time) (*programs, error) {
	p := &programs{root: root, now: now}
	if err := robotfs.ReadJSON(root, programsFile, &p.all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("%s: %w", programsFile, err)
	}
	return p, nil
}

// client returns whose token bearer is.
func (p *programs) client(bearer string) (Client, bool) {
	hash := sum(bearer)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.all {
		if subtle.ConstantTimeCompare([]byte(x.Hash), []byte(hash)) == 1 && (x.Until.IsZero() || p.now().Before(x.Until)) {
			return Client{Name: x.Name, May: func(right string) bool { return slices.Contains(x.Rights, right) }}, true
		}
	}
	return Client{}, false
}

func sum(token string) string {
	h := sha256.Sum256([]byte(token))
	return hex.EncodeToString(h[:])
}

// change makes all of the programs, and keeps them before the first is used.
func (p *programs) change(make func(all []Program) ([]Program, error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	all, err := make(slices.Clone(p.all))
	if err != nil {
		return err
	}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(p.root.MkdirAll("data/kennel", 0o700), robotfs.WriteFile(p.root, programsFile, b, 0o600)); err != nil {
		return err
	}
	p.all = all
	return nil
}

func (p *programs) add(req AddProgram) (token string, err error) {
	if n := len(req.Name); n == 0 || n > 64 || strings.ContainsFunc(req.Name, func(r rune) bool { return r < ' ' }) {
		return "", invalid("name: %d bytes, want 1 to 64 without control characters", n)
	}
	if req.Hours < 0 || req.Hours > maxHours {
		return "", invalid("hours: %d, want 0 (for good) to %d", req.Hours, maxHours)
	}
	if len(req.Rights) == 0 {
		req.Rights = slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == Hear })
	}
	for _, r := range req.Rights {
		if !slices.Contains(rights, r) {
			return "", invalid("right %.40q: want some of %s", r, strings.Join(rights, ", "))
		}
	}
	token = rand.Text()
	x := Program{Name: req.Name, Rights: req.Rights, Made: p.now().UTC(), Hash: sum(token)}
	if req.Hours > 0 {
		x.Until = x.Made.Add(time.Duration(req.Hours) * time.Hour)
	}
	return token, p.change(func(all []Program) ([]Program, error) {
		all = slices.DeleteFunc(all, func(o Program) bool { return o.Name == x.Name })
		if len(all) >= maxPrograms {
			return nil, errs.Coded(errs.Exhausted, "too_many_programs", "%d programs have a token, which is all that a robot keeps: remove one", maxPrograms)
		}
		return append(all, x), nil
	})
}

func (p *programs) remove(name string) error {
	return p.change(func(all []Program) ([]Program, error) {
		rest := slices.DeleteFunc(slices.Clone(all), func(o Program) bool { return o.Name == name })
		if len(rest) == len(all) {
			return nil, errs.Coded(errs.NotFound, "no_such_program", "no program %.64q was let in at this robot", name)
		}
		return rest, nil
	})
}

// list returns them without their hashes.
func (p *programs) list() []Program {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := slices.Clone(p.all)
	for i := range out {
		out[i].Hash = ""
	}
	return out
}

// requests are those of the robot's other programs.
//
//	POST /programs/add     AddProgram -> Place
//	POST /programs/list    {} -> []Program
//	POST /programs/remove  RemoveProgram -> {}
//	POST /programs/uses    {} -> []status.Use, the newest first
func (g *Gateway) requests() map[string]http.Handler {
	return map[string]http.Handler{
		"POST /programs/add": localapi.Answer(func(_ context.Context, r AddProgram) (Place, error) {
			cert, ok := g.cfg.Certificate()
			addr := g.Addr()
			if !ok || addr == "" {
				return Place{}, errs.Coded(errs.Unavailable, "gateway_not_ready", "the robot serves no programs yet; try again in a few seconds")
			}
			token, err := g.programs.add(r)
			return Place{string(g.Thing), addr, g.cfg.Name(), certificatePEM(cert), token}, err
		}),
		"POST /programs/list": localapi.Answer(func(context.Context, localapi.Nothing) ([]Program, error) { return g.programs.list(), nil }),
		"POST /programs/uses": localapi.Answer(func(context.Context, localapi.Nothing) ([]status.Use, error) { return g.used.list(maxUses), nil }),
		"POST /programs/remove": localapi.Answer(func(_ context.Context, r RemoveProgram) (localapi.Nothing, error) {
			return localapi.Nothing{}, g.programs.remove(r.Name)
		}),
	}
}
