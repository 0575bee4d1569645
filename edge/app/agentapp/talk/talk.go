// Package talk wires the voice of a robot: its parts, its requests on agentd's socket, and its commands for people at the robot.
package talk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/agent/host"
	"kennel/edge/agent/intents"
	"kennel/edge/agent/link"
	"kennel/edge/agent/localapi"
	"kennel/edge/agent/voice"
	"kennel/edge/agent/voice/brokerlink"
	"kennel/edge/agent/voice/chipperlink"
	"kennel/edge/app/agentapp/local"
	"kennel/edge/core/coreclient"
	"kennel/edge/env/platform"
	"kennel/edge/faultcode"
	"kennel/edge/mic"
	"kennel/edge/mic/checkup"
	"kennel/edge/mic/wakeword"
	"kennel/infra/cli"
	"kennel/infra/logging"
	"kennel/infra/runner"
	"kennel/jdocs"
	"kennel/speech/intent"
)

// intentMap is the original's list of intents (VEC-INT-01).
const intentMap = "anki/data/assets/cozmo_resources/config/engine/behaviorComponent/user_intent_map.json"

// Config holds what talking needs beside the robot.
type Config struct {
	Cloud   *link.Cloud
	Core    *coreclient.Client
	Docs    func(jdocs.Name) (jdocs.Doc, error)
	Allowed func() bool // the owner lets events be kept
	Inbox   intents.Inbox
	Ears    *mic.Tap // gets what the robot hears; nil: no program hears it
	Fault   func(faultcode.Code, error)
	Told    func(voice.Event)                                                 // hears each event of the voice; nil: nothing does
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error) // below TLS; nil: the system's
}

// Part is the voice as a part of agentd.
func Part(robot host.Robot, cfg Config) host.Part {
	v := newVoice(robot, cfg)
	return host.Part{Name: "voice", Services: []runner.Service{{Name: "voice", Run: v.Run}}, Hears: []host.Hearing{host.On(v.Handle)}, Local: requests(v)}
}

func newVoice(robot host.Robot, cfg Config) *voice.Voice {
	m := load(robot)
	word, err := wakeword.Load(robot.Root.FS(), settings(robot, cfg).Language)
	if err != nil {
		robot.Log.Info("wake word model file not used", "word", word.Word, logging.Err, err)
	}
	build, err := platform.RobotBuild(robot.Root, robot.Hardware)
	if err != nil {
		robot.Log.Error("robot build unreadable; assuming production", logging.Err, err)
	}
	return voice.New(voice.Config{
		Capture: err == nil && build == platform.Development,
		Root:    robot.Root, Dir: robot.Dir, Core: cfg.Core, Settings: func() voice.Settings { return settings(robot, cfg) }, Emit: robot.Emit, Told: cfg.Told, Log: robot.Log,
		Detector: wakeword.NewGated(wakeword.NewSpotter(word)), Heard: checkup.New(robot.Emit, cfg.Fault).Heard, Tap: cfg.Ears,
		Cloud: &chipperlink.Link{Thing: robot.Thing, Boot: robot.Boot, OS: robot.OS, Secure: cfg.Cloud.Secure, Dial: cfg.Dial,
			Else: &brokerlink.Link{OS: robot.OS, Do: cfg.Cloud.Do}},
		Map: func(name string, params map[string]string) voice.Intent {
			u := m.Cloud(name, params)
			in := voice.Intent{Name: u.Name, Params: u.Params, Response: u.Response}
			if id, ok := u.ID(); ok {
				in.ID = &id
			}
			return in
		},
		Act: func(ctx context.Context, in voice.Intent) voice.Result {
			o, err := cfg.Inbox.Take(ctx, intent.User{Name: in.Name, Params: in.Params, Response: in.Response}, "voice")
			if err != nil {
				o = intents.Outcome{Reason: intents.Failed, Text: "that took too long"}
			}
			return voice.Result{Intent: in.Name, Done: o.Done, Reason: voice.Reason(o.Reason), Text: o.Text, Emotion: o.Emotion}
		},
	})
}

