package onebox

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/certs/ca/cacmd"
	"kennel/cloud/app/identity"
	"kennel/infra/atomicfile"
	"kennel/infra/errs"
	"kennel/infra/mqtt/brokeradmin/mosquitto"
	"kennel/infra/secretbox"
)

// partTTL is the life of the certificates of parts that cannot ask for a new one themselves: a year, renewed by Install in the last third.
const partTTL = 365 * 24 * time.Hour

// Install writes what the parts of an installation need before the first of them starts: authorities, certificates and passwords, in one
// folder for each part, so that each sees only its own. Doing it again keeps what is there and renews certificates that near their end.
//
//	ca/         the authorities with root.key, for no running part: take root.key to a safe place
//	kenneld/    ca/ (without root.key), postgres-password, s3-access-key, s3-secret-key
//	postgres/   server.crt, server.key, superuser-password, kennel-password
//	broker/     server.crt, server.key, device-anchor.crt, service-anchor.crt, security/security.json (Mosquitto writes it from then on)
//	lists/      device.crl, whom the broker refuses: empty at first; kenneld writes it from then on
//	s3/         access-key, secret-key
//	proxy/      root.crt
//	operator/   root.crt; kenneld prepare adds the first password
type Install struct {
	Dir    string
	Names  []string         // how robots and people call the installation; certificates also name localhost and the part itself
	Owners map[string]Owner // by part; others keep the account that runs this
}

// Owner is the account of a part.
type Owner struct{ UID, GID int }

// installParts lists the folders that may have an owner.
var installParts = []string{"kenneld", "postgres", "broker", "s3", "proxy", "operator"}

// Set takes one "part=uid:gid".
func (in *Install) Set(s string) error {
	part, account, ok := strings.Cut(s, "=")
	u, g, both := strings.Cut(account, ":")
	uid, uerr := strconv.ParseUint(u, 10, 31)
	gid, gerr := strconv.ParseUint(g, 10, 31)
	if !ok || !both || uerr != nil || gerr != nil || !slices.Contains(installParts, part) {
		return errs.New(errs.Invalid, "-owner %.80q: want part=UID:GID, part one of %s", s, strings.Join(installParts, ", "))
	}
	if in.Owners == nil {
		in.Owners = map[string]Owner{}
	}
	in.Owners[part] = Owner{int(uid), int(gid)}
	return nil
}

// Run writes the files.
func (in Install) Run() error {
	if err := os.MkdirAll(in.Dir, 0o755); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	authority, err := ca.Init(filepath.Join(in.Dir, "ca"))
	if err != nil {
		return err
	}
	if _, err := secretbox.Init(identity.CAConfig{Dir: filepath.Join(in.Dir, "ca")}.SealPath()); err != nil {
		return err
	}
	root, err := os.OpenRoot(in.Dir)
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer root.Close() // every file was synced
	w := installer{Install: in, root: root, ca: authority}
	if err := errors.Join(w.kenneld(), w.postgres(), w.broker(), w.lists(time.Now()), w.s3(), w.public()); err != nil {
		return fmt.Errorf("install in %s: %w", in.Dir, err)
	}
	return nil
}

type installer struct {
	Install
	root *os.Root
	ca   *ca.Authority
}

func (w installer) kenneld() error {
	entries, err := fs.ReadDir(w.root.FS(), "ca")
	if err != nil {
		return err
	}
	var files []string
	for _, e := range entries {
		// A root's key signs nothing that a running part needs.
		if n := e.Name(); !e.IsDir() && !(strings.HasPrefix(n, "root") && !strings.HasSuffix(n, ".crt") && n != "root.current") {
			files = append(files, n)
		}
	}
	for _, f := range files {
		b, err := w.root.ReadFile("ca/" + f)
		if err != nil {
			return err
		}
		if err := w.file("kenneld", "ca/"+f, b); err != nil {
			return err
		}
	}
	return nil
}

func (w installer) postgres() error {
	return errors.Join(
		w.certificate("postgres"),
		w.secret("postgres/superuser-password"),
		w.secret("postgres/kennel-password", "kenneld/postgres-password"))
}

func (w installer) broker() error {
	return errors.Join(w.certificate("broker"), w.anchor(ca.Device), w.anchor(ca.Service), w.security())
}

