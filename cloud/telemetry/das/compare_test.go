package das

import (
	"math"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"kennel/infra/errs"
)

// TestStudent holds the quantile to a printed table.
func TestStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 10: 2.228, 30: 2.042, 120: 1.980, 1e6: 1.960} {
		if got := student(freedom); math.Abs(got-want) > 0.002*want {
			t.Errorf("%v: %v; want %v", freedom, got, want)
		}
	}
}

// TestIntervalsHoldTheTruth (VEC-DAS-16): of many trials with a known difference, about 95 % have it within their interval; with none, about 5 % call it clear.
func TestIntervalsHoldTheTruth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(18, 16))
	arm := func(n int, mean, deviation float64) (a Arm) {
		var x []float64
		for range n {
			x = append(x, mean+deviation*rnd.NormFloat64())
			a.Mean += x[len(x)-1] / float64(n)
		}
		for _, f := range x {
			a.Variance += (f - a.Mean) * (f - a.Mean) / float64(n-1)
		}
		a.Robots = n
		return a
	}
	const trials = 4000
	for _, difference := range []float64{0, 0.7} {
		held, clear := 0, 0
		for range trials {
			d := arm(12, 3+difference, 2).Against(arm(7, 3, 0.5))
			if d.Low <= difference && difference <= d.High {
				held++
			}
			if d.Clear {
				clear++
			}
		}
		if held < trials*94/100 || held > trials*96/100 || difference == 0 && clear != trials-held {
			t.Errorf("difference %v: %d of %d hold it, %d clear", difference, held, trials, clear)
		}
	}
	if d := arm(1, 3, 1).Against(arm(50, 3, 1)); !d.Few || d.Clear {
		t.Errorf("one robot: %+v", d)
	}
	if d := (Arm{Robots: 5, Mean: 2}).Against(Arm{Robots: 5, Mean: 1}); !d.Clear || d.Low != 1 || d.High != 1 {
		t.Errorf("without variance: %+v", d)
	}
}

func TestReadCompareRefuses(t *testing.T) {
	for query, want := range map[string]string{"": "name is missing", "name=battery": "such as battery.low", "name=battery.low&of=s1": "want a number", "name=battery.low&thing=vic:1": "name, of, since and until", "name=a.b&x=1": "want thing"} {
		v, _ := url.ParseQuery(query)
		if _, err := ReadCompare("k", v, asked); errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}
	if _, err := ReadCompare("", nil, asked); errs.KindOf(err) != errs.Invalid {
		t.Errorf("no key: %v", err)
	}
}
