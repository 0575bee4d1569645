package archive_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"testing"
	"testing/iotest"

	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/archive/archivetest"
	"kennel/ota/manifest"
)

// install reads an archive as an updater does. It returns the images that were read to their end without an error, and the error that ended the update.
func install(r io.Reader, o archive.Options) (*archive.Reader, map[manifest.Part][]byte, error) {
	a, err := archive.Open(r, o)
	if err != nil {
		return nil, nil, err
	}
	whole := map[manifest.Part][]byte{}
	for {
		i, err := a.Next()
		if errors.Is(err, io.EOF) {
			return a, whole, nil
		}
		if err != nil {
			return a, whole, err
		}
		var out bytes.Buffer
		n, err := io.Copy(&out, i)
		if n > i.Bytes {
			return a, whole, fmt.Errorf("image %s gave out %d bytes of %d", i.Part, n, i.Bytes)
		}
		if err != nil {
			return a, whole, err
		}
		whole[i.Part] = out.Bytes()
	}
}

func options(password string) archive.Options {
	return archive.Options{Key: &archivetest.Key().PublicKey, Password: []byte(password)}
}

// TestKinds reads what was written, for each kind of update, plain and encrypted (VEC-OTA-01, 02, 07).
func TestKinds(t *testing.T) {
	delta := map[manifest.Part][]byte{manifest.Changes: archivetest.Image(6, 9000)}
	for _, tt := range []struct {
		kind   manifest.Kind
		m      manifest.Manifest
		images map[manifest.Part][]byte
	}{
		{manifest.Production, manifest.Manifest{Reboot: true}, archivetest.Production()},
		{manifest.Factory, manifest.Manifest{Format: "0.9.2", QSN: archivetest.QSN}, archivetest.Factory()},
		{manifest.Delta, manifest.Manifest{Dev: true, Images: []manifest.Image{{Base: archivetest.Running}}}, delta},
	} {
		for _, password := range []string{"", "swordfish"} {
			file := archivetest.Make(tt.m, tt.images, password)
			if !bytes.Equal(file, archivetest.Make(tt.m, tt.images, password)) {
				t.Errorf("%s: two runs give two archives", tt.kind)
			}
			for name, r := range map[string]io.Reader{"whole": bytes.NewReader(file), "byte by byte": iotest.OneByteReader(bytes.NewReader(file)),
				"end with data": iotest.DataErrReader(bytes.NewReader(file))} {
				a, got, err := install(r, options(password))
				if err != nil {
					t.Fatalf("%s, %s: %v", tt.kind, name, err)
				}
				m := a.Manifest
				if m.Kind() != tt.kind || m.Version != archivetest.Version || m.Dev != tt.m.Dev || m.Reboot != tt.m.Reboot || m.QSN != tt.m.QSN ||
					m.Images[0].Encrypted != (password != "") || (m.Kind() == manifest.Delta) != (m.Images[0].Base == archivetest.Running) {
					t.Errorf("%s: %+v", tt.kind, m)
				}
				if !maps.EqualFunc(got, tt.images, bytes.Equal) {
					t.Errorf("%s, %s: other images", tt.kind, name)
				}
				if a.Consumed() != int64(len(file)) {
					t.Errorf("%s, %s: consumed %d bytes of %d", tt.kind, name, a.Consumed(), len(file))
				}
			}
		}
	}
}

// TestFaults: each faulty archive ends the update with its code (rows 16173 to 16195 of the source), and no image of it that is not the signed one is ever
// whole.
func TestFaults(t *testing.T) {
	codes := map[ota.Code]int{}
	for _, f := range archivetest.Faults() {
		codes[f.Code]++
		a, got, err := install(bytes.NewReader(f.Archive), options(f.Password))
		switch {
		case f.Sound && err != nil:
			t.Errorf("%s: %v", f.Name, err)
		case !f.Sound && ota.CodeOf(err) != f.Code:
			t.Errorf("%s: %v, want code %d", f.Name, err, f.Code)
		case !f.Sound:
			t.Logf("%s: %v", f.Name, err)
		}
		if _, _, err := install(iotest.DataErrReader(bytes.NewReader(f.Archive)), options(f.Password)); !f.Sound && ota.CodeOf(err) != f.Code { // as from HTTP
			t.Errorf("%s, end with data: %v, want code %d", f.Name, err, f.Code)
		}
		for part, b := range got {
			i := slices.IndexFunc(a.Manifest.Images, func(i manifest.Image) bool { return i.Part == part })
			if a.Manifest.Images[i].SHA256 != sha256.Sum256(b) {
				t.Errorf("%s: %s is whole and not the signed one", f.Name, part)
			}
		}
	}
	for _, c := range []ota.Code{200, 201, 204, 205, 207, 209, 210, 211, 213, 214, 216} {
		if codes[c] == 0 {
			t.Errorf("no archive provokes code %d", c)
		}
	}
}

