package kitapp

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/thing"
	"kennel/ota/archive"
	"kennel/ota/trust"
)

func otaTrustCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trust",
		Short: "Create and sign release metadata, which says what robots may install",
		Long: `Create and sign release metadata: root names the keys of all roles, targets names the keys of channels, and channels name archives. Sign here what the
cloud does not sign itself, then upload it with kennelctl releases trust upload. Robots get the first root as anki/etc/tuf/root.json. Keys are Ed25519,
ECDSA P-256 or RSA.`,
		Example: `  openssl genpkey -algorithm ed25519 -out anna.key
  robotkit ota trust init tuf -role root=2:anna.key,ben.pub,carla.pub -role timestamp=cloud.pub -role snapshot=cloud.pub -role targets=anna.key \
    -role prod=2:anna.key,ben.pub -role dev=cloud.pub -key anna.key
  robotkit ota trust sign tuf/1.root.json -key ben.key
  robotkit ota trust sign tuf/prod.json -add 2.0.1.6076.ota -key anna.key
  robotkit ota trust rotate tuf/1.root.json -role timestamp=new.pub -key anna.key
  robotkit ota trust show tuf/2.root.json`,
	}
	cmd.AddCommand(trustInitCommand(), trustSignCommand(), trustRotateCommand(), trustShowCommand())
	return cmd
}

const day = 24 * time.Hour

// trustFlags are the flags of commands that sign.
type trustFlags struct {
	keys, roles []string
	days        int
}

func (f *trustFlags) add(cmd *cobra.Command, roles bool, days int) {
	cmd.Flags().StringArrayVar(&f.keys, "key", nil, keyHelp+"; may be repeated")
	cmd.Flags().IntVar(&f.days, "days", days, "`number` of days until the metadata expires")
	if roles {
		cmd.Flags().StringArrayVar(&f.roles, "role", nil, "signers of a role or channel, `ROLE=[THRESHOLD:]KEY,...`; a key is a file with a public or private key, or awskms:")
	}
}

// signed signs metadata with the keys.
func (f *trustFlags) signed(b []byte, err error) ([]byte, error) {
	for _, source := range f.keys {
		if err != nil {
			break
		}
		var key crypto.Signer
		if key, err = signer(source); err == nil {
			b, err = trust.Sign(b, key)
		}
	}
	return b, err
}

// parse returns the roles of root and the channels apart.
func (f *trustFlags) parse() (roles, channels map[string]trust.Role, err error) {
	roles, channels = map[string]trust.Role{}, map[string]trust.Role{}
	for _, text := range f.roles {
		name, list, ok := strings.Cut(text, "=")
		if !ok {
			return nil, nil, cli.Usage("-role %q: want ROLE=[THRESHOLD:]KEY,...", text)
		}
		r := trust.Role{Threshold: 1}
		if n, rest, ok := strings.Cut(list, ":"); ok {
			if k, err := strconv.Atoi(n); err == nil {
				r.Threshold, list = k, rest
			}
		}
		for source := range strings.SplitSeq(list, ",") {
			key, err := publicKey(source)
			if err != nil {
				return nil, nil, fmt.Errorf("-role %s: %w", name, err)
			}
			r.Keys = append(r.Keys, key)
		}
		if slices.Contains(trust.Channels, name) {
			channels[name] = r
		} else {
			roles[name] = r
		}
	}
	return roles, channels, nil
}

// publicKey reads a public key, or the public half of a private one.
func publicKey(source string) (crypto.PublicKey, error) {
	if text, err := readFile(source); err == nil {
		if block, _ := pem.Decode(text); block != nil && block.Type == "PUBLIC KEY" {
			return x509.ParsePKIXPublicKey(block.Bytes)
		}
	}
	key, err := signer(source)
	if err != nil {
		return nil, err
	}
	return key.Public(), nil
}

func (f *trustFlags) expires() time.Time { return time.Now().Add(time.Duration(f.days) * day) }

// write replaces a file and shows it.
func write(cmd *cobra.Command, name string, b []byte) error {
	if err := replace(name, func(w io.Writer) error { _, err := w.Write(b); return err }); err != nil {
		return err
	}
	return showTrust(cmd, name, b)
}

