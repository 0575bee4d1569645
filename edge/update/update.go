// Package update installs releases, as the original's update engine does: it unpacks an archive while it downloads it, checks who signed it and
// every byte of it, writes the slot that does not run, and makes that slot the next one to start (VEC-OTA-14). A power cut at any instant leaves a robot
// that boots a whole system; the next try continues near the byte at which the last one ended, and with the image if its writer left no place in it.
//
// All ways to an update end in Engine.Run: the cloud's wish, the owner's app, the command line.
package update

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"kennel/edge/update/disk"
	"kennel/edge/update/slot"
	"kennel/infra/api/events"
	"kennel/infra/backoff"
	"kennel/infra/logging"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/delta"
	"kennel/ota/manifest"
)

// Events of an update (VEC-OTA-22). Source is update-engine.
const (
	EventStart   = "robot.ota_download_start"   // s1: the address, without what signs it; s2: the running version
	EventStalled = "robot.ota_download_stalled" // i1: bytes that arrived
	EventEnd     = "robot.ota_download_end"     // s1: success or fail; s2: the version; s3: what failed; i1: the code; i2: bytes
)

// ErrBusy: an update runs. ErrWaits: one is installed and waits for the reboot.
var (
	ErrBusy  = errors.New("an update is already running")
	ErrWaits = errors.New("an update is installed and waiting for the reboot")
)

// Config configures an Engine. All but Password, Vouch, Ready, Changed and the times are required.
type Config struct {
	Disk     disk.Disk // the robot's folder
	Device   *slot.Device
	Unit     Unit
	Env      func() Env     // asked at the beginning of each update: an app writes its wish there before it asks
	Key      *rsa.PublicKey // who may sign releases
	Password []byte         // of encrypted images
	Vouch    Voucher        // nil: the signature of an archive suffices, as for original robots
	Client   *http.Client
	Record   func(context.Context, events.Event)
	Ready    func() error             // says why no update may begin now (VEC-OTA-20); nil: nothing prevents one
	Changed  func(Phase, ota.Version) // on each phase; the version is "" until it is known
	Log      *slog.Logger
	Quiet    time.Duration // without data until a connection is given up; 0: 30 s
	Patience time.Duration // without data until the update is given up; 0: 10 min
}

// Engine is made by New. Safe for concurrent use.
type Engine struct {
	cfg   Config
	piece int64      // bytes of an image that are written at once
	keep  int64      // bytes of an image from one checkpoint to the next
	run   sync.Mutex // of one update
	short sync.Mutex // of those who only look or switch; taken before run
}

// New returns an engine. An update that the program before it did not end is over: its error stays in the status folder.
func New(cfg Config) *Engine {
	if cfg.Quiet == 0 {
		cfg.Quiet = 30 * time.Second
	}
	if cfg.Patience == 0 {
		cfg.Patience = 10 * time.Minute
	}
	if cfg.Ready == nil {
		cfg.Ready = func() error { return nil }
	}
	if cfg.Changed == nil {
		cfg.Changed = func(Phase, ota.Version) {}
	}
	e := &Engine{cfg: cfg, piece: 1 << 20, keep: 16 << 20}
	if err := e.tidy(); err != nil {
		cfg.Log.Warn("status of the update not written", logging.Err, err)
	}
	return e
}

// tidy brings the status folder in line with the slots, which alone decide what the next boot starts.
func (e *Engine) tidy() error {
	s, err := ReadStatus(e.cfg.Disk)
	if err != nil {
		return err
	}
	b := e.newBoard()
	if s.Runs() {
		err = b.put(phaseFile, string(Sleeping))
	}
	switch waits := e.waits() != nil; {
	case waits && !s.Done:
		return errors.Join(err, dropCheckpoint(e.cfg.Disk), b.done())
	case s.Done && !waits:
		return errors.Join(err, b.withdrawn())
	}
	return err
}

func (e *Engine) waits() *slot.Waiting { return e.cfg.Device.Waits(e.cfg.Unit.Recovery) }

// Address says where an archive is. It is asked for each connection, because a signed address ends.
type Address func(context.Context) (string, error)

// Request asks for an update.
type Request struct {
	At        Address // nil: where the configuration says
	Wish      string  // that it is for; a Fall from the new system tells it
	Rate      int64   // download at most so many bytes a second; 0: as fast as it goes
	Downgrade bool    // a development robot takes an older version, as from the original's command line (VEC-OTA-19)
}

// Result is a finished update.
type Result struct {
	Version ota.Version
	Reboot  bool // its manifest asks for one at once
	Plain   bool // without release metadata; see Config.Vouch
}