// TestNothingBeforeTheSignature: until the signature is verified, no byte behind it is read.
func TestNothingBeforeTheSignature(t *testing.T) {
	var unsigned []byte
	for _, f := range archivetest.Faults() {
		if f.Name == "signature of another key" {
			unsigned = f.Archive
		}
	}
	r := bytes.NewReader(unsigned)
	if _, err := archive.Open(r, options("")); ota.CodeOf(err) != ota.NotAuthentic {
		t.Fatal(err)
	}
	if read := int64(len(unsigned)) - int64(r.Len()); read > 3072 {
		t.Errorf("%d bytes were read", read)
	}
	if _, err := archive.Open(bytes.NewReader(unsigned), archive.Options{}); err == nil {
		t.Error("an archive is read without a key")
	}
	if a, err := archive.Open(bytes.NewReader(unsigned), archive.Options{Unverified: true}); err != nil || a.Manifest.Version != archivetest.Version {
		t.Errorf("%+v, %v", a, err)
	}
}

// TestCutAnywhere: an archive that ends early is an error with a code, wherever it ends; only the empty blocks at its end may be missing.
func TestCutAnywhere(t *testing.T) {
	file := archivetest.Make(manifest.Manifest{}, map[manifest.Part][]byte{manifest.Boot: archivetest.Image(1, 300), manifest.System: archivetest.Image(2, 900)}, "x")
	end := len(bytes.TrimRight(file, "\x00"))
	for n := range len(file) {
		_, _, err := install(bytes.NewReader(file[:n]), options("x"))
		if c := ota.CodeOf(err); n < end && c != ota.BadArchive || n >= end && err != nil && c != ota.BadArchive {
			t.Errorf("cut after %d bytes of %d: %v", n, len(file), err)
		}
	}
}

// TestSourceFails: an error of the connection is reported as it is, so that it can be resumed or has its own code, and never as damage.
func TestSourceFails(t *testing.T) {
	file := archivetest.Make(manifest.Manifest{}, archivetest.Production(), "x")
	closed := fmt.Errorf("connection closed: %w", io.EOF)
	for _, want := range []error{io.ErrUnexpectedEOF, ota.Fail(ota.TimedOut, "silence"), errors.New("reset"), closed} {
		for n := 0; n < len(file)-1024; n += 97 {
			_, _, err := install(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(want)), options("x"))
			if !errors.Is(err, want) || errors.Is(err, io.EOF) || ota.CodeOf(err) != ota.CodeOf(want) {
				t.Fatalf("after %d bytes: %v, want %v", n, err, want)
			}
		}
	}
}

// TestNextTooEarly: an image that was not read to its end was not verified.
func TestNextTooEarly(t *testing.T) {
	a, err := archive.Open(bytes.NewReader(archivetest.Make(manifest.Manifest{}, archivetest.Production(), "")), options(""))
	if err != nil {
		t.Fatal(err)
	}
	i, err := a.Next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, i, i.Bytes); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := a.Next(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the next image after one without its end: %v", err)
		}
	}
}

// noise gives out block again and again, n bytes in all.
type noise struct {
	block []byte
	n, at int64
}

func newNoise(n int64) *noise {
	return &noise{append(archivetest.Image(9, 1<<20), make([]byte, 1<<20)...), n, 0}
}

func (z *noise) Read(p []byte) (int, error) {
	if z.at == z.n {
		return 0, io.EOF
	}
	at := z.at % int64(len(z.block))
	n := copy(p[:min(int64(len(p)), z.n-z.at)], z.block[at:])
	z.at += int64(n)
	return n, nil
}

// large writes an archive with a SYSTEM of n bytes to a file; seen is told what is read for it.
func large(tb testing.TB, n int64, password string, seen io.Writer) *os.File {
	f, err := os.Create(tb.TempDir() + "/large.ota")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	images := map[manifest.Part]io.Reader{manifest.Boot: io.TeeReader(newNoise(n/50), seen), manifest.System: io.TeeReader(newNoise(n), seen)}
	o := archive.WriteOptions{Key: archivetest.Key(), Password: []byte(password), Level: 1, TempDir: tb.TempDir()}
	if err := archive.Write(f, &manifest.Manifest{Version: archivetest.Version}, images, o); err != nil {
		tb.Fatal(err)
	}
	return f
}

