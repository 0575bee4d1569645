package ca

import (
	"bytes"
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/certs/internal/pemfile"
)

// Endings of file names.
const (
	crtEnd       = ".crt"
	keyEnd       = ".key"
	kmsEnd       = ".kms"
	currentEnd   = ".current"
	withdrawnEnd = ".withdrawn" // replaces crtEnd; the number is not used again
)

// maxGenerations bounds how many authorities of one kind are trusted at a time: each is looked at for every stranger's certificate.
const maxGenerations = 8

// line is the trusted authorities of one kind, oldest first.
type line struct {
	kind   kind
	gens   []*generation
	signs  int // index of the signing authority
	burned int // the highest number in use or used up
}

// generation is one authority: one key, and one certificate for each root that vouches for it.
type generation struct {
	name   string // such as device-1
	number int
	certs  []*x509.Certificate // same name and key; the signing root's first
	key    crypto.Signer       // nil: not here
	kms    bool                // the key is in a key management service
}

func (g *generation) cert() *x509.Certificate { return g.certs[0] }

func (l line) current() *generation { return l.gens[l.signs] }

// ordered returns the signing authority, then the others.
func (l line) ordered() []*generation {
	out := []*generation{l.current()}
	for i, g := range l.gens {
		if i != l.signs {
			out = append(out, g)
		}
	}
	return out
}

// each returns one certificate of each.
func (l line) each() []*x509.Certificate {
	var out []*x509.Certificate
	for _, g := range l.ordered() {
		out = append(out, g.cert())
	}
	return out
}

func (l line) find(name string) (*generation, bool) {
	i := slices.IndexFunc(l.gens, func(g *generation) bool { return g.name == name })
	if i < 0 {
		return nil, false
	}
	return l.gens[i], true
}

func (s *state) line(k Kind) (*line, error) {
	switch k {
	case Root:
		return &s.root, nil
	case Device:
		return &s.device, nil
	case Server:
		return &s.server, nil
	case Service:
		return &s.service, nil
	}
	return nil, fmt.Errorf("authority %.40q: want root, device, server or service", string(k))
}

// issuing returns the lines below the root.
func (s *state) issuing() []*line { return []*line{&s.device, &s.server, &s.service} }

// Init makes the missing files in dir and returns the authority: a new one in an empty folder, the completion of an interrupted Init, or
// the existing one. Only one process may run it at a time. Its error names a file that it cannot complete: a certificate whose key is gone,
// a key that does not fit.
func Init(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return open(dir, true)
}

// Load returns the authority that Init made in dir. The error names the file that is missing, damaged or does not fit.
func Load(dir string) (*Authority, error) { return open(dir, false) }

