package robotapp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kennel/edge/app/mindapp"
	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/aibosim"
	"kennel/edge/body/aibo/motions"
	"kennel/edge/body/aibo/mtn"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mindtest"
	"kennel/edge/sim/uart"
	"kennel/infra/api/motionwire"
	"kennel/infra/api/robotpb"
	"kennel/infra/errs"
	"kennel/infra/testwait"
	kennel "kennel/sdk/go"
)

// TestMotions: a program finds the motions of an AIBO's library and its owner's among its animations, and plays them over kennel.robot.v1: from sleep by way of
// the postures between, to an end that it hears. One that is not there, and one from a body that has fallen, are refused by a code.
func TestMotions(t *testing.T) {
	t.Parallel()
	b, err := aibosim.New(aibosim.Config{Model: aibo.ERS210})
	if err != nil {
		t.Fatal(err)
	}
	file := gatewayOf(t, "aibo:00e20100", "aibo", "ers-210", nil, func(ctx context.Context, line *uart.Socket) error { return b.Run(ctx, line) })
	dir := filepath.Dir(file)
	mindtest.Start(t, dir, mindapp.Motions)

	look := motionwire.Edited{V: 1, Sequence: motionwire.Sequence{Joints: []string{"robot.body.head.yaw"}, Keyframes: []motionwire.Keyframe{{Values: []int32{0}}, {AtMS: 400, Values: []int32{300_000}}}}}
	page, err := json.Marshal(look)
	if err != nil {
		t.Fatal(err)
	}
	if v := motions.Judge(page, "peek", aibo.ERS210); !v.Kept {
		t.Fatalf("%+v", v)
	}
	own := filepath.Join(dir, mindlink.MotionsDir)
	if err := os.MkdirAll(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "peek"+mindlink.MotionsEnding), page, 0o644); err != nil {
		t.Fatal(err)
	}

	var r *kennel.Robot
	testwait.Until(t, 4*patience, "the robot", func() (err error) { r, err = kennel.Connect(t.Context(), file); return err })
	defer r.Close()
	testwait.Until(t, 4*patience, "its joints", func() error {
		list, err := r.Animations(t.Context())
		if err != nil {
			return err
		}
		for _, want := range []string{"motion/bow", "motion/peek", "motion/stretch"} {
			i := slices.IndexFunc(list.Animations, func(a *robotpb.Animation) bool { return a.Name == want })
			if i < 0 || list.Animations[i].SpanMs == 0 {
				return errs.New(errs.Unavailable, "%s is not listed", want)
			}
		}
		_, err = r.Read(t.Context(), "robot.body.head.yaw.angle")
		return err
	})
	for _, name := range []string{"motion/bow", "motion/peek"} {
		testwait.Until(t, 4*patience, name, func() error { // a loop that is late on a busy machine stops motions
			spoken := 0
			ended, err := r.Play(t.Context(), kennel.Animation{Clip: name}, func(p *robotpb.PlayProgress) error {
				if g := p.GetBegun(); g != nil && (g.Clip != name || g.SpanMs == 0) {
					t.Errorf("it begins %+v", g)
				}
				spoken++
				return nil
			})
			if err != nil {
				return err
			}
			if ended.Outcome != mindlink.Done || spoken == 0 {
				return errs.New(errs.Unavailable, "%s ended %s: %s", name, ended.Outcome, ended.Reason)
			}
			return nil
		})
	}
	if s := b.State(); s.Falls != 0 || s.Angles["HEAD_YAW"] < 14 {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(filepath.Join(own, "topple"+mindlink.MotionsEnding), topple(t), 0o644); err != nil { // as if an older robotd had kept it
		t.Fatal(err)
	}
	for name, code := range map[string]string{"motion/fly": "not_found", "motion/topple": "refused"} {
		_, err := r.Play(t.Context(), kennel.Animation{Clip: name}, nil)
		if e, is := errors.AsType[*kennel.Error](err); !is || e.Code != code {
			t.Errorf("%s: %v, want %s", name, err, code)
		}
	}
}

// topple returns a motion that swings all paws to one end of the body.
func topple(t *testing.T) []byte {
	t.Helper()
	f, err := motions.Load(aibo.ERS210, "stand")
	if err != nil {
		t.Fatal(err)
	}
	far := map[string]float64{"FL_LEG_VERT": -60, "FR_LEG_VERT": -60, "BL_LEG_VERT": -60, "BR_LEG_VERT": -60}
	if err := f.Add(800*time.Millisecond, far); err != nil {
		t.Fatal(err)
	}
	b, err := mtn.Append(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	if v := motions.Judge(b, "topple", aibo.ERS210); v.Kept || !slices.ContainsFunc(v.Findings, func(f motionwire.Finding) bool { return f.Code == motions.CodeTip }) {
		t.Fatalf("it does not fall: %+v", v.Findings)
	}
	return b
}
