// Package archivetest makes update archives for tests: sound ones, and one for each fault that an archive alone can provoke.
package archivetest

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/manifest"
)

// The robot of the tests runs Running, a production release, and has the processor serial number QSN. The archives bring it to Version.
const (
	Running ota.Version = "1.8.0.6051"
	Version ota.Version = "2.0.1.6076"
	QSN                 = "00e20100"
)

// Key returns the key that signs the archives; it is made once in a process.
var Key = sync.OnceValue(newKey)

var otherKey = sync.OnceValue(newKey)

func newKey() *rsa.PrivateKey {
	return must(rsa.GenerateKey(rand.Reader, 2048))
}

// PublicPEM returns the public half of Key as a robot's ota.pub.
func PublicPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: must(x509.MarshalPKIXPublicKey(&Key().PublicKey))})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprintf("archivetest: %v", err))
	}
	return v
}

// Image returns n bytes that look like a program: half of them can be compressed away. Equal arguments give equal bytes.
func Image(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := mathrand.New(mathrand.NewPCG(seed, 17))
	for i := 0; i+8 <= n; i += 16 {
		for j := range 8 {
			b[i+j] = byte(r.Uint32())
		}
	}
	return b
}

// Production returns small images of a production update.
func Production() map[manifest.Part][]byte {
	return map[manifest.Part][]byte{manifest.Boot: Image(1, 20_000), manifest.System: Image(2, 70_000)}
}

// Factory returns small images of a factory update.
func Factory() map[manifest.Part][]byte {
	return map[manifest.Part][]byte{manifest.ABoot: Image(3, 3000), manifest.Recovery: Image(4, 5000), manifest.RecoveryFS: Image(5, 7000)}
}

// Make returns an archive of images, signed by Key. An empty version is Version; an empty password leaves the images unencrypted.
func Make(m manifest.Manifest, images map[manifest.Part][]byte, password string) []byte {
	if m.Version == "" {
		m.Version = Version
	}
	readers := map[manifest.Part]io.Reader{}
	for p, b := range images {
		readers[p] = bytes.NewReader(b)
	}
	var out bytes.Buffer
	if err := archive.Write(&out, &m, readers, archive.WriteOptions{Key: Key(), Password: []byte(password), Flush: 9001}); err != nil {
		panic(fmt.Sprintf("archivetest: %v", err))
	}
	return out.Bytes()
}

// Entry is an entry of a tar. A Link makes it a symbolic link.
type Entry struct {
	Name, Link string
	Body       []byte
}

// Tar returns a tar of entries.
func Tar(entries ...Entry) []byte {
	var out bytes.Buffer
	t := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.Name, Mode: 0o644, Size: int64(len(e.Body)), Typeflag: tar.TypeReg}
		if e.Link != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.Link
		}
		must(0, t.WriteHeader(h))
		must(t.Write(e.Body))
	}
	must(0, t.Close())
	return out.Bytes()
}

// Entries takes a sound archive apart.
func Entries(archive []byte) (entries []Entry) {
	for t := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := t.Next()
		if err == io.EOF {
			return entries
		}
		entries = append(entries, Entry{Name: must(h, err).Name, Body: must(io.ReadAll(t))})
	}
}

// Signed returns entries with the manifest as edit changes it, and signed by Key.
func Signed(entries []Entry, edit func(string) string) []Entry {
	entries = slices.Clone(entries)
	entries[0].Body = []byte(edit(string(entries[0].Body)))
	entries[1].Body = must(manifest.Sign(Key(), entries[0].Body))
	return entries
}

// Gzip returns b compressed.
func Gzip(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	must(z.Write(b))
	must(0, z.Close())
	return out.Bytes()
}

// Fault is an archive that must end an update with Code.
type Fault struct {
	Name     string
	Code     ota.Code
	Sound    bool   // a Reader takes it; a robot that runs Running on QSN must not
	Password string // that the robot has
	Archive  []byte
}

// Faults returns the faulty archives, all of them small.
func Faults() []Fault {
	production := Make(manifest.Manifest{}, Production(), "")
	e := Entries(production)
	all := slices.Concat(orderFaults(e), manifestFaults(e), tarFaults(production, e), imageFaults(e))
	return slices.Concat(all, encryptionFaults(), deviceFaults())
}

// orderFaults have code 200.
func orderFaults(e []Entry) []Fault {
	fault := func(name string, entries ...Entry) Fault {
		return Fault{Name: name, Code: ota.WrongOrder, Archive: Tar(entries...)}
	}
	renamed := func(i int, name string) []Entry {
		out := slices.Clone(e)
		out[i].Name = name
		return out
	}
	return []Fault{
		fault("signature before manifest", e[1], e[0], e[2], e[3]),
		fault("no signature", e[0], e[2], e[3]),
		fault("no images", e[0], e[1]),
		fault("first image missing", e[0], e[1], e[3]),
		fault("last image missing", e[0], e[1], e[2]),
		fault("image files exchanged", e[0], e[1], e[3], e[2]),
		fault("manifest twice", e[0], e[0], e[1], e[2], e[3]),
		fault("image twice", e[0], e[1], e[2], e[2], e[3]),
		fault("surplus file at the end", append(slices.Clone(e), Entry{Name: "more.bin", Body: []byte("x")})...),
		fault("second manifest at the end", append(slices.Clone(e), e[0])...),
		fault("path out of the folder", renamed(3, "../../apq8009-robot-sysfs.img.gz")...),
		fault("absolute path", renamed(2, "/apq8009-robot-boot.img.gz")...),
		fault("path in another folder", renamed(0, "x/../manifest.ini")...),
		fault("image of another kind", renamed(2, manifest.Changes.File())...),
	}
}