// Status reads how far the update is.
func (e *Engine) Status() (Status, error) { return ReadStatus(e.cfg.Disk) }

// Run looks for an update and installs it. It returns when the update is installed, which the next reboot starts, or with an error that has a code.
// ErrBusy and ErrWaits change nothing.
func (e *Engine) Run(ctx context.Context, r Request) (Result, error) {
	e.short.Lock()
	free := e.run.TryLock()
	e.short.Unlock()
	if !free {
		return Result{}, ErrBusy
	}
	defer e.run.Unlock()
	if e.waits() != nil {
		return Result{}, ErrWaits
	}
	if err := e.cfg.Ready(); err != nil {
		return Result{}, err
	}
	j := &job{Engine: e, ctx: ctx, rate: r.Rate, wish: r.Wish, board: &board{disk: e.cfg.Disk}, env: e.cfg.Env(), unit: e.cfg.Unit}
	j.unit.AllowDowngrade = j.env.AllowDowngrade || r.Downgrade
	err := j.all(r.At)
	j.end(err)
	return Result{Version: j.version, Reboot: j.reboot, Plain: e.cfg.Vouch == nil}, err
}

// Confirm says that the running system is well: from now on no boot falls back from it. core says that its real-time core shows that. Like the next ones it
// does nothing while an update runs, and returns ErrBusy.
func (e *Engine) Confirm(core bool) error {
	return e.device(func(d *slot.Device) error { return d.Confirm(core) })
}

// State describes the releases in the slots of the robot.
type State struct {
	Trial    bool          // the running system has not been confirmed
	Unproven bool          // and the other slot holds the only one that was: nothing is installed until then
	Core     bool          // a system here had a real-time core that was well
	Plain    bool          // updates are installed on their signature alone; see Config.Vouch
	Waits    *slot.Waiting // what the next boot starts; nil: what runs now
	Fall     *slot.Fall    // the return from the system that was installed for the wish; nil: there was none
}

// State returns the state of the slots, with the fall of a wish; "": none.
func (e *Engine) State(wish string) (s State, err error) {
	err = e.device(func(d *slot.Device) error {
		s = State{Trial: d.Trial(), Unproven: d.Unproven(), Core: d.Record().Core, Plain: e.cfg.Vouch == nil, Waits: e.waits(), Fall: d.Fall(wish)}
		return nil
	})
	return s, err
}

// RollBack makes the system before the running one start at the next boot, for a wish, if the other slot still has its version v; "" is any version.
func (e *Engine) RollBack(v ota.Version, why, wish string) error {
	return e.device(func(d *slot.Device) error {
		running, _ := d.Running()
		if has := d.Record().Slots[running.Other()].Content.Version; v != "" && has != v {
			return ota.Fail(ota.SlotFailed, "roll back to %s: the other slot holds %q", v, has)
		}
		if err := d.RollBack(why, wish); err != nil {
			return err
		}
		return e.newBoard().done() // the reboot is waited for, as after an update
	})
}

// Withdraw makes what runs now what the next boot starts, in place of the system that waits for it.
func (e *Engine) Withdraw() error {
	return e.device(func(d *slot.Device) error {
		if err := d.Withdraw(); err != nil {
			return err
		}
		if err := e.newBoard().withdrawn(); err != nil { // the slots decide
			e.cfg.Log.Warn("status of the update not written", logging.Err, err)
		}
		return nil
	})
}

func (e *Engine) newBoard() *board { return &board{disk: e.cfg.Disk, said: map[string]string{}} }

func (e *Engine) device(do func(*slot.Device) error) error {
	e.short.Lock()
	defer e.short.Unlock()
	if !e.run.TryLock() {
		return ErrBusy
	}
	defer e.run.Unlock()
	return do(e.cfg.Device)
}

// job is one update.
type job struct {
	*Engine
	ctx     context.Context
	rate    int64
	wish    string
	env     Env
	unit    Unit
	board   *board
	d       *download
	whole   *whole
	version ota.Version // "" until the manifest was read
	reboot  bool
	stalled time.Time // when it was told last
}

// all is the process of the original, in its order (VEC-OTA-14).
func (j *job) all(at Address) error {
	if err := j.board.clear(); err != nil {
		return err
	}
	j.cfg.Changed(Starting, "")
	addresses := []Address{at}
	if at == nil {
		urls, err := j.env.Addresses(j.unit)
		if err != nil {
			return err
		}
		addresses = nil
		for _, u := range urls {
			addresses = append(addresses, func(context.Context) (string, error) { return u, nil })
		}
	}
	var err error
	for n, a := range addresses {
		// A missing delta, or one that does not fit, is no reason to stay: the whole release is next.
		if err = j.from(a); err == nil || n == len(addresses)-1 || !another(err) {
			return err
		}
		j.cfg.Log.InfoContext(j.ctx, "update unusable; trying the next address", logging.Err, err)
	}
	return err
}

