package ctl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

func (a *app) releasesUpload() *cobra.Command {
	var species, version, notes string
	cmd := a.runs(&cobra.Command{Use: "upload FILE", Short: "Upload a release archive (creates the release if needed)",
		Long: "The cloud verifies the archive during the upload and rejects what robots would refuse. Version and kind come from its manifest.\n" +
			"An SWUpdate file (.swu) needs -version; devices check its signature themselves.\n" +
			"After an interruption run the same command again: a stored archive is not sent twice.",
		Example: "  kennelctl releases upload vicos-2.0.1.6076.ota -notes 'quieter motors'\n  kennelctl releases upload arm.swu -species amigo -version 1.4.0.12"},
		func(cmd *cobra.Command, args []string) error {
			r, err := a.uploadRelease(cmd, args[0], species, url.Values{"notes": {notes}, "version": {version}})
			return show(cmd, r, err, func(t *cli.Table, x client.Artifact) {
				pairs(t, "species", x.Species, "version", x.Version, "kind", archiveKind(x), "size", x.Size, "sha256", x.Sha256, "uploaded", x.Created, "by", x.By)
			})
		})
	cmd.Flags().StringVar(&species, "species", string(thing.Vector), "the release's `SPECIES`: "+thing.SpeciesWords(", "))
	cmd.Flags().StringVar(&version, "version", "", "`VERSION` of an SWUpdate file")
	cmd.Flags().StringVar(&notes, "notes", "", "release notes, a `TEXT`, if this creates the release")
	_ = cmd.RegisterFlagCompletionFunc("species", completeSpecies)
	return cmd
}

// uploadRelease sends an archive under its own hash.
func (a *app) uploadRelease(cmd *cobra.Command, name, species string, query url.Values) (r reply[client.Artifact], err error) {
	f, err := os.Open(name)
	if err != nil {
		return r, errs.New(errs.Invalid, "%w", err)
	}
	defer f.Close() // read only
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return r, fmt.Errorf("read %s: %w", name, err)
	}
	path := "/v1/releases/" + url.PathEscape(species) + "/archives/" + hex.EncodeToString(sum.Sum(nil)) + "?" + query.Encode()
	return upload[client.Artifact](a, cmd, http.MethodPut, path, "application/octet-stream", name)
}

// archiveKind names an archive within its release.
func archiveKind(x client.Artifact) string {
	switch {
	case x.BaseVersion != "":
		return "delta from " + x.BaseVersion
	case x.Qsn != "":
		return x.Kind + " for " + x.Qsn
	}
	return x.Kind
}

// archivesOf says which archives a release has, in a few words.
func archivesOf(all []client.Artifact, r client.Release) string {
	n := map[string]int{}
	for _, x := range all {
		if x.Species == r.Species && x.Version == r.Version {
			n[x.Kind]++
		}
	}
	var words []string
	for _, kind := range []string{"production", "delta", "factory", "swu"} {
		if n[kind] > 0 {
			words = append(words, fmt.Sprint(n[kind], " ", kind))
		}
	}
	return cmp.Or(strings.Join(words, ", "), "none")
}

func (a *app) channels() *cobra.Command {
	cmd := describe("channels", "Manage channels, through which original robots find releases", "channels list", "channels set vic prod 2.0.1.6076")
	cmd.Aliases = []string{"channel"}
	return cmd
}
