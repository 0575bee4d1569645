// Package originalscmd is the command kenneld originals.
package originalscmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/ctl"
	"kennel/cloud/openapi/client"
	"kennel/cloud/originals"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/mdns"
)

// cloudFlags say which cloud a command is about.
type cloudFlags struct{ data, server, ca string }

func (c *cloudFlags) add(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&c.data, "data", "", "data folder `DIR` of a running kenneld onebox (default: as kenneld onebox)")
	f.StringVar(&c.server, "server", "", "`URL` of another cloud's API, after kennelctl login -server URL")
	f.StringVar(&c.ca, "ca", "", "trust the root certificates in `FILE` (PEM) for the API")
	cmd.MarkFlagsMutuallyExclusive("data", "server")
}

func (c *cloudFlags) api(folder Folder) (client.Client, error) {
	dir := ""
	if c.server == "" {
		var err error
		if dir, err = folder(c.data); err != nil {
			return client.Client{}, err
		}
		if _, err := os.Stat(dir); err != nil {
			return client.Client{}, errs.New(errs.Invalid, "-data %s: no such folder; want the data folder of a running kenneld onebox", dir)
		}
	}
	return ctl.API(c.server, c.ca, dir), nil
}

// guide asks the cloud what original robots need.
func guide(ctx context.Context, api client.Client) (g originals.Guide, err error) {
	r, err := api.GetOriginals(ctx)
	if err == nil {
		err = json.Unmarshal(r.Raw, &g)
	}
	return g, err
}

// Folder returns the data folder of a one-machine instance: the given one, or the usual one for "".
type Folder func(given string) (string, error)

// Command returns kenneld originals.
func Command(folder Folder) *cobra.Command {
	var from cloudFlags
	cmd := &cobra.Command{
		Use:   "originals",
		Short: "Show what original robots need to connect to this cloud",
		Long: `Show what original robots need to connect to this cloud: the names that they look up, the root certificate to install, and a
server_config.json to copy. kenneld originals check simulates such a robot and says what is missing.`,
		Example: `  kenneld originals
  kenneld originals -data /srv/kennel -o json
  kenneld originals -server https://kennel.example
  kenneld originals check`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := from.api(folder)
			if err != nil {
				return err
			}
			g, err := guide(cmd.Context(), api)
			if err != nil {
				return err
			}
			return cli.Print(cmd, g, func(t *cli.Table) { showGuide(t, g) })
		},
	}
	from.add(cmd)
	cli.AddOutput(cmd)
	cmd.AddCommand(checkCommand(&from, folder), installCommand(&from, folder))
	return cmd
}

// publicRoots says whom the robot trusts by itself (list of 2020-09-01 in the stock cloud program).
const publicRoots = "The services have a certificate of a public authority (api.acme). A robot signs in without a root if it trusts that authority: the list in stock software, of September 2020, has ISRG Root X1 (Let's Encrypt), GTS Root R1 to R4 and USERTrust RSA and ECC, but not ISRG Root X2. Log uploads need this cloud's root:"

func showGuide(t *cli.Table, g originals.Guide) {
	for _, s := range g.Troubles {
		t.Text("! " + s)
	}
	if len(g.Troubles) > 0 {
		t.Text("")
	}
	t.Text("Names, for the DNS of the robots' network or each robot's hosts file:")
	for _, n := range g.Names {
		t.Text("  " + n.Name + ", port " + n.Port + ": " + n.Use)
	}
	t.Section("As a line for a hosts file:")
	t.Text("  " + strings.TrimSpace(g.Hosts))
	t.Section("On each robot, " + g.ConfigFile + ":")
	for line := range strings.Lines(g.ServerConfig.JSON()) {
		t.Text("  " + strings.TrimRight(line, "\n"))
	}
	t.Section("On each robot, other addresses:")
	for _, a := range g.Addresses {
		t.Text("  " + a.Use + ", " + a.File + ":")
		t.Text("    " + a.Line)
	}
	if g.Public {
		t.Section(publicRoots)
	}
	if g.Root != "" {
		t.Section("On each robot, " + g.RootFile + " (community builds also read " + strings.Join(g.OtherRoots, " and ") + "):")
		for line := range strings.Lines(g.Root) {
			t.Text("  " + strings.TrimRight(line, "\n"))
		}
		t.Text("Stock software reads it at its first voice request, which it sends only once it has a token. If the robot's user data was erased, it has none: kenneld originals install ROBOT writes what it needs over SSH, on software that allows it; or give this cloud a certificate of a public authority that the robot trusts (api.acme), or the name escapepod.local (robots.cert_file, robots.mdns) if its software trusts the Escape Pod root.")
	} else if slices.ContainsFunc(g.Names, func(n originals.Name) bool { return mdns.Local(n.Name) }) {
		t.Section("Stock software that trusts the Escape Pod root loads it at its first request for a document after each start. A request of another kind before fails and is made again: if the robot cannot sign in, sign it in once more.")
	}
}

