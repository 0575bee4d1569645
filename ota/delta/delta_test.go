package delta

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"kennel/ota"
)

// noise returns n bytes that do not compress.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	src := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	src.Read(b) // never fails
	return b
}

// encoder is one for all tests: it is large.
var encoder = sync.OnceValues(newEncoder)

// made is Make with that encoder.
func made(t testing.TB, parts ...Part) []byte {
	t.Helper()
	var b bytes.Buffer
	enc, err := encoder()
	if err == nil {
		err = write(&b, enc, parts)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func part(name string, base, data []byte) Part {
	return Part{name, bytes.NewReader(base), bytes.NewReader(data)}
}

// disk is a target in memory; after fails writes it is full.
type disk struct {
	b     []byte
	fails int // 0: never
	wrote int
}

func (d *disk) WriteAt(b []byte, at int64) (int, error) {
	d.wrote++
	if d.fails > 0 && d.wrote >= d.fails {
		return 0, errors.New("no space left on device")
	}
	d.b = append(d.b, make([]byte, max(0, int(at)+len(b)-len(d.b)))...)
	return copy(d.b[at:], b), nil
}

// kept is a disk that can be read, as a partition.
type kept struct{ *disk }

func (d kept) ReadAt(b []byte, at int64) (int, error) { return bytes.NewReader(d.b).ReadAt(b, at) }

// apply applies a delta of one image.
func apply(delta, base []byte) (*disk, error) {
	var d disk
	_, err := Apply(bytes.NewReader(delta), func(Image) (io.ReaderAt, io.WriterAt, error) { return bytes.NewReader(base), &d, nil })
	return &d, err
}

// edits are ways in which a new image differs from its base; most is how large the delta may be.
func edits() map[string]struct {
	base, new []byte
	most      int
} {
	type edit = struct {
		base, new []byte
		most      int
	}
	a, b := noise(1, 5<<20), noise(2, 100_000)
	words := make([]byte, 0, 2<<20)
	for i := range uint32(cap(words) / 8) { // addresses, every other one of which moves
		words = binary.LittleEndian.AppendUint64(words, uint64(i)*48+1<<20)
	}
	moved := bytes.Clone(words)
	for i := 0; i < len(moved); i += 8 {
		binary.LittleEndian.PutUint64(moved[i:], binary.LittleEndian.Uint64(moved[i:])+4096)
	}
	var blocks []byte
	for i := range 9 << 20 / 4096 { // the blocks of a file system in another order
		blocks = append(blocks, a[i*7%(5<<20/4096)*4096:][:4096]...)
	}
	return map[string]edit{
		"same":            {a, a, 1000},
		"empty to empty":  {nil, nil, 200},
		"from nothing":    {nil, b, len(b) + 600},
		"to nothing":      {b, nil, 200},
		"one byte":        {[]byte{1}, []byte{2}, 300},
		"zeros":           {a, make([]byte, 5<<20), 1000},
		"shorter":         {a, a[:3<<20+17], 1000},
		"longer":          {a, slices.Concat(a, b), len(b) + 1000},
		"inserted":        {a, slices.Concat(a[:3<<20+5], b, a[3<<20+5:]), len(b) + 1000},
		"cut out":         {a, slices.Concat(a[:1<<20], a[1<<20+333:]), 1000},
		"moved to front":  {a, slices.Concat(a[4<<20:], a[:4<<20]), 1000},
		"blocks reversed": {a, blocks, 20_000},
		"addresses moved": {words, moved, 40_000},
		"nothing alike":   {b, noise(3, 100_000), len(b) + 600},
	}
}

// TestApply: the new image comes out of its base and the delta, chunk by chunk, and no delta is larger than its edit explains (VEC-OTA-11).
func TestApply(t *testing.T) {
	for name, e := range edits() {
		t.Run(name, func(t *testing.T) {
			delta := made(t, part("BOOT", e.base, e.new))
			if len(delta) > e.most {
				t.Errorf("%d bytes, want at most %d", len(delta), e.most)
			}
			got, err := apply(delta, e.base)
			if err != nil || !bytes.Equal(got.b, e.new) {
				t.Errorf("%d bytes, %v; want those of the new image", len(got.b), err)
			}
			var again bytes.Buffer
			if err := Make(&again, part("BOOT", e.base, e.new)); err != nil || !bytes.Equal(again.Bytes(), delta) {
				t.Errorf("the second delta of the same images differs; %v", err)
			}
			sum, err := Inspect(bytes.NewReader(delta))
			want := Image{"BOOT", Content{int64(len(e.base)), sha256.Sum256(e.base)}, Content{int64(len(e.new)), sha256.Sum256(e.new)}}
			if chunks := (len(e.new) + chunkSize - 1) / chunkSize; err != nil || sum.Images[0] != want || sum.Chunks != chunks {
				t.Errorf("%+v, %v; want %+v in %d chunks", sum, err, want, chunks)
			}
		})
	}
}

// images is a delta of two images with several chunks, and what it is for.
func images(t testing.TB) (delta []byte, base, want map[string][]byte) {
	boot, system := noise(4, chunkSize*5/4), noise(5, chunkSize*9/4)
	base = map[string][]byte{"BOOT": boot, "SYSTEM": system}
	want = map[string][]byte{"BOOT": slices.Concat(boot[:99], boot[77:]), "SYSTEM": slices.Concat(system[chunkSize:], []byte("new"), system[:chunkSize*5/4])}
	return made(t, part("BOOT", boot, want["BOOT"]), part("SYSTEM", system, want["SYSTEM"])), base, want
}

// TestResume: cut off at each of its writes and started again, an update keeps the chunks that were written and writes the others. A chunk that did not
// reach the disk is written again (VEC-OTA-13, issue 17).
func TestResume(t *testing.T) {
	delta, base, want := images(t)
	chunks := 2 + 3
	for cut := 1; cut <= chunks; cut++ {
		for _, lost := range []bool{false, true} {
			slots := map[string]kept{"BOOT": {&disk{}}, "SYSTEM": {&disk{}}}
			open := func(m Image) (io.ReaderAt, io.WriterAt, error) {
				return bytes.NewReader(base[m.Name]), slots[m.Name], nil
			}
			slots["BOOT"].fails, slots["SYSTEM"].fails = cut, max(1, cut-2)
			if cut > 2 {
				slots["BOOT"].fails = 0
			}
			if _, err := Apply(bytes.NewReader(delta), open); ota.CodeOf(err) != ota.DiskFailed {
				t.Fatalf("cut at write %d: %v, want a failed disk", cut, err)
			}
			keeps := cut - 1
			if lost && cut > 1 {
				slots["BOOT"].b[1000] ^= 1
				keeps = 0
			}
			slots["BOOT"].fails, slots["SYSTEM"].fails = 0, 0
			slots["BOOT"].wrote, slots["SYSTEM"].wrote = 0, 0
			sum, err := Apply(bytes.NewReader(delta), open)
			if err != nil || sum.Kept != keeps || sum.Chunks != chunks {
				t.Errorf("after a cut at write %d, lost %t: %+v, %v; want %d kept of %d", cut, lost, sum, err, keeps, chunks)
			}
			if wrote := slots["BOOT"].wrote + slots["SYSTEM"].wrote; wrote != chunks-keeps {
				t.Errorf("%d chunks were written, want %d", wrote, chunks-keeps)
			}
			for name, b := range want {
				if !bytes.Equal(slots[name].b, b) {
					t.Errorf("after a cut at write %d %s is not the new image", cut, name)
				}
			}
		}
	}
}

// turning is a base whose content changes when it is read for the second time.
type turning struct {
	*bytes.Reader
	read map[int64]int
	err  error
}

func (d turning) ReadAt(b []byte, at int64) (int, error) {
	n, err := d.Reader.ReadAt(b, at)
	if d.read[at]++; d.read[at] > 1 {
		b[0] ^= 1
		err = d.err
	}
	return n, err
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)          { return 0, f.err }
func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

// TestApplyErrors: each failure ends in its code, and a wrong base is found before anything is written (VEC-OTA-11, VEC-OTA-16).
func TestApplyErrors(t *testing.T) {
	delta, base, _ := images(t)
	broken := errors.New("broken")
	for _, tc := range []struct {
		name   string
		r      io.Reader
		open   func(Image) (io.ReaderAt, io.WriterAt, error)
		code   ota.Code
		writes bool
		words  string
	}{
		{"wrong base", nil, func(m Image) (io.ReaderAt, io.WriterAt, error) { return bytes.NewReader(base["BOOT"]), nil, nil }, ota.WrongBase, false, "the base of SYSTEM has"},
		{"other byte", nil, func(m Image) (io.ReaderAt, io.WriterAt, error) {
			b := bytes.Clone(base[m.Name])
			b[len(b)-1] ^= 1
			return bytes.NewReader(b), nil, nil
		}, ota.WrongBase, false, "the base of BOOT has SHA-256"},
		{"base that changes", nil, func(m Image) (io.ReaderAt, io.WriterAt, error) {
			return turning{bytes.NewReader(base[m.Name]), map[int64]int{}, nil}, nil, nil
		}, ota.WrongBase, false, "the base of BOOT for byte 0 "},
		{"base that breaks", nil, func(m Image) (io.ReaderAt, io.WriterAt, error) {
			return turning{bytes.NewReader(base[m.Name]), map[int64]int{}, broken}, nil, nil
		}, ota.DiskFailed, false, "read the base of BOOT at byte 0: broken"},
		{"unreadable base", nil, func(m Image) (io.ReaderAt, io.WriterAt, error) { return failing{broken}, nil, nil }, ota.DiskFailed, false, "broken"},
		{"no slot", nil, func(m Image) (io.ReaderAt, io.WriterAt, error) { return nil, nil, ota.Fail(ota.SlotFailed, "no slot") }, ota.SlotFailed, false, "open BOOT"},
		{"full disk", nil, func(m Image) (io.ReaderAt, io.WriterAt, error) {
			return bytes.NewReader(base[m.Name]), &disk{fails: 1}, nil
		}, ota.DiskFailed, true, "write BOOT at byte 0: no space"},
		{"time out", failing{ota.Fail(ota.TimedOut, "nothing for 60 s")}, nil, ota.TimedOut, false, "nothing for 60 s"},
		{"cut off behind a chunk", io.MultiReader(bytes.NewReader(delta[:len(delta)-10]), failing{ota.Fail(ota.BadCompression, "no gzip")}), nil,
			ota.BadCompression, true, "no gzip"},
		{"error behind the end", io.MultiReader(bytes.NewReader(delta), failing{ota.Fail(ota.NotAuthentic, "other hash")}), nil, ota.NotAuthentic, true, "hash"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var d disk
			if tc.r == nil {
				tc.r = bytes.NewReader(delta)
			}
			_, err := Apply(tc.r, func(m Image) (io.ReaderAt, io.WriterAt, error) {
				if tc.open == nil {
					return bytes.NewReader(base[m.Name]), &d, nil
				}
				base, target, err := tc.open(m)
				if target == nil {
					target = &d
				}
				return base, target, err
			})
			if ota.CodeOf(err) != tc.code || !strings.Contains(err.Error(), tc.words) {
				t.Errorf("%v: want code %d and %q", err, tc.code, tc.words)
			}
			if !tc.writes && d.wrote > 0 {
				t.Errorf("%d writes", d.wrote)
			}
		})
	}
}

// small is a delta with every part of the format, and its images.
func small(t testing.TB) (delta, base, data []byte) {
	base = noise(6, 3000)
	data = slices.Concat(make([]byte, 40), base[1000:2500], []byte("something that is new"), base[:1500])
	data[700]++
	return made(t, part("SYSTEM", base, data)), base, data
}

// TestDamage: a delta that is cut off, longer, or has one other byte is refused with the code of a damaged delta, and the images are never wrong.
func TestDamage(t *testing.T) {
	delta, base, _ := small(t)
	check := func(what string, damaged []byte) {
		t.Helper()
		if _, err := apply(damaged, base); ota.CodeOf(err) != ota.BadDelta {
			t.Errorf("%s: %v, want code %d", what, err, ota.BadDelta)
		}
		if _, err := Inspect(bytes.NewReader(damaged)); ota.CodeOf(err) != ota.BadDelta {
			t.Errorf("inspect, %s: %v, want code %d", what, err, ota.BadDelta)
		}
	}
	for i := range delta {
		for _, flip := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(delta)
			damaged[i] ^= flip
			check(fmt.Sprintf("byte %d ^ %02x", i, flip), damaged)
		}
		check(fmt.Sprintf("%d bytes", i), delta[:i])
	}
	check("one byte more", append(bytes.Clone(delta), 0))
}

