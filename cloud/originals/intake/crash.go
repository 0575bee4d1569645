package intake

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"time"

	"kennel/cloud/telemetry/crash"
	"kennel/infra/api/files"
	"kennel/infra/errs"
	"kennel/infra/kit/kithttp"
	"kennel/infra/thing"
)

// Crashes stores crashes; *crash.Service is one.
type Crashes interface {
	Take(ctx context.Context, r crash.Report) (id string, err error)
}

// Bounds of a crash's form: the original has six parts.
const (
	maxParts = 32
	maxField = 256 // bytes of a text
	maxCrash = files.MaxDump + files.MaxCrashLog + 64<<10
)

// form is a crash as it arrives (VEC-CRS-05).
type form struct {
	fields map[string]string
	name   string // of the dump
	dump   []byte
	log    []byte
}

// parseCrash reads the parts of a crash. Memory does not grow beyond the bounds of its parts.
func parseCrash(body io.Reader, boundary string) (form, error) {
	f := form{fields: map[string]string{}}
	bad := func(format string, args ...any) (form, error) {
		return form{}, errs.Coded(errs.Invalid, CodeForm, format, args...)
	}
	parts := multipart.NewReader(body, boundary)
	for n := 1; ; n++ {
		p, err := parts.NextRawPart()
		switch {
		case errors.Is(err, io.EOF):
			if f.dump == nil {
				return bad("the form has no part upload_file with the dump")
			}
			return f, nil
		case err != nil:
			return bad("part %d: %w", n, err)
		case n > maxParts:
			return bad("the form has more than %d parts", maxParts)
		}
		limit, name := int64(maxField), p.FormName()
		switch name {
		case "upload_file":
			limit = files.MaxDump
		case "attachment_messages.log":
			limit = files.MaxCrashLog
		}
		b, err := io.ReadAll(io.LimitReader(p, limit+1))
		_, twice := f.fields[name]
		switch {
		case err != nil:
			return bad("part %d, %.40q: %w", n, name, err)
		case int64(len(b)) > limit:
			return form{}, errs.Coded(errs.Invalid, CodeTooLarge, "part %d, %.40q, has more than %d bytes", n, name, limit)
		case twice || name == "upload_file" && f.dump != nil || name == "attachment_messages.log" && f.log != nil:
			return bad("part %d: %.40q given twice", n, name)
		case name == "upload_file":
			f.name, f.dump = p.FileName(), b
		case name == "attachment_messages.log":
			f.log = b
		default:
			f.fields[name] = string(b)
		}
	}
}

// report makes a report of a form.
func (f form) report(id thing.ID) (crash.Report, error) {
	if len(f.dump) == 0 {
		return crash.Report{}, errs.Coded(errs.Invalid, CodeForm, "the dump is empty")
	}
	if !printable(f.name, files.MaxName) {
		return crash.Report{}, errs.Coded(errs.Invalid, CodeForm, "name of the dump, %d bytes: want 1 to %d of printable text", len(f.name), files.MaxName)
	}
	field := func(name string) string { return clip(strings.TrimSpace(f.fields[name])) }
	r := crash.Report{Thing: id, Name: f.name, Program: field(files.CrashProgram), OSVersion: field("robot.os_version"), Version: field("robot.anki_version"),
		BootID: field(files.CrashBootID), Told: field(files.CrashTold) != "", Dump: f.dump, Log: f.log}
	if t := field(files.CrashTime); t != "" {
		at, err := time.Parse(time.RFC3339, t)
		if err != nil {
			return r, errs.Coded(errs.Invalid, CodeForm, "%s %.40q: want a time such as 2026-05-06T12:00:00Z", files.CrashTime, t)
		}
		r.At = at
	}
	return r, nil
}

// Crash serves POST of a crash, and answers as the original's service does.
func (s *Service) Crash(who Caller) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, key, err := s.crash(w, r, who)
		if err != nil {
			s.refuse(w, r, id, err, kithttp.WriteProblem)
			return
		}
		kithttp.WriteJSON(w, http.StatusOK, map[string]string{"response": "ok", "_rxid": key})
	})
}

func (s *Service) crash(w http.ResponseWriter, r *http.Request, who Caller) (id thing.ID, key string, err error) {
	ctx, begun := r.Context(), time.Now()
	leave, err := who.Enter(r)
	if err != nil {
		return "", "", err
	}
	defer leave()
	if id, err = who.Thing(ctx, r, ""); err != nil { // a robot with a certificate is told before it sends the dump
		return id, "", err
	}
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || params["boundary"] == "" {
		return id, "", errs.Coded(errs.Invalid, CodeForm, "content type %.80q: want multipart/form-data with a boundary", r.Header.Get("Content-Type"))
	}
	if id != "" {
		if err := s.admit(ctx, id); err != nil {
			return id, "", err
		}
	}
	if r.ContentLength > maxCrash {
		return id, "", tooLarge(maxCrash)
	}
	select {
	case s.dumps <- struct{}{}:
		defer func() { <-s.dumps }()
	default:
		return id, "", busy()
	}
	body := s.paced(w, r, maxCrash)
	f, err := parseCrash(body, params["boundary"])
	if body.err != nil {
		err = body.err
	}
	if err != nil {
		return id, "", err
	}
	esn := strings.TrimSpace(f.fields["robot.esn"])
	if id == "" {
		if id, err = who.Thing(ctx, r, esn); err == nil && id == "" {
			err = errs.Coded(errs.Invalid, CodeForm, "the form has no part robot.esn")
		}
		if err == nil {
			err = s.admit(ctx, id)
		}
	} else if esn != "" && esn != id.Serial() {
		err = errs.Coded(errs.Invalid, CodeForm, "robot.esn %.40q: the certificate is of %s", esn, id)
	}
	if err != nil {
		return id, "", err
	}
	report, err := f.report(id)
	if err != nil {
		return id, "", err
	}
	report.Held = func(ctx context.Context, store func(context.Context) error) error {
		return s.held(ctx, id, begun, func(ctx context.Context, _ string) error { return store(ctx) })
	}
	err = s.counted(ctx, id, int64(len(f.dump)+len(f.log)), func() (err error) {
		key, err = s.Crashes.Take(ctx, report)
		return err
	})
	return id, key, wrap(err, f.name)
}

func wrap(err error, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("crash %s: %w", name, err)
}