// manifestFaults are signed, except those that say otherwise.
func manifestFaults(e []Entry) []Fault {
	edited := func(name string, c ota.Code, old, now string) Fault {
		return Fault{Name: name, Code: c, Archive: Tar(Signed(e, func(m string) string {
			if !strings.Contains(m, old) {
				panic(fmt.Sprintf("archivetest: %s: no %q in %q", name, old, m))
			}
			return strings.Replace(m, old, now, 1)
		})...)}
	}
	changed := func(name string, c ota.Code, i int, body []byte) Fault {
		out := slices.Clone(e)
		out[i].Body = body
		return Fault{Name: name, Code: c, Archive: Tar(out...)}
	}
	other := Entries(Make(manifest.Manifest{Version: "2.0.1.6077"}, Production(), ""))
	return []Fault{
		edited("unknown manifest version", ota.BadManifest, "manifest_version=1.0.0", "manifest_version=1.1.0"),
		edited("wrong number of images", ota.BadManifest, "num_images=2", "num_images=3"),
		{Name: "no image section SYSTEM", Code: ota.BadManifest, Archive: Tar(Signed(e, func(m string) string { m, _, _ = strings.Cut(m, "\n[SYSTEM]"); return m })...)},
		edited("sections of two kinds", ota.BadManifest, "[SYSTEM]", "[RECOVERY]"),
		edited("no META", ota.BadManifest, "[META]", "[MATE]"),
		edited("line that is no key", ota.BadManifest, "wbits=31", "wbits"),
		edited("length of no image", ota.BadManifest, "bytes=", "bytes=-"),
		edited("short hash", ota.BadManifest, "sha256=", "sha256=#"),
		edited("delta section in a full update", ota.BadManifest, "delta=0", "delta=1"),
		edited("manifest too long", ota.BadManifest, "[META]", strings.Repeat("#\n", manifest.MaxSize)+"[META]"),
		edited("version that is none", ota.WrongVersion, "update_version=2.0.1.6076", "update_version=2.0.1"),
		edited("unknown compression", ota.BadCompression, "compression=gz", "compression=xz"),
		edited("unknown encryption", ota.BadEncryption, "encryption=0", "encryption=2"),
		changed("manifest changed after it was signed", ota.NotAuthentic, 0, bytes.Replace(e[0].Body, []byte("ankidev=0"), []byte("ankidev=1"), 1)),
		changed("signature of another manifest", ota.NotAuthentic, 1, other[1].Body),
		changed("signature of another key", ota.NotAuthentic, 1, must(manifest.Sign(otherKey(), e[0].Body))),
		changed("empty signature", ota.NotAuthentic, 1, nil),
		changed("signature too long", ota.NotAuthentic, 1, make([]byte, manifest.MaxSignature+1)),
	}
}

// tarFaults have code 204.
func tarFaults(whole []byte, e []Entry) []Fault {
	fault := func(name string, archive []byte) Fault {
		return Fault{Name: name, Code: ota.BadArchive, Archive: archive}
	}
	with := func(i int, entry Entry) []byte {
		out := slices.Clone(e)
		out[i] = entry
		return Tar(out...)
	}
	damaged := slices.Clone(whole)
	damaged[bytes.Index(damaged, []byte(manifest.System.File()))+101] ^= 1 // the mode
	return []Fault{
		fault("empty", nil),
		fault("web page", []byte("<!doctype html><title>Not found</title>"+strings.Repeat("\n", 2000))),
		fault("cut in the manifest", whole[:700]),
		fault("cut in an image", whole[:len(whole)-9000]),
		fault("cut at the start of an image", whole[:bytes.Index(whole, []byte(manifest.System.File()))]),
		fault("damaged tar header", damaged),
		fault("symbolic link for a manifest", with(0, Entry{Name: archive.ManifestFile, Link: "/etc/passwd"})),
		fault("symbolic link for an image", with(3, Entry{Name: manifest.System.File(), Link: "/dev/zero"})),
		fault("sparse file for an image", sparse(e)),
		fault("image file too long", with(3, Entry{Name: manifest.System.File(), Body: make([]byte, 2*len(Production()[manifest.System]))})),
		fault("data after the end", append(slices.Clone(whole), "and more"...)),
		fault("archive after the end", append(slices.Clone(whole), whole...)),
	}
}

