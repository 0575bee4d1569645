package artifact

import (
	"bufio"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/logging"
	"kennel/infra/thing"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/delta"
	"kennel/ota/manifest"
	"kennel/ota/swu"
)

// MaxSize bounds an archive: one request of S3 has at most so many bytes.
const MaxSize = 5 << 30

// Upload is an archive that comes.
type Upload struct {
	Species thing.Species
	SHA256  string      // that it must have, hex
	Version ota.Version // of a file for SWUpdate, which does not say it itself; else ""
	Size    int64
	Body    io.Reader
	Notes   string // of the release, if it is not known yet
	By      string
	// Audit writes the line of the audit log, once manifest and signature are good. The upload ends with its error.
	Audit func(ctx context.Context, action, object, detail string) error
}

func (u Upload) check() error {
	if b, err := hex.DecodeString(u.SHA256); err != nil || len(b) != sha256.Size || hex.EncodeToString(b) != u.SHA256 {
		return errs.New(errs.Invalid, "sha256 %.80q: want the SHA-256 of the archive, 64 lower-case hex digits", u.SHA256)
	}
	if err := checkSpecies(u.Species); err != nil {
		return err
	}
	if u.Size <= 0 || u.Size > MaxSize {
		return errs.New(errs.Invalid, "archive of %d bytes: want its length in Content-Length, 1 to %d", u.Size, int64(MaxSize))
	}
	return nil
}

// Upload verifies and keeps an archive while it comes, and makes its release known. An archive that is kept already is not read again. The error of one that
// robots would refuse is Invalid, with the code archive_NNN and the robots' code for NNN, and nothing of it is kept.
func (s *Service) Upload(ctx context.Context, u Upload) (Artifact, error) {
	if err := u.check(); err != nil {
		return Artifact{}, err
	}
	if a, err := s.Store.Get(ctx, u.Species, u.SHA256); errs.KindOf(err) != errs.NotFound || err == nil {
		return a, err
	}
	body := bufio.NewReader(u.Body)
	if start, _ := body.Peek(6); swu.Is(start) { // what cannot be read is found out below
		return s.uploadSWU(ctx, u, body)
	}
	if u.Version != "" {
		return Artifact{}, errs.New(errs.Invalid, "version %.40q: want none, because the manifest of the archive has one", u.Version)
	}
	if len(s.Keys) == 0 {
		return Artifact{}, errs.Coded(errs.Unavailable, "no_release_keys", "no key to verify releases with; set releases.keys")
	}
	p := passing{sum: sha256.New()}
	r, err := archive.Open(io.TeeReader(body, &p), archive.Options{Unverified: true, Password: s.Password})
	if err == nil {
		err = s.signed(r)
	}
	if err != nil {
		return Artifact{}, refusal(err)
	}
	m := r.Manifest
	a := Artifact{Species: u.Species, Version: m.Version, Kind: m.Kind(), Base: m.Images[0].Base, QSN: m.QSN, Dev: m.Dev, Size: u.Size, SHA256: u.SHA256, By: u.By, Manifest: m}
	if err := s.free(ctx, a); err != nil {
		return a, err
	}
	if err := u.Audit(ctx, AuditUpload, string(a.Species), a.line()); err != nil {
		return a, err
	}
	if err := s.store(ctx, a, func() error { return verify(r) }, &p); err != nil {
		return a, err
	}
	return s.keep(ctx, a, u.Notes)
}

// uploadSWU is Upload for a file for SWUpdate. The device judges who signed it.
func (s *Service) uploadSWU(ctx context.Context, u Upload, body io.Reader) (Artifact, error) {
	a := Artifact{Species: u.Species, Version: u.Version, Kind: SWU, Size: u.Size, SHA256: u.SHA256, By: u.By, Manifest: &manifest.Manifest{Version: u.Version}}
	if _, err := ota.ParseVersion(string(u.Version)); err != nil {
		return a, errs.New(errs.Invalid, "version: give one, because a file for SWUpdate need not contain it: %w", err)
	}
	if err := s.free(ctx, a); err != nil {
		return a, err
	}
	if err := u.Audit(ctx, AuditUpload, string(a.Species), a.line()); err != nil {
		return a, err
	}
	sum1, sum5 := sha1.New(), md5.New() // what clients compare, beside TLS and the signature
	p := passing{sum: sha256.New()}
	if err := s.store(ctx, a, func() error { return swu.Check(io.TeeReader(body, io.MultiWriter(&p, sum1, sum5))) }, &p); err != nil {
		return a, err
	}
	a.SHA1, a.MD5 = hex.EncodeToString(sum1.Sum(nil)), hex.EncodeToString(sum5.Sum(nil))
	return s.keep(ctx, a, u.Notes)
}

