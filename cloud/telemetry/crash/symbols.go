package crash

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"kennel/cloud/telemetry/crash/minidump"
	"kennel/cloud/telemetry/crash/symfile"
	"kennel/cloud/telemetry/crash/unwind"
	"kennel/infra/blob"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

const symbols = Prefix + "symbols/"

// Bounds: ours.
const (
	MaxSymbols   = 1 << 30 // bytes of a symbol file
	maxThreads   = 64      // whose stacks are walked
	maxSymbolsIn = 1 << 30 // bytes of symbol files that are read for one dump
	maxModules   = 512     // that an analysis lists
)

// Symbols is a symbol file that was uploaded.
type Symbols struct {
	DebugID   string    `json:"debug_id"`
	Module    string    `json:"module"`
	OS        string    `json:"os"`
	CPU       string    `json:"cpu"`
	Size      int64     `json:"size"` // bytes
	Functions int64     `json:"functions"`
	Uploaded  time.Time `json:"uploaded"`
	By        string    `json:"by"`

	Key string `json:"-"` // in the bucket, below symbols
}

// SymbolStore keeps the list of symbol files. Its methods are safe for concurrent use.
type SymbolStore interface {
	// PutSymbols adds a file, or replaces the one of its debug id, whose object the next sweep deletes.
	PutSymbols(ctx context.Context, s Symbols) error
	// Symbols returns the files of debug ids; nil: all, by module and the time of the upload.
	Symbols(ctx context.Context, debugIDs []string) ([]Symbols, error)
	DeleteSymbols(ctx context.Context, debugID string) error
	UnlistedSymbols(ctx context.Context, keys []string) ([]string, error)
	// Stale returns crashes for which symbols were uploaded since they were looked for, by id, those after one.
	Stale(ctx context.Context, after string, limit int) (ids []string, err error)
	// Refuse notes why a crash could not be looked at again; it is stale when symbols come after looked.
	Refuse(ctx context.Context, id, problem string, looked time.Time) error
}

// ErrNoSymbols says that there is no such file.
var ErrNoSymbols = errs.Coded(errs.NotFound, "unknown_symbols", "no symbol file has this debug id")

// Upload stores a symbol file of size bytes, which replaces the one with its debug id. It is checked while it passes.
func (s *Service) Upload(ctx context.Context, body io.Reader, size int64, by string) (Symbols, error) {
	if size < 1 || size > MaxSymbols {
		return Symbols{}, errs.New(errs.Invalid, "the symbol file has %d bytes: want 1 to %d", size, MaxSymbols)
	}
	f := Symbols{Key: strings.ToLower(rand.Text()), Size: size, Uploaded: s.cfg.Now().UTC(), By: by}
	pr, pw := io.Pipe()
	checked := make(chan error, 1)
	var head symfile.Header
	go func() {
		var err error
		head, _, err = symfile.Read(io.TeeReader(io.LimitReader(body, size+1), pw), nil)
		pw.CloseWithError(err) // nil: the end
		checked <- err
	}()
	err := s.cfg.Objects.Put(ctx, symbols+f.Key, pr, size, blob.PutOptions{ContentType: "text/plain"})
	pr.CloseWithError(errors.New("the object store stopped reading"))
	if bad := <-checked; bad != nil && errs.KindOf(bad) == errs.Invalid {
		if err := s.cfg.Objects.Delete(ctx, symbols+f.Key); err != nil { // the store may have had all of it
			s.cfg.Log.WarnContext(ctx, "refused symbols not deleted; left to the next sweep", logging.Err, err)
		}
		return Symbols{}, bad
	}
	if err != nil {
		return Symbols{}, fmt.Errorf("store symbols: %w", err)
	}
	f.DebugID, f.Module, f.OS, f.CPU, f.Functions = head.DebugID, head.Name, head.OS, head.CPU, head.Functions
	return f, s.cfg.Symbols.PutSymbols(ctx, f)
}