// sparse returns an archive whose last file is said to have holes, in the form of GNU tar 1.0.
func sparse(e []Entry) []byte {
	var out bytes.Buffer
	out.Write(bytes.TrimRight(Tar(e[:3]...), "\x00"))
	out.Write(make([]byte, (512-out.Len()%512)%512))
	records := ""
	for _, kv := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=" + manifest.System.File(), "GNU.sparse.realsize=70000"} {
		n := len(kv) + 4 // with two digits, a space and the newline
		records += fmt.Sprintf("%d %s\n", n, kv)
	}
	body := make([]byte, 512)
	copy(body, "1\n0\n0\n")
	extended := Tar(Entry{Name: "PaxHeaders/x", Body: []byte(records)}, Entry{Name: "GNUSparseFile.0/x", Body: body})
	extended[156] = tar.TypeXHeader
	// The checksum is the sum of the header with spaces in its own place.
	copy(extended[148:], "        ")
	sum := 0
	for _, b := range extended[:512] {
		sum += int(b)
	}
	copy(extended[148:], fmt.Sprintf("%06o\x00 ", sum))
	out.Write(extended)
	return out.Bytes()
}

// imageFaults have signed manifests and images that are not theirs.
func imageFaults(e []Entry) []Fault {
	fault := func(name string, c ota.Code, system []byte) Fault {
		out := slices.Clone(e)
		out[3].Body = system
		return Fault{Name: name, Code: c, Archive: Tar(out...)}
	}
	image := Production()[manifest.System]
	changed := slices.Clone(image)
	changed[len(changed)/2] ^= 1
	packed := e[3].Body
	flipped, crc := slices.Clone(packed), slices.Clone(packed)
	flipped[10] |= 6 // the first block is of the kind that does not exist
	crc[len(crc)-8] ^= 1
	swapped := Entries(Make(manifest.Manifest{}, map[manifest.Part][]byte{manifest.Boot: Image(7, 9000), manifest.System: Image(8, 9000)}, ""))
	swapped[2].Body, swapped[3].Body = swapped[3].Body, swapped[2].Body
	return []Fault{
		fault("image changed", ota.NotAuthentic, Gzip(changed)),
		fault("image too short", ota.NotAuthentic, Gzip(image[:len(image)-1])),
		fault("image too long", ota.NotAuthentic, Gzip(append(slices.Clone(image), 0))),
		fault("decompression bomb", ota.NotAuthentic, Gzip(append(slices.Clone(image), make([]byte, 16<<20)...))),
		{Name: "contents of the images exchanged", Code: ota.NotAuthentic, Archive: Tar(swapped...)},
		fault("image that is not compressed", ota.BadCompression, image),
		fault("empty image file", ota.BadCompression, nil),
		fault("image damaged", ota.BadCompression, flipped),
		fault("image cut inside its file", ota.BadCompression, packed[:len(packed)/2]),
		fault("wrong CRC", ota.BadCompression, crc),
		fault("data after the compressed image", ota.BadCompression, append(slices.Clone(packed), "more"...)),
	}
}

// encryptionFaults are about encrypted images.
func encryptionFaults() []Fault {
	const password = "test password"
	whole := Make(manifest.Manifest{}, Production(), password)
	plain := Entries(Make(manifest.Manifest{}, Production(), ""))
	naked, short := Entries(whole), Entries(whole)
	naked[2].Body = plain[2].Body
	short[2].Body = short[2].Body[:12]
	return []Fault{
		{Name: "encrypted, no password", Code: ota.BadEncryption, Archive: whole},
		{Name: "encrypted with another password", Code: ota.BadCompression, Archive: whole, Password: "another"},
		{Name: "said to be encrypted, is not", Code: ota.BadEncryption, Archive: Tar(naked...), Password: password},
		{Name: "salt cut", Code: ota.BadEncryption, Archive: Tar(short...), Password: password},
	}
}

// deviceFaults are sound archives that the robot of the tests must refuse.
func deviceFaults() []Fault {
	fault := func(name string, c ota.Code, m manifest.Manifest, images map[manifest.Part][]byte) Fault {
		return Fault{Name: name, Code: c, Sound: true, Archive: Make(m, images, "")}
	}
	delta := map[manifest.Part][]byte{manifest.Changes: []byte("this is no delta")}
	base := func(v ota.Version) manifest.Manifest { return manifest.Manifest{Images: []manifest.Image{{Base: v}}} }
	return []Fault{
		fault("delta that is none", ota.BadDelta, base(Running), delta),
		fault("delta for another version", ota.WrongBase, base("1.7.0.3412"), delta),
		fault("update for another robot", ota.WrongUnit, manifest.Manifest{QSN: "00e20199"}, Production()),
		fault("factory update for another robot", ota.WrongUnit, manifest.Manifest{QSN: "00e20199"}, Factory()),
		fault("development release", ota.WrongKind, manifest.Manifest{Dev: true}, Production()),
		fault("release with the suffix of developers", ota.WrongVersion, manifest.Manifest{Version: Version + "d"}, Production()),
		fault("older release", ota.WrongVersion, manifest.Manifest{Version: "1.7.9.9999"}, Production()),
	}
}