// sealed puts right CRCs into a damaged delta of one image and one chunk, as an enemy would.
func sealed(delta []byte) []byte {
	h := len(magic) + 1 + 1 + int(delta[len(magic)+1]) + imageSize
	if len(delta) < h+4+headSize+4 {
		return delta
	}
	out := binary.BigEndian.AppendUint32(bytes.Clone(delta[:h]), crc32.Checksum(delta[:h], castagnoli))
	chunk := delta[h+4 : len(delta)-4]
	return binary.BigEndian.AppendUint32(append(out, chunk...), crc32.Checksum(chunk, castagnoli))
}

// TestSealedDamage: with right CRCs, too, nothing wrong is ever reported as done.
func TestSealedDamage(t *testing.T) {
	delta, base, data := small(t)
	refused := map[ota.Code]int{}
	for i := range delta {
		for _, flip := range []byte{1, 0x80, 0xff} {
			damaged := bytes.Clone(delta)
			damaged[i] ^= flip
			got, err := apply(sealed(damaged), base)
			if err == nil && !bytes.Equal(got.b, data) {
				t.Fatalf("byte %d ^ %02x makes a wrong image", i, flip)
			}
			refused[ota.CodeOf(err)]++
		}
	}
	if refused[ota.BadDelta] < len(delta) || refused[ota.WrongBase] < 32 || len(refused) > 3 {
		t.Errorf("refused with %v", refused)
	}
}