// another reports whether the whole release may succeed where a delta did not.
func another(err error) bool {
	switch ota.CodeOf(err) {
	case ota.BadURL, ota.WrongBase, ota.BadDelta:
		return true
	}
	return false
}

// from installs the archive at an address.
func (j *job) from(at Address) error {
	resume := readCheckpoint(j.cfg.Disk)
	if resume != nil && j.cfg.Vouch != nil && resume.Hash == nil {
		resume = nil
	}
	err := j.install(at, resume)
	if err != nil && resume != nil && j.ctx.Err() == nil && ota.CodeOf(err) != ota.TimedOut && ota.CodeOf(err) != ota.BadURL {
		j.cfg.Log.InfoContext(j.ctx, "update not resumed; starting over", logging.Err, err)
		err = j.install(at, nil)
	}
	return err
}

func (j *job) install(at Address, resume *checkpoint) error {
	if resume == nil {
		if err := dropCheckpoint(j.cfg.Disk); err != nil {
			return err
		}
		resume = &checkpoint{}
	}
	j.d = &download{ctx: j.ctx, client: j.cfg.Client, rate: j.rate, quiet: j.cfg.Quiet, patience: j.cfg.Patience, stalled: j.stall,
		address: func(ctx context.Context) (string, error) { return at(ctx) }, pause: backoff.Pause{Min: time.Second, Max: 30 * time.Second}}
	defer j.d.close()
	if err := j.phase(Downloading); err != nil {
		return err
	}
	var err error
	if j.whole, err = newWhole(j.d, resume, j.cfg.Vouch != nil, j.piece/4); err != nil {
		return err
	}
	if err := j.d.open(j.whole.at, resume.Tag); err != nil {
		return err
	}
	j.record(events.Event{Name: EventStart, S1: j.d.name, S2: string(j.unit.Running)})
	if j.d.size > 0 {
		if err := j.board.number(downloadFile, j.d.size); err != nil {
			return err
		}
	}
	if _, err := io.CopyN(io.Discard, j.whole, max(resume.At-j.whole.at, 0)); err != nil {
		return err
	}
	a, err := archive.Open(j.whole, archive.Options{Key: j.cfg.Key, Password: j.cfg.Password, Resume: resume.point()})
	if err != nil {
		return err
	}
	m := a.Manifest
	j.version = m.Version
	if err := errors.Join(j.board.put(manifestFile, string(a.Raw)), j.board.put(signatureFile, string(a.Signature))); err != nil {
		return err
	}
	offer := Offer{Version: m.Version, Development: m.Dev, QSN: m.QSN, Factory: m.Kind() == manifest.Factory}
	if m.Kind() == manifest.Delta {
		offer.Base = m.Images[0].Base
	} else if err := j.board.number(sizeFile, total(m)); err != nil {
		return err
	}
	if err := j.unit.Allow(offer); err != nil {
		return err
	}
	if j.cfg.Vouch != nil {
		length, sum, err := j.cfg.Vouch(j.ctx, m)
		if err == nil {
			err = j.whole.must(length, sum, j.d.size)
		}
		if err != nil {
			return err
		}
	}
	j.cfg.Changed(Downloading, m.Version)
	if err := j.cfg.Device.Begin(); err != nil {
		return err
	}
	c := slot.Content{Version: m.Version, Wish: j.wish, Reboot: m.Reboot, Images: map[manifest.Part]slot.Sum{}}
	if err := j.images(a, resume.Image, &c); err != nil {
		return err
	}
	if err := j.whole.check(); err != nil {
		return err
	}
	return j.activate(m, c)
}

func total(m *manifest.Manifest) (n int64) {
	for _, i := range m.Images {
		n += i.Bytes
	}
	return n
}

