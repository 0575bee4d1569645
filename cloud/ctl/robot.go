package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/command"
	"kennel/cloud/fleet/liveview"
	"kennel/cloud/fleet/registry"
	"kennel/cloud/openapi/client"
	"kennel/cloud/voice/intents"
	"kennel/infra/api/commandwire"
	"kennel/infra/api/poke"
	"kennel/infra/backoff"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/suggest"
)

const (
	glanceEvery = 500 * time.Millisecond
	glanceFresh = 2 * time.Second  // a robot that is looked at speaks twice a second
	glanceFor   = 10 * time.Second // for a robot to show itself
	resultEvery = 300 * time.Millisecond
	// offlineEvery is every how many looks at a command kennelctl asks whether its robot is still online.
	offlineEvery = 10
)

func (a *app) robot() *cobra.Command {
	return group(describe("robot", "Control a robot: show its parts live, change them, drive it and stop it", "robot tree vic:00e20100",
		"robot watch vic:00e20100 headPitch 'cliff*'", "robot do vic:00e20100 'headPitch = 0.3'",
		"robot drive vic:00e20100 straight=0.1", "robot stop vic:00e20100"),
		a.robotTree(), a.robotWatch(), a.robotRecord(), a.robotDo(), a.robotDrive(), a.robotPoke(),
		a.tells(&cobra.Command{Use: "stop THING", Short: "Stop all motors of a robot",
			Long:    "Stop all motors of a robot, whatever program drives it. A stop overtakes pending commands and cancels motions sent before it.",
			Example: "  kennelctl robot stop vic:00e20100"}, commandwire.RobotStop),
		a.says(&cobra.Command{Use: "say THING TEXT...", Short: "Tell a robot what to do in plain words",
			Example: "  kennelctl robot say vic:00e20100 go forward\n  kennelctl robot say vic:00e20100 'go to sleep'"}, a.api.PostThingsThingIntents),
		a.robotHold(),
		a.tells(&cobra.Command{Use: "release THING", Short: "End the hold of a robot",
			Long:    "End the hold of a robot (see robot hold), even if another person set it. The robot may move again.",
			Example: "  kennelctl robot release vic:00e20100"}, commandwire.RobotRelease))
}

// tells makes a command that gives a robot a command without arguments.
func (a *app) tells(cmd *cobra.Command, kind string) *cobra.Command {
	return a.runs(cmd, func(cmd *cobra.Command, args []string) error { return a.tellRobot(cmd, args[0], kind, nil) })
}

// says makes a command that tells a robot what to do, and waits for its answer.
func (a *app) says(cmd *cobra.Command, post func(ctx context.Context, thing string, in client.Saying) (reply[client.Said], error)) *cobra.Command {
	cmd.Args = cobra.MinimumNArgs(2)
	cmd.Long = cmd.Short + ". The cloud finds the intent of TEXT, in the language that the robot's owner chose or in English;\nthe robot acts on it and answers. TEXT is not stored."
	return a.runs(cmd, func(cmd *cobra.Command, args []string) error {
		told, err := post(cmd.Context(), args[0], client.Saying{Text: strings.Join(args[1:], " ")})
		if err != nil {
			return err
		}
		r, err := a.settled(cmd.Context(), args[0], reply[client.Command]{Value: told.Value.Command}, intents.TTL, func(string) {})
		if err != nil {
			return err
		}
		return show(cmd, r, nil, func(t *cli.Table, got client.Command) {
			t.Row(got.Thing, told.Value.Intent, told.Value.Language, resultText(got))
		})
	})
}

