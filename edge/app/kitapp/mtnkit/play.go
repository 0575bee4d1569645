package mtnkit

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kennel/edge/anim"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/infra/cli"
)

// maxRows bounds what play computes: 22 hours of rows.
const maxRows = 10_000_000

// maxLoops bounds -loops.
const maxLoops = 10_000

// played is the output of play without -rows.
type played struct {
	File      string         `json:"file"`
	Model     string         `json:"model"`
	Rows      int64          `json:"rows"` // of 8 ms, with the way to the first keyframe
	LeadIn    int64          `json:"lead_in"`
	MS        int64          `json:"ms"`
	From      string         `json:"from"`           // the posture in which it begins
	Stop      string         `json:"stop,omitempty"` // the posture in which the motion says that it ends
	Ignored   []string       `json:"ignored,omitempty"`
	Clamped   []anim.Clamp   `json:"clamped,omitempty"`
	Stretched []anim.Stretch `json:"stretched,omitempty"`
}

// playing has the flags of play.
type playing struct {
	rows, device, limits bool
	rule, on, from       string
	speed                float64
	loops                int
}

func playCommand() *cobra.Command {
	var p playing
	cmd := &cobra.Command{
		Use:   "play FILE",
		Short: "Play a motion: the set-points of every 8 ms, or a summary",
		Long: `Play a motion. With -rows its rows of 8 ms are printed as CSV: the time in ms, and each joint in the order of the file, in micro-radian as AIBO counts.
By default they are the very rows of the vendor's player, which adds whole steps, knows no limits and never sends the last keyframe. With -device they are
the set-points of the model's own joints by their standard names, in radians as the device model counts: the part that the motion's name says, after the way from
-from to the posture in which the motion begins, and within ranges and speeds if -limits is given.

Without -rows a summary for the model is printed: how long it takes, which joints cannot reach what they should, and which ways take longer.`,
		Example: `  robotkit mtn play sit.mtn -rows > rows.csv
  robotkit mtn play sit.mtn -from stand -limits
  robotkit mtn play sit.mtn -rows -device -rule cubic -speed 0.5`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, _, err := open(cmd, args[0], mtn.Lenient)
			if err != nil {
				return err
			}
			return p.run(cmd, args[0], f)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&p.rows, "rows", false, "print the rows as CSV")
	f.BoolVar(&p.device, "device", false, "print rows of the model's joints, by standard names")
	f.StringVar(&p.rule, "rule", anim.Truncated.String(), "how joints move between keyframes: `vendor, linear, cosine or cubic`")
	f.Float64Var(&p.speed, "speed", 1, "how many `times` as fast, 0.1 to 4")
	f.IntVar(&p.loops, "loops", 1, "how `often`")
	f.StringVar(&p.from, "from", "", "`posture` in which the robot is: sleep, sit or stand (default: the first keyframe)")
	f.StringVar(&p.on, "on", "", "play on another `MODEL`, whose joints of the same names move")
	f.BoolVar(&p.limits, "limits", false, "keep the ranges and the speeds of the joints")
	return cmd
}

// run plays a file.
func (p *playing) run(cmd *cobra.Command, name string, f *mtn.File) error {
	o := anim.Options{Speed: p.speed, Loops: p.loops, Limits: p.limits}
	var err error
	if o.Rule, err = anim.ParseRule(p.rule); err != nil {
		return cli.Usage("-rule: %w", err)
	}
	switch {
	case p.loops < 1 || p.loops > maxLoops:
		return cli.Usage("-loops %d: want 1 to %d", p.loops, maxLoops)
	case !(p.speed >= anim.MinSpeed && p.speed <= anim.MaxSpeed):
		return cli.Usage("-speed %v: want %v to %v", p.speed, anim.MinSpeed, anim.MaxSpeed)
	case p.device && !p.rows:
		return cli.Usage("-device says which rows to print: want -rows too")
	case p.rows && !p.device && (p.from != "" || p.on != "" || p.limits):
		return cli.Usage("-from, -on and -limits are about a model's joints: want -device too")
	case p.rows && cli.JSON(cmd):
		return cli.Usage("-rows prints CSV: want no -o json")
	}
	if p.rows && !p.device {
		m, body := motions.Columns(f)
		var at []int32
		if len(f.Keyframes) > 0 {
			at = f.Keyframes[0].Joints
		}
		return p.print(cmd, name, m, body, at, o, nil, f.Joints, func(v int32) string { return strconv.Itoa(int(v)) })
	}
	model, ok := motions.ModelOf(f)
	if p.on != "" {
		if model, err = modelNamed("on", p.on); err != nil {
			return err
		}
	} else if !ok {
		return fmt.Errorf("%s: %w: format %.40q", name, motions.ErrModel, f.Format)
	}
	return p.onModel(cmd, name, f, model, o)
}

