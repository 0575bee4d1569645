package ctl

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kennel/cloud/fleet/liveview"
	"kennel/infra/backoff"
	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/thing"
)

// Own limits of a watch. A robot stops showing itself some seconds after the last request (liveview.AskFor), so a slow watch still asks every
// maxWatchEvery.
const (
	maxWatchRate  = 10
	maxWatchEvery = 2 * time.Second
)

func (a *app) robotWatch() *cobra.Command {
	var rate float64
	cmd := a.runs(&cobra.Command{Use: "watch THING NAME...", Short: "Print values of a robot whenever they change, until interrupted",
		Long: "Print all values once, then each when it changes, and when a device is gone or back (kennelctl robot tree lists names).\n\n" +
			"NAME is a device or a slot, full or compact: headPitch, headPitch.angle, robot.body.wheel (all below it). * matches any letters: 'cliff*',\n" +
			"'*.detected'. The time is when a value was measured; constants have none.\n\n" +
			"The robot sends its values twice a second, so shorter changes are not seen, and a slow reader misses more. " +
			"With -o json, each value is one\nline of JSON with at, at_ms (since 1970), thing, slot, and value or unavailable; " +
			"each event one with at, at_ms, thing, device, event (gone, back).",
		Example: "  kennelctl robot watch vic:00e20100 headPitch 'cliff*'\n  kennelctl robot watch vic:00e20100 battery.voltage -rate 0.1\n" +
			"  kennelctl robot watch vic:00e20100 'wheel*.speed' -o json | jq -r '[.at_ms,.slot,.value]|@csv'",
		ValidArgsFunction: a.completeNames},
		func(cmd *cobra.Command, args []string) error {
			if !(rate > 0 && rate <= maxWatchRate) {
				return cli.Usage("-rate %v: want more than 0, at most %d values per slot and second", rate, maxWatchRate)
			}
			w := &watcher{thing: thing.ID(args[0]), names: args[1:], every: time.Duration(float64(time.Second) / rate)}
			err := a.watch(cmd.Context(), w, func(l watchLine) error { return cli.PrintLine(cmd, l, l.String) }, func(s string) {
				fmt.Fprintf(cmd.ErrOrStderr(), "kennelctl: %s\n", cli.Clean(s))
			})
			if cmd.Context().Err() != nil {
				return nil // an interrupt is the ordinary end
			}
			return err
		})
	cmd.Flags().Float64Var(&rate, "rate", 2, "print at most `N` values per slot and second")
	return cmd
}

// completeNames offers the slots that a robot has shown, for any number of names.
func (a *app) completeNames(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return a.completeThing(cmd, args, typed)
	}
	out, _ := a.completeLine(cmd, args[:1], typed)
	return slices.DeleteFunc(out, func(s string) bool { return strings.ContainsRune(s, '(') }), cobra.ShellCompDirectiveNoFileComp
}

// watch looks at a robot until ctx ends, and hands each line to print, which may take its time. The first look must succeed, and names must
// name something;
// later a robot that does not show itself, or a cloud that is away, is said once and waited for.
func (a *app) watch(ctx context.Context, w *watcher, print func(watchLine) error, say func(string)) error {
	r, err := a.look(ctx, string(w.thing))
	if err != nil {
		return err
	}
	for _, name := range w.names {
		if !slices.ContainsFunc(r.Devices, func(d liveview.Device) bool { return len(slotsNamed(d, name)) > 0 }) {
			return errs.New(errs.NotFound, "%s has no device or slot %.80q; see kennelctl robot tree %s", w.thing, name, w.thing)
		}
	}
	silent := false
	for {
		for _, l := range w.take(r) {
			if err := print(l); err != nil {
				return err
			}
		}
		if err := backoff.Sleep(ctx, min(max(w.every, glanceEvery), maxWatchEvery)); err != nil {
			return err
		}
		next, err := a.glance(ctx, string(w.thing))
		switch {
		case err != nil && errs.KindOf(err) != errs.Unavailable:
			return err
		case err == nil && next.Received != nil && next.AgeMS <= glanceFresh.Milliseconds():
			r, silent = next, false
		case !silent:
			silent = true
			if err != nil {
				say(err.Error() + "; trying again")
			} else {
				say(string(w.thing) + " has stopped sending its values; trying again")
			}
		}
	}
}

// watcher finds what is new in how a robot shows itself.
type watcher struct {
	thing thing.ID
	names []string
	every time.Duration // between two lines of a slot

	received time.Time // of the newest that was taken
	told     map[string]toldSlot
	gone     map[string]bool // devices that were told to be gone
}

type toldSlot struct {
	at    time.Time // of the frame
	value string    // in JSON; "": unavailable or not known
	gone  bool
}

