package archive_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"kennel/infra/bench"
	"kennel/ota/archive"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// BenchmarkArchiveBesidePipe verifies an encrypted archive and writes its image, beside a pipe of openssl, gzip and dd, which decrypts and writes the same
// image without verifying it: at least its rate is wanted (issue 17, what must hold 6).
func BenchmarkArchiveBesidePipe(b *testing.B) { archiveBesidePipe(b) }

func TestArchiveBesidePipe(t *testing.T) { archiveBesidePipe(t) }

func archiveBesidePipe(tb testing.TB) {
	size := bench.Part(tb, int64(500_000_000))
	dir := tb.TempDir()
	program, err := os.ReadFile("/proc/self/exe") // an image is mostly programs
	if err != nil {
		tb.Fatal(err)
	}
	images := map[manifest.Part]io.Reader{manifest.Boot: newNoise(1), manifest.System: &noise{block: program, n: size}}
	f, err := os.Create(filepath.Join(dir, "bench.ota"))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	o := archive.WriteOptions{Key: archivetest.Key(), Password: []byte("swordfish"), TempDir: dir}
	if err := archive.Write(f, &manifest.Manifest{Version: archivetest.Version}, images, o); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ota.pas"), []byte("swordfish\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", dir, "-xf", f.Name()).CombinedOutput(); err != nil {
		tb.Fatalf("%v\n%s", err, out)
	}
	rate := func(began time.Time) float64 { return float64(size) / 1e6 / time.Since(began).Seconds() }
	bench.Beside(tb, bench.Line{Name: "archive", Unit: "MB/s", Bound: 1,
		Note: fmt.Sprintf("image of %d MB, encrypted: verified and written; reference: openssl | gzip -dc | dd, which verify nothing", size/1e6)},
		func(context.Context) (float64, error) {
			began := time.Now()
			if _, err := f.Seek(0, io.SeekStart); err != nil {
				return 0, err
			}
			a, err := archive.Open(f, options("swordfish"))
			if err != nil {
				return 0, err
			}
			out, err := os.Create(filepath.Join(dir, "slot"))
			if err != nil {
				return 0, err
			}
			defer out.Close()
			var i *archive.Image
			for i, err = a.Next(); err == nil; i, err = a.Next() {
				if _, err := io.Copy(out, i); err != nil {
					return 0, err
				}
			}
			if !errors.Is(err, io.EOF) {
				return 0, err
			}
			return rate(began), nil
		},
		func(ctx context.Context) (float64, error) {
			cmd := exec.CommandContext(ctx, "sh", "-ec", "openssl enc -d -aes-256-ctr -md md5 -pass file:ota.pas -in "+manifest.System.File()+" 2>/dev/null | gzip -dc | dd of=slot bs=1M 2>/dev/null")
			cmd.Dir = dir
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return 0, fmt.Errorf("%w: %s", err, out)
			}
			return rate(began), nil
		})
}
