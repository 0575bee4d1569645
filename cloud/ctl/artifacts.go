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
	cmd := a.runs(&cobra.Command{Use: "upload FILE", Short: "Upload an archive of a release, which becomes known",
		Long: "The cloud verifies the archive while it comes and keeps none that robots would refuse. Version and kind are those of its manifest.\n" +
			"A file for SWUpdate (.swu) has no version that all devices read: give it with -version. The devices judge its signature.\n" +
			"After a break, give the same command again: an archive that was stored is not sent a second time.",
		Example: "  kennelctl releases upload vicos-2.0.1.6076.ota -notes 'quieter motors'\n  kennelctl releases upload arm.swu -species amigo -version 1.4.0.12"},
		func(cmd *cobra.Command, args []string) error {
			r, err := a.uploadRelease(cmd, args[0], species, url.Values{"notes": {notes}, "version": {version}})
			return show(cmd, r, err, func(t *cli.Table, x client.Artifact) {
				pairs(t, "species", x.Species, "version", x.Version, "kind", archiveKind(x), "size", x.Size, "sha256", x.Sha256, "uploaded", x.Created, "by", x.By)
			})
		})
	cmd.Flags().StringVar(&species, "species", string(thing.Vector), "`SPECIES` that the release is for: "+thing.SpeciesWords(", "))
	cmd.Flags().StringVar(&version, "version", "", "`VERSION` of a file for SWUpdate")
	cmd.Flags().StringVar(&notes, "notes", "", "`TEXT` for people, if the release is not known yet")
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
	cmd := describe("channels", "Channels by which original robots find releases", "channels list", "channels set vic prod 2.0.1.6076")
	cmd.Aliases = []string{"channel"}
	return cmd
}