// security gives Mosquitto the file in which its dynamic security plugin keeps who may do what. It is the plugin's from then on, so a good
// one stays as it is. Its folder is all that a part may write: what has its name there may be a link, which is not followed.
func (w installer) security() error {
	const folder, name = "broker/security", "broker/security/security.json"
	var b mosquitto.Broker
	good := func() bool {
		if fi, err := w.root.Lstat(name); err != nil || !fi.Mode().IsRegular() {
			return false
		}
		old, err := w.root.ReadFile(name)
		return err == nil && b.CheckSecurity(old) == nil
	}
	if !good() {
		seed, err := b.Security()
		if err != nil {
			return err
		}
		if err := atomicfile.Write(w.root, name, seed, 0o600, 0o700); err != nil {
			return err
		}
	}
	if err := w.root.Chmod(folder, 0o700); err != nil { // a container engine may have made it, for the mount
		return err
	}
	o, ok := w.Owners["broker"]
	if !ok {
		return nil
	}
	return errors.Join(w.root.Lchown(folder, o.UID, o.GID), w.root.Lchown(name, o.UID, o.GID))
}

// lists gives the broker an empty revocation list to start with. kenneld owns the list from then on, so a readable one is kept,
// even an expired one, with which the broker refuses every client until kenneld has written the next. Only kenneld may write there: a link
// with the list's name is not followed.
func (w installer) lists(now time.Time) error {
	const folder, name = "lists", "lists/device.crl"
	good := func() bool {
		if fi, err := w.root.Lstat(name); err != nil || !fi.Mode().IsRegular() {
			return false
		}
		old, err := w.root.ReadFile(name)
		if err != nil {
			return false
		}
		block, _ := pem.Decode(old)
		if block == nil {
			return false
		}
		_, err = x509.ParseRevocationList(block.Bytes)
		return err == nil
	}
	if !good() {
		lists, err := w.ca.DeviceCRLs(nil, 0, now.Add(-time.Hour)) // every list of kenneld is later
		if err != nil {
			return err
		}
		var b bytes.Buffer
		for _, l := range lists {
			_ = pem.Encode(&b, &pem.Block{Type: "X509 CRL", Bytes: l.DER}) // a buffer takes everything
		}
		if err := atomicfile.Write(w.root, name, b.Bytes(), 0o644, 0o755); err != nil {
			return err
		}
	}
	if err := w.root.Chmod(folder, 0o755); err != nil { // for the broker's account to read, which is another
		return err
	}
	o, ok := w.Owners["kenneld"]
	if !ok {
		return nil
	}
	return errors.Join(w.root.Lchown(folder, o.UID, o.GID), w.root.Lchown(name, o.UID, o.GID))
}

// anchor keeps, for brokers that can tell their listeners apart by it, a certificate that vouches for one authority alone.
func (w installer) anchor(kind ca.Kind) error {
	name := string(kind) + "-anchor.crt"
	b, err := w.ca.Anchors(kind, mosquitto.Anchor)
	if err != nil {
		return err
	}
	if old, err := w.root.ReadFile("broker/" + name); err == nil && slices.Equal(keysIn(old), keysIn(b)) {
		b = old // each making differs: signatures are random
	}
	return w.file("broker", name, b)
}

// keysIn lists the public keys of certificates in PEM.
func keysIn(b []byte) []string {
	var out []string
	for {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			return out
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, string(c.RawSubjectPublicKeyInfo))
		}
	}
}

func (w installer) s3() error {
	return errors.Join(w.secret("s3/access-key", "kenneld/s3-access-key"), w.secret("s3/secret-key", "kenneld/s3-secret-key"))
}

func (w installer) public() error {
	return errors.Join(w.file("proxy", "root.crt", w.ca.Root()), w.file("operator", "root.crt", w.ca.Root()))
}

// file writes part/name for the part's account alone, unless it is there already as it should be.
func (w installer) file(part, name string, b []byte) error {
	full := part + "/" + name
	if old, err := w.root.ReadFile(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	} else if err != nil || !bytes.Equal(old, b) {
		if err := atomicfile.Write(w.root, full, b, 0o400, 0o700); err != nil {
			return err
		}
	}
	for p := full; p != "."; p = filepath.Dir(p) {
		if err := w.own(part, p); err != nil {
			return err
		}
	}
	// A folder that another program created, such as a container engine for a mount, is closed too.
	return w.root.Chmod(part, 0o700)
}

func (w installer) own(part, name string) error {
	o, ok := w.Owners[part]
	if !ok {
		return nil
	}
	return w.root.Chown(name, o.UID, o.GID)
}