func trustInitCommand() *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Create the first root and targets",
		Long:  `Create DIR/1.root.json and DIR/targets.json. Each needs as many signatures as its role says: here with -key, or later with sign.`,
		Example: `  robotkit ota trust init tuf -role root=2:anna.key,ben.pub,carla.pub -role timestamp=cloud.pub -role snapshot=cloud.pub \
    -role targets=anna.key -role prod=anna.key -role dev=cloud.pub -key anna.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			roles, channels, err := f.parse()
			if err != nil {
				return err
			}
			for _, name := range []string{"root", "targets", "snapshot", "timestamp"} {
				if len(roles[name].Keys) == 0 {
					return cli.Usage("-role %s=...: want keys for root, targets, snapshot and timestamp", name)
				}
			}
			root, err := f.signed(trust.EditRoot(nil, roles, f.expires()))
			if err != nil {
				return cli.Usage("%w", err)
			}
			targets, err := f.signed(trust.EditTargets(1, nil, channels, f.expires()))
			if err != nil {
				return cli.Usage("%w", err)
			}
			return errors.Join(write(cmd, filepath.Join(args[0], "1.root.json"), root), write(cmd, filepath.Join(args[0], "targets.json"), targets))
		},
	}
	f.add(cmd, true, 365)
	return cmd
}

func trustRotateCommand() *cobra.Command {
	var f trustFlags
	cmd := &cobra.Command{
		Use:   "rotate FILE",
		Short: "Change the keys of roles or channels",
		Long: `Create the next version of root, in a new file, or of targets.json, in place, with other keys for the given roles. A new root needs signatures by the old
and the new keys. Without -role only the expiry date changes.`,
		Example: `  robotkit ota trust rotate tuf/1.root.json -role timestamp=new.pub -key anna.key -key ben.key
  robotkit ota trust rotate tuf/targets.json -role prod=2:anna.key,ben.pub -key anna.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			roles, channels, err := f.parse()
			if err != nil {
				return err
			}
			old, err := readFile(args[0])
			if err != nil {
				return err
			}
			name, b := args[0], []byte(nil)
			if trust.HeadOf(old).Signed.Type == "root" {
				if len(channels) > 0 {
					return cli.Usage("-role: keys of channels are in targets.json")
				}
				name = filepath.Join(filepath.Dir(name), fmt.Sprintf("%d.root.json", trust.Version(old)+1))
				b, err = f.signed(trust.EditRoot(old, roles, f.expires()))
			} else {
				if len(roles) > 0 {
					return cli.Usage("-role: keys of root, targets, snapshot and timestamp are in N.root.json")
				}
				b, err = f.signed(trust.EditTargets(trust.Version(old)+1, old, channels, f.expires()))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return write(cmd, name, b)
		},
	}
	f.add(cmd, true, 365)
	return cmd
}

func trustSignCommand() *cobra.Command {
	var f trustFlags
	var add, remove []string
	var species string
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Sign metadata, or change a channel's archives",
		Long: `Add signatures to metadata. With -add, -remove or -days, FILE is a channel such as prod.json, created if missing: its next version has those archives and no
earlier signatures.`,
		Example: `  robotkit ota trust sign tuf/prod.json -add 2.0.1.6076.ota -key anna.key
  robotkit ota trust sign tuf/prod.json -key ben.key`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readFile(args[0])
			if len(add)+len(remove) == 0 && !cmd.Flags().Changed("days") {
				if err == nil {
					b, err = f.signed(b, nil)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
				return write(cmd, args[0], b)
			}
			targets := map[string]trust.Target{}
			if err == nil {
				if targets, err = trust.ChannelTargets(b); err != nil {
					return fmt.Errorf("%s: %w", args[0], err)
				}
			}
			for _, path := range remove {
				if _, ok := targets[path]; !ok {
					return cli.Usage("-remove %s: %s does not name it", path, args[0])
				}
				delete(targets, path)
			}
			for _, name := range add {
				path, t, err := targetOf(cmd, name, thing.Species(species))
				if err != nil {
					return fmt.Errorf("-add %s: %w", name, err)
				}
				targets[path] = t
			}
			if b, err = f.signed(trust.EditChannel(trust.Version(b)+1, targets, f.expires())); err != nil {
				return err
			}
			return write(cmd, args[0], b)
		},
	}
	f.add(cmd, false, 90)
	cmd.Flags().StringArrayVar(&add, "add", nil, "add this `archive`; may be repeated")
	cmd.Flags().StringArrayVar(&remove, "remove", nil, "remove the archive at `PATH`, as printed by show; may be repeated")
	cmd.Flags().StringVar(&species, "species", string(thing.Vector), "`SPECIES` of the archives")
	return cmd
}