// watchLine is one line: a value, or an event on a device.
type watchLine struct {
	At          *time.Time `json:"at,omitempty"`
	AtMS        *int64     `json:"at_ms,omitempty"`
	Thing       thing.ID   `json:"thing"`
	Device      string     `json:"device"`
	Compact     string     `json:"compact,omitempty"`
	Slot        string     `json:"slot,omitempty"` // its full name
	Known       *bool      `json:"known,omitempty"`
	Value       any        `json:"value,omitempty"`
	Unit        string     `json:"unit,omitempty"`
	Unavailable bool       `json:"unavailable,omitempty"`
	Event       string     `json:"event,omitempty"` // gone, back
	Why         string     `json:"why,omitempty"`

	text string
}

// String is the line for people.
func (l watchLine) String() string {
	at := "                       -"
	if l.At != nil {
		at = l.At.UTC().Format("2006-01-02 15:04:05.000Z")
	}
	if l.Event != "" {
		return strings.TrimSuffix(fmt.Sprintf("%s  %s is %s: %s", at, l.Device, l.Event, l.Why), ": ")
	}
	return strings.TrimRight(fmt.Sprintf("%s  %s  %s %s", at, cmp.Or(l.Compact, l.Device)+strings.TrimPrefix(l.Slot, l.Device), l.text, l.Unit), " ")
}

// take returns what is to be told of r: what is newer than what was taken before.
func (w *watcher) take(r liveview.Robot) (out []watchLine) {
	if r.Received == nil || !r.Received.After(w.received) {
		return nil
	}
	w.received = *r.Received
	if w.told == nil {
		w.told, w.gone = map[string]toldSlot{}, map[string]bool{}
	}
	now := r.Received.Add(time.Duration(r.AgeMS) * time.Millisecond) // ages count from here, by the cloud's clock
	ago := func(ms int64) (*time.Time, *int64) {
		at := now.Add(-time.Duration(ms) * time.Millisecond).Truncate(time.Millisecond)
		unix := at.UnixMilli()
		return &at, &unix
	}
	// Events first: they say why values are missing.
	gone := map[string]bool{}
	for _, d := range r.Devices {
		if d.Gone == nil || gone[d.Gone.Full] || !slices.ContainsFunc(w.names, func(name string) bool { return len(slotsNamed(d, name)) > 0 }) {
			continue
		}
		gone[d.Gone.Full] = true
		if !w.gone[d.Gone.Full] {
			l := watchLine{Thing: w.thing, Device: d.Gone.Full, Event: "gone", Why: d.Gone.Why}
			l.At, l.AtMS = ago(d.Gone.ForMS)
			out = append(out, l)
		}
	}
	for _, full := range slices.Sorted(maps.Keys(w.gone)) {
		if !gone[full] {
			l := watchLine{Thing: w.thing, Device: full, Event: "back"}
			l.At, l.AtMS = ago(r.AgeMS) // within the time between two frames
			out = append(out, l)
		}
	}
	w.gone = gone
	for _, d := range r.Devices {
		for _, s := range d.Slots {
			if !slices.ContainsFunc(w.names, func(name string) bool { return slices.Contains(slotsNamed(d, name), s.Name) }) {
				continue
			}
			full := d.Full + "." + s.Name
			is := toldSlot{at: w.received, gone: s.Unavailable}
			if s.Known {
				b, _ := json.Marshal(s.Value) // it came as JSON
				is.value = string(b)
			}
			before, told := w.told[full]
			if told && (is.value == before.value && is.gone == before.gone || is.at.Sub(before.at) < w.every) {
				continue
			}
			w.told[full] = is
			l := watchLine{Thing: w.thing, Device: d.Full, Compact: d.Compact, Slot: full, Known: &s.Known, Value: s.Value,
				Unavailable: s.Unavailable, text: s.String()}
			if s.Known {
				l.Unit = s.Unit
			}
			if s.AgeMS != nil {
				l.At, l.AtMS = ago(*s.AgeMS)
			}
			out = append(out, l)
		}
	}
	return out
}

// slotsNamed returns the slots of d that a name means: all slots of the device, if name is the device or a part above it, or one slot. In a
// name * matches any letters, and a full name may leave "robot." out.
func slotsNamed(d liveview.Device, name string) (out []string) {
	called := append([]string{d.Full, strings.TrimPrefix(d.Full, "robot."), d.Compact}, d.Aliases...)
	for _, s := range d.Slots {
		if slices.ContainsFunc(called, func(c string) bool {
			if c == "" {
				return false
			}
			if matches(name, c+"."+s.Name) {
				return true
			}
			// The device, or what it is a part of.
			for c != "" {
				if matches(name, c) {
					return true
				}
				c = c[:max(strings.LastIndexAny(c, ".["), 0)]
			}
			return false
		}) {
			out = append(out, s.Name)
		}
	}
	return out
}

// matches reports whether s is like pattern, in which * matches any letters.
func matches(pattern, s string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$").MatchString(s)
}