// load returns the robot's own map, or ours without a file of its own that can be read.
func load(robot host.Robot) *intent.Map {
	b, err := robot.Root.ReadFile(intentMap)
	if err == nil {
		var m *intent.Map
		if m, err = intent.ParseMap(b); err == nil {
			return m
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		robot.Log.Error("list of intents ignored", "file", intentMap, logging.Err, err)
	}
	return intent.DefaultMap()
}

// settings returns the owner's settings that concern voices.
func settings(robot host.Robot, cfg Config) (s voice.Settings) {
	s.SkipDAS = !cfg.Allowed()
	doc, err := cfg.Docs(jdocs.SettingsOf(robot.Thing.Species()))
	var fields struct {
		Locale string `json:"locale"`
		Zone   string `json:"time_zone"`
		Button int    `json:"button_wakeword"`
	}
	if err == nil {
		err = json.Unmarshal([]byte(doc.JSON), &fields)
	}
	if err != nil {
		robot.Log.Warn("settings of the voice not read", logging.Err, err)
	}
	s.Language, s.Timezone, s.Alexa = fields.Locale, fields.Zone, fields.Button == 1
	return s
}

// Messages of the socket for voices.
type (
	watchRequest struct {
		After  uint64 `json:"after"`
		WaitMS int    `json:"wait_ms"` // for an event, up to 30 s
	}
	watchAnswer struct {
		Events []voice.Event `json:"events"`
		Last   uint64        `json:"last"` // number of the newest event
	}
	sentence struct {
		Text string `json:"text"`
	}
	wish struct {
		Intent string            `json:"intent"`
		Params map[string]string `json:"params"`
	}
)

// longestLook is how long a request for events waits.
const longestLook = 30 * time.Second

// requests are those of agentd's socket.
//
//	POST /voice/watch   watchRequest -> watchAnswer       the events after a number; waits for one
//	POST /voice/listen  {} -> {}                        presses the button by software
//	POST /voice/say     sentence -> voice.Result       has the cloud understand a text, and acts on it
//	POST /voice/intent  wish -> voice.Result     acts on an intent by the cloud's name (VEC-INT-18)
func requests(v *voice.Voice) map[string]http.Handler {
	return map[string]http.Handler{
		"POST /voice/watch": localapi.Answer(func(ctx context.Context, r watchRequest) (out watchAnswer, err error) {
			ctx, cancel := context.WithTimeout(ctx, min(time.Duration(max(r.WaitMS, 0))*time.Millisecond, longestLook))
			defer cancel()
			out.Events, out.Last = v.Since(ctx, r.After)
			return out, nil
		}),
		"POST /voice/listen": localapi.Answer(func(context.Context, localapi.Nothing) (localapi.Nothing, error) {
			v.Listen()
			return localapi.Nothing{}, nil
		}),
		"POST /voice/say": localapi.Answer(func(ctx context.Context, r sentence) (voice.Result, error) { return v.Text(ctx, r.Text) }),
		"POST /voice/intent": localapi.Answer(func(ctx context.Context, r wish) (voice.Result, error) {
			return v.Inject(ctx, r.Intent, r.Params)
		}),
	}
}

// Command is for developers and tests: what a program on the robot sees of voices.
func Command(atRobot local.AtRobot) *cobra.Command {
	cmd := &cobra.Command{Use: "voice", Short: "Talk to the robot by text or button, and watch what it understands"}
	done := func(cmd *cobra.Command, r voice.Result, err error) error {
		if err != nil {
			return err
		}
		return cli.Print(cmd, r, func(t *cli.Table) { t.Row(r.Intent, r.Text) })
	}
	var after uint64
	watch := atRobot(&cobra.Command{
		Use: "watch", Short: "Print voice events as they happen, until interrupted (VEC-INT-12)", Example: "  agentd voice watch -root ./r1\n  agentd voice watch -root ./r1 -after 0\n  agentd voice watch -root ./r1 -o json",
	}, func(cmd *cobra.Command, root *os.Root) error {
		if !cmd.Flags().Changed("after") {
			now, err := localapi.Ask[watchAnswer](cmd.Context(), root, "/voice/watch", watchRequest{After: math.MaxUint64})
			if err != nil {
				return err
			}
			after = now.Last
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "waiting for voice events; Ctrl-C ends this")
		for {
			got, err := localapi.Ask[watchAnswer](cmd.Context(), root, "/voice/watch", watchRequest{after, int(longestLook.Milliseconds())})
			if cmd.Context().Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			if got.Last < after { // of another agentd
				after = 0
				continue
			}
			for _, e := range got.Events {
				if lost := e.Seq - after - 1; after != 0 && lost > 0 {
					fmt.Fprintln(cmd.ErrOrStderr(), cli.Count(lost, "event"), "lost")
				}
				after = e.Seq
				if err := cli.Print(cmd, e, func(t *cli.Table) { t.Row(e.At.Local().Format("15:04:05.000"), e.Words()) }); err != nil {
					return err
				}
			}
		}
	})
	watch.Flags().Uint64Var(&after, "after", 0, "print events after this `NUMBER`; 0: all that are kept (default: only those to come)")
	cmd.AddCommand(watch,
		atRobot(&cobra.Command{Use: "listen", Short: "Wake the robot, like a press of its button", Example: "  agentd voice listen -root ./r1"},
			func(cmd *cobra.Command, root *os.Root) error {
				_, err := localapi.Ask[localapi.Nothing](cmd.Context(), root, "/voice/listen", localapi.Nothing{})
				return err
			}),
		withArgs(atRobot, &cobra.Command{Use: "say TEXT", Short: "Act on a text as if it were spoken", Example: `  agentd voice say -root ./r1 "set a timer for one minute"`},
			func(cmd *cobra.Command, root *os.Root, args []string) error {
				r, err := localapi.Ask[voice.Result](cmd.Context(), root, "/voice/say", sentence{strings.Join(args, " ")})
				return done(cmd, r, err)
			}),
		withArgs(atRobot, &cobra.Command{Use: "intent NAME [PARAMETER=VALUE...]", Short: "Act on an intent, by its name in the cloud", Example: "  agentd voice intent -root ./r1 intent_clock_settimer_extend timer_duration=60"},
			func(cmd *cobra.Command, root *os.Root, args []string) error {
				r := wish{Intent: args[0], Params: map[string]string{}}
				for _, a := range args[1:] {
					k, v, ok := strings.Cut(a, "=")
					if !ok {
						return cli.Usage("%q: want PARAMETER=VALUE", a)
					}
					r.Params[k] = v
				}
				out, err := localapi.Ask[voice.Result](cmd.Context(), root, "/voice/intent", r)
				return done(cmd, out, err)
			}),
		atRobot(&cobra.Command{Use: "intents", Short: "List intents with their names on the robot and in the cloud (VEC-INT-18)", Example: "  agentd voice intents -root ./r1"},
			func(cmd *cobra.Command, _ *os.Root) error {
				all := intent.All()
				return cli.Print(cmd, all, func(t *cli.Table) {
					for _, i := range all {
						t.Row(i.User, i.Cloud, i.App)
					}
				})
			}))
	return cmd
}

// withArgs is atRobot for a command with arguments.
func withArgs(atRobot local.AtRobot, cmd *cobra.Command, run func(cmd *cobra.Command, root *os.Root, args []string) error) *cobra.Command {
	var given []string
	cmd = atRobot(cmd, func(cmd *cobra.Command, root *os.Root) error { return run(cmd, root, given) })
	inner := cmd.RunE
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given = args
		return inner(cmd, args)
	}
	return cmd
}
