package kitapp

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/manifest"
)

func otaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ota",
		Short: "Create, sign, inspect and verify update archives",
		Long: `Create, sign, inspect and verify update archives: the .ota files that robots download and install. Archives are signed with an RSA key;
robots have its public half, ota.pub. FILE may be "-" for standard input.`,
		Example: `  openssl genrsa -out ota.key 2048 && openssl rsa -in ota.key -pubout -out ota.pub
  robotkit ota pack 2.0.1.6076.ota -version 2.0.1.6076 -boot boot.img -system sysfs.img -key ota.key
  robotkit ota verify 2.0.1.6076.ota -key ota.pub`,
	}
	cmd.AddCommand(otaPackCommand(), otaDeltaCommand(), otaSignCommand(), otaInspectCommand(), otaVerifyCommand(), otaTrustCommand())
	for _, c := range cmd.Commands() {
		c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"ota"}, cobra.ShellCompDirectiveFilterFileExt
		}
	}
	return cmd
}

// described is the output of pack, sign and inspect.
type described struct {
	File string        `json:"file"`
	Kind manifest.Kind `json:"kind"`
	*manifest.Manifest
}

func printManifest(cmd *cobra.Command, file string, m *manifest.Manifest) error {
	return cli.Print(cmd, described{file, m.Kind(), m}, func(t *cli.Table) {
		t.Row("FILE", file)
		t.Row("KIND", m.Kind())
		t.Row("VERSION", m.Version)
		t.Row("FOR", map[bool]string{false: "production robots", true: "development robots"}[m.Dev])
		if m.QSN != "" {
			t.Row("ONLY", "the robot with the processor serial number "+m.QSN)
		}
		t.Row("REBOOT", map[bool]string{false: "later", true: "after the installation"}[m.Reboot])
		t.Row("FORMAT", m.Format)
		t.Section("IMAGES")
		for _, i := range m.Images {
			if i.Base != "" {
				t.Row("BASE", i.Base)
			}
			t.Row(i.Part, fmt.Sprintf("%d bytes%s", i.Bytes, map[bool]string{true: ", encrypted"}[i.Encrypted]), "sha256 "+i.SHA256.String())
		}
	})
}

const keyHelp = "private `key`: a file in PEM, or awskms:key-id=ID?region=REGION"

