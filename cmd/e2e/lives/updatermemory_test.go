package lives

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/edge/sim"
	"kennel/edge/update/disk"
	"kennel/edge/update/slot"
	"kennel/infra/bench"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/archive/archivetest"
	"kennel/ota/delta"
	"kennel/ota/manifest"
)

// TestUpdaterMemory: an agentd that installs a large image, full and as a delta, never takes more than 32 MB of memory, with all else that it does
// (issue 17, what must hold 6). It downloads over TLS. KENNEL_SOAK does it with 500 MB.
func TestUpdaterMemory(t *testing.T) {
	size := int64(24 << 20)
	if housetest.Soak() {
		size = 500 << 20
	}
	files := t.TempDir()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", fmt.Sprintf("%q", filepath.Base(r.URL.Path)))
		http.ServeFile(w, r, filepath.Join(files, filepath.Base(r.URL.Path)))
	}))
	defer srv.Close()
	dir := filepath.Join(t.TempDir(), "robot")
	b := sim.Birth{Thing: "vic:00e20117", Secret: "unused", OSVersion: "1.0.0.1", ReleaseKey: archivetest.PublicPEM(),
		RootPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})}
	b.Endpoints.Kennel.API, b.Endpoints.Kennel.MQTT = "https://127.0.0.1:1", "ssl://127.0.0.1:1"
	if err := sim.Make(dir, b); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	kernel := func() io.Reader { return bytes.NewReader([]byte("kernel")) }
	pack := func(name string, v, base ota.Version, images map[manifest.Part]io.Reader) {
		t.Helper()
		f, err := os.Create(filepath.Join(files, name))
		if err != nil {
			t.Fatal(err)
		}
		m := &manifest.Manifest{Version: v, Images: []manifest.Image{{Base: base}}}
		if err := archive.Write(f, m, images, archive.WriteOptions{Key: archivetest.Key(), TempDir: files}); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	pack("full.ota", "1.0.0.2", "", map[manifest.Part]io.Reader{manifest.Boot: kernel(), manifest.System: image(size)})
	update := func(name string, version ota.Version) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(dir, "run")); err != nil { // it is in memory
			t.Fatal(err)
		}
		if sys, err := slot.Boot(disk.Of(root)); err != nil || sys.Recovery {
			t.Fatalf("%+v, %v", sys, err)
		}
		if _, _, err := sim.LoadSlot(root); err != nil {
			t.Fatal(err)
		}
		before, peak := updatedBy(t, dir, srv.URL+"/"+name)
		if s, err := slot.Boot(disk.Of(root)); err != nil || s.Version != version {
			t.Errorf("started %+v, %v; want %s", s, err, version)
		} else if dev, err := slot.Open(disk.Of(root), s.Slot); err != nil || dev.Confirm(false) != nil {
			t.Error("not confirmed", err) // as it would be when it reaches its cloud
		}
		t.Logf("%s of an image of %d MB: agentd takes %.1f MB, and at most %.1f MB during the update", name, size/1e6, before/1024, peak/1024)
		if peak > 32<<10 {
			t.Errorf("%s: agentd takes %.1f MB, want at most 32", name, peak/1024)
		}
	}
	update("full.ota", "1.0.0.2")
	old, err := root.Open(slot.File(manifest.System, slot.B))
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	next, err := os.Create(filepath.Join(files, "next.img"))
	if err == nil { // the halves change places, a block comes between them, and a byte of each hundred is another, as where addresses have moved
		_, err = io.Copy(next, &moved{Reader: io.MultiReader(io.NewSectionReader(old, size/2, size/2), io.LimitReader(rand.NewChaCha8([32]byte{9}), size/64),
			io.NewSectionReader(old, 0, size/2))})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	var payload bytes.Buffer
	if err := delta.Make(&payload, delta.Part{Name: string(manifest.System), Base: io.NewSectionReader(old, 0, size),
		New: io.NewSectionReader(next, 0, size+size/64)}); err != nil {
		t.Fatal(err)
	}
	pack("delta.ota", "1.0.0.3", "1.0.0.2", map[manifest.Part]io.Reader{manifest.Changes: &payload})
	update("delta.ota", "1.0.0.3")
}

// image returns bytes that do not compress, so that each of them is downloaded.
func image(size int64) io.Reader { return io.LimitReader(rand.NewChaCha8([32]byte{8}), size) }

// moved changes one byte in a hundred.
type moved struct {
	io.Reader
	at int
}

// Read implements io.Reader.
func (m *moved) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b)
	for i := range n {
		if (m.at+i)%100 == 0 {
			b[i]++
		}
	}
	m.at += n
	return n, err
}

// updatedBy starts an agentd and has it install an archive. It returns the resident memory, in KiB, before the update and at its peak.
func updatedBy(t *testing.T, dir, url string) (before, peak float64) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	agentd := exec.CommandContext(ctx, filepath.Join(housetest.Bin, "agentd"), "-root", dir, "-log-level", "error")
	if err := agentd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		stop()
		_ = agentd.Wait() // it was killed
	}()
	ask := func(args ...string) error {
		out, err := exec.Command(filepath.Join(housetest.Bin, "agentd"), append([]string{"update", "-root", dir}, args...)...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, housetest.Tail(string(out), 3))
		}
		return err
	}
	housetest.Await(t, time.Minute, "agentd answers", func() error { return ask("status") })
	if err := bench.ForgetPeak(agentd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	before, err := bench.PeakRSS(agentd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := ask("start", "-force", url); err != nil {
		t.Fatal(err)
	}
	if peak, err = bench.PeakRSS(agentd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return before, peak
}