// onModel plays a file on the joints of a model.
func (p *playing) onModel(cmd *cobra.Command, name string, f *mtn.File, model aibo.Model, o anim.Options) error {
	m, err := motions.Motion(f, model, p.on != "")
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	body := motions.Body(model)
	at, ok := motions.Posture(model, p.from)
	if p.from != "" && !ok {
		return cli.Usage("-from %.40q: want sleep, sit or stand", p.from)
	}
	if !ok {
		if at, err = first(m, body, o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	var before [][]int32 // rows on the way to the posture in which the motion begins
	if start, known := motions.Start(f, model); known && p.from != "" && p.from != start.Name {
		way := *p
		way.loops = 1
		_, err := way.rowsOf(name, start, body, at, anim.Options{Rule: anim.Linear}, func(row []int32) error {
			before = append(before, slices.Clone(row))
			return nil
		})
		if err != nil {
			return err
		}
		at = before[len(before)-1]
	}
	if p.rows {
		var names []string
		for _, j := range body {
			names = append(names, j.Name)
		}
		return p.print(cmd, name, m, body, at, o, before, names, func(v int32) string { return strconv.FormatFloat(float64(v)/1e6, 'f', 6, 64) })
	}
	s := played{Rows: int64(len(before)), File: name, Model: model.String(), From: p.from, Stop: mtn.ParseName(f.Name).Stop}
	if p.from == "" {
		s.From = "the first keyframe"
	}
	report, err := p.rowsOf(name, m, body, at, o, func([]int32) error { s.Rows++; return nil })
	if err != nil {
		return err
	}
	s.LeadIn = s.Rows - report.played // and the ways back to the first keyframe between loops
	s.MS = (time.Duration(s.Rows) * anim.Row).Milliseconds()
	s.Ignored, s.Clamped, s.Stretched = report.Ignored, report.Clamped, report.Stretched
	return cli.Print(cmd, s, func(t *cli.Table) {
		t.Row("MODEL", s.Model)
		t.Row("FROM", s.From)
		t.Row("STOP", s.Stop)
		t.Row("ROWS", fmt.Sprintf("%d of 8 ms, %d of them on the way to the first keyframe", s.Rows, s.LeadIn))
		t.Row("DURATION", time.Duration(s.Rows)*anim.Row)
		for _, c := range s.Clamped {
			t.Text(fmt.Sprintf("%s at %.3f rad instead of %.3f in keyframe %d, for its range", c.Joint, float64(c.Got)/1e6, float64(c.Wanted)/1e6, c.Keyframe))
		}
		for _, c := range s.Stretched {
			t.Text(fmt.Sprintf("keyframe %d after %v instead of %v, for the speed of a joint", c.Keyframe, time.Duration(c.Got)*anim.Row, time.Duration(c.Wanted)*anim.Row))
		}
	})
}

// first returns where a body is whose joints are as in the first keyframe, and otherwise at 0 or as near as they can be.
func first(m *anim.Motion, body []anim.Joint, o anim.Options) ([]int32, error) {
	at := make([]int32, len(body))
	for i, j := range body {
		at[i] = min(max(0, j.Min), j.Max)
	}
	start := *m
	if len(m.Keyframes) > 1 {
		start.Keyframes = m.Keyframes[:1]
	}
	p, err := anim.New(&start, body, anim.Options{Rule: anim.Linear, Limits: o.Limits})
	if err != nil {
		return nil, err
	}
	err = p.Start(at)
	for err == nil && p.Playing() {
		p.Step(at)
	}
	return at, err
}

// reported says how a motion was played.
type reported struct {
	anim.Report
	played int64 // rows of the motion itself
}

// rowsOf plays a motion and hands over every row.
func (p *playing) rowsOf(name string, m *anim.Motion, body []anim.Joint, at []int32, o anim.Options, each func(row []int32) error) (reported, error) {
	player, err := anim.New(m, body, o)
	if err != nil {
		return reported{}, fmt.Errorf("%s: %w", name, err)
	}
	if player.Rows() > maxRows/int64(p.loops) {
		return reported{}, fmt.Errorf("%s: expected at most %d rows, found %d in each of %s", name, maxRows, player.Rows(), cli.Count(p.loops, "loop"))
	}
	if err := player.Start(at); err != nil {
		return reported{}, err
	}
	r := reported{Report: player.Report(), played: player.Rows() * int64(p.loops)}
	row := make([]int32, len(body))
	for {
		if player.Step(row).Has(anim.Finished) {
			return r, nil
		}
		if err := each(row); err != nil {
			return r, err
		}
	}
}

// print writes the rows as CSV, after those of the way before.
func (p *playing) print(cmd *cobra.Command, name string, m *anim.Motion, body []anim.Joint, at []int32, o anim.Options,
	before [][]int32, header []string, number func(int32) string) error {
	out := bufio.NewWriter(cmd.OutOrStdout())
	w := csv.NewWriter(out)
	if err := w.Write(append([]string{"ms"}, header...)); err != nil {
		return err
	}
	ms, record := int64(0), make([]string, len(body)+1)
	each := func(row []int32) error {
		record[0] = strconv.FormatInt(ms, 10)
		for i, v := range row {
			record[i+1] = number(v)
		}
		ms += anim.Row.Milliseconds()
		return w.Write(record)
	}
	for _, row := range before {
		if err := each(row); err != nil {
			return err
		}
	}
	if _, err := p.rowsOf(name, m, body, at, o, each); err != nil {
		return err
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return err
	}
	return out.Flush()
}
