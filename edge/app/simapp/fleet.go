package simapp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/app/agentapp"
	"kennel/edge/sim/fleet"
	"kennel/infra/cli"
	"kennel/infra/logging"
	"kennel/infra/thing"
)

func fleetCommand() *cobra.Command {
	var o struct {
		cfg                                                                        fleet.Config
		first, ca, token, secrets, profile, status, level, releaseKey, releaseRoot string
		lasts, progress                                                            time.Duration
	}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Run thousands of light robots: real agents with real connections and files, without bodies",
		Long: `Run many light robots in this process: the real agent with its mutual-TLS connection, documents and event spool, but
without loop and body. A robot with a folder below -root continues with it; others are registered with an operator's
token (-token-file), or take their claim secret from a list (-secrets, CSV: thing,secret).

-profile sets their behaviour: idle, lively, rough, or a YAML file. The same -seed repeats the same behaviour. On
interrupt all robots disconnect properly, and a summary is printed (-o json).

-status serves GET /status and POST /reconnect?n=100 while they run. Each robot needs three file descriptors. A -root on
a memory file system avoids thousands of disk syncs.`,
		Example: `  robotsim fleet -n 200 -root ./fleet -api https://localhost:8443 -ca ca/root.crt -token-file secrets/operator.token
  robotsim fleet -n 5000 -root /dev/shm/fleet -api https://localhost:8443 -ca ca/root.crt -token-file t \
    -profile lively -status 127.0.0.1:9100 -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg := o.cfg
			var err error
			if cfg.Log, err = logging.New(cmd.ErrOrStderr(), "info", "text"); err != nil {
				return err
			}
			if o.level != "" {
				if cfg.RobotLog, err = logging.New(cmd.ErrOrStderr(), o.level, "text"); err != nil {
					return cli.Usage("-log-level: %w", err)
				}
			}
			if cfg.First, err = thing.Parse(o.first); err != nil {
				return cli.Usage("-first: %w", err)
			}
			if cfg.Folder, err = filepath.Abs(cfg.Folder); err != nil {
				return err
			}
			if err := errors.Join(load(&cfg.RootPEM, "-ca", o.ca), load(&cfg.ReleaseKey, "-release-key", o.releaseKey), load(&cfg.ReleaseRoot, "-release-root", o.releaseRoot)); err != nil {
				return err
			}
			if cfg.Profile, err = fleet.LoadProfile(o.profile); err != nil {
				return err
			}
			if cfg.Secrets, err = secretsOf(o.token, o.secrets, cfg.Endpoints.Kennel.API, cfg.RootPEM); err != nil {
				return err
			}
			cfg.NewAgent = newAgent
			f, err := fleet.New(cfg)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			if o.lasts > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, o.lasts)
				defer cancel()
			}
			if err := runFleet(ctx, f, o.status, o.progress); err != nil {
				return err
			}
			s := f.Summary()
			return cli.Print(cmd, s, func(t *cli.Table) { tell(t, s) })
		},
	}
	f := cmd.Flags()
	f.IntVarP(&o.cfg.N, "robots", "n", 100, "number of robots")
	f.StringVar(&o.cfg.Folder, "root", "", "folder `DIR` for the robots' folders (required)")
	f.StringVar(&o.cfg.Endpoints.Kennel.API, "api", "", "`URL` of the cloud, https://host:port (required)")
	f.StringVar(&o.cfg.Endpoints.Kennel.MQTT, "mqtt", "", "`URL` of the broker, ssl://host:port (default: as the cloud says)")
	f.StringVar(&o.ca, "ca", "", "`FILE` with the root certificate (PEM) that robots trust (required)")
	releaseFlags(f, &o.releaseKey, &o.releaseRoot)
	f.StringVar(&o.token, "token-file", "", "`FILE` with an operator's token, for registering robots")
	f.StringVar(&o.secrets, "secrets", "", "CSV `FILE` with lines thing,secret of registered robots")
	f.StringVar(&o.first, "first", "vic:00f00000", "id of the first robot, a `THING`; serial numbers count up from it")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "seed of random behaviour")
	f.StringVar(&o.profile, "profile", "idle", "behaviour: "+strings.Join(fleet.Presets(), ", ")+", or a YAML file")
	f.StringVar(&o.cfg.OSVersion, "os-version", "2.0.0.6074", "`VERSION` that the robots run")
	f.IntVar(&o.cfg.AtOnce, "at-once", 64, "robots that may log in for the first time at once")
	f.StringVar(&o.status, "status", "", "serve GET /status, POST /crash, POST /reconnect and POST /reboot at this local host:port or socket path")
	f.DurationVar(&o.lasts, "for", 0, "stop after this time (default: when interrupted)")
	f.DurationVar(&o.progress, "progress", 5*time.Second, "interval of progress reports; 0: none")
	f.StringVar(&o.level, "log-level", "", "level of the robots' logs: debug, info, warn or error (default: no logs)")
	for _, name := range []string{"root", "api", "ca"} {
		_ = cmd.MarkFlagRequired(name) // the flags exist
	}
	cmd.MarkFlagsMutuallyExclusive("token-file", "secrets")
	return cmd
}

// load reads the file that a flag names; none is nothing.
func load(to *[]byte, flag, file string) (err error) {
	if file == "" {
		return nil
	}
	if *to, err = os.ReadFile(file); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// secretsOf returns where robots without a folder get their claim secret from.
func secretsOf(tokenFile, secretsFile, api string, rootPEM []byte) (fleet.Secrets, error) {
	switch {
	case tokenFile != "":
		token, err := os.ReadFile(tokenFile)
		if err != nil {
			return nil, fmt.Errorf("-token-file: %w", err)
		}
		return fleet.NewRegistrar(api, strings.TrimSpace(string(token)), rootPEM)
	case secretsFile != "":
		b, err := os.ReadFile(secretsFile)
		if err != nil {
			return nil, fmt.Errorf("-secrets: %w", err)
		}
		return fleet.ParseSecrets(b)
	}
	return fleet.Known{}, nil // robots that have folders need none
}

// newAgent is the agent of agentd, light.
func newAgent(root *os.Root, m fleet.Machine) (fleet.Agent, error) {
	a, err := agentapp.New(root, agentapp.Config{Root: m.Folder, Log: m.Log, Telemetry: m.Telemetry, Flush: m.Flush, Status: m.Status,
		Core: m.Core, Now: m.Now, Dial: m.Dial, Frugal: true, OnUp: m.OnUp, OnDown: m.OnDown})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// runFleet runs f and its status server.
func runFleet(ctx context.Context, f *fleet.Fleet, status string, progress time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1) // it ends once
	if status == "" {
		served <- nil
	} else {
		ln, err := fleet.Listen(ctx, status)
		if err != nil {
			return err
		}
		go func() {
			err := f.Serve(ctx, ln)
			if err != nil {
				cancel()
			}
			served <- err
		}()
	}
	var wg sync.WaitGroup
	if progress > 0 {
		wg.Go(func() { f.Progress(ctx, progress) })
	}
	err := f.Run(ctx)
	cancel()
	wg.Wait()
	return errors.Join(err, <-served)
}

// tell draws the summary for people.
func tell(t *cli.Table, s fleet.Summary) {
	t.Row("robots", s.Robots)
	t.Row("enrolled", s.Enrolled)
	t.Row("connects", s.Connects, fmt.Sprintf("%d of them reconnects", s.Reconnects))
	t.Row("login", fmt.Sprintf("p50 %.0f ms", s.Login.P50), fmt.Sprintf("p99 %.0f ms, at most %.0f ms", s.Login.P99, s.Login.Max))
	t.Row("events", s.Events.Emitted, fmt.Sprintf("%d acknowledged, %d waiting, %d dropped", s.Events.Acked, s.Events.Waiting, s.Events.Dropped))
	t.Row("settings", s.Settings)
	t.Row("reboots", s.Reboots)
	for _, reason := range slices.Sorted(maps.Keys(s.Errors)) {
		t.Row("error", s.Errors[reason], reason)
	}
}
