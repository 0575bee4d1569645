package diskspace

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"kennel/infra/errs"
	"kennel/infra/telemetry"
)

const gib = 1 << 30

// TestLevels: a volume is named before it is full and when it is, with how full and since when; one with room is not.
func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		name       string
		free, size uint64
		want       string // "": nothing to say
		bad        bool
	}{
		{"roomy", 30 * gib, 100 * gib, "", false},
		{"a tenth", 99 * gib / 10, 100 * gib, "volume of data (/srv/kennel) is low: 9.9 GiB of 100 GiB free (9 %) since 2026-11-22 12:00:00 UTC", false},
		{"five GiB", 49 * gib / 10, 40 * gib, "is low: 4.9 GiB of 40 GiB free (12 %)", false},
		{"small and roomy", 3 * gib / 2, 4 * gib, "", false},
		{"small and low", gib / 2, 4 * gib, "is low: 512 MiB of 4 GiB free (12 %)", false},
		{"no room", 10 << 20, 100 * gib, "volume of data (/srv/kennel) is full: 10 MiB of 100 GiB free (0 %) since 2026-11-22 12:00:00 UTC", true},
		{"nothing", 0, 4 * gib, "is full: 0 B of 4 GiB free (0 %)", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
			w := New(map[string]string{"data": "/srv/kennel"}, func(string) (Space, error) { return Space{1, tt.free, tt.size}, nil }, func() time.Time { return now })
			w.look()
			now = now.Add(time.Hour / 4)
			says(t, w, tt.want, tt.bad)
		})
	}
}

func says(t *testing.T, w *Watch, want string, bad bool) {
	t.Helper()
	err := w.Check(t.Context())
	if want == "" {
		if err != nil {
			t.Errorf("got %v, want nothing", err)
		}
		return
	}
	var soon telemetry.Warning
	if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &soon) == bad {
		t.Errorf("got %v (warning %v)\nwant %s (bad %v)", err, errors.As(err, &soon), want, bad)
	}
	if bad && errs.CodeOf(err) != "disk_full" {
		t.Errorf("code %q", errs.CodeOf(err))
	}
}

// TestRate: a volume that fills within a day at its present rate is named though it has much room; what was written in a minute says nothing.
func TestRate(t *testing.T) {
	now, free := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), uint64(900*gib)
	w := New(map[string]string{"objects": "/srv/s3"}, func(string) (Space, error) { return Space{1, free, 1000 * gib}, nil }, func() time.Time { return now })
	says(t, w, "", false)
	for range 29 {
		now, free = now.Add(time.Minute), free-gib
		says(t, w, "", false)
	}
	now, free = now.Add(time.Minute), free-gib // 30 GiB in half an hour: 60 an hour
	says(t, w, "volume of objects (/srv/s3) is low: 870 GiB of 1e+03 GiB free (87 %) since 2026-11-22 12:30:00 UTC; full in about 14 h at the present rate", false)
	for range 90 { // it stops growing
		now = now.Add(time.Minute)
		w.look()
	}
	says(t, w, "", false)
}

// TestOneFileSystem: folders on one file system are one sentence; a folder that is not there is named.
func TestOneFileSystem(t *testing.T) {
	now := time.Now()
	w := New(map[string]string{"data": "/a", "objects": "/b", "postgres": "/c", "gone": "/d"}, func(path string) (Space, error) {
		switch path {
		case "/d":
			return Space{}, os.ErrNotExist
		case "/c":
			return Space{2, 50 * gib, 100 * gib}, nil
		}
		return Space{1, gib, 100 * gib}, nil
	}, func() time.Time { return now })
	says(t, w, "volume of data (/a), objects (/b) is low", false)
	if err := w.Check(t.Context()); strings.Contains(err.Error(), "postgres") || strings.Count(err.Error(), "low") != 1 || !strings.Contains(err.Error(), "not exist") {
		t.Errorf("got %v", err)
	}
}

// TestRefused: who refuses writes is named with the time of the first refusal, and no longer once writes succeed again.
func TestRefused(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	w := New(nil, Stat, func() time.Time { return now })
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = f.Write([]byte("x")) // a real ENOSPC
	if !Full(err) || Full(errors.New("no space left on device")) || !Full(fmt.Errorf("write: %w", syscall.EDQUOT)) {
		t.Fatalf("%v", err)
	}
	if w.Note("mail spool", err) != err || w.Note("mail spool", nil) != nil || w.Note("log", os.ErrClosed) != os.ErrClosed {
		t.Error("an error is changed")
	}
	now = now.Add(50 * time.Second)
	w.Refused("postgres", "could not extend file")
	_ = w.Note("mail spool", err)
	now = now.Add(50 * time.Second)
	says(t, w, "mail spool has refused writes for lack of space since 2026-11-22 12:00:00 UTC: write /dev/full: no space left on device; postgres has refused writes for lack of space since 2026-11-22 12:00:50 UTC: could not extend file", true)
	now = now.Add(11 * time.Second)
	says(t, w, "", false)
}

// TestRefusedUntilFreed: a refusal ends with the full volume that caused it, not a minute later; one without a full volume lasts.
func TestRefusedUntilFreed(t *testing.T) {
	now, space := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Space{Device: 1, Size: 100 << 30}
	w := New(map[string]string{"postgres": "/pg"}, func(string) (Space, error) { return space, nil }, func() time.Time { return now })
	if w.Refused("postgres", "could not extend file"); w.Check(t.Context()) == nil {
		t.Fatal("a full volume is not told")
	}
	space.Free = 90 << 30
	says(t, w, "", false)
	w.Refused("postgres", "could not extend file") // a quota
	says(t, w, "postgres has refused writes for lack of space since 2026-11-22 12:00:00 UTC: could not extend file", true)
}

// TestStat: the system's answer is about the folder that was asked for.
func TestStat(t *testing.T) {
	s, err := Stat(t.TempDir())
	if err != nil || s.Size == 0 || s.Free > s.Size {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := Stat("/no/such/folder"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestFolders(t *testing.T) {
	if got, err := Folders([]string{"postgres=/var/lib/postgresql", "s3=/srv/s3"}); err != nil || len(got) != 2 || got["s3"] != "/srv/s3" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "x", "=/x", "x=y", "x="} {
		if _, err := Folders([]string{bad}); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
