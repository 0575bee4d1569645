package onebox

import (
	"strings"

	"github.com/spf13/cobra"

	"kennel/cloud/app"
	"kennel/cloud/app/backup"
	"kennel/cloud/app/originalscmd"
	"kennel/infra/cli"
	"kennel/infra/logging"
	"kennel/infra/mqtt/broker"
	"kennel/infra/onebox"
)

// Commands are those of kenneld that are about one machine, or about an installation before it runs.
func Commands(getenv func(string) string) []*cobra.Command {
	dir := func(given string) (string, error) { return dataDir(given, getenv) }
	return append(backup.Commands(dir), oneboxCommand(getenv), originalscmd.Command(dir), installCommand(), prepareCommand(), caCommand(), partCommand())
}

func oneboxCommand(getenv func(string) string) *cobra.Command {
	o := Onebox{Listen: DefaultListen}
	var listen []string
	var robots string
	cmd := &cobra.Command{
		Use:   "onebox",
		Short: "Run everything on this machine, optionally with simulated robots",
		Long: `Run everything on this machine: a private Postgres, an S3 gateway, an MQTT broker, certificate authorities, all roles of
the cloud and, if you like, simulated robots. Ctrl-C stops everything; the next start uses the same data. Only this machine
can connect, unless you give -listen or -originals: -originals NAME accepts original robots from the network, on their own
port and, if this account may open it, on port 443 (see kenneld originals).`,
		Example: `  kenneld onebox -robots 5
  kenneld onebox -robots vector:3,amigobot:2
  kenneld onebox -demo -data demo
  kenneld onebox -data /srv/kennel -listen api=0.0.0.0:8443 -listen mqtt=0.0.0.0:8883
  sudo kenneld onebox -originals kennel.lan
  kenneld onebox -ready-file /tmp/ready.json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := map[string]bool{}
			for _, l := range listen {
				if err := o.Listen.Set(l); err != nil {
					return err
				}
				part, _, _ := strings.Cut(l, "=")
				given[part] = true
			}
			if err := o.admitOriginals(given); err != nil {
				return err
			}
			var err error
			if o.Robots, err = ParseRobots(robots); err != nil {
				return cli.Usage("-robots: %w", err)
			}
			for _, e := range o.RobotEnv {
				if !strings.Contains(e, "=") {
					return cli.Usage("-robot-env %q: want KEY=VALUE", e)
				}
			}
			log, err := logging.New(cmd.ErrOrStderr(), o.LogLevel, "text")
			if err != nil {
				return cli.Usage("%w", err)
			}
			o.Log, o.Out = log, cmd.OutOrStdout()
			if o.Data, err = dataDir(o.Data, getenv); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Data, "data", "", "data folder `DIR` (default: /var/lib/kennel as root, else ~/.local/share/kennel)")
	f.StringVar(&robots, "robots", "0", "simulated robots to run: a `NUMBER` of Vectors, or by species, such as vector:3,amigobot:2")
	f.BoolVar(&o.Demo, "demo", false, "seed about 140 robots with a week of history, a rollout under way, crashes and alerts; needs an empty data folder at first")
	f.StringVar(&o.ObjectsURL, "objects-url", "", "`URL`, http(s)://host:port, at which robots reach the object store, if it differs from where it listens")
	f.StringArrayVar(&listen, "listen", nil, "address of a part, `PART=HOST:PORT`; parts: api, console, robots, uploads, mqtt, postgres, s3, metrics (may be repeated)")
	f.StringSliceVar(&o.Originals, "originals", nil, "accept original robots that call this machine by this `NAME` or address (may be repeated; the first is in their configuration)")
	f.StringVar(&o.ReadyFile, "ready-file", "", "when everything is up, write endpoints, pids and files to `FILE` as JSON")
	f.StringArrayVar(&o.RobotEnv, "robot-env", nil, "environment variable `KEY=VALUE` for simulated robots (may be repeated)")
	f.StringArrayVar(&o.Webhooks.Allow, "webhook-allow", nil, "private `NETWORK` that webhooks may call, such as 192.168.1.0/24 (may be repeated)")
	f.StringVar(&o.Webhooks.RootFile, "webhook-roots", "", "trust the root certificates in `FILE` (PEM) for webhook receivers, too")
	f.StringSliceVar(&o.Speech.Recognizers, "recognizers", app.Recognizers(), "speech recognisers to try, a `LIST` in this order; none: speech off (default: those installed)")
	f.StringVar(&o.Speech.Place, "place", "", "`PLACE` of this house, such as \"Bern, Switzerland\": the weather of robots whose settings name no place of their own is from there")
	f.StringVar(&o.Speech.Weather, "weather", "open-meteo", "`SOURCE` of weather reports, asked only when a person asks a robot: open-meteo, open-meteo=http://HOST:PORT (a server of yours), or none")
	f.StringVar(&o.Speech.Model, "model", "", "language model that answers for robots whose owners allow it, `NAME=URL` of a server with OpenAI's chat completions, such as llama3.2=http://127.0.0.1:11434/v1")
	f.StringVar(&o.Speech.ModelKeyFile, "model-key-file", "", "`FILE` with the key of the server of -model")
	f.StringVar(&o.LogLevel, "log-level", "info", "`LEVEL`: debug, info, warn or error")
	return cmd
}

func dataDir(dir string, getenv func(string) string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	return onebox.DefaultDir(getenv)
}

// partCommand is how onebox starts itself again as one of its parts; it is not for people.
func partCommand() *cobra.Command {
	part := &cobra.Command{Use: "part", Hidden: true, Short: "Parts of one-machine mode", Example: "  kenneld part broker -config broker.json"}
	var conf string
	mq := &cobra.Command{
		Use: "broker", Short: "The embedded MQTT broker", Example: "  kenneld part broker -config broker.json", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return broker.Main(cmd.Context(), conf, cmd.ErrOrStderr()) },
	}
	mq.Flags().StringVar(&conf, "config", "", "JSON file")
	part.AddCommand(mq)
	return part
}
