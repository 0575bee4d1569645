package agentapp

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/edge/app/agentapp/recovery"
	"kennel/edge/body/vector/factory/bootparam"
	"kennel/infra/api/commandwire"
	"kennel/infra/sdnotify"
)

// census lists the files below root, except the memory file system run/: by name its mode, time and content.
func census(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == "run" {
			return fs.SkipDir
		}
		if name == "." { // run/ is in it
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		var sum [sha256.Size]byte
		if info.Mode().IsRegular() {
			b, err := root.ReadFile(name)
			if err != nil {
				return err
			}
			sum = sha256.Sum256(b)
		}
		all[name] = fmt.Sprintf("%v %v %x", info.Mode(), info.ModTime(), sum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRecoveryLeavesUserDataAlone: VEC-BOOT-07, VEC-STOR-08: after a recovery boot agentd works on a robot whose user data cannot be
// opened, and changes only the memory file system.
func TestRecoveryLeavesUserDataAlone(t *testing.T) {
	for name, asked := range map[string]func(root *os.Root, cfg *Config) error{
		"by the button": func(root *os.Root, _ *Config) error {
			if err := root.MkdirAll(filepath.Dir(bootparam.File), 0o755); err != nil {
				return err
			}
			return root.WriteFile(bootparam.File, []byte("anki.unbrick=1 quiet\n"), 0o644)
		},
		"by a flag": func(_ *os.Root, cfg *Config) error { cfg.Recovery = true; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			dir, root, _ := newRobot(t, nil)
			sock, addr := notifySocket(t)
			cfg := Config{Root: dir, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Supervisor: sdnotify.Supervisor{Addr: addr, Every: time.Second}}
			// A file in the place of the folder: whatever would open something in it fails.
			if err := root.RemoveAll("data"); err != nil {
				t.Fatal(err)
			}
			if err := root.WriteFile("data", []byte("everything the owner has"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := root.RemoveAll("run"); err != nil { // power came on
				t.Fatal(err)
			}
			if err := asked(root, &cfg); err != nil {
				t.Fatal(err)
			}
			before := census(t, root)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				err := Run(ctx, root, cfg)
				_ = sock.Close() // who waits for a word of it need not any more
				done <- err
			}()
			b := make([]byte, 4096)
			_ = sock.SetReadDeadline(time.Now().Add(time.Minute)) // a closed one fails in Read
			if n, err := sock.Read(b); err != nil || string(b[:n]) != sdnotify.Ready {
				cancel()
				t.Fatalf("heard %q, %v; Run: %v", b[:n], err, <-done)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if after := census(t, root); !maps.Equal(before, after) {
				t.Errorf("it was\n%v\nand is\n%v", before, after)
			}
		})
	}
}

// TestRecoveryIsSaid: the cloud is told of the recovery boot, no data are kept while the owner's consent is unknown, and documents are not
// synchronised.
func TestRecoveryIsSaid(t *testing.T) {
	dir, root, _ := newRobot(t, nil)
	area, err := recovery.Area(root)
	if err != nil {
		t.Fatal(err)
	}
	defer area.Close()
	a := newAgent(t, dir, area, func(c *Config) { c.Recovery, c.Frugal = true, true })
	if got := strings.Join(a.Status().Problems, "; "); !strings.Contains(got, "recovery boot") || !a.Status().Recovery {
		t.Errorf("problems: %q", got)
	}
	if a.events.AllowUpload() {
		t.Error("events are sent")
	}
	if a.Commands()[commandwire.Sync] != nil {
		t.Error("it would synchronise documents")
	}
	a = newAgent(t, dir, root, nil)
	if got := strings.Join(a.Status().Problems, "; "); strings.Contains(got, "recovery") || a.Status().Recovery || !a.events.AllowUpload() ||
		a.Commands()[commandwire.Sync] == nil {
		t.Errorf("a normal boot: problems %q", got)
	}
}