func (a *app) robotTree() *cobra.Command {
	return a.runs(&cobra.Command{Use: "tree THING [DEVICE]", Short: "Show a robot's devices and their current values",
		Long: "Show a robot's devices and their current values. " +
			"DEVICE is a full name or its beginning, with or without robot., a compact name,\n" +
			"or an alias (ALIASES). Values are in SI units. AGE is the time since a value was measured; constants have none.\n" +
			"Values of a device that is gone are unavailable.",
		Example: "  kennelctl robot tree vic:00e20100\n  kennelctl robot tree vic:00e20100 robot.body.wheel\n" +
			"  kennelctl robot tree vic:00e20100 -o json | jq .motion\n  kennelctl robot tree vic:00e20100 -o json | jq .world.pose   # of a simulated robot"},
		func(cmd *cobra.Command, args []string) error {
			r, err := a.look(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 {
				if r.Devices = named(r.Devices, args[1]); len(r.Devices) == 0 {
					return errs.New(errs.NotFound, "%s has no device %.80q; see kennelctl robot tree %s", args[0], args[1], args[0])
				}
			}
			return cli.Print(cmd, r, func(t *cli.Table) { showTree(t, r) })
		})
}

// glance asks once for how a robot shows itself.
func (a *app) glance(ctx context.Context, id string) (r liveview.Robot, err error) {
	got, err := a.api.GetThingsThingLive(ctx, id)
	if err == nil {
		err = json.Unmarshal(got.Raw, &r) // the same with methods
	}
	return r, err
}

// look asks until the robot shows itself.
func (a *app) look(ctx context.Context, id string) (liveview.Robot, error) {
	deadline := time.Now().Add(glanceFor)
	for {
		r, err := a.glance(ctx, id)
		if err != nil {
			return r, err
		}
		if r.Received != nil && r.AgeMS <= glanceFresh.Milliseconds() {
			return r, nil
		}
		if time.Now().After(deadline) {
			last := "it has never sent its values"
			if r.Received != nil {
				last = "it last sent them " + ago(*r.Received)
			}
			return r, errs.New(errs.Unavailable,
				"%s sends no values: %s; is it online (kennelctl robots show %s), and is its software new enough?", id, last, id)
		}
		if err := backoff.Sleep(ctx, glanceEvery); err != nil {
			return r, err
		}
	}
}

// named returns the devices that name means; of a full one "robot." may be left out (GOSTAI-TREE-02).
func named(all []liveview.Device, name string) (out []liveview.Device) {
	full := name
	if name != "robot" && !strings.HasPrefix(name, "robot.") {
		full = "robot." + name
	}
	for _, d := range all {
		rest, below := strings.CutPrefix(d.Full, full)
		if d.Compact == name || slices.Contains(d.Aliases, name) || below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			out = append(out, d)
		}
	}
	return out
}

func showTree(t *cli.Table, r liveview.Robot) {
	if m := r.Motion; m != nil {
		t.Text(fmt.Sprintf("pose %.3f m, %.3f m, %.1f°; drove %.2f m; %s", m.X, m.Y, m.Theta*180/math.Pi, m.Way, moves(r)))
	}
	if m := r.Motion; m != nil {
		by := map[string][]string{}
		for _, o := range m.Owners {
			by[o.Program] = append(by[o.Program], o.Device)
		}
		for _, program := range slices.Sorted(maps.Keys(by)) {
			t.Text(program + " moves " + strings.Join(by[program], ", "))
		}
	}
	if where := r.Where(); where != "" {
		if _, off, turned, ok := r.Belief(); ok {
			where += fmt.Sprintf("; its pose is off by %.1f cm and %.1f°", off*100, math.Abs(turned)*180/math.Pi)
		}
		t.Text("simulated: " + where)
	}
	gone := map[string]bool{}
	for _, d := range r.Devices {
		if d.Gone != nil && !gone[d.Gone.Full] {
			gone[d.Gone.Full] = true
			t.Text(fmt.Sprintf("%s has been gone for %s: %s", d.Gone.Full, age(d.Gone.ForMS), d.Gone.Why))
		}
	}
	t.Row("COMPACT", "SLOT", "VALUE", "UNIT", "AGE", "ALIASES")
	for _, d := range r.Devices {
		for _, s := range d.Slots {
			old := ""
			if s.AgeMS != nil {
				old = age(*s.AgeMS)
			}
			t.Row(d.Compact, d.Full+"."+s.Name, s.String(), s.Unit, old, strings.Join(d.Aliases, ", "))
		}
	}
}

// age prints how old a value is: 130 ms, 41 s, 3 min.
func age(ms int64) string {
	if ms < 1000 {
		return fmt.Sprint(ms, " ms")
	}
	return registry.Ago(time.Duration(ms) * time.Millisecond)
}

// moves says whether a robot moves, and why it may not.
func moves(r liveview.Robot) string {
	switch m := r.Motion; {
	case len(m.Stop) > 0:
		return "may not move: " + strings.Join(m.Stop, ", ")
	case m.Moving:
		return "moving"
	}
	return "at rest"
}