func checkCommand(from *cloudFlags, folder Folder) *cobra.Command {
	var roots string
	var to []string
	var pause time.Duration
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Simulate an original robot and say what is missing",
		Long: `Simulate an original robot from this machine: look up the names, check the certificate with the robot's roots, request /ok, create
and refresh a token, write and read a document, upload a log, and run the connection check. The test robot is ` + string(originals.TestThing) + `; it is
removed afterwards with all its data. The exit code is 1 if a step fails.`,
		Example: `  kenneld originals check
  kenneld originals check -roots /etc/ssl/certs/local/root.crt
  kenneld originals check -connect-to kennel.s3.us-west-2.amazonaws.com:443=192.168.1.5:8444
  kenneld originals check -server https://kennel.example -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n := originals.Network{To: map[string]string{}}
			for _, s := range to {
				name, addr, ok := strings.Cut(s, "=")
				if _, _, err := net.SplitHostPort(name); !ok || err != nil {
					return cli.Usage("-connect-to %.80q: want NAME:PORT=HOST:PORT", s)
				}
				if _, _, err := net.SplitHostPort(addr); err != nil {
					return cli.Usage("-connect-to %.80q: want NAME:PORT=HOST:PORT", s)
				}
				n.To[name] = addr
			}
			api, err := from.api(folder)
			if err != nil {
				return err
			}
			r, err := selfTest(cmd.Context(), api, roots, n, pause)
			if err != nil {
				return err
			}
			if err := cli.Print(cmd, r, func(t *cli.Table) { showResult(t, r) }); err != nil || r.OK {
				return err
			}
			return errs.New(errs.Internal, "%s", r.Sentence)
		},
	}
	f := cmd.Flags()
	f.StringVar(&roots, "roots", "", "`FILE` with the roots that the robot trusts (PEM; default: this cloud's root)")
	f.StringArrayVar(&to, "connect-to", nil, "connect to another address than the DNS says, `NAME:PORT=HOST:PORT` (may be repeated)")
	f.DurationVar(&pause, "frame-pause", 120*time.Millisecond, "time between two audio frames of the connection check (robots: 120ms)")
	return cmd
}

// selfTest gets an identity from the cloud, plays the robot, and has its traces erased.
func selfTest(ctx context.Context, api client.Client, roots string, n originals.Network, pause time.Duration) (out originals.Result, err error) {
	g, err := guide(ctx, api)
	if err != nil {
		return out, err
	}
	var trusted []byte
	if roots != "" {
		if trusted, err = os.ReadFile(roots); err != nil {
			return out, cli.Usage("-roots: %w", err)
		}
	}
	key, csr, err := originals.Applicant()
	if err != nil {
		return out, err
	}
	a, err := api.PostOriginalsSelfTest(ctx, client.SelfTest{CSR: string(csr)})
	if err != nil {
		return out, err
	}
	defer func() {
		_, gone := api.DeleteOriginalsSelfTest(context.WithoutCancel(ctx))
		err = errors.Join(err, gone)
	}()
	robot, err := originals.Play(g, originals.Admission{Chain: a.Value.Chain, Session: a.Value.Session}, key, trusted, n)
	if err != nil {
		return out, cli.Usage("%w", err)
	}
	robot.FramePause = pause
	return originals.Check(ctx, g, robot, a.Value.Session, n), nil
}

func showResult(t *cli.Table, r originals.Result) {
	t.Row("STEP", "RESULT", "TIME", "DETAIL")
	for _, s := range r.Steps {
		result := "passed"
		if !s.OK {
			result = "FAILED"
		}
		t.Row(s.Name, result, fmt.Sprintf("%d ms", s.Millis), s.Detail)
	}
	if r.OK {
		t.Text("")
		t.Text(r.Sentence)
	}
}