// secret keeps one random secret, made at the first call, in files of several parts; the first is the one that counts.
func (w installer) secret(files ...string) error {
	b, err := w.root.ReadFile(files[0])
	if errors.Is(err, fs.ErrNotExist) {
		b, err = []byte(rand.Text()+"\n"), nil
	}
	if err != nil {
		return err
	}
	for _, f := range files {
		part, name, _ := strings.Cut(f, "/")
		if err := w.file(part, name, b); err != nil {
			return err
		}
	}
	return nil
}

// certificate keeps a server certificate for a part. It issues a new one in the last third of its life, or when the names or the authority changed.
func (w installer) certificate(part string) error {
	names := unique(append([]string{part, "localhost", "127.0.0.1", "::1"}, w.Names...))
	if w.holds(part, names) {
		return errors.Join(w.reown(part, "server.crt"), w.reown(part, "server.key"))
	}
	pair, err := w.ca.IssueServer(names, partTTL)
	if err != nil {
		return err
	}
	return errors.Join(w.file(part, "server.key", pair.Key), w.file(part, "server.crt", pair.Chain))
}

// reown writes what is there, so that a changed account takes effect.
func (w installer) reown(part, name string) error {
	b, err := w.root.ReadFile(part + "/" + name)
	if err != nil {
		return err
	}
	return w.file(part, name, b)
}

// holds reports whether a part's certificate can stay.
func (w installer) holds(part string, names []string) bool {
	chain, err := w.root.ReadFile(part + "/server.crt")
	if err != nil {
		return false
	}
	key, err := w.root.ReadFile(part + "/server.key")
	if err != nil {
		return false
	}
	pair, err := ca.Pair{Chain: chain, Key: key}.TLS() // also checks that they belong together, should a kill have come between them
	if err != nil {
		return false
	}
	leaf := pair.Leaf
	between := x509.NewCertPool()
	for rest := chain; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil {
			between.AddCert(c)
		}
	}
	later := time.Now().Add(leaf.NotAfter.Sub(leaf.NotBefore) / 3)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: w.ca.RootPool(), Intermediates: between, CurrentTime: later}); err != nil {
		return false
	}
	for _, n := range names {
		if leaf.VerifyHostname(n) != nil {
			return false
		}
	}
	return true
}

func installCommand() *cobra.Command {
	var in Install
	var owners []string
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Create authorities, certificates and passwords for an installation of several parts",
		Long: `Create what the parts of an installation need before they start: certificate authorities, certificates and passwords, in one folder
per part. A later run keeps existing files and renews certificates of Postgres and the broker that are about to expire.`,
		Example: `  kenneld install -dir /srv/kennel/state -name kennel.example
  kenneld install -dir /state -name kennel.example -owner postgres=999:999 -owner broker=1883:1883`,
		Args: cobra.NoArgs,
		RunE: func(_ *cobra.Command, _ []string) error {
			for _, o := range owners {
				if err := in.Set(o); err != nil {
					return err
				}
			}
			return in.Run()
		},
	}
	f := cmd.Flags()
	f.StringVar(&in.Dir, "dir", "", "folder `DIR` to write to (required)")
	f.StringSliceVar(&in.Names, "name", nil, "host `NAME` or address of the cloud for robots and people (may be repeated)")
	f.StringArrayVar(&owners, "owner", nil, "owner of a part's files, `PART=UID:GID` (may be repeated)")
	_ = cmd.MarkFlagRequired("dir") // the flag exists
	return cmd
}

// caCommand makes the authorities alone, for installations that make their other files themselves.
func caCommand() *cobra.Command {
	var dir string
	initialise := &cobra.Command{
		Use:     "init",
		Short:   "Create the certificate authorities in a folder, or finish an interrupted creation",
		Example: "  kenneld ca init -dir /etc/kennel/ca",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := ca.Init(dir)
			if err != nil {
				return err
			}
			if _, err := secretbox.Init(identity.CAConfig{Dir: dir}.SealPath()); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s created in %s. Move root.key to a safe place (kenneld ca offline): no running program needs it.\n", a.RootName(), dir)
			return err
		},
	}
	initialise.Flags().StringVar(&dir, "dir", "", "folder `DIR` to write to (required)")
	_ = initialise.MarkFlagRequired("dir") // the flag exists
	cmd := &cobra.Command{Use: "ca", Short: "Manage the certificate authorities", Example: "  kenneld ca init -dir /etc/kennel/ca"}
	cmd.AddCommand(initialise)
	cmd.AddCommand(cacmd.Commands()...)
	return cmd
}

// untilWorks tries again while the other side is not there yet.
func untilWorks(ctx context.Context, try func() error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := try()
		if err == nil || errs.KindOf(err) != errs.Unavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