func (a *app) robotDrive() *cobra.Command {
	var wait bool
	cmd := a.runs(&cobra.Command{Use: "drive THING WAY=VALUE [speed=VALUE] [seconds=VALUE]", Short: "Drive a robot for some seconds",
		Args: cobra.MinimumNArgs(2),
		Long: "Drive a robot. It starts within " + commandwire.MaxWait.String() + " or not at all, and stops by itself after seconds (default " +
			commandwire.DefaultDrive.String() + ", at most " + commandwire.MaxDrive.String() + ").\n\n" +
			"WAY is one of: straight=METRES (negative: backward); turn=RADIANS (positive: to the right, as robot.turn); left=RAD/S right=RAD/S (the\n" +
			"speeds of the wheels); head=RADIANS (positive: nose down); lift=METRES above the ground. speed is in metres or radians a second.\n" +
			"Each is short for a line of kennelctl robot do, such as robot.go(METRES).\n\n" + robotWaits +
			"The robot refuses while another program drives it, at a cliff, when lifted, halted or held.",
		Example: "  kennelctl robot drive vic:00e20100 straight=0.1 -wait\n  kennelctl robot drive vic:00e20100 turn=1.57 speed=1\n" +
			"  kennelctl robot drive vic:00e20100 left=3 right=4.5 seconds=3"},
		func(cmd *cobra.Command, args []string) error {
			set, err := parseSet(args[1:])
			if err != nil {
				return err
			}
			line, err := driveLine(set)
			if err != nil {
				return err
			}
			return a.sendLine(cmd, args[0], line, set["seconds"], wait)
		})
	waitFlag(cmd, &wait)
	return cmd
}

const robotWaits = "With -wait the command ends when the motion does, prints the result, and fails if the motion failed.\n\n"

func waitFlag(cmd *cobra.Command, wait *bool) {
	cmd.Flags().BoolVar(wait, "wait", false, "wait until the motion ends and print its result")
}

// driveLine is the line that a drive is short for.
func driveLine(set map[string]json.RawMessage) (string, error) {
	words := []string{"straight", "turn", "head", "lift", "left", "right", "speed", "seconds"}
	v := map[string]float64{}
	for key, raw := range set {
		var x float64
		switch {
		case !slices.Contains(words, key):
			return "", cli.Usage("unknown key %.40q%s (want %s)", key, suggest.DidYouMean(key, words), strings.Join(words, ", "))
		case json.Unmarshal(raw, &x) != nil:
			return "", cli.Usage("%s=%.40s: want a number", key, raw)
		}
		v[key] = x
	}
	has := func(key string) bool { _, ok := v[key]; return ok }
	var lines []string
	for key, format := range map[string]string{"straight": "robot.go(%v)", "turn": "robot.turn(%v)", "head": "headPitch = %v", "lift": "lift = %v"} {
		if has(key) {
			lines = append(lines, fmt.Sprintf(format, v[key]))
		}
	}
	if has("left") != has("right") {
		return "", cli.Usage("left and right go together")
	}
	if has("left") {
		lines = append(lines, fmt.Sprintf("wheelL.speed = %v; wheelR.speed = %v", v["left"], v["right"]))
	}
	switch {
	case len(lines) != 1:
		return "", cli.Usage("want one of straight, turn, head, lift, or left and right; got %d", len(lines))
	case has("straight") && v["straight"] == 0, has("turn") && v["turn"] == 0:
		return "", cli.Usage("straight and turn: want a distance other than 0")
	case !has("speed"):
		return lines[0], nil
	case has("left") || v["speed"] <= 0:
		return "", cli.Usage("speed=%v: want more than 0; left and right take no speed", v["speed"])
	}
	return fmt.Sprintf("%s speed:%v", lines[0], v["speed"]), nil
}

// sendLine gives a robot a line.
func (a *app) sendLine(cmd *cobra.Command, thing, line string, seconds json.RawMessage, wait bool) error {
	args := map[string]any{"line": line}
	if seconds != nil {
		args["seconds"] = seconds
	}
	if wait {
		args["wait"] = true
	}
	b, err := json.Marshal(args)
	if err != nil {
		return err
	}
	if _, err := commandwire.ParseDo(b); err != nil {
		return cli.Usage("%s", strings.TrimPrefix(err.Error(), commandwire.RobotDo+": "))
	}
	return a.tellRobot(cmd, thing, commandwire.RobotDo, b)
}

