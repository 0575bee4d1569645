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
		Short: "Run thousands of light robots: agents with real sessions and real files, without bodies",
		Long: `Run many light robots in this process: the agent of a real robot with its mutual-TLS session, its documents and its event
spool, and neither loop nor body. A robot that has a folder below -root continues with it; others are registered with the
operator's token (-token-file), or take their claim secret from a list (-secrets, CSV: thing,secret).

-profile says how they behave: idle, lively, rough, or a YAML file. The seed decides the rest: the same seed gives every
robot the same days again. On interrupt all say goodbye, and the summary is printed (-o json).

-status answers while they run: GET /status, POST /reconnect?n=100. Each robot takes three file descriptors.
A -root on a memory file system spares the disk their thousands of syncs.`,
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
	f.IntVarP(&o.cfg.N, "robots", "n", 100, "how many robots")
	f.StringVar(&o.cfg.Folder, "root", "", "folder for the robots' folders (required)")
	f.StringVar(&o.cfg.Endpoints.Kennel.API, "api", "", "https://host:port of the cloud (required)")
	f.StringVar(&o.cfg.Endpoints.Kennel.MQTT, "mqtt", "", "ssl://host:port of the broker (default: what the cloud says)")
	f.StringVar(&o.ca, "ca", "", "PEM file with the root the robots shall trust (required)")
	releaseFlags(f, &o.releaseKey, &o.releaseRoot)
	f.StringVar(&o.token, "token-file", "", "file with an operator's token, to register robots")
	f.StringVar(&o.secrets, "secrets", "", "CSV file with lines thing,secret of robots that are registered")
	f.StringVar(&o.first, "first", "vic:00f00000", "the first robot; serials count up from its")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "decides all that is random in the robots' days")
	f.StringVar(&o.profile, "profile", "idle", "how they behave: "+strings.Join(fleet.Presets(), ", ")+", or a YAML file")
	f.StringVar(&o.cfg.OSVersion, "os-version", "2.0.0.6074", "release the robots run")
	f.IntVar(&o.cfg.AtOnce, "at-once", 64, "robots between nothing and their first login")
	f.StringVar(&o.status, "status", "", "answer GET /status, POST /crash, POST /reconnect and POST /reboot here: host:port of this machine, or a socket's path")
	f.DurationVar(&o.lasts, "for", 0, "end after this time (default: when interrupted)")
	f.DurationVar(&o.progress, "progress", 5*time.Second, "how often to say how far it is; 0: never")
	f.StringVar(&o.level, "log-level", "", "what robots say: debug, info, warn or error (default: nothing)")
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
	t.Row("connects", s.Connects, fmt.Sprintf("%d of them again", s.Reconnects))
	t.Row("login", fmt.Sprintf("p50 %.0f ms", s.Login.P50), fmt.Sprintf("p99 %.0f ms, at most %.0f ms", s.Login.P99, s.Login.Max))
	t.Row("events", s.Events.Emitted, fmt.Sprintf("%d acknowledged, %d waiting, %d dropped", s.Events.Acked, s.Events.Waiting, s.Events.Dropped))
	t.Row("settings", s.Settings)
	t.Row("reboots", s.Reboots)
	for _, reason := range slices.Sorted(maps.Keys(s.Errors)) {
		t.Row("error", s.Errors[reason], reason)
	}
}
