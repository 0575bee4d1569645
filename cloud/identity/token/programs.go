package token

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"kennel/infra/api/tokenwire"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// programApp is the app id of programs, as the original's cloud gives it to those that use its SDK.
const programApp = "SDK"

// MaxDays bounds how long the token of a program lasts that has an end, in days.
const MaxDays = 3650

// AuditProgram is the action in the audit log of an owner who lets a program drive a robot.
const AuditProgram = "programs.add"

// NewProgram is a program that an owner lets drive a robot.
type NewProgram struct {
	Name   string   `json:"name"`           // 1 to 64 characters
	Rights []string `json:"rights"`         // at least one of look, talk, move, camera, settings and hear
	Days   int      `json:"days,omitempty"` // until its token expires, at most 3650; absent or 0: never
}

// Check returns an Invalid error that says what is wrong with the program, and what it may be.
func (p NewProgram) Check() error {
	switch n := utf8.RuneCountInString(p.Name); {
	case strings.TrimSpace(p.Name) == "":
		return errs.Coded(errs.Invalid, "name_missing", "give the program a name")
	case n > maxName:
		return errs.Coded(errs.Invalid, "name_long", "the program's name has %d characters: want at most %d", n, maxName)
	case !utf8.ValidString(p.Name) || strings.ContainsFunc(p.Name, unicode.IsControl):
		return errs.Coded(errs.Invalid, "name_malformed", "the program's name has characters that cannot be printed")
	case len(p.Rights) == 0:
		return errs.Coded(errs.Invalid, "right_missing", "choose at least one right: %s", strings.Join(tokenwire.Rights, ", "))
	case p.Days < 0 || p.Days > MaxDays:
		return errs.Coded(errs.Invalid, "days_range", "%d days: want 0 (no end) to %d", p.Days, MaxDays)
	}
	for _, r := range p.Rights {
		if !slices.Contains(tokenwire.Rights, r) {
			return errs.Coded(errs.Invalid, "right_unknown", "right %.40q: want %s", r, strings.Join(tokenwire.Rights, ", "))
		}
	}
	return nil
}

// Detail returns what the audit log says of the program.
func (p NewProgram) Detail() string {
	if p.Days == 0 {
		return strings.Join(p.rights(), " ") + ", no end"
	}
	return fmt.Sprintf("%s, %d days", strings.Join(p.rights(), " "), p.Days)
}

// rights returns each right once, in the order of tokenwire.Rights.
func (p NewProgram) rights() []string {
	return slices.DeleteFunc(slices.Clone(tokenwire.Rights), func(r string) bool { return !slices.Contains(p.Rights, r) })
}

// ProgramFile is the file by which a program finds a robot, trusts it and is let in.
type ProgramFile struct {
	Thing       thing.ID `json:"thing"`
	Address     string   `json:"address"`     // host:port in the robot's network
	Name        string   `json:"name"`        // in the robot's certificate
	Certificate string   `json:"certificate"` // PEM
	Token       string   `json:"token"`       // this once
}

// AddProgram makes a client token for a program of a robot's owner. The robot lets it in as soon as it has read its document, seconds later.
// Expired tokens of the robot are forgotten.
//
// Errors: Invalid (see Check); Conflict "no_gateway" and "no_session_certificate" for a robot that no program can reach; Exhausted "too_many_apps"; NotFound for a robot that is not the account's.
func (s *Service) AddProgram(ctx context.Context, id thing.ID, account string, p NewProgram) (ProgramFile, error) {
	if err := p.Check(); err != nil {
		return ProgramFile{}, err
	}
	f, err := s.reach(ctx, id)
	if err != nil {
		return ProgramFile{}, err
	}
	now := s.now()
	e := entry{Name: strings.TrimSpace(p.Name), AppID: programApp, By: account, Rights: p.rights()}
	if p.Days > 0 {
		e.ExpiresAt = now.AddDate(0, 0, p.Days).UTC().Format(time.RFC3339)
	}
	token, app, err := s.addApp(ctx, id, e, func(old entry) bool { return old.expired(now) })
	if err != nil {
		return ProgramFile{}, err
	}
	// An ownership that ended while this was made did not find the entry; one that ends from here on does.
	if now, err := s.cfg.Owners.Owner(ctx, id); err != nil || now != account {
		for _, err := range []error{s.RevokeApp(ctx, id, app), err} {
			if err != nil && errs.KindOf(err) != errs.NotFound {
				return ProgramFile{}, err
			}
		}
		return ProgramFile{}, errs.Coded(errs.NotFound, "no_thing", "%s is no longer yours", id)
	}
	f.Token = token.Reveal()
	return f, nil
}

// reach returns where a robot serves programs, and by which certificate.
func (s *Service) reach(ctx context.Context, id thing.ID) (ProgramFile, error) {
	f := ProgramFile{Thing: id}
	var err error
	if s.cfg.Gateway != nil {
		if f.Address, err = s.cfg.Gateway(ctx, id); err != nil && errs.KindOf(err) != errs.NotFound {
			return f, fmt.Errorf("gateway of %s: %w", id, err)
		}
	}
	if _, _, err := net.SplitHostPort(f.Address); err != nil {
		return f, errs.Coded(errs.Conflict, "no_gateway", "%s has not said where programs reach it: want a robot with Kennel's software that was online", id)
	}
	cert, err := s.cfg.Store.Certificate(ctx, id)
	if err != nil {
		return f, err
	}
	block, _ := pem.Decode(cert)
	if block == nil {
		return f, errs.Coded(errs.Conflict, "no_session_certificate", "%s has not sent its certificate yet: it does when it is online", id)
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return f, errs.Coded(errs.Corrupt, "session_certificate_malformed", "session certificate of %s: %w", id, err)
	}
	f.Name, f.Certificate = leaf.Subject.CommonName, string(cert)
	return f, nil
}