func (a *app) robotPoke() *cobra.Command {
	var p poke.Poke
	cmd := a.runs(&cobra.Command{Use: "poke THING VERB [SIDE]", Short: "Touch or move a simulated robot by hand",
		Long: "Do to a simulated robot what a person beside it would do. Its sensors notice. Real robots refuse.\n" +
			"It starts within " + commandwire.MaxWait.String() + " or not at all.\n\n" +
			"VERB is one of:\n\n" + poke.Help(),
		Example: "  kennelctl robot poke vic:00e20100 touch -for 2s\n  kennelctl robot poke vic:00e20100 lift\n" +
			"  kennelctl robot poke vic:00e20100 push -by 0.05 -toward 90\n  kennelctl robot poke vic:00e20100 turn back",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return poke.Names(), cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeThing(cmd, args, typed)
		}},
		func(cmd *cobra.Command, args []string) error {
			p, err := p.Named(args[1:]...)
			if err != nil {
				return cli.Usage("%w", err)
			}
			b, err := json.Marshal(p)
			if err != nil {
				return err
			}
			return a.tellRobot(cmd, args[0], commandwire.RobotPoke, b)
		})
	p.Flags(cmd.Flags().Func)
	return cmd
}

func (a *app) robotDo() *cobra.Command {
	var wait bool
	cmd := a.runs(&cobra.Command{Use: "do THING LINE [seconds=VALUE]", Short: "Read, set or call a part of a robot",
		Long: "Read, set or call a part of a robot by its full or compact name (see kennelctl robot tree). LINE is one of these, or several\n" +
			"separated by ; which happen together or not at all:\n\n" +
			"  NAME                        read a slot; of a device, its val\n" +
			"  NAME = VALUE [HOW]          set it to a number, true, false or \"text\", or a group to a [list]\n" +
			"  NAME(VALUE, ...) [HOW]      call a method: robot.go(METRES), robot.turn(RADIANS, positive: to the right), robot.stop()\n\n" +
			"HOW says how a motor moves: speed:VALUE (in its unit per second), time:2s (to arrive then, at most 10s) or adaptive:1 (to arrive in about\n" +
			"that many seconds, whatever its present position and speed). The body's limits apply, and the answer says so; a joint may move longer\n" +
			"than seconds.\n\n" +
			"Units are as in the tree. The answer is the value read, or the value that the robot accepted: the closest one possible. As with drive,\n" +
			"the motion has started by then, and ends after seconds (default " + commandwire.DefaultDrive.String() + ", at most " + commandwire.MaxDrive.String() + ").\n\n" +
			robotWaits +
			"The robot refuses while another program uses the part, at a cliff, when lifted, halted or held.",
		Example: "  kennelctl robot do vic:00e20100 'headPitch = 0.3'\n  kennelctl robot do vic:00e20100 'headPitch = -0.2 time:2s'\n" +
			"  kennelctl robot do vic:00e20100 'robot.go(0.2) speed:0.1' -wait\n  kennelctl robot do vic:00e20100 'wheelL.speed = 3; wheelR.speed = 3'\n" +
			"  kennelctl robot do vic:00e20100 'wheel.speed = [2, 3]' seconds=3\n  kennelctl robot do vic:00e20100 'led[0].g = 1'\n" +
			"  kennelctl robot do vic:00e20100 battery.voltage -o json | jq -r .result.detail",
		ValidArgsFunction: a.completeLine},
		func(cmd *cobra.Command, args []string) error {
			set, err := parseSet(args[2:])
			if err != nil {
				return err
			}
			for key := range set {
				if key != "seconds" {
					return cli.Usage("unknown key %.40q: want seconds", key)
				}
			}
			return a.sendLine(cmd, args[0], args[1], set["seconds"], wait)
		})
	waitFlag(cmd, &wait)
	return cmd
}