// Symbols lists the symbol files.
func (s *Service) Symbols(ctx context.Context) ([]Symbols, error) {
	return s.cfg.Symbols.Symbols(ctx, nil)
}

// Remove deletes a symbol file; names that it gave stay where they are.
func (s *Service) Remove(ctx context.Context, debugID string) error {
	list, err := s.cfg.Symbols.Symbols(ctx, []string{debugID})
	if err == nil && len(list) == 0 {
		err = ErrNoSymbols
	}
	if err != nil {
		return err
	}
	if err := s.cfg.Objects.Delete(ctx, symbols+list[0].Key); err != nil {
		return err
	}
	return s.cfg.Symbols.DeleteSymbols(ctx, debugID)
}

// lookTime is how long a look at one dump may take: symbol files can be large.
const lookTime = 15 * time.Second

// Symbolise looks again at crashes for which there are new symbols, and returns how many. A dump that the parser refuses by now, or that takes longer than lookTime,
// gets a Problem and waits for other symbols; one that cannot be read is tried again by the next run. Neither holds up the others. Any process may run it, at any time.
func (s *Service) Symbolise(ctx context.Context) (n int, err error) {
	var failed []error
	for after := ""; ; {
		ids, err := s.cfg.Symbols.Stale(ctx, after, batch)
		if err != nil {
			return n, errors.Join(append(failed, err)...)
		}
		for _, id := range ids {
			if at, ok := ctx.Deadline(); ok && time.Until(at) < lookTime {
				return n, errors.Join(failed...) // the next run
			}
			if err := s.again(ctx, id); err != nil {
				failed = append(failed, fmt.Errorf("crash %s: %w", id, err))
				continue
			}
			n++
		}
		if len(ids) < batch {
			return n, errors.Join(failed...)
		}
		after = ids[len(ids)-1]
	}
}

// again analyses a stored crash.
func (s *Service) again(ctx context.Context, id string) error {
	c, err := s.cfg.Store.Crash(ctx, id)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return nil // it has ended
	}
	if err != nil {
		return err
	}
	looked := s.cfg.Now()
	lctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	signature, err := s.reread(lctx, &c)
	switch {
	case errors.Is(err, ErrUnknown):
		return s.cfg.Store.Delete(ctx, []string{id}, false)
	case err != nil && lctx.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("analysis of the dump with its symbols took longer than %v", lookTime)
	case errs.KindOf(err) != errs.Invalid && err != nil:
		return err
	}
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "stored dump refused; names in its stacks unchanged", "crash", id, logging.Err, err)
		return s.cfg.Symbols.Refuse(ctx, id, strings.ToValidUTF8(err.Error(), "?"), looked)
	}
	_, err = s.cfg.Store.Put(ctx, c, signature)
	return err
}

// reread studies the dump of a stored crash.
func (s *Service) reread(ctx context.Context, c *Crash) (signature string, err error) {
	body, err := s.Open(ctx, *c, false)
	if err != nil {
		return "", err
	}
	defer body.Close() // only read
	dump, err := io.ReadAll(io.LimitReader(body, MaxDump+1))
	if err != nil {
		return "", err
	}
	return s.study(ctx, c, dump)
}