// TestHostileSizes: what a delta claims takes no memory that it could not need.
func TestHostileSizes(t *testing.T) {
	delta, base, _ := small(t)
	h := len(magic) + 1 + 1 + int(delta[len(magic)+1]) + imageSize + 4
	for at, width := range map[int]int{len(magic) + 2 + len("SYSTEM"): 8, len(magic) + 2 + len("SYSTEM") + imageSize/2: 8, h + 1: 8, h + 9: 4, h + 13: 4, h + 17: 4} {
		for _, claim := range []uint64{0, 1 << 23, 1<<23 + 1, 1 << 31, 1<<32 - 1, 1 << 40, 1<<40 + 1, 1 << 63, 1<<64 - 1} {
			damaged := bytes.Clone(delta)
			var be [8]byte
			binary.BigEndian.PutUint64(be[:], claim)
			copy(damaged[at:at+width], be[8-width:])
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := apply(sealed(damaged), base)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; err == nil && !bytes.Equal(damaged, delta) || took > 40<<20 {
				t.Errorf("%d at byte %d: %v, %d bytes of memory", claim, at, err, took)
			}
		}
	}
}

// TestMakeErrors: Make says what it cannot read, write or name.
func TestMakeErrors(t *testing.T) {
	a := []byte("a")
	short := io.NewSectionReader(bytes.NewReader(a), 0, 100)
	for _, tc := range []struct {
		words string
		w     io.Writer
		parts []Part
	}{
		{"0 images", io.Discard, nil},
		{"9 images", io.Discard, slices.Repeat([]Part{part("x", a, a)}, 9)},
		{`image ""`, io.Discard, []Part{part("", a, a)}},
		{`image "x"`, io.Discard, []Part{part("x", a, a), part("x", a, a)}},
		{"read the base of x", io.Discard, []Part{{"x", io.NewSectionReader(failing{io.ErrClosedPipe}, 0, 1), short}}},
		{"read the new x", io.Discard, []Part{{"x", bytes.NewReader(a), io.NewSectionReader(failing{io.ErrClosedPipe}, 0, 1)}}},
		{"write the delta", &full{}, []Part{part("x", a, a)}},
		{"write the delta", &full{left: 1}, []Part{part("x", a, a)}},
	} {
		if err := Make(tc.w, tc.parts...); err == nil || !strings.Contains(err.Error(), tc.words) {
			t.Errorf("%v, want %q", err, tc.words)
		}
	}
}

