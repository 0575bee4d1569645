package pleokit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/edge/update/cardimage"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/ota"
	"kennel/ota/archive"
	"kennel/ota/manifest"
)

// released is the output of release.
type released struct {
	File    string      `json:"file"`
	Version ota.Version `json:"version"`
	Files   int         `json:"files"`
	Bytes   int         `json:"bytes"` // of the archive
}

func releaseCommand() *cobra.Command {
	var version, key string
	cmd := &cobra.Command{
		Use: "release FOLDER OUT.ota", Short: "Make a release that brings an application to Pleos of the fleet",
		Long: `Make a signed update archive that replaces what is on the cards of Pleos by the files of FOLDER, such as the build folder of a project. It is uploaded and rolled out as every
release. A Pleo whose owner changes the card afterwards keeps it so until the next release.`,
		Example: `  robotkit pleo release demo/build demo.ota -version 2.0.1.6078 -key ota.key
  kennelctl releases upload demo.ota -species pleo && kennelctl releases want pleo 2.0.1.6078`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := ota.ParseVersion(version)
			if err != nil {
				return cli.Usage("-version: %w", err)
			}
			signer, err := ca.OpenKey(key)
			if errors.Is(err, fs.ErrNotExist) {
				return errs.New(errs.NotFound, "-key: %w", err)
			} else if err != nil {
				return cli.Usage("-key: %w", err)
			}
			if info, err := os.Stat(args[0]); err != nil || !info.IsDir() {
				return errs.New(errs.NotFound, "%s: want a folder with the content of a card", args[0])
			}
			files, err := cardimage.Collect(os.DirFS(args[0]))
			if err != nil {
				return errs.New(errs.Invalid, "%w", err)
			}
			system, err := cardimage.Append(fmt.Appendf(nil, "{\"version\":%q}\n", v), files)
			if err != nil {
				return errs.New(errs.Invalid, "%w", err)
			}
			images := map[manifest.Part]io.Reader{manifest.Boot: strings.NewReader("kernel of " + string(v)), manifest.System: bytes.NewReader(system)}
			var out bytes.Buffer
			if err := archive.Write(&out, &manifest.Manifest{Version: v, Reboot: true}, images, archive.WriteOptions{Key: signer}); err != nil {
				return errs.New(errs.Invalid, "%w", err)
			}
			if err := atomicfile.WriteFile(args[1], out.Bytes(), 0o644); err != nil {
				return err
			}
			r := released{args[1], v, len(files), out.Len()}
			return cli.PrintLine(cmd, r, func() string {
				return fmt.Sprintf("%s: version %s, %s, %d bytes", r.File, r.Version, cli.Count(r.Files, "file"), r.Bytes)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&version, "version", "", "`version` of the release, such as 2.0.1.6078")
	f.StringVar(&key, "key", "", "private `key`: a file in PEM, or awskms:key-id=ID?region=REGION")
	for _, name := range []string{"version", "key"} {
		_ = cmd.MarkFlagRequired(name) // the flags exist
	}
	return cmd
}