func open(dir string, create bool) (*Authority, error) {
	a := &Authority{dir: dir}
	err := a.within(func(folder *os.Root) error {
		s, err := read(folder, create)
		if err != nil {
			return err
		}
		if create {
			if err := s.vouch(folder); err != nil {
				return err
			}
		}
		a.cur.Store(s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// within gives fn the folder, and its error the folder's name.
func (a *Authority) within(fn func(*os.Root) error) error {
	folder, err := os.OpenRoot(a.dir)
	if err != nil {
		return fmt.Errorf("certificate authority: %w", err)
	}
	defer folder.Close() // everything was synced
	if err := fn(folder); err != nil {
		return fmt.Errorf("certificate authority in %s: %w", a.dir, err)
	}
	return nil
}

// read reads the folder. If create is set it first makes the missing files.
func read(folder *os.Root, create bool) (*state, error) {
	s := &state{}
	var err error
	if s.root, err = readLine(folder, rootKind, nil, create); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		kind kind
		to   *line
	}{{deviceKind, &s.device}, {serverKind, &s.server}, {serviceKind, &s.service}} {
		if *x.to, err = readLine(folder, x.kind, &s.root, create); err != nil {
			return nil, err
		}
	}
	s.roots, s.devices, s.services = pool(s.root.each()...), pool(s.device.each()...), pool(s.service.each()...)
	s.seen, err = digest(folder)
	return s, err
}

// readLine reads the authorities of one kind. roots is nil for the roots themselves, whose keys are optional once they exist.
func readLine(folder *os.Root, k kind, roots *line, create bool) (line, error) {
	l := line{kind: k}
	numbers, burned, err := numbersOf(folder, k.file)
	if err != nil {
		return l, err
	}
	l.burned = burned
	if len(numbers) == 0 {
		if err := makeFirst(folder, k, roots, create); err != nil {
			return l, err
		}
		numbers = []int{0}
	}
	if len(numbers) > maxGenerations {
		return l, fmt.Errorf("%d authorities of the kind %s: want at most %d; withdraw the oldest", len(numbers), k.file, maxGenerations)
	}
	for _, n := range numbers {
		g, err := readGeneration(folder, k.file, n, roots)
		if err != nil {
			return l, err
		}
		for _, other := range l.gens {
			if bytes.Equal(other.cert().RawSubjectPublicKeyInfo, g.cert().RawSubjectPublicKeyInfo) {
				return l, fmt.Errorf("%s and %s are the same authority: remove one of the files", other.name+crtEnd, g.name+crtEnd)
			}
		}
		l.gens = append(l.gens, g)
	}
	marker := string(k.file) + currentEnd
	b, err := pemfile.Read(folder, marker)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return l, err
	default:
		n, err := parseMarker(k.file, b)
		if err != nil {
			return l, fmt.Errorf("%s: %w", marker, err)
		}
		if l.signs = slices.Index(numbers, n); l.signs < 0 {
			return l, fmt.Errorf("%s names %s, which has no certificate", marker, nameOf(k.file, n))
		}
	}
	if roots != nil && l.current().key == nil {
		name := l.current().name
		return l, fmt.Errorf("%s exists, but %s does not: restore it from a backup", name+crtEnd, name+keyEnd)
	}
	return l, nil
}

// nameOf: the first of a kind has no number.
func nameOf(k Kind, n int) string {
	if n == 0 {
		return string(k)
	}
	return string(k) + "-" + strconv.Itoa(n)
}

// parseName is the inverse of nameOf.
func parseName(k Kind, name string) (int, bool) {
	if name == string(k) {
		return 0, true
	}
	digits, ok := strings.CutPrefix(name, string(k)+"-")
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n > 0 && n < 1_000_000 && nameOf(k, n) == name
}

// parseMarker reads which authority signs.
func parseMarker(k Kind, b []byte) (int, error) {
	text := strings.TrimSpace(string(b))
	n, ok := parseName(k, text)
	if !ok {
		return 0, fmt.Errorf("%.60q: want %s, or %s-N", text, k, k)
	}
	return n, nil
}

// numbersOf lists the numbers that have a certificate, ascending, and the highest that is used up.
func numbersOf(folder *os.Root, k Kind) (numbers []int, burned int, err error) {
	entries, err := fs.ReadDir(folder.FS(), ".")
	if err != nil {
		return nil, 0, err
	}
	for _, e := range entries {
		for _, end := range []string{crtEnd, withdrawnEnd} {
			base, ok := strings.CutSuffix(e.Name(), end)
			n, ours := parseName(k, base)
			if !ok || !ours {
				continue
			}
			if burned = max(burned, n); end == crtEnd {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, burned, nil
}

// makeFirst makes the first authority of a kind.
func makeFirst(folder *os.Root, k kind, roots *line, create bool) error {
	crtName := string(k.file) + crtEnd
	switch {
	case !create:
		return fmt.Errorf("%s is missing: the authority was never created here, or its creation was interrupted", crtName)
	case roots != nil && roots.current().key == nil:
		return fmt.Errorf("%s is missing, and so is %s, which would sign it", crtName, roots.current().name+keyEnd)
	}
	return makeGeneration(folder, k, 0, roots, "")
}

// makeGeneration makes authority n of a kind: key first, unless there is one, then certificates. kms names its key; "": a file of ours.
func makeGeneration(folder *os.Root, k kind, n int, roots *line, kms string) error {
	name := nameOf(k.file, n)
	key, _, err := readKey(folder, name)
	if err != nil {
		return err
	}
	switch {
	case key != nil:
	case kms != "":
		if key, err = openKMS(kms); err != nil {
			return fmt.Errorf("%s: %w", name+kmsEnd, err)
		}
		if err := pemfile.Write(folder, name+kmsEnd, []byte(kms+"\n"), 0o600); err != nil {
			return err
		}
	default:
		made, err := newKey()
		if err != nil {
			return err
		}
		b, err := pemfile.EncodeKey(made)
		if err != nil {
			return err
		}
		if err := pemfile.Write(folder, name+keyEnd, b, 0o600); err != nil {
			return err
		}
		key = made
	}
	var certs []*x509.Certificate
	if roots == nil {
		c, err := k.sign(key, nil)
		if err != nil {
			return fmt.Errorf("make %s: %w", name+crtEnd, err)
		}
		certs = append(certs, c)
	} else {
		for _, root := range roots.ordered() {
			if root.key == nil { // kept elsewhere; robots that know only that root do not accept this authority
				continue
			}
			c, err := k.sign(key, root)
			if err != nil {
				return fmt.Errorf("make %s: %w", name+crtEnd, err)
			}
			certs = append(certs, c)
		}
	}
	return pemfile.Write(folder, name+crtEnd, pemfile.EncodeChain(certs...), 0o644)
}

func readGeneration(folder *os.Root, k Kind, n int, roots *line) (*generation, error) {
	g := &generation{name: nameOf(k, n), number: n}
	crtName := g.name + crtEnd
	b, err := pemfile.Read(folder, crtName)
	if err != nil {
		return nil, err
	}
	if g.certs, err = pemfile.ParseChain(b); err != nil {
		return nil, fmt.Errorf("%s: %w", crtName, err)
	}
	if g.key, g.kms, err = readKey(folder, g.name); err != nil {
		return nil, err
	}
	if g.key != nil && !pemfile.SameKey(g.key, g.cert().PublicKey) {
		return nil, fmt.Errorf("%s does not belong to %s", g.keyName(), crtName)
	}
	if roots == nil {
		if len(g.certs) != 1 {
			return nil, fmt.Errorf("%s holds %d certificates: want one", crtName, len(g.certs))
		}
		return g, nil
	}
	rank := map[*x509.Certificate]int{}
	for _, c := range g.certs {
		if !bytes.Equal(c.RawSubjectPublicKeyInfo, g.cert().RawSubjectPublicKeyInfo) || !bytes.Equal(c.RawSubject, g.cert().RawSubject) {
			return nil, fmt.Errorf("%s holds certificates of several authorities: want one name and one key", crtName)
		}
		rank[c] = slices.IndexFunc(roots.ordered(), func(r *generation) bool { return c.CheckSignatureFrom(r.cert()) == nil })
	}
	// A certificate that only a removed root vouches for is useless.
	g.certs = slices.DeleteFunc(g.certs, func(c *x509.Certificate) bool { return rank[c] < 0 })
	if len(g.certs) == 0 {
		return nil, fmt.Errorf("%s was not signed by %s", crtName, roots.current().name+crtEnd)
	}
	slices.SortStableFunc(g.certs, func(a, b *x509.Certificate) int { return rank[a] - rank[b] })
	return g, nil
}

func (g *generation) keyName() string {
	if g.kms {
		return g.name + kmsEnd
	}
	return g.name + keyEnd
}

// readKey returns the key of an authority, nil if it is not here.
func readKey(folder *os.Root, name string) (key crypto.Signer, kms bool, err error) {
	uri, err := pemfile.Read(folder, name+kmsEnd)
	inKMS := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, err
	}
	b, err := pemfile.Read(folder, name+keyEnd)
	switch {
	case err == nil && inKMS:
		return nil, false, fmt.Errorf("both %s and %s exist: want one", name+keyEnd, name+kmsEnd)
	case inKMS && errors.Is(err, fs.ErrNotExist):
		key, err := openKMS(string(uri))
		if err != nil {
			return nil, true, fmt.Errorf("%s: %w", name+kmsEnd, err)
		}
		return key, true, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	if key, err = pemfile.ParseKey(b); err != nil {
		return nil, false, fmt.Errorf("%s: %w", name+keyEnd, err)
	}
	return key, false, nil
}

// digest returns a hash of the folder's content.
func digest(folder *os.Root) (sum [sha256.Size]byte, err error) {
	entries, err := fs.ReadDir(folder.FS(), ".") // sorted
	if err != nil {
		return sum, err
	}
	h := sha256.New()
	for _, e := range entries {
		if !slices.ContainsFunc([]string{crtEnd, keyEnd, kmsEnd, currentEnd}, func(end string) bool { return strings.HasSuffix(e.Name(), end) }) {
			continue
		}
		b, err := pemfile.Read(folder, e.Name())
		if err != nil {
			return sum, err
		}
		fmt.Fprintf(h, "%s %d\n%s", e.Name(), len(b), b)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// Reload reads the folder again and reports whether anything changed. If the folder does not load, the last state stays in force.
func (a *Authority) Reload() (changed bool, err error) {
	err = a.within(func(folder *os.Root) error {
		sum, err := digest(folder)
		if err != nil || sum == a.now().seen {
			return err
		}
		s, err := read(folder, false)
		if err != nil {
			return err
		}
		a.cur.Store(s)
		changed = true
		return nil
	})
	return changed, err
}

// reloadEvery is how soon a process follows another one that rotates: the pause between Prepare and Activate must be longer.
const reloadEvery = 5 * time.Second

// Run follows the folder until ctx ends. onChange is called after each change, to write what brokers read (DeviceBundle, Anchors); it may
// be nil. trouble is called once for a folder that does not load.
func (a *Authority) Run(ctx context.Context, onChange func(), trouble func(error)) error {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	said := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		changed, err := a.Reload()
		if err != nil && !said && trouble != nil {
			trouble(err)
		}
		if said = err != nil; changed && onChange != nil {
			onChange()
		}
	}
}
