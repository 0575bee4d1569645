package slot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kennel/edge/update/disk"
	"kennel/edge/update/disktest"
	"kennel/ota"
	"kennel/ota/manifest"
)

// install writes an image in pieces and keeps it.
func install(open func(manifest.Part) (disk.File, error), keep func(disk.File) error, image manifest.Part, data string) error {
	f, err := open(image)
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	for at := 0; at < len(data); at += 3 {
		if _, err := f.WriteAt([]byte(data[at:min(at+3, len(data))]), int64(at)); err != nil {
			return err
		}
	}
	return keep(f)
}

func content(t *testing.T, v ota.Version, images map[manifest.Part]string) Content {
	t.Helper()
	c := Content{Version: v, Images: map[manifest.Part]Sum{}}
	d := disktest.New()
	for image, data := range images {
		if err := install(func(p manifest.Part) (disk.File, error) { return d.Write(string(p)) }, disk.File.Close, image, data); err != nil {
			t.Fatal(err)
		}
		f, err := d.Open(string(image))
		if err != nil {
			t.Fatal(err)
		}
		if c.Images[image], err = SumOf(f, int64(len(data))); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

const (
	before ota.Version = "1.0.0.1"
	after  ota.Version = "2.0.0.1"
)

// robot returns the disk of a new robot, and what an update and a factory update of it hold.
func robot(t *testing.T) (d *disktest.Disk, next, factory Content) {
	t.Helper()
	d = disktest.New()
	oldImages := map[manifest.Part]string{manifest.Boot: "old kernel", manifest.System: "old system"}
	rescue := map[manifest.Part]string{manifest.ABoot: "loader", manifest.Recovery: "rescue kernel", manifest.RecoveryFS: "rescue system"}
	at := func(image manifest.Part) (disk.File, error) { return d.Write(File(image, A)) }
	for _, set := range []map[manifest.Part]string{oldImages, rescue} {
		for image, data := range set {
			if err := install(at, disk.File.Sync, image, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.SyncDir("slots"); err != nil {
		t.Fatal(err)
	}
	if err := Make(d, content(t, before, oldImages), content(t, "0.9.0.1", rescue)); err != nil {
		t.Fatal(err)
	}
	return d, content(t, after, newImages), content(t, "1.9.0.1", newRescue)
}

var (
	newImages = map[manifest.Part]string{manifest.Boot: "new kernel", manifest.System: "a new system"}
	newRescue = map[manifest.Part]string{manifest.ABoot: "new loader", manifest.Recovery: "new rescue kernel", manifest.RecoveryFS: "new rescue system"}
)

// update does to a device what an updater does.
func update(d disk.Disk, running Name, c Content, images map[manifest.Part]string, factory bool) error {
	dev, err := Open(d, running)
	if err != nil {
		return err
	}
	if err := dev.Begin(); err != nil {
		return err
	}
	for _, image := range []manifest.Part{manifest.Boot, manifest.System, manifest.ABoot, manifest.Recovery, manifest.RecoveryFS} {
		if data, ok := images[image]; ok {
			if err := install(dev.Write, dev.Keep, image, data); err != nil {
				return err
			}
		}
	}
	if factory {
		return dev.ActivateFactory(c)
	}
	return dev.Activate(c)
}

func boot(t *testing.T, d disk.Disk) Started {
	t.Helper()
	s, err := Boot(d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestPowerCuts: whichever call of an update is the last one before the power fails, and whatever the disk makes of it, the robot boots a whole
// system, and the next try ends updated (VEC-OTA-13, VEC-OTA-12).
func TestPowerCuts(t *testing.T) {
	for _, factory := range []bool{false, true} {
		for _, loss := range disktest.Losses {
			t.Run(fmt.Sprintf("factory=%t loss=%d", factory, loss), func(t *testing.T) {
				for n := 1; ; n++ {
					d, next, rescue := robot(t)
					images := newImages
					if factory {
						next, images = rescue, newRescue
					}
					s := boot(t, d)
					d.CutAt(n)
					err := update(d, s.Slot, next, images, factory)
					d.Power(loss)
					if err == nil {
						if n < 15 {
							t.Fatalf("an update of %d calls", n)
						}
						return
					}
					if !errors.Is(err, disktest.ErrCut) {
						t.Fatalf("cut at %d: %v", n, err)
					}
					s = boot(t, d)
					if s.Version != before && s.Version != next.Version {
						t.Fatalf("cut at %d: %+v", n, s)
					}
					if s.Version == before {
						if err := update(d, s.Slot, next, images, factory); err != nil {
							t.Fatalf("cut at %d: %v", n, err)
						}
						s = boot(t, d)
					}
					if s.Version != next.Version || s.Recovery != factory {
						t.Fatalf("cut at %d: started %+v", n, s)
					}
				}
			})
		}
	}
}

// TestPowerCutsAtWithdrawal: the power fails at each call that takes an installed system, or a return, back; the next boot starts a whole system, and the
// one that runs now once the withdrawal has succeeded.
func TestPowerCutsAtWithdrawal(t *testing.T) {
	for _, back := range []bool{false, true} {
		for _, loss := range disktest.Losses {
			for n := 1; ; n++ {
				d, next, _ := robot(t)
				if err := update(d, A, next, newImages, false); err != nil {
					t.Fatal(err)
				}
				running, runs := A, before
				if back {
					running, runs = boot(t, d).Slot, after
				}
				dev, err := Open(d, running)
				if err == nil && back {
					err = errors.Join(dev.Confirm(false), dev.RollBack("too many crashes", "1.0.0.1 today"))
				}
				if err != nil {
					t.Fatal(err)
				}
				d.CutAt(n)
				err = dev.Withdraw()
				d.Power(loss)
				s := boot(t, d)
				if s.Recovery || s.Version != before && s.Version != after || err == nil && s.Version != runs {
					t.Fatalf("back %t, loss %d, cut at %d: started %+v, %v", back, loss, n, s, err)
				}
				if err == nil {
					if n < 4 {
						t.Errorf("a withdrawal of %d calls", n-1)
					}
					break
				}
			}
		}
	}
}

// TestPowerCutsAtBoot: a boot loader that loses power while it counts or falls back starts a whole system next time.
func TestPowerCutsAtBoot(t *testing.T) {
	for _, loss := range disktest.Losses {
		for n := 1; n < 20; n++ {
			d, next, _ := robot(t)
			if err := update(d, A, next, newImages, false); err != nil {
				t.Fatal(err)
			}
			d.CutAt(n)
			for range Tries + 2 { // it never says that it is well, so it falls back
				_, _ = Boot(d) // the power may be cut
			}
			d.Power(loss)
			s := boot(t, d)
			for range Tries {
				s = boot(t, d)
			}
			if s.Version != before {
				t.Fatalf("cut at %d: started %+v", n, s)
			}
		}
	}
}

// TestFallBack: a system that does not start, or is damaged, gives way to the one before it, and the record says why.
func TestFallBack(t *testing.T) {
	damage := func(d disk.Disk) error {
		f, err := d.Write(File(manifest.System, B))
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("X"), 1)
		return err
	}
	confirm := func(d disk.Disk) error {
		dev, err := Open(d, B)
		if err != nil {
			return err
		}
		return dev.Confirm(false)
	}
	back := func(d disk.Disk) error {
		dev, err := Open(d, B)
		if err != nil {
			return err
		}
		return dev.RollBack("5 of 20 robots crashed", "")
	}
	for _, tt := range []struct {
		name  string
		do    []func(disk.Disk) error
		boots int
		want  ota.Version
		why   string
	}{
		{"never well", nil, Tries + 1, before, "started 3 times"},
		{"well", []func(disk.Disk) error{confirm}, Tries + 1, after, ""},
		{"damaged", []func(disk.Disk) error{damage}, 1, before, "image SYSTEM of slot b has the hash"},
		{"well and damaged", []func(disk.Disk) error{confirm, damage}, 1, before, "image SYSTEM of slot b has the hash"},
		{"rolled back", []func(disk.Disk) error{confirm, back}, 1, before, "5 of 20 robots"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, next, _ := robot(t)
			if err := update(d, A, next, newImages, false); err != nil {
				t.Fatal(err)
			}
			for _, do := range tt.do {
				if err := do(d); err != nil {
					t.Fatal(err)
				}
			}
			var s Started
			for range tt.boots {
				s = boot(t, d)
			}
			dev, err := Open(d, s.Slot)
			if err != nil {
				t.Fatal(err)
			}
			fall := dev.Record().Fall
			if s.Version != tt.want || (fall != nil) != (tt.why != "") {
				t.Fatalf("started %+v, fall %+v", s, fall)
			}
			if fall == nil {
				return
			}
			if fall.From != after || fall.To != before || !strings.Contains(fall.Why, tt.why) {
				t.Errorf("fall %+v, want %q", fall, tt.why)
			}
		})
	}
}

// TestWithdraw: what waits for the next boot is named, and can be taken back: an installed system, a return to the one before, and the two of them
// again and again. What no wish names is told as such, and a factory update cannot be taken back.
func TestWithdraw(t *testing.T) {
	d, next, rescue := robot(t)
	next.Wish = "2.0.0.1 yesterday"
	open := func(s Started) *Device {
		t.Helper()
		dev, err := Open(d, s.Slot)
		if err != nil {
			t.Fatal(err)
		}
		return dev
	}
	waits := func(dev *Device, recovery bool, want *Waiting) {
		t.Helper()
		if got := dev.Waits(recovery); (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Fatalf("waits %+v, want %+v", got, want)
		}
	}
	dev := open(boot(t, d))
	waits(dev, false, nil)
	if err := dev.Withdraw(); err != nil {
		t.Errorf("nothing to withdraw: %v", err)
	}
	if err := update(d, A, next, newImages, false); err != nil {
		t.Fatal(err)
	}
	dev = open(Started{Slot: A})
	waits(dev, false, &Waiting{Version: after, Wish: next.Wish})
	if err := dev.Withdraw(); err != nil {
		t.Fatal(err)
	}
	waits(dev, false, nil)
	if s := boot(t, d); s.Version != before || dev.Record().Slots[B].Content.Version != "" {
		t.Fatalf("started %+v, %+v", s, dev.Record())
	}

	// The same system is installed again, runs and is left for the one before it, which is taken back in time.
	if err := update(d, A, next, newImages, false); err != nil {
		t.Fatal(err)
	}
	dev = open(boot(t, d))
	waits(dev, false, nil)
	if err := errors.Join(dev.Confirm(false), dev.RollBack("the cloud asked for it", "1.0.0.1 today")); err != nil {
		t.Fatal(err)
	}
	waits(dev, false, &Waiting{Version: before, Wish: "1.0.0.1 today", Back: true})
	if dev.Fall(next.Wish) == nil {
		t.Error("no fall")
	}
	if err := dev.Withdraw(); err != nil {
		t.Fatal(err)
	}
	waits(dev, false, nil)
	if s := boot(t, d); s.Version != after || dev.Fall(next.Wish) != nil {
		t.Fatalf("started %+v, fell %+v", s, dev.Fall(next.Wish))
	}
	dev = open(Started{Slot: B})
	if err := dev.RollBack("too many crashes", ""); err != nil {
		t.Fatal(err)
	}
	waits(dev, false, &Waiting{Version: before, Back: true})
	if s := boot(t, d); s.Version != before {
		t.Fatalf("started %+v", s)
	}

	// A fall is remembered when another system is installed.
	open(Started{Slot: A})
	other := content(t, "2.0.0.2", newImages)
	if err := update(d, A, other, newImages, false); err != nil {
		t.Fatal(err)
	}
	if dev = open(Started{Slot: A}); dev.Fall(next.Wish) == nil || dev.Fall("2.0.0.2 today") != nil || dev.Fall("") != nil {
		t.Errorf("falls %+v", dev.Record())
	}
	waits(dev, false, &Waiting{Version: "2.0.0.2"})

	if err := dev.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if err := update(d, A, rescue, newRescue, true); err != nil {
		t.Fatal(err)
	}
	dev = open(Started{Slot: A})
	waits(dev, false, &Waiting{Version: rescue.Version, Wish: rescue.Wish})
	if err := dev.Withdraw(); ota.CodeOf(err) != ota.SlotFailed {
		t.Errorf("factory update: %v, want code %d", err, ota.SlotFailed)
	}
	s := boot(t, d)
	if !s.Recovery {
		t.Fatalf("started %+v", s)
	}

	// The recovery system installs into a slot, too.
	dev = open(s)
	waits(dev, true, nil)
	if err := update(d, s.Slot, next, newImages, false); err != nil {
		t.Fatal(err)
	}
	dev = open(s)
	waits(dev, true, &Waiting{Version: after, Wish: next.Wish})
	if err := dev.Withdraw(); err != nil {
		t.Fatal(err)
	}
	waits(dev, true, nil)
	if s := boot(t, d); !s.Recovery {
		t.Errorf("started %+v", s)
	}
}

// TestFallsAreBounded: the record keeps the last falls, and stays small.
func TestFallsAreBounded(t *testing.T) {
	d, next, _ := robot(t)
	for n := range 3 * mostFell {
		next.Wish = fmt.Sprint(n)
		if err := update(d, A, next, newImages, false); err != nil {
			t.Fatal(err)
		}
		for range Tries + 1 {
			boot(t, d)
		}
	}
	dev, err := Open(d, A)
	if err != nil {
		t.Fatal(err)
	}
	if fell := dev.Record().Fell; len(fell) != mostFell || dev.Fall(fmt.Sprint(3*mostFell-1)) == nil || dev.Fall(fmt.Sprint(2*mostFell)) == nil || dev.Fall("0") != nil {
		t.Errorf("%d falls: %+v", len(fell), fell)
	}
}

// TestLastSystemIsKept: a system that has not said that it is well does not overwrite the only one that has.
func TestLastSystemIsKept(t *testing.T) {
	d, next, _ := robot(t)
	if err := update(d, A, next, newImages, false); err != nil {
		t.Fatal(err)
	}
	s := boot(t, d)
	if err := update(d, s.Slot, next, newImages, false); ota.CodeOf(err) != ota.SlotFailed {
		t.Errorf("%v: want code %d", err, ota.SlotFailed)
	}
}

// TestDiskFails: a disk that refuses is told as one, and the running system stays.
func TestDiskFails(t *testing.T) {
	for match, want := range map[string]ota.Code{"state.json": ota.SlotFailed, "system_b": ota.DiskFailed, "boot_b": ota.DiskFailed} {
		d, next, _ := robot(t)
		d.Fail(match, errors.New("input/output error"))
		err := update(d, A, next, newImages, false)
		if err == nil || want == ota.SlotFailed && ota.CodeOf(err) != want {
			t.Errorf("%s: %v", match, err)
		}
		d.Fail("", nil)
		if s := boot(t, d); s.Version != before {
			t.Errorf("%s: started %+v", match, s)
		}
	}
}

// TestNothingToStart: damaged images everywhere are an error that names each.
func TestNothingToStart(t *testing.T) {
	d, _, _ := robot(t)
	for _, name := range d.Names() {
		if strings.HasSuffix(name, ".img") {
			if err := d.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if s, err := Boot(d); err == nil || !strings.Contains(err.Error(), "image") {
		t.Errorf("%+v, %v", s, err)
	}
}

// FuzzRecord: no record makes the boot loader panic or start what is not whole, or a device panic.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"v":1,"active":"a","set":"a","slots":{"a":{"bootable":true,"good":true,"content":{"version":"1.0.0.1"}},"b":{}}}`))
	f.Add([]byte(`{"v":1,"active":"b","set":"b","slots":{"a":{},"c":{}}}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		d := disktest.New()
		if err := disk.Put(d, recordFile, record); err != nil {
			t.Fatal(err)
		}
		for _, running := range []Name{A, B} {
			if dev, err := Open(d, running); err == nil {
				dev.Waits(false)
				dev.Fall("x")
				_ = dev.Withdraw()
			}
		}
		_, _ = Boot(d)
	})
}
