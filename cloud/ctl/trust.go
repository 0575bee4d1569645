package ctl

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
)

func (a *app) releasesTrust() *cobra.Command {
	cmd := describe("trust", "Manage signed metadata that says which archives robots may install", "releases trust show", "releases trust upload tuf/2.root.json", "releases trust upload tuf")
	return group(cmd, a.trustShow(), a.trustUpload())
}

// trustTable lists the roles, and under them their problems.
func trustTable(t *cli.Table, states []client.RoleState) {
	rows("ROLE|VERSION|EXPIRES|KEYS|SIGNED BY|ARCHIVES", func(s client.RoleState) cells {
		return cells{s.Role, s.Version, s.Expires, strconv.FormatInt(s.Threshold, 10) + " of " + strconv.Itoa(len(s.Keys)), map[bool]string{true: "the cloud", false: "people"}[s.SignedHere], s.Archives}
	})(t, states)
	for _, s := range states {
		if s.Problem != "" {
			t.Text("! " + s.Problem)
		}
	}
}

func (a *app) trustShow() *cobra.Command {
	return shows(a, describe("show", "Show metadata with their signers and expiry dates", "releases trust show"), none(a.api.GetReleasesMetadata), trustTable)
}

func (a *app) trustUpload() *cobra.Command {
	return shows(a, &cobra.Command{Use: "upload FILE|FOLDER...", Short: "Publish signed metadata",
		Long: "Upload N.root.json, targets.json and channels such as prod.json, made by robotkit ota trust. Upload files that depend on each other together.\n" +
			"The cloud rejects what robots would refuse.",
		Example: "  kennelctl releases trust upload tuf\n  kennelctl releases trust upload tuf/2.root.json tuf/targets.json"},
		func(ctx context.Context, args []string) (r reply[[]client.RoleState], err error) {
			files := map[string]string{}
			for _, arg := range args {
				names := []string{arg}
				if info, err := os.Stat(arg); err == nil && info.IsDir() {
					if names, err = filepath.Glob(filepath.Join(arg, "*.json")); err != nil || len(names) == 0 {
						return r, cli.Usage("%s: no *.json in this folder", arg)
					}
				}
				for _, name := range names {
					b, err := os.ReadFile(name)
					if errors.Is(err, fs.ErrNotExist) {
						return r, errs.New(errs.NotFound, "%w", err)
					} else if err != nil {
						return r, err
					}
					files[strings.TrimSuffix(filepath.Base(name), ".json")] = string(b)
				}
			}
			return a.api.PostReleasesMetadata(ctx, client.Metadata{Metadata: files})
		}, trustTable)
}
