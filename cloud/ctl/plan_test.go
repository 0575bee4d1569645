package ctl

import (
	"fmt"
	"math"
	"testing"
)

// FuzzParsePlan: a plan that was understood is understood the same when it is written in full.
func FuzzParsePlan(f *testing.F) {
	for _, s := range [][2]string{{"1%:1h", "failures:5%:20"}, {"10:2d", "problems:0.5%:30:motor/3"}, {"100%", "silent:3:1"}, {"NaN:NaNd", "x:Inf:1"}, {"1%:1e300d", "::"}, {"-1:1h", ":1:-1"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, phase, guard string) {
		ps, gs, err := parsePlan([]string{phase}, []string{guard})
		if err != nil {
			return
		}
		p, g := ps[0], gs[0]
		if !(p.Percent >= 0 && p.Percent <= 100) || p.BakeS < 0 || !(g.Share >= 0 && g.Share <= 1) {
			t.Fatalf("%+v, %+v", p, g)
		}
		again := fmt.Sprintf("%s:%g%%:%d", g.Metric, 100*g.Share, g.Sample)
		if g.Problem != "" {
			again += ":" + g.Problem
		}
		ps, gs, err = parsePlan([]string{fmt.Sprintf("%g%%:%ds", p.Percent, p.BakeS)}, []string{again})
		if err != nil || ps[0] != p || math.Abs(gs[0].Share-g.Share) > 1e-12 {
			t.Fatalf("%+v, %+v, %v; want %+v, %+v", ps, gs, err, p, g)
		}
		if gs[0].Share = g.Share; gs[0] != g {
			t.Errorf("%+v, want %+v", gs[0], g)
		}
	})
}