// targetOf returns how metadata name an archive.
func targetOf(cmd *cobra.Command, name string, species thing.Species) (path string, t trust.Target, err error) {
	f, err := newProgress(cmd, "read").open(name)
	if err != nil {
		return "", t, err
	}
	defer f.Close()
	sum := sha256.New()
	var head bytes.Buffer
	a, err := archive.Open(io.TeeReader(f, io.MultiWriter(sum, &head)), archive.Options{Unverified: true})
	if err != nil {
		return "", t, err
	}
	n, err := io.Copy(sum, f)
	t.Length = int64(head.Len()) + n
	copy(t.SHA256[:], sum.Sum(nil))
	m := a.Manifest
	return trust.Path(species, string(m.Version), string(m.Kind()), string(m.Images[0].Base), m.QSN), t, err
}

func trustShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show FILE",
		Short:   "Show release metadata",
		Long:    `Show release metadata without verifying anything.`,
		Example: `  robotkit ota trust show tuf/prod.json`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readFile(args[0])
			if err != nil {
				return err
			}
			return showTrust(cmd, args[0], b)
		},
	}
}

// shown is the output of these commands.
type shown struct {
	File    string                  `json:"file"`
	Type    string                  `json:"type"`
	Version int64                   `json:"version"`
	Expires time.Time               `json:"expires"`
	Signed  []string                `json:"signed_by"` // ids of keys
	Roles   map[string]signers      `json:"roles,omitempty"`
	Targets map[string]trust.Target `json:"archives,omitempty"`
}

type signers struct {
	Threshold int      `json:"threshold"`
	Keys      []string `json:"keys"`
}

func showTrust(cmd *cobra.Command, name string, b []byte) error {
	h := trust.HeadOf(b)
	if h.Signed.Type == "" {
		return fmt.Errorf("%s: not release metadata", name)
	}
	s := shown{File: name, Type: h.Signed.Type, Version: h.Signed.Version, Expires: h.Signed.Expires, Roles: map[string]signers{}}
	for _, sig := range h.Signatures {
		s.Signed = append(s.Signed, sig.KeyID)
	}
	k := trust.Known{Root: b, Roles: map[string][]byte{"targets": b}}
	for _, role := range append([]string{"root", "targets", "snapshot", "timestamp"}, trust.Channels...) {
		if ids, n := k.Signers(role); n > 0 {
			s.Roles[role] = signers{n, ids}
		}
	}
	if s.Type == "targets" {
		var err error
		if s.Targets, err = trust.ChannelTargets(b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return cli.Print(cmd, s, func(t *cli.Table) {
		t.Row("FILE", s.File)
		t.Row("TYPE", s.Type)
		t.Row("VERSION", s.Version)
		t.Row("EXPIRES", s.Expires.Format(time.RFC3339))
		for _, id := range s.Signed {
			t.Row("SIGNED BY", id)
		}
		for _, role := range slices.Sorted(maps.Keys(s.Roles)) {
			t.Row("ROLE", role, fmt.Sprintf("%d of", s.Roles[role].Threshold), strings.Join(s.Roles[role].Keys, " "))
		}
		for _, path := range slices.Sorted(maps.Keys(s.Targets)) {
			t.Row("ARCHIVE", path, fmt.Sprintf("%d bytes", s.Targets[path].Length), "sha256 "+s.Targets[path].SHA256.String())
		}
	})
}