func otaPackCommand() *cobra.Command {
	var m manifest.Manifest
	var version, base, key, password string
	files := map[manifest.Part]*string{}
	cmd := &cobra.Command{
		Use:   "pack OUT.ota",
		Short: "Create an update archive from images",
		Long: `Create a signed archive from an update's images. The images decide its kind: -boot and -system make a production update; -aboot, -recovery and
-recoveryfs a factory update; -delta, with -base, a delta update. Images are raw partition contents, neither compressed nor encrypted. The same input
gives the same archive, byte for byte.`,
		Example: `  robotkit ota pack 2.0.1.6076.ota -version 2.0.1.6076 -boot boot.img -system sysfs.img -key ota.key -password-file ota.pas -reboot
  robotkit ota pack d.ota -version 2.0.1.6077 -base 2.0.1.6076 -delta delta.bin -key "awskms:key-id=alias/ota?region=eu-central-1"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if m.Version, err = ota.ParseVersion(version); err != nil {
				return cli.Usage("-version: %w", err)
			}
			m.Images = make([]manifest.Image, 1)
			switch delta := *files[manifest.Changes] != ""; {
			case delta != (base != ""):
				return cli.Usage("-delta and -base go together")
			case delta:
				if m.Images[0].Base, err = ota.ParseVersion(base); err != nil {
					return cli.Usage("-base: %w", err)
				}
			}
			o := archive.WriteOptions{TempDir: filepath.Dir(args[0])}
			if o.Key, err = signer(key); err != nil {
				return err
			}
			if o.Password, err = passwordFile(password); err != nil {
				return err
			}
			bar := newProgress(cmd, "pack")
			images := map[manifest.Part]io.Reader{}
			for part, name := range files {
				if *name == "" {
					continue
				}
				f, err := bar.open(*name)
				if err != nil {
					return err
				}
				defer f.Close()
				images[part] = io.TeeReader(f, bar)
			}
			if err := replace(args[0], func(w io.Writer) error { return archive.Write(w, &m, images, o) }); err != nil {
				return unfit(err)
			}
			return printManifest(cmd, args[0], &m)
		},
	}
	f := cmd.Flags()
	for part, about := range map[manifest.Part]struct{ flag, help string }{
		manifest.Boot:       {"boot", "kernel `file` of a production update"},
		manifest.System:     {"system", "file system `file` of a production update"},
		manifest.ABoot:      {"aboot", "boot loader `file` of a factory update"},
		manifest.Recovery:   {"recovery", "recovery kernel `file` of a factory update"},
		manifest.RecoveryFS: {"recoveryfs", "recovery file system `file` of a factory update"},
		manifest.Changes:    {"delta", "`file` with the changes of a delta update"},
	} {
		files[part] = f.String(about.flag, "", about.help)
	}
	f.StringVar(&version, "version", "", "`version` of the update, such as 2.0.1.6076; developers' ones end in d or ud")
	f.StringVar(&base, "base", "", "`version` that a delta update starts from")
	f.BoolVar(&m.Dev, "ankidev", false, "for development robots")
	f.BoolVar(&m.Reboot, "reboot", false, "reboot after the installation")
	f.StringVar(&m.QSN, "qsn", "", "only for the robot with this processor serial `number`")
	f.StringVar(&key, "key", "", keyHelp)
	passwordFlag(cmd, &password, "encrypt the images with the password on the first line of `file`")
	_ = errors.Join(cmd.MarkFlagRequired("version"), cmd.MarkFlagRequired("key")) // they are there
	return cmd
}

func otaSignCommand() *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "sign FILE OUT.ota",
		Short: "Sign an update archive with another key",
		Long: `Copy an archive and sign its manifest with another key. The old signature is not verified and images are copied unchecked, so verify the
result before publishing it. OUT.ota may be FILE.`,
		Example: `  robotkit ota sign 2.0.1.6076.ota ours.ota -key ota.key
  robotkit ota verify ours.ota -key ota.pub`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := signer(key)
			if err != nil {
				return err
			}
			bar := newProgress(cmd, "sign")
			f, err := bar.open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			if err := replace(args[1], func(w io.Writer) error { return archive.Resign(w, io.TeeReader(f, bar), k) }); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return inspect(cmd, args[1])
		},
	}
	cmd.Flags().StringVar(&key, "key", "", keyHelp)
	_ = cmd.MarkFlagRequired("key") // it is there
	return cmd
}

func otaInspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show the manifest of an update archive",
		Long:  `Show the manifest of an archive without verifying anything. Only the start of the archive is read.`,
		Example: `  robotkit ota inspect 2.0.1.6076.ota -o json
  curl -s https://updates.example.com/vic/prod/full/latest.ota | robotkit ota inspect -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return inspect(cmd, args[0]) },
	}
}

func inspect(cmd *cobra.Command, file string) error {
	f, err := newProgress(cmd, "inspect").open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	a, err := archive.Open(f, archive.Options{Unverified: true})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return printManifest(cmd, file, a.Manifest)
}

// verified is the output of verify.
type verified struct {
	File    string      `json:"file"`
	Sound   bool        `json:"sound"`
	Version ota.Version `json:"update_version,omitempty"`
	Bytes   int64       `json:"bytes"`            // read of the archive
	Code    ota.Code    `json:"code"`             // 0, or the one with which a robot ends the update
	Words   string      `json:"words,omitempty"`  // what the code means
	Reason  string      `json:"reason,omitempty"` // what is wrong
}