type full struct{ left int }

func (f *full) Write(b []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

// TestZstd: the patch is a frame that zstd itself reads.
func TestZstd(t *testing.T) {
	delta, _, _ := small(t)
	d, err := newReader(bytes.NewReader(delta))
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.next(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("zstd", "-dc")
	cmd.Stdin = bytes.NewReader(c.patch)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(out, []byte("thing that is new")) {
		t.Errorf("zstd reads %q", out)
	}
}

// TestMemory applies a delta in a process of its own: whatever the size of the image, it takes less than 32 MB from the system (issue 17, what must hold
// 6). KENNEL_SOAK does it with 500 MB.
func TestMemory(t *testing.T) {
	if dir := os.Getenv("KENNEL_DELTA_DIR"); dir != "" {
		applyAlone(t, dir)
		return
	}
	size := 24 << 20
	if os.Getenv("KENNEL_SOAK") == "1" {
		size = 500 << 20
	}
	dir := t.TempDir()
	base := noise(7, size)
	data := slices.Concat(base[size/2:], noise(8, size/4), base[:size/2])
	for i := 0; i < len(data); i += 100 { // as where addresses have moved
		data[i]++
	}
	for name, b := range map[string][]byte{"base": base, "delta": made(t, part("SYSTEM", base, data))} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMemory$", "-test.v")
	cmd.Env = append(os.Environ(), "KENNEL_DELTA_DIR="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var sys int
	if i := bytes.Index(out, []byte("memory: ")); i < 0 {
		t.Fatalf("no result in %s", out)
	} else if _, err := fmt.Sscanf(string(out[i:]), "memory: %d", &sys); err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB of memory for an image of %d MB", float64(sys)/1e6, len(data)/1e6)
	if sys > 32e6 {
		t.Errorf("%d bytes of memory, want less than 32 MB", sys)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("not the new image, %v", err)
	}
}

// applyAlone prints the memory that the process took from the system at most: the runtime never counts down.
func applyAlone(t *testing.T, dir string) {
	open := func(name string, flag int) *os.File {
		f, err := os.OpenFile(filepath.Join(dir, name), flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	base, target := open("base", os.O_RDONLY), open("new", os.O_CREATE|os.O_RDWR)
	if _, err := Apply(open("delta", os.O_RDONLY), func(Image) (io.ReaderAt, io.WriterAt, error) { return base, target, nil }); err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Printf("memory: %d\n", m.Sys)
}

// FuzzApply: no delta makes a wrong image, whatever its bytes.
func FuzzApply(f *testing.F) {
	delta, base, _ := small(f)
	f.Add(delta)
	f.Add(made(f, part("B", base, base)))
	f.Add(made(f, part("B", base, nil)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, sealed(append(bytes.Clone(b), make([]byte, max(0, 300-len(b)))...))} {
			sums := map[string][32]byte{}
			slots := map[string]*disk{}
			_, err := Apply(bytes.NewReader(b), func(m Image) (io.ReaderAt, io.WriterAt, error) {
				if m.New.Size > 1<<20 {
					return nil, nil, errors.New("too large for a test")
				}
				sums[m.Name], slots[m.Name] = m.New.SHA256, &disk{}
				return bytes.NewReader(base), slots[m.Name], nil
			})
			if err == nil {
				for name, sum := range sums {
					if sha256.Sum256(slots[name].b) != sum {
						t.Fatalf("%s is not what the delta promises", name)
					}
				}
				if sum, err := Inspect(bytes.NewReader(b)); err != nil || len(sum.Images) != len(sums) {
					t.Fatalf("applied, but not to be inspected: %+v, %v", sum, err)
				}
			} else if ota.CodeOf(err) == ota.Done {
				t.Fatal(err)
			}
		}
	})
}

// FuzzInspect: whatever can be inspected says how many chunks it has.
func FuzzInspect(f *testing.F) {
	delta, base, _ := small(f)
	f.Add(delta)
	f.Add(made(f, part("B", base, base), part("S", nil, base)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, sealed(append(bytes.Clone(b), make([]byte, max(0, 300-len(b)))...))} {
			sum, err := Inspect(bytes.NewReader(b))
			if code := ota.CodeOf(err); code != ota.Done && code != ota.BadDelta {
				t.Fatalf("%v: want code %d", err, ota.BadDelta)
			}
			var chunks int64
			for _, m := range sum.Images {
				chunks += (m.New.Size + maxChunk - 1) / maxChunk
			}
			if err == nil && int64(sum.Chunks) < chunks {
				t.Fatalf("%d chunks for images that need %d: %+v", sum.Chunks, chunks, sum.Images)
			}
		}
	})
}

// FuzzMake: what Make makes of two images can be applied.
func FuzzMake(f *testing.F) {
	_, base, data := small(f)
	f.Add(base, data, uint16(0))
	f.Add([]byte(nil), base, uint16(3))
	f.Add(base, base[100:], uint16(64))
	f.Fuzz(func(t *testing.T, base, data []byte, times uint16) {
		data = append(data, bytes.Repeat(base, int(times%64))...)
		got, err := apply(made(t, part("BOOT", base, data)), base)
		if err != nil || !bytes.Equal(got.b, data) {
			t.Fatalf("%d bytes, want %d: %v", len(got.b), len(data), err)
		}
	})
}
