// Package slot is the A/B device of a robot (VEC-OTA-13): two slots with a system each, of which one runs and an update writes the other, and the
// factory's images. A boot loader (Boot) starts the active slot, counts boots until a system says that it is well, checks the images before it
// starts them, as dm-verity does (VEC-BOOT-10), and falls back to the other slot.
//
// Slots are files, slots/boot_a.img and so on, and slots/state.json says what is in them. That record changes in one piece, so a power cut
// leaves the state before or after a change. An image that the record knows is never written: its slot is closed first.
//
// The life of the slot that does not run, from left to right; the other slot is bootable and good all the while.
//
//	             Begin          Write, Keep           Activate                  Boot             Confirm
//	any system ────────► closed ───────────► written ──────────► active, on trial ────► runs, on trial ────► runs, good
//	                       ▲                                        │                     │
//	                       ├──────────────────────── Withdraw ──────┘                     │
//	                       └── Boot: an image is damaged, or Tries starts without Confirm ┘  (Fall; the other slot runs again)
//
// RollBack is the same fall by the will of the robot or the cloud; until the reboot, Withdraw takes it back.
package slot

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"kennel/edge/update/disk"
	"kennel/ota"
	"kennel/ota/manifest"
)

// Name is a slot.
type Name string

// The slots.
const (
	A Name = "a"
	B Name = "b"
)

// Other returns the other slot.
func (n Name) Other() Name {
	if n == A {
		return B
	}
	return A
}

// Tries is how often a new system is started before it has said that it is well. Our own default.
const Tries = 3

const (
	recordFile = "slots/state.json"
	recordMost = 64 << 10
	mostFell   = 8 // falls that are remembered; our own default
)

// Sum is the size and the hash of an image.
type Sum struct {
	Bytes  int64        `json:"bytes"`
	SHA256 manifest.Sum `json:"sha256"`
}

// Content is a set of images that belong together.
type Content struct {
	Version ota.Version           `json:"version"`
	Wish    string                `json:"wish,omitempty"`   // that it was installed for, so that a system that failed is not installed for it again
	Reboot  bool                  `json:"reboot,omitempty"` // it asks for a reboot at once
	Images  map[manifest.Part]Sum `json:"images"`
}

// Slot is the record of one slot.
type Slot struct {
	Bootable bool    `json:"bootable"`
	Good     bool    `json:"good"`  // its system said that it is well
	Tries    int     `json:"tries"` // starts left until then
	Content  Content `json:"content"`
}

// Fall is a return to the other slot.
type Fall struct {
	Wish string      `json:"wish,omitempty"` // of the system that was left
	For  string      `json:"for,omitempty"`  // the wish that asked for the return; "": the boot loader or the robot decided
	From ota.Version `json:"from"`
	To   ota.Version `json:"to"`
	Why  string      `json:"why"` // for people
}

// Record is the state of the device.
type Record struct {
	V       int           `json:"v"`
	Active  Name          `json:"active"`
	Slots   map[Name]Slot `json:"slots"`
	Factory Content       `json:"factory"`
	Set     Name          `json:"set"`            // of the two sets of factory images, the one that counts
	Fall    *Fall         `json:"fall,omitempty"` // the last one, until a new system is activated
	Fell    []Fall        `json:"fell,omitempty"` // those before, oldest first, at most mostFell
	Wipe    bool          `json:"wipe,omitempty"` // a factory update asks for the owner's data to be erased, until WipeAsked
	Core    bool          `json:"core,omitempty"` // a system here had a real-time core that was well: without one no other is well
}

// Device is the device of a running system. It serves one goroutine.
type Device struct {
	disk    disk.Disk
	running Name
	r       Record
}

// Make writes the record of a device whose slot a holds c, whole and good: what a factory does. Its images must be there.
func Make(d disk.Disk, c, factory Content) error {
	return save(d, Record{Active: A, Set: A, Factory: factory, Slots: map[Name]Slot{A: {Bootable: true, Good: true, Content: c}, B: {}}})
}