// ofMinidump converts a minidump, with the symbols that there are.
func (s *Service) ofMinidump(ctx context.Context, d *minidump.Dump) (Analysis, error) {
	a := Analysis{Format: "minidump", Reason: d.Reason(), Program: base(d.Main), At: d.Time, Facts: d.Texts, System: strings.TrimSpace(d.OS + " " + d.OSVersion + ", " + d.CPU.String())}
	if d.Exception != nil {
		a.Address = hex(d.Exception.Address)
	}
	if d.PID != 0 {
		a.Facts["pid"] = fmt.Sprint(d.PID)
	}
	threads := slices.Clone(d.Threads)
	for i, t := range threads {
		if d.Exception != nil && t.ID == d.Exception.Thread {
			threads = slices.Insert(slices.Delete(threads, i, i+1), 0, t)
			break
		}
	}
	a.More, threads = max(0, len(threads)-maxThreads), threads[:min(len(threads), maxThreads)]
	registers := func(t minidump.Thread) minidump.Registers {
		if d.Exception != nil && d.Exception.Thread == t.ID && d.Exception.Context != nil {
			return d.Exception.Context // the thread's own is inside of the handler
		}
		return t.Context
	}
	want := map[*minidump.Module][]uint64{}
	for _, t := range threads {
		unwind.Wanted(d, t, registers(t), want)
	}
	known, err := s.lookUp(ctx, want)
	if err != nil {
		return a, err
	}
	used := map[*minidump.Module]bool{}
	for _, t := range threads {
		out := Thread{ID: uint64(t.ID), Name: t.Name, Crashed: d.Exception != nil && t.ID == d.Exception.Thread}
		frames, more := unwind.Walk(d, t, registers(t), known)
		for _, f := range frames {
			out.Frames = append(out.Frames, frame(f))
			used[f.Module] = true
		}
		if more {
			out.More = 1
		}
		a.Threads = append(a.Threads, out)
	}
	for i := range d.Modules {
		m := &d.Modules[i]
		_, symbols := known[m]
		if len(a.Modules) < maxModules || used[m] {
			a.Modules = append(a.Modules, Module{Name: m.Name, Version: m.Version, DebugID: m.DebugID, Base: hex(m.Base), Size: m.Size, Symbols: symbols, Used: used[m]})
		}
	}
	return a, nil
}

func frame(f unwind.Frame) Frame {
	out := Frame{Offset: hex(f.At), Function: f.Symbol.Func, File: f.Symbol.File, Line: f.Symbol.Line, Trust: f.Trust}
	if f.Module != nil {
		out.Module, out.Offset = base(f.Module.Name), hex(f.At-f.Module.Base)
	}
	return out
}

// lookUp reads the symbol files of modules, each once.
func (s *Service) lookUp(ctx context.Context, want map[*minidump.Module][]uint64) (unwind.Symbols, error) {
	var debugIDs []string
	for m := range want {
		if m.DebugID != "" {
			debugIDs = append(debugIDs, m.DebugID)
		}
	}
	out := unwind.Symbols{}
	if len(debugIDs) == 0 {
		return out, nil
	}
	files, err := s.cfg.Symbols.Symbols(ctx, debugIDs)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b Symbols) int { return cmp.Compare(a.Size, b.Size) })
	left := int64(maxSymbolsIn)
	for _, f := range files {
		if left -= f.Size; left < 0 {
			break
		}
		for m, offsets := range want {
			if m.DebugID != f.DebugID {
				continue
			}
			offsets = symfile.Sorted(offsets)
			said, err := s.readSymbols(ctx, f, offsets)
			if err != nil {
				return nil, err
			}
			if out[m] = map[uint64]symfile.Symbol{}; len(said) == len(offsets) {
				for i, at := range offsets {
					out[m][at] = said[i]
				}
			}
		}
	}
	return out, nil
}

func (s *Service) readSymbols(ctx context.Context, f Symbols, offsets []uint64) ([]symfile.Symbol, error) {
	body, _, err := s.cfg.Objects.Get(ctx, symbols+f.Key, 0, 0)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		return nil, nil // it was replaced or removed just now
	}
	if err != nil {
		return nil, err
	}
	defer body.Close() // only read
	_, said, err := symfile.Read(body, offsets)
	if errs.KindOf(err) == errs.Invalid && err != nil { // the crash is worth keeping without them
		s.cfg.Log.ErrorContext(ctx, "stored symbols are damaged", "debug_id", f.DebugID, logging.Err, err)
		return nil, nil
	}
	return said, err
}
