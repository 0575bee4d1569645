package update

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"kennel/edge/update/disktest"
	"kennel/ota"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// TestDowngrade: the command line lets a development robot take an older version, and no other robot (VEC-OTA-10, VEC-OTA-19).
func TestDowngrade(t *testing.T) {
	for _, dev := range []bool{true, false} {
		r := newRobot(t)
		r.unit.Development = dev
		at := r.put("/v.ota", archivetest.Make(manifest.Manifest{Version: "0.5.0.1", Dev: dev}, archivetest.Production(), ""))
		if _, err := r.engine().Run(t.Context(), Request{At: at}); ota.CodeOf(err) != ota.WrongVersion {
			t.Errorf("development %t: %v", dev, err)
		}
		want := ota.WrongVersion
		if dev {
			want = ota.Done
		}
		if _, err := r.engine().Run(t.Context(), Request{At: at, Downgrade: true}); ota.CodeOf(err) != want {
			t.Errorf("development %t, downgrade: %v, want code %d", dev, err, want)
		}
	}
}

// TestContinuedInside: after a power cut within an image, plain or encrypted, only what follows the last checkpoint in it is sent again.
func TestContinuedInside(t *testing.T) {
	for _, password := range []string{"", "swordfish", "vouched"} {
		data := archivetest.Make(manifest.Manifest{}, archivetest.Production(), password)
		with := func(c *Config) {
			if c.Password = []byte(password); password == "vouched" {
				c.Vouch = func(context.Context, *manifest.Manifest) (int64, manifest.Sum, error) {
					return int64(len(data)), sha256.Sum256(data), nil
				}
			}
		}
		for n := 10; ; n++ {
			r := newRobot(t)
			at := r.put("/v.ota", data)
			r.disk.CutAt(n)
			_, err := r.engine(with).Run(t.Context(), Request{At: at})
			if err == nil {
				t.Fatal("no cut after a checkpoint in the second half of an image")
			}
			r.disk.Power(disktest.Torn, "run")
			r.boot()
			c := readCheckpoint(r.disk)
			if c == nil || c.Inside == nil || c.Inside.Bytes < 35_000 {
				continue
			}
			r.forget()
			if _, err := r.engine(with).Run(t.Context(), Request{At: at}); err != nil {
				t.Fatal(err)
			}
			from := c.At
			if password == "vouched" {
				if from = c.Hashed; from == 0 || from > c.At || c.Hash == nil {
					t.Errorf("checkpoint at byte %d, hashed %d", c.At, c.Hashed)
				}
			}
			if most := int64(len(data)) - from; r.sent.Load().Load() > most {
				t.Errorf("%d bytes were sent after byte %d of %d, want %d", r.sent.Load().Load(), c.At, len(data), most)
			}
			if s := r.boot(); s.Version != archivetest.Version {
				t.Errorf("started %+v", s)
			}
			break
		}
	}
}

// TestFaultyArchives: each fault of an archive ends the update with its code, in the status folder and in the event, and the running system stays
// (VEC-OTA-16).
func TestFaultyArchives(t *testing.T) {
	seen := map[ota.Code]bool{}
	for _, fault := range archivetest.Faults() {
		t.Run(fault.Name, func(t *testing.T) {
			r := newRobot(t)
			at := r.put("/v.ota", fault.Archive)
			_, err := r.engine(func(c *Config) { c.Password = []byte(fault.Password) }).Run(t.Context(), Request{At: at})
			if ota.CodeOf(err) != fault.Code {
				t.Fatalf("%v: want code %d", err, fault.Code)
			}
			seen[fault.Code] = true
			s, err := ReadStatus(r.disk)
			if err != nil || s.Code != fault.Code || s.Done || s.Phase != Sleeping || s.Error != fault.Code.Words() || s.BLE() != int(fault.Code) {
				t.Errorf("%+v, %v", s, err)
			}
			last := r.events[len(r.events)-1]
			if last.Name != EventEnd || last.S1 != "fail" || last.I1.N != int64(fault.Code) || last.S3 == "" {
				t.Errorf("event %+v", last)
			}
			if names := r.disk.Names(); slices.Contains(names, manifestFile) || slices.Contains(names, signatureFile) {
				t.Error("the manifest is still there")
			}
			if s := r.boot(); s.Version != archivetest.Running {
				t.Errorf("started %+v", s)
			}
		})
	}
	t.Log("codes", slices.Sorted(maps.Keys(seen)))
}

// TestRefused: an update does not begin, or ends, for reasons that are not the archive's.
func TestRefused(t *testing.T) {
	good := archivetest.Make(manifest.Manifest{}, archivetest.Production(), "")
	low := errors.New("the battery is low")
	url := func(c *Config) {
		e := c.Env()
		e.URL = e.BaseURL + "/v.ota"
		c.Env = func() Env { return e }
	}
	for _, tt := range []struct {
		name   string
		change func(*Config)
		disk   string
		want   ota.Code
		says   string
	}{
		{"battery", func(c *Config) { c.Ready = func() error { return low } }, "", ota.Other, "battery"},
		{"no such archive", func(c *Config) {}, "", ota.BadURL, "404"},
		{"no address", func(c *Config) { c.Env = func() Env { return Env{} } }, "", ota.BadURL, "UPDATE_ENGINE_BASE_URL"},
		{"slots", url, "state.json", ota.SlotFailed, "input/output"},
		{"disk", url, "boot_b", ota.DiskFailed, "input/output"},
		{"status folder", url, Dir, ota.DiskFailed, "input/output"},
		{"not newer", func(c *Config) { url(c); c.Unit.Running = archivetest.Version }, "", ota.WrongVersion, "not newer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRobot(t)
			r.put("/v.ota", good)
			if tt.disk != "" {
				r.disk.Fail(tt.disk, errors.New("input/output error"))
			}
			_, err := r.engine(tt.change).Run(t.Context(), Request{})
			if ota.CodeOf(err) != tt.want || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v: want code %d and %q", err, tt.want, tt.says)
			}
			r.disk.Fail("", nil)
			if s := r.boot(); s.Version != archivetest.Running {
				t.Errorf("started %+v", s)
			}
		})
	}
}

// TestOneAtATime: a second update is refused while one runs, and stopping one leaves the robot as it was.
func TestOneAtATime(t *testing.T) {
	r := newRobot(t)
	r.put("/v.ota", archivetest.Make(manifest.Manifest{}, archivetest.Production(), ""))
	began := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	wait := func(ctx context.Context) (string, error) {
		close(began)
		<-ctx.Done()
		return "", ctx.Err()
	}
	e := r.engine()
	end := make(chan error, 1)
	go func() {
		_, err := e.Run(ctx, Request{At: wait})
		end <- err
	}()
	<-began
	if _, err := e.Run(t.Context(), Request{}); !errors.Is(err, ErrBusy) {
		t.Errorf("%v, want %v", err, ErrBusy)
	}
	stop()
	if err := <-end; ota.CodeOf(err) != ota.Other || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("%v", err)
	}
	if s := r.boot(); s.Version != archivetest.Running {
		t.Errorf("started %+v", s)
	}
}
