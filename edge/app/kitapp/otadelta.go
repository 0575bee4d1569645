package kitapp

import (
	"cmp"
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/delta"
	"kennel/ota/manifest"
)

// imageFiles are the files of a folder that is given in place of a production archive.
var imageFiles = map[manifest.Part]string{manifest.Boot: "boot.img", manifest.System: "sysfs.img"}

func otaDeltaCommand() *cobra.Command {
	var m manifest.Manifest
	var version, base, key, password string
	cmd := &cobra.Command{
		Use:   "delta BASE NEW OUT.ota",
		Short: "Create a delta update from one release to another",
		Long: `Create a signed archive with the changes from one release to another, which robots with BASE download instead of NEW. BASE and NEW are production
archives signed with the same key, or folders with boot.img and sysfs.img. An archive contains its version and target robots; for a folder, give them
as flags. Needs memory for 1.25 times the larger old image.`,
		Example: `  robotkit ota delta 2.0.1.6076.ota 2.0.1.6077.ota d.ota -key ota.key -password-file ota.pas
  robotkit ota delta old/ new/ d.ota -base 2.0.1.6076d -version 2.0.1.6077d -ankidev -reboot -key ota.key`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			w := archive.WriteOptions{TempDir: filepath.Dir(args[2])}
			if w.Key, err = signer(key); err != nil {
				return err
			}
			if w.Password, err = passwordFile(password); err != nil {
				return err
			}
			r := archive.Options{Password: w.Password}
			if r.Key, _ = w.Key.Public().(*rsa.PublicKey); r.Key == nil {
				return cli.Usage("-key %s: want an RSA key", key)
			}
			bar := newProgress(cmd, "read")
			old, err := openRelease(bar, args[0], "base", base, w.TempDir, r)
			defer old.close()
			if err != nil {
				return err
			}
			next, err := openRelease(bar, args[1], "version", version, w.TempDir, r)
			defer next.close()
			if err != nil {
				return err
			}
			m.Version, m.Images = next.Version, []manifest.Image{{Base: old.Version}}
			m.QSN = cmp.Or(m.QSN, next.QSN)
			m.Dev, m.Reboot = m.Dev || next.Dev, m.Reboot || next.Reboot
			var parts []delta.Part
			for _, p := range manifest.Production.Parts() {
				parts = append(parts, delta.Part{Name: string(p), Base: old.images[p], New: next.images[p]})
			}
			if err := replace(args[2], func(out io.Writer) error { return writeDelta(cmd.Context(), out, &m, parts, w) }); err != nil {
				return unfit(err)
			}
			return printManifest(cmd, args[2], &m)
		},
	}
	f := cmd.Flags()
	f.StringVar(&base, "base", "", "`version` of BASE, if it is a folder")
	f.StringVar(&version, "version", "", "`version` of NEW, if it is a folder")
	f.BoolVar(&m.Dev, "ankidev", false, "for development robots, even if NEW is not")
	f.BoolVar(&m.Reboot, "reboot", false, "reboot after the installation, even if NEW does not")
	f.StringVar(&m.QSN, "qsn", "", "only for the robot with this processor serial `number`")
	f.StringVar(&key, "key", "", keyHelp)
	passwordFlag(cmd, &password, "decrypt BASE and NEW, and encrypt the changes, with the password on the first line of `file`")
	_ = cmd.MarkFlagRequired("key") // it is there
	return cmd
}

// writeDelta makes the changes while the archive takes them.
func writeDelta(ctx context.Context, w io.Writer, m *manifest.Manifest, parts []delta.Part, o archive.WriteOptions) error {
	r, to := io.Pipe()
	made := make(chan struct{})
	go func() {
		defer close(made)
		to.CloseWithError(delta.Make(to, parts...))
	}()
	stop := context.AfterFunc(ctx, func() { r.CloseWithError(context.Cause(ctx)) })
	err := archive.Write(w, m, map[manifest.Part]io.Reader{manifest.Changes: r}, o)
	stop()
	r.Close()
	<-made
	return err
}

// release is a production update that is opened for its images.
type release struct {
	manifest.Manifest
	images map[manifest.Part]*io.SectionReader
	files  []*os.File
}

func (r *release) close() {
	for _, f := range r.files {
		f.Close() // they were only read, or are temporary
	}
}

// openRelease opens a folder, whose version the named flag gives, or unpacks an archive into temporary files.
func openRelease(bar *progress, name, flag, version, dir string, o archive.Options) (r *release, err error) {
	r = &release{images: map[manifest.Part]*io.SectionReader{}}
	info, err := os.Stat(name)
	if err == nil && info.IsDir() {
		if r.Version, err = ota.ParseVersion(version); err != nil {
			return r, cli.Usage("%s is a folder. -%s: %w", name, flag, err)
		}
		for part, file := range imageFiles {
			f, err := openFile(filepath.Join(name, file))
			if err != nil {
				return r, err
			}
			if err := r.add(part, f); err != nil {
				return r, err
			}
		}
		return r, nil
	} else if version != "" {
		return r, cli.Usage("-%s: %s is an archive, which contains its version", flag, name)
	}
	f, err := bar.open(name)
	if err != nil {
		return r, err
	}
	defer f.Close()
	if err := r.unpack(io.TeeReader(f, bar), dir, o); err != nil {
		return r, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

func (r *release) unpack(from io.Reader, dir string, o archive.Options) error {
	a, err := archive.Open(from, o)
	if err != nil {
		return err
	}
	if r.Manifest = *a.Manifest; r.Kind() != manifest.Production {
		return cli.Usage("%s update: want a production update, which has whole images", r.Kind())
	}
	for {
		i, err := a.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		f, err := os.CreateTemp(dir, ".ota-*")
		if err != nil {
			return err
		}
		_, err = io.Copy(f, i)
		if err := errors.Join(err, os.Remove(f.Name()), r.add(i.Part, f)); err != nil {
			return err
		}
	}
}

// add takes f, which is closed with r.
func (r *release) add(p manifest.Part, f *os.File) error {
	r.files = append(r.files, f)
	info, err := f.Stat()
	if err == nil {
		r.images[p] = io.NewSectionReader(f, 0, info.Size())
	}
	return err
}
