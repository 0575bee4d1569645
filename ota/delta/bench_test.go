package delta

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kennel/infra/bench"
)

// BenchmarkDeltaBesideZstd makes and applies the delta of an image with programs of this repository, built again after a change that moves all of their
// code, beside zstd -3 --patch-from of the whole image: at most twice its size and a tenth of the gzip image are wanted (issue 17, what must hold 6).
func BenchmarkDeltaBesideZstd(b *testing.B) { deltaBesideZstd(b) }

func TestDeltaBesideZstd(t *testing.T) { deltaBesideZstd(t) }

func deltaBesideZstd(tb testing.TB) {
	dir := tb.TempDir()
	programs, changes := []string{"robotkit"}, "cmd/robotkit" // quick: only this package is compiled again
	if !bench.Quick(tb) {
		programs, changes = []string{"robotkit", "robotd", "agentd", "kenneld"}, "infra/errs" // linked nearly first, so that all else moves
	}
	base, data := image(tb, filepath.Join(dir, "a"), programs, ""), image(tb, filepath.Join(dir, "b"), programs, changes)
	files := map[string]string{}
	for name, b := range map[string][]byte{"base": base, "new": data, "patch": nil, "out": nil} {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], b, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(data) // a buffer takes everything
	z.Close()

	line := func(name, unit, note string, bound float64) bench.Line {
		return bench.Line{Name: "delta/" + name, Unit: unit, Less: unit == "KB", Bound: bound, Note: note}
	}
	lines := []bench.Line{
		line("size", "KB", "a delta of rebuilt programs; reference: zstd -3 --patch-from", 0.5),
		line("full", "KB", "the same; reference: the whole image with gzip", 10),
		line("make", "MB/s", "new image a second; reference: zstd -3 --patch-from, which writes more", 0),
		line("apply", "MB/s", "new image a second, base, pieces and result hashed; reference: zstd -d --patch-from, which hashes nothing", 0),
	}
	pairs := make([][]bench.Pair, len(lines))
	megabytes := float64(len(data)) / 1e6
	bench.Turns(tb, func() error {
		began := time.Now()
		delta := made(tb, part("SYSTEM", base, data))
		making := megabytes / time.Since(began).Seconds()

		began = time.Now()
		if err := zstdTool("-3", "--patch-from="+files["base"], files["new"], "-o", files["patch"]); err != nil {
			return err
		}
		zstdMaking := megabytes / time.Since(began).Seconds()
		patch, err := os.Stat(files["patch"])
		if err != nil {
			return err
		}

		began = time.Now()
		out := &disk{b: make([]byte, 0, len(data))}
		_, err = Apply(bytes.NewReader(delta), func(Image) (io.ReaderAt, io.WriterAt, error) { return bytes.NewReader(base), out, nil })
		if err != nil || !bytes.Equal(out.b, data) {
			tb.Errorf("not the new image, %v", err)
		}
		applying := megabytes / time.Since(began).Seconds()

		began = time.Now()
		if err := zstdTool("-d", "--memory=2048MB", "--patch-from="+files["base"], files["patch"], "-o", files["out"]); err != nil {
			return err
		}
		zstdApplying := megabytes / time.Since(began).Seconds()

		for i, p := range []bench.Pair{
			{Value: float64(len(delta)) / 1e3, Reference: float64(patch.Size()) / 1e3},
			{Value: float64(len(delta)) / 1e3, Reference: float64(zipped.Len()) / 1e3},
			{Value: making, Reference: zstdMaking}, {Value: applying, Reference: zstdApplying},
		} {
			pairs[i] = append(pairs[i], p)
		}
		return nil
	})
	for i, l := range lines {
		if r := bench.Report(tb, l, pairs[i]); r.Missed() {
			tb.Errorf("%s: ratio %.2f, want %.2f", l.Name, r.Ratio, l.Bound)
		}
	}
}

func zstdTool(args ...string) error {
	cmd := exec.Command("zstd", append([]string{"-q", "-f"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// changed is a file that is added to a package; %s is the package's name.
const changed = `package %s

import (
	"fmt"
	"os"
	"strings"
)

func init() {
	if name := strings.ToUpper(os.Getenv("KENNEL_CHANGED")); name != "" {
		fmt.Fprintln(os.Stderr, "this program was changed by", name, "and knows", len(name), "letters of it")
	}
}
`

// image builds programs, with the change in package pkg if there is one, and returns them one after the other, each from a block of its own, as in a file system.
func image(tb testing.TB, dir string, programs []string, pkg string) (out []byte) {
	tb.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	args := []string{"build", "-buildvcs=false", "-ldflags=-s -w", "-o", dir + "/"}
	if pkg != "" {
		file, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
		replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, pkg, "changed.go"): file}})
		if err != nil {
			tb.Fatal(err)
		}
		name := path.Base(pkg)
		if strings.HasPrefix(pkg, "cmd/") {
			name = "main"
		}
		for name, b := range map[string][]byte{file: fmt.Appendf(nil, changed, name), overlay: replace} {
			if err := os.WriteFile(name, b, 0o600); err != nil {
				tb.Fatal(err)
			}
		}
		args = append(args, "-overlay", overlay)
	}
	for _, p := range programs {
		args = append(args, "./cmd/"+p)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	if msg, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build: %v\n%s", err, msg)
	}
	for _, p := range programs {
		b, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, b...)
		out = append(out, make([]byte, (4096-len(out)%4096)%4096)...)
	}
	return out
}