// images writes every image of the archive that no earlier try has written, and says in c what they are.
func (j *job) images(a *archive.Reader, done int, c *slot.Content) error {
	for _, i := range a.Manifest.Images[:done] {
		c.Images[i.Part] = slot.Sum{Bytes: i.Bytes, SHA256: i.SHA256}
	}
	if err := j.cfg.Device.Check(*c); err != nil { // of the earlier try
		return ota.Fail(ota.NotAuthentic, "%w", err)
	}
	for {
		i, err := a.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if i.Part == manifest.Changes {
			err = j.delta(a, i, c)
		} else {
			err = j.image(a, i, done)
			c.Images[i.Part] = slot.Sum{Bytes: i.Bytes, SHA256: i.SHA256}
		}
		if err != nil {
			return err
		}
		if done++; j.d.tag == "" || i.Part == manifest.Changes {
			continue // nothing says that the archive will be the same after a reboot; what a delta has written it finds by itself
		}
		if err := j.keepPlace(&checkpoint{At: a.Offset(), Tag: j.d.tag, Raw: a.Raw, Signature: a.Signature, Image: done}); err != nil {
			return err
		}
	}
}

// image writes one image to its partition, synced. An earlier try may have written its beginning; done images are before it.
func (j *job) image(a *archive.Reader, i *archive.Image, done int) error {
	f, err := j.cfg.Device.Write(i.Part)
	if err != nil {
		return err
	}
	at := i.Continues()
	kept := at
	if at > 0 {
		if err := i.Continue(f); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	for buf := make([]byte, min(j.piece, i.Bytes+1)); ; {
		n, err := io.ReadFull(i, buf)
		if n > 0 {
			if _, err := f.WriteAt(buf[:n], at); err != nil {
				return errors.Join(ota.Fail(ota.DiskFailed, "image %s at byte %d: %w", i.Part, at, err), f.Close())
			}
			at += int64(n)
			err := j.progress(a.Consumed())
			if inside, offset, ok := i.Mark(); err == nil && ok && inside.Bytes-kept >= j.keep && j.d.tag != "" {
				if err = f.Sync(); err == nil {
					kept = inside.Bytes
					err = j.keepPlace(&checkpoint{At: offset, Tag: j.d.tag, Raw: a.Raw, Signature: a.Signature, Image: done, Inside: &inside})
				}
			}
			if err != nil {
				return errors.Join(ota.Fail(ota.DiskFailed, "image %s at byte %d: %w", i.Part, at, err), f.Close())
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF { // of ReadFull: errors of the image have a code around them
			break
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return j.cfg.Device.Keep(f)
}

// delta makes the new images of what runs and the changes in i. An image without changes is copied.
func (j *job) delta(a *archive.Reader, i *archive.Image, c *slot.Content) (err error) {
	open := map[manifest.Part]disk.File{}
	var bases []disk.File
	defer func() {
		for _, f := range bases {
			_ = f.Close() // read only
		}
		if err != nil {
			for _, f := range open {
				_ = f.Close() // err says more
			}
		}
	}()
	_, runs := j.cfg.Device.Running()
	pair := func(part manifest.Part) (base, target disk.File, err error) {
		if _, ok := runs.Images[part]; !ok {
			return nil, nil, ota.Fail(ota.BadDelta, "delta for image %.20q, which the running system does not have", part)
		}
		if base, err = j.cfg.Device.Image(part); err != nil {
			return nil, nil, ota.Fail(ota.DiskFailed, "image %s of the running system: %w", part, err)
		}
		bases = append(bases, base)
		if target, err = j.cfg.Device.Write(part); err == nil {
			open[part] = target
		}
		return base, target, err
	}
	_, err = delta.Apply(&watched{i, func() error { return j.progress(a.Consumed()) }}, func(m delta.Image) (io.ReaderAt, io.WriterAt, error) {
		part := manifest.Part(m.Name)
		base, target, err := pair(part)
		c.Images[part] = slot.Sum{Bytes: m.New.Size, SHA256: m.New.SHA256}
		return base, target, err
	})
	if err == nil {
		_, err = io.Copy(io.Discard, i) // to its end, where its hash is checked
	}
	if err != nil {
		return err
	}
	for part, sum := range runs.Images {
		if _, changed := c.Images[part]; changed {
			continue
		}
		base, target, err := pair(part)
		if err == nil {
			_, err = io.Copy(io.NewOffsetWriter(target, 0), io.NewSectionReader(base, 0, sum.Bytes))
		}
		if err != nil {
			return ota.Fail(ota.DiskFailed, "copy image %s: %w", part, err)
		}
		c.Images[part] = sum
	}
	for part, f := range open {
		delete(open, part)
		if err := j.cfg.Device.Keep(f); err != nil {
			return err
		}
	}
	return nil
}

// watched calls did after each read.
type watched struct {
	r   io.Reader
	did func() error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		if err := w.did(); err != nil {
			return n, err
		}
	}
	return n, err
}

// activate makes the new images the ones that start.
func (j *job) activate(m *manifest.Manifest, c slot.Content) error {
	activate := j.cfg.Device.Activate
	if m.Kind() == manifest.Factory {
		activate = j.cfg.Device.ActivateFactory
		if err := j.board.put(wipeFile, ""); err != nil {
			return err
		}
	}
	if err := activate(c); err != nil {
		return err
	}
	// From here on the new system starts at the next boot, whatever else fails.
	j.reboot = m.Reboot
	if err := errors.Join(dropCheckpoint(j.cfg.Disk), j.board.done()); err != nil {
		j.cfg.Log.WarnContext(j.ctx, "status of the update not written", logging.Err, err)
	}
	return nil
}

// end tells how it ended. The status folder keeps the code; it is in memory, so a disk that refuses even that changes nothing for the slots.
func (j *job) end(err error) {
	e := events.Event{Name: EventEnd, S1: "success", S2: string(j.version)}
	if j.d != nil {
		e.I2 = events.Num(j.d.at)
	}
	if err != nil {
		code := int64(ota.CodeOf(err))
		e.S1, e.S3, e.I1 = "fail", err.Error(), events.Num(code)
		if err := errors.Join(j.board.put(errorFile, strconv.FormatInt(code, 10)), j.cfg.Disk.Remove(manifestFile), j.cfg.Disk.Remove(signatureFile)); err != nil {
			j.cfg.Log.WarnContext(j.ctx, "status of the update not written", logging.Err, err)
		}
	}
	j.record(e)
	if err := j.phase(phaseOf(err)); err != nil {
		j.cfg.Log.WarnContext(j.ctx, "status of the update not written", logging.Err, err)
	}
}

func phaseOf(err error) Phase {
	if err != nil {
		return Sleeping
	}
	return Finished
}

func (j *job) phase(p Phase) error {
	j.cfg.Changed(p, j.version)
	return j.board.put(phaseFile, string(p))
}

func (j *job) progress(n int64) error { return j.board.number(progressFile, n) }

// stall is called whenever a connection is given up; it is told once a minute.
func (j *job) stall(at int64) {
	if now := time.Now(); now.Sub(j.stalled) > time.Minute {
		j.stalled = now
		j.record(events.Event{Name: EventStalled, I1: events.Num(at)})
	}
}

func (j *job) record(e events.Event) {
	e.Source = "update-engine"
	j.cfg.Record(context.WithoutCancel(j.ctx), e)
}

// checkpoint is where an update continues after a reboot. A delta, which is small, is downloaded from its start.
type checkpoint struct {
	At        int64           `json:"at"`    // offset in the archive
	Tag       string          `json:"tag"`   // of the server for this archive
	Image     int             `json:"image"` // the next one
	Raw       []byte          `json:"manifest"`
	Signature []byte          `json:"signature"`
	Inside    *archive.Inside `json:"inside,omitempty"` // of that image; nil: at its beginning
	Hashed    int64           `json:"hashed,omitempty"` // bytes of the archive that are in Hash, at most At
	Hash      []byte          `json:"hash,omitempty"`   // state of the SHA-256
}

const checkpointFile = "data/update-engine/checkpoint.json"

func (c *checkpoint) point() *archive.Point {
	if c.At == 0 {
		return nil
	}
	return &archive.Point{Raw: c.Raw, Signature: c.Signature, Images: c.Image, At: c.At, Inside: c.Inside}
}

func (j *job) keepPlace(c *checkpoint) error {
	j.whole.keep(c)
	return c.write(j.cfg.Disk)
}

func (c *checkpoint) write(d disk.Disk) error {
	b, err := json.Marshal(c)
	if err == nil {
		err = disk.Put(d, checkpointFile, b)
	}
	if err != nil {
		return ota.Fail(ota.DiskFailed, "update: %w", err)
	}
	return nil
}

// readCheckpoint returns nil if there is none that can be used.
func readCheckpoint(d disk.Disk) *checkpoint {
	b, err := disk.Get(d, checkpointFile, 64<<10)
	if err != nil {
		return nil
	}
	var c checkpoint
	if json.Unmarshal(b, &c) != nil || c.At <= 0 || c.Tag == "" {
		return nil
	}
	return &c
}

func dropCheckpoint(d disk.Disk) error {
	f, err := d.Open(checkpointFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err == nil {
		_ = f.Close() // read only
	}
	if err := errors.Join(d.Remove(checkpointFile), d.SyncDir(path.Dir(checkpointFile))); err != nil {
		return ota.Fail(ota.DiskFailed, "update: %w", err)
	}
	return nil
}

// withoutQuery is an address that may be told: what comes after the question mark may be a signature.
func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}