// Open returns the device of a system that runs in slot running. A robot without slots is fs.ErrNotExist.
func Open(d disk.Disk, running Name) (*Device, error) {
	r, err := load(d)
	if err != nil {
		return nil, err
	}
	return &Device{disk: d, running: running, r: r}, nil
}

func load(d disk.Disk) (r Record, err error) {
	b, err := disk.Get(d, recordFile, recordMost)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s: %w", recordFile, err)
	}
	if r.V != 1 || r.Active != A && r.Active != B || len(r.Slots) != 2 || r.Set != A && r.Set != B {
		return r, fmt.Errorf("%s: version %d, active %q, %d slots: want version 1, slots a and b", recordFile, r.V, r.Active, len(r.Slots))
	}
	return r, nil
}

func save(d disk.Disk, r Record) error {
	r.V = 1
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return disk.Put(d, recordFile, b)
}

// Running returns the slot that runs and what is in it.
func (d *Device) Running() (Name, Content) { return d.running, d.r.Slots[d.running].Content }

// Record returns the state of the device.
func (d *Device) Record() Record { return d.r }

// Image opens an image of the running system for reading.
func (d *Device) Image(image manifest.Part) (disk.File, error) {
	return d.disk.Open(File(image, d.running))
}

// File names the file of an image in a slot, or in a set of the factory.
func File(image manifest.Part, n Name) string {
	return "slots/" + strings.ToLower(string(image)) + "_" + string(n) + ".img"
}

// change saves the record with what edit makes of it; after an error the device is as before.
func (d *Device) change(edit func(*Record)) error {
	r := d.r
	r.Slots = map[Name]Slot{A: d.r.Slots[A], B: d.r.Slots[B]}
	edit(&r)
	if err := save(d.disk, r); err != nil {
		return ota.Fail(ota.SlotFailed, "slots: %w", err)
	}
	d.r = r
	return nil
}

// Begin marks the slot that does not run unbootable, so that it can be written. The running slot stays as it is, and active.
func (d *Device) Begin() error {
	to := d.running.Other()
	if d.Unproven() {
		return ota.Fail(ota.SlotFailed, "slot %s has the only confirmed system: want the running one confirmed first", to)
	}
	if s := d.r.Slots[to]; d.r.Active == d.running && !s.Bootable && s.Content.Version == "" {
		return nil
	}
	return d.change(func(r *Record) {
		r.Active = d.running
		r.Slots[to] = Slot{}
	})
}

// Write opens an image of the slot that does not run, or of the factory's set that does not count, for writing. Begin was called before.
func (d *Device) Write(image manifest.Part) (disk.File, error) {
	f, err := d.disk.Write(File(image, d.target(image)))
	if err != nil {
		return nil, ota.Fail(ota.DiskFailed, "image %s: %w", image, err)
	}
	return f, nil
}

// Keep syncs and closes an image that was written.
func (d *Device) Keep(f disk.File) error {
	if err := errors.Join(f.Sync(), f.Close(), d.disk.SyncDir("slots")); err != nil {
		return ota.Fail(ota.DiskFailed, "save image: %w", err)
	}
	return nil
}

// Check says what is wrong with images of the slot that does not run, or of the factory's set that does not count.
func (d *Device) Check(c Content) error {
	for image := range c.Images {
		if err := whole(d.disk, Content{Images: map[manifest.Part]Sum{image: c.Images[image]}}, d.target(image)); err != nil {
			return err
		}
	}
	return nil
}

// target is where Write writes an image.
func (d *Device) target(image manifest.Part) Name {
	if factory(image) {
		return d.r.Set.Other()
	}
	return d.running.Other()
}

func factory(image manifest.Part) bool {
	return image == manifest.ABoot || image == manifest.Recovery || image == manifest.RecoveryFS
}