// TestMemory: the memory does not grow with the archive, neither of Write nor of a Reader (issue 17, what must hold 6): 500 MB in a soak, 40 MB else.
func TestMemory(t *testing.T) {
	size := int64(40_000_000)
	if os.Getenv("KENNEL_SOAK") != "" {
		size = 500_000_000
	}
	runtime.GC()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	base, peak, seen := now.HeapInuse, uint64(0), int64(0)
	sample := writerFunc(func(p []byte) (int, error) {
		if seen += int64(len(p)); seen>>22 != (seen-int64(len(p)))>>22 { // every 4 MiB
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
		return len(p), nil
	})
	f := large(t, size, "x", sample)
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	written := seen
	a, err := archive.Open(f, options("x"))
	if err != nil {
		t.Fatal(err)
	}
	i, err := a.Next()
	for ; err == nil; i, err = a.Next() {
		if _, err := io.Copy(sample, i); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, io.EOF) || written != size+size/50 || seen != 2*written {
		t.Fatalf("%v: %d and %d bytes of %d", err, written, seen-written, size)
	}
	const bound = 12 << 20 // of it 3.6 MiB are the window of the compression; the rest is garbage
	if peak == 0 || peak > base+bound {
		t.Errorf("the heap grew by %d bytes", peak-base)
	}
	t.Logf("%d MB: the heap grew by %d bytes", size/1_000_000, peak-base)
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// small is an archive short enough for a fuzzer.
func small(password string) []byte {
	return archivetest.Make(manifest.Manifest{}, map[manifest.Part][]byte{manifest.Boot: archivetest.Image(1, 40), manifest.System: archivetest.Image(2, 90)}, password)
}

// fuzzed reads what a fuzzer made: every error has a code, and each whole image is the one of the manifest. Signatures are not verified, because nothing else
// would be reached.
func fuzzed(t *testing.T, b []byte, password string) {
	a, got, err := install(bytes.NewReader(b), archive.Options{Unverified: true, Password: []byte(password)})
	if c := ota.CodeOf(err); err != nil && (c < ota.WrongOrder || c >= ota.Other) {
		t.Fatalf("code %d: %v", c, err)
	}
	if err == nil && len(got) != len(a.Manifest.Images) {
		t.Fatalf("%d images of %d", len(got), len(a.Manifest.Images))
	}
	for part, b := range got {
		if i := slices.IndexFunc(a.Manifest.Images, func(i manifest.Image) bool { return i.Part == part }); a.Manifest.Images[i].SHA256 != sha256.Sum256(b) {
			t.Fatalf("%s is whole and not the one of the manifest", part)
		}
	}
}

// FuzzReader changes any byte of an archive.
func FuzzReader(f *testing.F) {
	for _, password := range []string{"", "x"} {
		f.Add(small(password), password)
	}
	f.Fuzz(fuzzed)
}

// FuzzImages changes manifest and images inside a sound tar, which the checksums of its headers keep from FuzzReader.
func FuzzImages(f *testing.F) {
	for _, password := range []string{"", "x"} {
		e := archivetest.Entries(small(password))
		f.Add(e[0].Body, e[2].Body, e[3].Body, password)
	}
	f.Fuzz(func(t *testing.T, ini, boot, system []byte, password string) {
		fuzzed(t, archivetest.Tar(archivetest.Entry{Name: archive.ManifestFile, Body: ini}, archivetest.Entry{Name: archive.SignatureFile, Body: []byte("x")},
			archivetest.Entry{Name: manifest.Boot.File(), Body: boot}, archivetest.Entry{Name: manifest.System.File(), Body: system}), password)
	})
}

// TestResume: a reader continues between any two images of an archive, and checks the manifest again (VEC-OTA-05, VEC-OTA-08).
func TestResume(t *testing.T) {
	whole := archivetest.Make(manifest.Manifest{QSN: archivetest.QSN}, archivetest.Factory(), "")
	o := archive.Options{Key: &archivetest.Key().PublicKey}
	a, err := archive.Open(bytes.NewReader(whole), o)
	if err != nil {
		t.Fatal(err)
	}
	for n := range a.Manifest.Images {
		i, err := a.Next()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, i); err != nil {
			t.Fatal(err)
		}
		at := archive.Point{Raw: a.Raw, Signature: a.Signature, Images: n + 1, At: a.Offset()}
		o := o
		o.Resume = &at
		b, err := archive.Open(bytes.NewReader(whole[at.At:]), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range a.Manifest.Images[n+1:] {
			i, err := b.Next()
			if err != nil || i.Part != want.Part {
				t.Fatalf("after %d images: %v, want %s", n+1, err, want.Part)
			}
			if _, err := io.Copy(io.Discard, i); err != nil {
				t.Error(err)
			}
		}
		if _, err := b.Next(); !errors.Is(err, io.EOF) || b.Consumed() != int64(len(whole)) {
			t.Errorf("after %d images: %v at byte %d, want the end at %d", n+1, err, b.Consumed(), len(whole))
		}
		bad := at
		bad.Raw = append([]byte("#"), bad.Raw...)
		o.Resume = &bad
		if _, err := archive.Open(bytes.NewReader(whole[at.At:]), o); ota.CodeOf(err) != ota.NotAuthentic {
			t.Errorf("another manifest: %v, want code %d", err, ota.NotAuthentic)
		}
		bad = at
		bad.Images = 4
		o.Resume = &bad
		if _, err := archive.Open(bytes.NewReader(whole[at.At:]), o); err == nil {
			t.Error("4 of 3 images were read, and it continued")
		}
	}
}

// TestResumeInside: a reader continues within an image, wherever the writer flushed, plain and encrypted; what is not the beginning of that image ends it
// with a wrong hash, and a place that cannot be is refused.
func TestResumeInside(t *testing.T) {
	for _, password := range []string{"", "swordfish"} {
		images := archivetest.Production()
		whole := archivetest.Make(manifest.Manifest{}, images, password)
		a, err := archive.Open(bytes.NewReader(whole), options(password))
		if err != nil {
			t.Fatal(err)
		}
		var points []archive.Point
		for n := range a.Manifest.Images {
			i, err := a.Next()
			if err != nil {
				t.Fatal(err)
			}
			for last := int64(0); err == nil; {
				_, err = io.ReadFull(i, make([]byte, 1000))
				if p, at, ok := i.Mark(); ok && p.Bytes > last {
					last = p.Bytes
					points = append(points, archive.Point{Raw: a.Raw, Signature: a.Signature, Images: n, At: at, Inside: &p})
				}
			}
		}
		if len(points) < 7 {
			t.Fatalf("%d places in images of 20,000 and 70,000 bytes, flushed each 9001", len(points))
		}
		resume := func(p archive.Point, change func([]byte)) error {
			o := options(password)
			o.Resume = &p
			b, err := archive.Open(bytes.NewReader(whole[p.At:]), o)
			if err != nil {
				return err
			}
			i, err := b.Next()
			if err != nil {
				return err
			}
			before := slices.Clone(images[i.Part][:p.Inside.Bytes])
			change(before)
			if i.Continues() != p.Inside.Bytes {
				t.Errorf("continues after %d bytes, want %d", i.Continues(), p.Inside.Bytes)
			}
			if err := i.Continue(bytes.NewReader(before)); err != nil {
				return err
			}
			rest, err := io.ReadAll(i)
			if err != nil {
				return err
			}
			if !bytes.Equal(rest, images[i.Part][len(before):]) {
				t.Errorf("%s after %d bytes: not the rest of it", i.Part, len(before))
			}
			for range b.Manifest.Images[p.Images+1:] {
				i, err := b.Next()
				if err != nil {
					return err
				}
				if got, err := io.ReadAll(i); err != nil || !bytes.Equal(got, images[i.Part]) {
					t.Errorf("%s, the next one: %v", i.Part, err)
				}
			}
			if _, err := b.Next(); !errors.Is(err, io.EOF) || b.Consumed() != int64(len(whole)) {
				t.Errorf("%v at byte %d, want the end at %d", err, b.Consumed(), len(whole))
			}
			return nil
		}
		for _, p := range points {
			if err := resume(p, func([]byte) {}); err != nil {
				t.Errorf("image %d after %d bytes: %v", p.Images, p.Inside.Bytes, err)
			}
			if err := resume(p, func(b []byte) { b[0]++ }); ota.CodeOf(err) != ota.NotAuthentic {
				t.Errorf("damaged: %v, want code %d", err, ota.NotAuthentic)
			}
			for name, change := range map[string]func(*archive.Inside){
				"before the image": func(i *archive.Inside) { i.Bytes = -1 }, "behind it": func(i *archive.Inside) { i.Bytes = 70_001 },
				"before the file": func(i *archive.Inside) { i.File = -1 }, "behind the file": func(i *archive.Inside) { i.File = i.Size + 1 },
				"a large file": func(i *archive.Inside) { i.Size = 1 << 40 }, "before the archive": func(i *archive.Inside) { i.File, i.Size = 71_000, 72_000 },
			} {
				inside := *p.Inside
				change(&inside)
				p.Inside = &inside
				o := options(password)
				o.Resume = &p
				b, err := archive.Open(bytes.NewReader(whole[p.At:]), o)
				if err != nil {
					t.Fatal(err)
				}
				i, err := b.Next()
				if err != nil {
					t.Fatal(err)
				}
				if err := i.Continue(bytes.NewReader(make([]byte, 70_001))); err == nil {
					t.Errorf("%s: continued", name)
				}
				if _, err := i.Read(make([]byte, 1)); err == nil {
					t.Errorf("%s: read", name)
				}
			}
		}
	}
}