func otaVerifyCommand() *cobra.Command {
	var key, password string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify an update archive as a robot does",
		Long: `Verify everything that does not depend on the robot: order of files, signature, manifest, and each image's encryption, compression, length
and hash. If a robot would refuse the update, print the reason with the robot's code and exit with 1.`,
		Example: `  robotkit ota verify 2.0.1.6076.ota -key ota.pub -password-file ota.pas
  robotkit ota verify - -key ota.pub -o json <2.0.1.6076.ota`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := readFile(key)
			if err != nil {
				return fmt.Errorf("-key: %w", err)
			}
			var o archive.Options
			if o.Key, err = manifest.ParseKey(text); err != nil {
				return cli.Usage("-key %s: %w", key, err)
			}
			if o.Password, err = passwordFile(password); err != nil {
				return err
			}
			bar := newProgress(cmd, "verify")
			f, err := bar.open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			m, bad := check(io.TeeReader(f, bar), o)
			out := verified{File: args[0], Sound: bad == nil, Bytes: bar.done, Code: ota.CodeOf(bad)}
			if m != nil {
				out.Version = m.Version
			}
			if fault, ok := errors.AsType[*ota.Failure](bad); ok {
				out.Words, out.Reason = fault.Code.Words(), fault.Err.Error()
			} else if bad != nil {
				return fmt.Errorf("%s: %w", args[0], bad)
			}
			if err := cli.PrintLine(cmd, out, func() string {
				if !out.Sound {
					return fmt.Sprintf("code %d: %s", out.Code, out.Words)
				}
				return fmt.Sprintf("valid: version %s, %d bytes", out.Version, out.Bytes)
			}); err != nil || bad == nil {
				return err
			}
			return fmt.Errorf("%s: %w", args[0], bad)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "public key `file` in PEM, as on the robots")
	passwordFlag(cmd, &password, "decrypt the images with the password on the first line of `file`")
	_ = errors.Join(cmd.MarkFlagRequired("key"), cmd.MarkFlagFilename("key", "pub", "pem")) // it is there
	return cmd
}

// check reads an archive to its end.
func check(r io.Reader, o archive.Options) (*manifest.Manifest, error) {
	a, err := archive.Open(r, o)
	if err != nil {
		return nil, err
	}
	for {
		i, err := a.Next()
		if errors.Is(err, io.EOF) {
			return a.Manifest, nil
		}
		if err != nil {
			return a.Manifest, err
		}
		if _, err := io.Copy(io.Discard, i); err != nil {
			return a.Manifest, err
		}
	}
}

func signer(source string) (key crypto.Signer, err error) {
	if key, err = ca.OpenKey(source); errors.Is(err, fs.ErrNotExist) {
		return nil, errs.New(errs.NotFound, "-key: %w", err)
	} else if err != nil {
		return nil, cli.Usage("-key: %w", err)
	}
	return key, nil
}

func passwordFlag(cmd *cobra.Command, to *string, help string) {
	cmd.Flags().StringVar(to, "password-file", "", help)
}

// passwordFile returns the password in a file; nothing without a file.
func passwordFile(name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	text, err := readFile(name)
	if err != nil {
		return nil, fmt.Errorf("-password-file: %w", err)
	}
	password, err := archive.Password(text)
	if err != nil {
		return nil, cli.Usage("-password-file %s: %w", name, err)
	}
	return password, nil
}

// unfit makes a fault of the manifest, which comes from the flags, an error of the command line.
func unfit(err error) error {
	if _, ok := errors.AsType[*ota.Failure](err); ok {
		return cli.Usage("%w", err)
	}
	return err
}

// replace replaces a file by what write writes, as a whole or not at all.
func replace(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".ota-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// progress is told what was read, and says on standard error every few seconds how far the command is. It ends the reading when the command is interrupted.
type progress struct {
	cmd         *cobra.Command
	verb        string
	total, done int64 // total is 0 if it is not known
	said        time.Time
}

const progressEvery = 2 * time.Second

func newProgress(cmd *cobra.Command, verb string) *progress {
	return &progress{cmd: cmd, verb: verb, said: time.Now()}
}

// open opens a file, "-" for standard input, and counts its length in.
func (p *progress) open(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.cmd.InOrStdin()), nil
	}
	f, err := openFile(name)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		p.total += info.Size()
	}
	return f, nil
}

func (p *progress) Write(b []byte) (int, error) {
	p.done += int64(len(b))
	if time.Since(p.said) > progressEvery {
		p.said = time.Now()
		of := ""
		if p.total > 0 {
			of = fmt.Sprintf(" of %d MB, %d %%", p.total/1e6, 100*p.done/p.total)
		}
		fmt.Fprintf(p.cmd.ErrOrStderr(), "%s: %d MB%s\n", p.verb, p.done/1e6, of)
	}
	return len(b), context.Cause(p.cmd.Context())
}