// completeLine offers the names that a robot has shown; it does not wait for one to show itself.
func (a *app) completeLine(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return a.completeThing(cmd, args, typed)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Second)
	defer cancel()
	if _, err := parseThing(args[0]); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	r, err := a.glance(ctx, args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var out []string
	for _, d := range r.Devices {
		for _, s := range d.Slots {
			if name := cmp.Or(d.Compact, d.Full) + "." + s.Name; strings.HasPrefix(name, typed) {
				out = append(out, name+"\t"+s.String())
			}
		}
		if strings.Contains(d.Interface, "Mobile") {
			for _, method := range []string{".go(", ".turn(", ".stop()"} {
				if strings.HasPrefix(d.Compact+method, typed) {
					out = append(out, d.Compact+method)
				}
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (a *app) robotHold() *cobra.Command {
	var reason string
	cmd := a.runs(&cobra.Command{Use: "hold THING -reason TEXT", Short: "Stop a robot and keep it stopped until released",
		Long: "Stop a robot and keep it stopped, even across restarts, until kennelctl robot release. Its status shows who holds it and why.\n" +
			"A hold overtakes pending commands.",
		Example: "  kennelctl robot hold vic:00e20100 -reason 'its left wheel is off'"},
		func(cmd *cobra.Command, args []string) error {
			b, err := json.Marshal(commandwire.Hold{Reason: reason})
			if err != nil {
				return err
			}
			if _, err := commandwire.ParseHold(b); err != nil {
				return cli.Usage("-reason: %s", strings.TrimPrefix(err.Error(), commandwire.RobotHold+": "))
			}
			return a.tellRobot(cmd, args[0], commandwire.RobotHold, b)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, as a `TEXT` for people who want to move it")
	return cmd
}

// tellRobot gives a robot a command that begins soon or never, waits for what it says, and fails if it does not do it.
func (a *app) tellRobot(cmd *cobra.Command, id, kind string, args json.RawMessage) error {
	r, err := a.api.PostThingsThingCommands(cmd.Context(), id, client.CommandRequest{Kind: kind, Args: args, ExpiresInMS: commandwire.MaxWait.Milliseconds()})
	if err == nil {
		r, err = a.settled(cmd.Context(), id, r, commandwire.MaxWait, func(string) {})
	}
	if err != nil {
		return err
	}
	return show(cmd, r, nil, func(t *cli.Table, got client.Command) { t.Row(got.Thing, resultText(got)) })
}

// settled waits for the result of a command, which began to wait for its robot just now, and tells the states on the way. A command that was not done
// is an error.
func (a *app) settled(ctx context.Context, id string, r reply[client.Command], ttl time.Duration, tell func(state string)) (_ reply[client.Command], err error) {
	last, polls := "", 0
	// Beyond its expiry and the grace for a result under way the cloud closes it.
	for deadline := time.Now().Add(ttl + 2*command.Grace); err == nil && !command.State(r.Value.State).Closed(); {
		if time.Now().After(deadline) {
			return r, errs.New(errs.Unavailable, "%s has not answered; kennelctl commands show %s %s", id, id, r.Value.ID)
		}
		if r.Value.State != last {
			last = r.Value.State
			tell(last)
		}
		if err := backoff.Sleep(ctx, resultEvery); err != nil {
			return r, err
		}
		if polls++; ttl <= commandwire.MaxWait && polls%offlineEvery == 1 {
			if err := a.offline(ctx, id); err != nil {
				return r, err
			}
		}
		r, err = a.api.GetThingsThingCommandsID(ctx, id, r.Value.ID)
	}
	if err != nil {
		return r, err
	}
	switch got := r.Value; command.State(got.State) {
	case command.Failed:
		return r, errs.New(errs.Conflict, "%s did not: %s", id, cmp.Or(resultText(got), "it did not say why"))
	case command.Expired:
		return r, errs.New(errs.Unavailable, "%s did not: %s", id, cmp.Or(resultText(got), "no result in time"))
	}
	return r, nil
}

// offline returns Unavailable for a robot that is offline: it will hardly answer in time.
func (a *app) offline(ctx context.Context, id string) error {
	t, err := a.api.GetThingsThing(ctx, id)
	if err != nil || t.Value.Presence != string(registry.Absent) {
		return err
	}
	when := "has never connected"
	if !t.Value.Since.IsZero() {
		when = "is offline since " + t.Value.Since.Local().Format("2006-01-02 15:04:05") + " (" + ago(t.Value.Since) + ")"
	}
	return errs.Coded(errs.Unavailable, errs.CodeOffline, "%s %s; kennelctl commands list %s shows what waits for it", id, when, id)
}