// Activate makes the slot that does not run the one that the next boot starts. Its images were kept.
func (d *Device) Activate(c Content) error {
	to := d.running.Other()
	return d.change(func(r *Record) {
		r.remember()
		r.Active = to
		r.Slots[to] = Slot{Bootable: true, Tries: Tries, Content: c}
	})
}

// remember moves the last fall to those before.
func (r *Record) remember() {
	if r.Fall == nil {
		return
	}
	r.Fell = append(slices.Clone(r.Fell), *r.Fall)
	r.Fell, r.Fall = r.Fell[max(0, len(r.Fell)-mostFell):], nil
}

// Fall returns the fall from the system that was installed for a wish; nil: there was none, or the wish is "".
func (d *Device) Fall(wish string) *Fall {
	falls := d.r.Fell
	if d.r.Fall != nil {
		falls = append(slices.Clone(falls), *d.r.Fall)
	}
	for _, f := range slices.Backward(falls) {
		if wish != "" && f.Wish == wish {
			return &f
		}
	}
	return nil
}

// Waiting describes the system that the next boot starts in place of the running one.
type Waiting struct {
	Version ota.Version
	Wish    string // that it was installed for, or returned to; "": no wish
	Reboot  bool   // it asks for a reboot at once
	Back    bool   // it ran before
}

// Waits returns what the next boot starts; nil: what runs now. recovery says that the recovery system runs.
func (d *Device) Waits(recovery bool) *Waiting {
	other := d.r.Slots[d.running.Other()]
	switch {
	case d.r.Active != d.running && other.Bootable:
		w := &Waiting{Version: other.Content.Version, Wish: other.Content.Wish, Reboot: other.Content.Reboot, Back: other.Good}
		if w.Back {
			if w.Wish, w.Reboot = "", false; d.r.Fall != nil {
				w.Wish = d.r.Fall.For
			}
		}
		return w
	case !recovery && !other.Bootable && !d.r.Slots[d.running].Bootable:
		return &Waiting{Version: d.r.Factory.Version, Wish: d.r.Factory.Wish, Reboot: d.r.Factory.Reboot}
	}
	return nil
}

// Withdraw makes the system that runs the one that the next boot starts, instead of one that waits. An installed system that never ran counts as not
// installed; one that a return would start stays what it was. A factory update cannot be withdrawn.
func (d *Device) Withdraw() error {
	to := d.running.Other()
	switch {
	case d.r.Active == d.running && d.r.Slots[d.running].Bootable:
		return nil
	case !d.r.Slots[to].Bootable:
		return ota.Fail(ota.SlotFailed, "withdraw release %s: a factory update has replaced the systems of both slots", d.r.Factory.Version)
	}
	return d.change(func(r *Record) {
		if r.Active = d.running; !r.Slots[to].Good {
			r.Slots[to] = Slot{}
		}
		if s := r.Slots[d.running]; s.Content.Version != "" { // else the recovery system runs
			if !s.Bootable { // RollBack closed it
				s.Bootable, r.Fall = true, nil
			}
			r.Slots[d.running] = s
		}
	})
}

// ActivateFactory makes the new factory images count and both slots unbootable: the next boot starts the recovery system (VEC-OTA-12).
func (d *Device) ActivateFactory(c Content) error {
	return d.change(func(r *Record) {
		r.remember()
		r.Set, r.Factory, r.Wipe = r.Set.Other(), c, true
		r.Slots = map[Name]Slot{A: {}, B: {}}
	})
}

// Confirm says that the running system is well: it is started from now on however often, and nothing falls back from it. core says that its real-time
// core shows that.
func (d *Device) Confirm(core bool) error {
	s := d.r.Slots[d.running]
	if !s.Bootable || s.Good && (d.r.Core || !core) {
		return nil
	}
	return d.change(func(r *Record) {
		s.Good, r.Core = true, r.Core || core
		r.Slots[d.running] = s
	})
}