// keep makes an archive and its release known, once its object is there.
func (s *Service) keep(ctx context.Context, a Artifact, notes string) (Artifact, error) {
	err := s.Add(ctx, ota.Release{Species: a.Species, Version: a.Version, Notes: notes})
	if err != nil && errs.KindOf(err) != errs.Conflict {
		return a, err
	}
	kept, err := s.Store.Add(ctx, a, func(ctx context.Context) error {
		_, err := s.Objects.Head(ctx, a.Key())
		if errs.KindOf(err) == errs.NotFound { // swept at this moment as an orphan of an earlier upload
			return errs.RetryLater(time.Second, "upload it again", err)
		}
		return err
	})
	if errs.KindOf(err) == errs.Conflict {
		return kept, errors.Join(err, s.Store.Unless(ctx, a.Key(), func(ctx context.Context) error { return s.Objects.Delete(ctx, a.Key()) }))
	}
	if err == nil && s.Added != nil {
		if err := s.Added(ctx); err != nil { // it hears again within a minute
			s.Log.WarnContext(ctx, "release metadata not published after an upload", logging.Err, err)
		}
	}
	return kept, err
}

// Title names an archive within its release.
func (a Artifact) Title() string {
	switch {
	case a.Kind == manifest.Delta:
		return "delta from " + string(a.Base)
	case a.QSN != "":
		return fmt.Sprintf("%s for %s", a.Kind, a.QSN)
	}
	return string(a.Kind)
}

// line is the detail of a line in the audit log.
func (a Artifact) line() string { return fmt.Sprint(a.Version, " ", a.Title(), " ", a.SHA256[:16]) }

// signed reports whether one of the keys signed the manifest.
func (s *Service) signed(r *archive.Reader) (err error) {
	for _, key := range s.Keys {
		if err = manifest.Verify(key, r.Raw, r.Signature); err == nil {
			return nil
		}
	}
	return err
}

// free refuses an archive whose place in the release another one has, before all of it was sent.
func (s *Service) free(ctx context.Context, a Artifact) error {
	list, err := s.Store.List(ctx, a.Species, a.Version)
	for _, b := range list {
		if b.Kind == a.Kind && b.Base == a.Base && b.QSN == a.QSN && b.SHA256 != a.SHA256 {
			return Taken(a)
		}
	}
	return err
}

// Taken is the error of an archive whose place another one has.
func Taken(a Artifact) error {
	return errs.Coded(errs.Conflict, "archive_exists", "release %s of %s has another archive of this kind (%s); a changed archive needs a new version", a.Version, a.Species, a.Title())
}

// store sends the archive on to the object store while verify reads it through p. The last byte is sent when all is verified; the store keeps nothing of a body that is cut.
func (s *Service) store(ctx context.Context, a Artifact, verify func() error, p *passing) error {
	in, out := io.Pipe()
	stored := make(chan error, 1) // the one result
	go func() {
		digest, _ := hex.DecodeString(a.SHA256) // checked
		_, err := s.Objects.PutOnce(ctx, a.Key(), in, a.Size, blob.PutOptions{ContentType: "application/octet-stream"}, blob.Digests{SHA256: digest})
		_ = in.CloseWithError(errStopped) // ends the verification; it never fails
		stored <- err
	}()
	p.to = out
	err := verify()
	if sum := hex.EncodeToString(p.sum.Sum(nil)); err == nil && sum != a.SHA256 {
		err = errs.New(errs.Invalid, "the archive has SHA-256 %s, want %s; it was damaged in transfer, or is another file", sum, a.SHA256)
	}
	if err == nil {
		err = p.release()
	}
	_ = out.CloseWithError(err) // nil is io.EOF
	if put := <-stored; err == nil || errors.Is(err, errStopped) {
		return put
	}
	return refusal(err)
}

var errStopped = errors.New("the object store stopped reading")

// verify reads an archive to its end. The changes of a delta must be such as a robot can apply to the right base.
func verify(r *archive.Reader) error {
	for {
		image, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && r.Manifest.Kind() == manifest.Delta {
			_, err = delta.Inspect(image)
		}
		if err == nil {
			_, err = io.Copy(io.Discard, image)
		}
		if err != nil {
			return err
		}
	}
}

// refusal says why an archive was not taken.
func refusal(err error) error {
	if f, ok := errors.AsType[*ota.Failure](err); ok {
		return errs.Coded(errs.Invalid, fmt.Sprintf("archive_%d", f.Code), "archive refused; robots would fail with code %d (%s): %w", f.Code, f.Code.Words(), f.Err)
	}
	if errs.KindOf(err) == errs.Internal {
		return errs.New(errs.Invalid, "the upload broke off: %w", err)
	}
	return err
}

// passing sends on what is written to it, all but the last byte, once it has a place to send it to. Until then it keeps it: that is the manifest.
type passing struct {
	to   io.Writer
	sum  hash.Hash
	held []byte
}

// Write implements io.Writer.
func (p *passing) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	p.sum.Write(b)
	if p.to == nil && len(p.held) < maxHeld {
		p.held = append(p.held, b...)
		return len(b), nil
	}
	if p.to == nil {
		return 0, ota.Fail(ota.BadArchive, "no manifest in the first %d bytes", maxHeld)
	}
	if err := p.release(); err != nil {
		return 0, err
	}
	p.held = append(p.held, b[len(b)-1])
	_, err := p.to.Write(b[:len(b)-1])
	return len(b), err
}

// maxHeld bounds what may come before the manifest is complete: a tar may have any number of extended headers.
const maxHeld = 4 << 20

// release sends on what is kept.
func (p *passing) release() error {
	_, err := p.to.Write(p.held)
	p.held = p.held[:0]
	return err
}
