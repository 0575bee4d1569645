package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/logging"
)

const defaultBase = 18400

// Command is kenneld cluster.
func Command() *cobra.Command {
	cfg := Config{Base: defaultBase}
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Run an installation of several machines on this one: three brokers, three kenneld, two Postgres, and light robots",
		Long: `Run an installation of several machines on this one, to see what happens when parts of it die: three NATS servers as the
robots' broker, three kenneld behind HAProxy, two Postgres by Patroni and etcd, an S3 gateway and light robots. Each part is
a process; one that is killed is started again. Only this machine can connect. Ctrl-C stops everything; the next start uses
the same data. It needs Debian's haproxy, patroni, etcd-server and postgresql, and a nats-server (make cluster builds it).

It is no production installation: everything shares one disk, etcd is one process, and Postgres is reached without TLS.`,
		Example: `  kenneld cluster -data /srv/cluster -robots 200
  kenneld cluster status`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cfg.Base < 1024 || cfg.Base > 65535-ports {
				return cli.Usage("-base-port %d: want 1024 to %d", cfg.Base, 65535-ports)
			}
			if cfg.Robots < 0 {
				return cli.Usage("-robots %d: want 0 or more", cfg.Robots)
			}
			var err error
			if cfg.Log, err = logging.New(cmd.ErrOrStderr(), "warn", "text"); err != nil {
				return err
			}
			cfg.Out = cmd.OutOrStdout()
			return Run(cmd.Context(), cfg)
		},
	}
	f := cmd.Flags()
	f.StringVar(&cfg.Dir, "data", "", "data folder `DIR` (required)")
	f.IntVar(&cfg.Robots, "robots", 200, "number of light robots")
	f.StringVar(&cfg.NATS, "nats-server", "", "nats-server `PROGRAM` (default: beside kenneld, else in the search path)")
	cmd.PersistentFlags().IntVar(&cfg.Base, "base-port", defaultBase, "first of about forty ports on the loopback address: console, robots, status page, parts")
	_ = cmd.MarkFlagRequired("data") // the flag exists
	status := statusCommand(&cfg.Base)
	cli.AddOutput(status)
	cmd.AddCommand(status)
	return cmd
}

func statusCommand(base *int) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show which parts of the running cluster are up, which lead, and the uplink's lag",
		Long:    "Show which parts of the cluster on this machine are up, which lead, and how many messages of robots wait in the uplink.",
		Example: "  kenneld cluster status\n  kenneld cluster status -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			url := "http://127.0.0.1:" + strconv.Itoa(*base+portStatus) + "/status"
			r, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			resp, err := (&http.Client{Timeout: 5 * time.Second}).Do(r)
			if err != nil {
				return errs.New(errs.Unavailable, "no cluster runs here: %w", err)
			}
			defer resp.Body.Close()
			var s Status
			if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, maxAnswer)).Decode(&s); err != nil {
				return fmt.Errorf("answer of %s: %w", url, err)
			}
			return cli.Print(cmd, s, func(t *cli.Table) { tell(t, s) })
		},
	}
}

// tell draws the status for people.
func tell(t *cli.Table, s Status) {
	t.Row("PART", "PROCESS", "STATE", "ROLE", "NOTES")
	for _, p := range s.Parts {
		state := "down"
		if p.Up {
			state = "up"
		}
		t.Row(p.Name, p.Pid, state, p.Role, p.Note)
	}
	for _, p := range s.Problems {
		t.Row("problem", "", "", p.Part, strings.TrimSuffix(p.Reason+". "+p.Do, ". "))
	}
	waiting := "unknown"
	if s.Waiting >= 0 {
		waiting = fmt.Sprint(s.Waiting)
	}
	t.Row("uplink", "", "", "", waiting+" messages waiting")
	if s.Robots >= 0 {
		t.Row("robots connected", "", "", "", s.Robots)
	}
}