// Trial reports whether the running system has not been confirmed.
func (d *Device) Trial() bool {
	s := d.r.Slots[d.running]
	return s.Bootable && !s.Good
}

// Unproven reports whether the other slot holds the only system that was well.
func (d *Device) Unproven() bool {
	return !d.r.Slots[d.running].Good && d.r.Slots[d.running.Other()].Good
}

// WipeAsked says that the owner's data will be erased.
func (d *Device) WipeAsked() error {
	if !d.r.Wipe {
		return nil
	}
	return d.change(func(r *Record) { r.Wipe = false })
}

// RollBack makes the other slot active again, if its system was good, and closes the running one. wish is the wish that asks for it; "": none does.
func (d *Device) RollBack(why, wish string) error {
	old := d.r.Slots[d.running.Other()]
	if !old.Bootable || !old.Good {
		return ota.Fail(ota.SlotFailed, "roll back: slot %s has no confirmed system", d.running.Other())
	}
	return d.change(func(r *Record) {
		s := r.Slots[d.running]
		r.Active, r.Fall = d.running.Other(), &Fall{Wish: s.Content.Wish, For: wish, From: s.Content.Version, To: old.Content.Version, Why: why}
		s.Bootable = false // Withdraw opens it again
		r.Slots[d.running] = s
	})
}

// Started names the system that a boot loader started.
type Started struct {
	Slot     Name
	Version  ota.Version
	Recovery bool // the recovery system, which is in no slot
}

// Boot is the boot loader. It starts the active slot, or else the other one, or else the recovery system; an error means that none of them is whole.
func Boot(d disk.Disk) (Started, error) {
	r, err := load(d)
	if err != nil {
		return Started{}, err
	}
	var whys error
	for _, n := range []Name{r.Active, r.Active.Other()} {
		s := r.Slots[n]
		if !s.Bootable {
			whys = errors.Join(whys, fmt.Errorf("slot %s is not bootable", n))
			continue
		}
		why := whole(d, s.Content, n)
		if why == nil && !s.Good && s.Tries == 0 {
			why = fmt.Errorf("slot %s was started %d times without being confirmed", n, Tries)
		}
		if why != nil {
			whys = errors.Join(whys, why)
			r.remember()
			r.Fall = &Fall{Wish: s.Content.Wish, From: s.Content.Version, Why: why.Error()}
			r.Slots[n] = Slot{}
			if err := save(d, r); err != nil {
				return Started{}, err
			}
			continue
		}
		changed := !s.Good || n != r.Active
		if !s.Good {
			s.Tries--
		}
		if n != r.Active && r.Fall != nil {
			r.Fall.To = s.Content.Version
		}
		if r.Slots[n], r.Active = s, n; changed {
			if err := save(d, r); err != nil {
				return Started{}, err
			}
		}
		return Started{Slot: n, Version: s.Content.Version}, nil
	}
	if why := whole(d, r.Factory, r.Set); why != nil || r.Factory.Version == "" {
		return Started{}, fmt.Errorf("no bootable system: %w", errors.Join(whys, why))
	}
	return Started{Slot: r.Active, Version: r.Factory.Version, Recovery: true}, nil
}

// whole says what is wrong with the images of c.
func whole(d disk.Disk, c Content, n Name) error {
	for image, want := range c.Images {
		f, err := d.Open(File(image, n))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("image %s of slot %s is missing", image, n)
		} else if err != nil {
			return err
		}
		got, err := SumOf(f, want.Bytes)
		_ = f.Close() // read only
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("image %s of slot %s has the hash %s, want %s", image, n, got.SHA256, want.SHA256)
		}
	}
	return nil
}

// SumOf reads the first bytes of an image, as a partition is larger than its image.
func SumOf(f disk.File, bytes int64) (Sum, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(f, 0, bytes))
	return Sum{Bytes: n, SHA256: manifest.Sum(h.Sum(nil))}, err
}
