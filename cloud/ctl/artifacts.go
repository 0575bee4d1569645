package ctl

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"kennel/cloud/openapi/client"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// storeTime is how long the cloud may take to answer once it has a whole archive.
const storeTime = 5 * time.Minute

func (a *app) releasesUpload() *cobra.Command {
	var species, version, notes string
	cmd := a.runs(&cobra.Command{Use: "upload FILE", Short: "Upload an archive of a release, which becomes known",
		Long: "The cloud verifies the archive while it comes and keeps none that robots would refuse. Version and kind are those of its manifest.\n" +
			"A file for SWUpdate (.swu) has no version that all devices read: give it with -version. The devices judge its signature.\n" +
			"After a break, give the same command again: an archive that was stored is not sent a second time.",
		Example: "  kennelctl releases upload vicos-2.0.1.6076.ota -notes 'quieter motors'\n  kennelctl releases upload arm.swu -species amigo -version 1.4.0.12"},
		func(cmd *cobra.Command, args []string) error {
			r, err := a.upload(cmd, args[0], species, url.Values{"notes": {notes}, "version": {version}})
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

// upload sends a file, and says on a terminal how far it is.
func (a *app) upload(cmd *cobra.Command, name, species string, query url.Values) (r reply[client.Artifact], err error) {
	f, err := os.Open(name)
	if err != nil {
		return r, errs.New(errs.Invalid, "%w", err)
	}
	defer f.Close() // read only
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return r, fmt.Errorf("read %s: %w", name, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return r, err
	}
	c, err := a.connect(cmd.Context())
	if err != nil {
		return r, err
	}
	if c, err = newConn(c.s, storeTime); err != nil {
		return r, err
	}
	body := &uploading{Reader: f, size: info.Size(), name: filepath.Base(name), out: io.Discard}
	if out, ok := cmd.ErrOrStderr().(*os.File); ok && term.IsTerminal(int(out.Fd())) {
		body.out = out
	}
	defer body.end()
	path := "/v1/releases/" + url.PathEscape(species) + "/archives/" + hex.EncodeToString(sum.Sum(nil)) + "?" + query.Encode()
	resp, err := c.send(cmd.Context(), http.MethodPut, path, body, http.Header{"Accept": {"application/json"}, "Content-Type": {"application/octet-stream"}})
	if err != nil {
		return r, err
	}
	defer resp.Body.Close()
	if r.Raw, err = io.ReadAll(io.LimitReader(resp.Body, 1<<20)); err != nil {
		return r, unreachable(c.s.Server, err)
	}
	return r, json.Unmarshal(r.Raw, &r.Value)
}

// uploading is a body that says how much of it was sent.
type uploading struct {
	io.Reader
	size, sent int64
	name       string
	out        io.Writer
	said       time.Time
}

// Read implements io.Reader.
func (u *uploading) Read(b []byte) (int, error) {
	n, err := u.Reader.Read(b)
	u.sent += int64(n)
	if time.Since(u.said) > 200*time.Millisecond || u.sent == u.size {
		u.said = time.Now()
		fmt.Fprintf(u.out, "\r%s: %d of %d MB (%d %%)", cli.Clean(u.name), u.sent/1e6, u.size/1e6, 100*u.sent/max(u.size, 1))
	}
	return n, err
}

func (u *uploading) end() {
	if u.sent > 0 {
		fmt.Fprintln(u.out)
	}
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
