// Package experiments decides which variation of each experiment a robot has (VEC-DAS-16). The file says what is tried and when; who has which variation
// follows from the experiment's key and the robot's serial alone, so that it never changes and needs no cloud.
//
//	{"meta": {"project_id": "cozmo", "revision": 1, "version": 2}, "experiments": [{
//	  "key": "report_test_auto", "version": 0, "activation_mode": "automatic", "audience_tags": ["vic"], "pop_frac_pct": 50,
//	  "start_time_utc_iso8601": "2026-11-01T00:00:00Z", "stop_time_utc_iso8601": ..., "pause_time_utc_iso8601": ..., "resume_time_utc_iso8601": ...,
//	  "forced_variations": [{"tag": "00e20100", "variation": "treatment"}],
//	  "variations": [{"key": "control", "pop_frac_pct": 50}, {"key": "treatment", "pop_frac_pct": 50}]}]}
//
// The source misspells stop_time_utc_iso8601 (stopt) and the pop_frac_pct of a variation (pop_fract_pct): both spellings are read. It leaves open what the
// lists of tags and forced variations hold. Here a robot is in the audience if it has one of the tags, or there are none; a forced variation names a tag of
// the robots that have it, and every robot has its serial as a tag.
package experiments

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"kennel/edge/env/robotfs"
)

// File is where the experiments are, below the robot's root.
const File = robotfs.Resources + "/config/experiments.json"

// Own limits.
const (
	maxExperiments = 1000
	maxKey         = 64 // bytes of a key, a tag, a variation
)

// Plan is the content of a file.
type Plan struct {
	Version     string // meta: version, a dot, revision
	Experiments []Experiment
}

// Experiment is one of them. A zero time is not set.
type Experiment struct {
	Key        string
	Version    int
	Automatic  bool // robots take part by themselves
	Audience   []string
	Forced     []Forced
	Percent    int // of the audience that take part
	Variations []Variation

	Start, Stop, Pause, Resume time.Time
}

// Forced gives robots with a tag a variation.
type Forced struct {
	Tag       string `json:"tag"`
	Variation string `json:"variation"`
}

// Variation is a group of those that take part.
type Variation struct {
	Key     string
	Percent int
}

// Parse reads a file, which may hold comments.
func Parse(b []byte) (Plan, error) {
	clean, err := robotfs.StripComments(b)
	if err != nil {
		return Plan{}, err
	}
	var f struct {
		Meta struct {
			Revision int `json:"revision"`
			Version  int `json:"version"`
		} `json:"meta"`
		Experiments []fileExperiment `json:"experiments"`
	}
	if err := json.Unmarshal(clean, &f); err != nil {
		return Plan{}, err
	}
	if len(f.Experiments) > maxExperiments {
		return Plan{}, fmt.Errorf("%d experiments: want at most %d", len(f.Experiments), maxExperiments)
	}
	p := Plan{Version: fmt.Sprintf("%d.%d", f.Meta.Version, f.Meta.Revision)}
	seen := map[string]bool{}
	for i, raw := range f.Experiments {
		e, err := raw.experiment()
		if err != nil {
			return Plan{}, fmt.Errorf("experiment %d, %.64q: %w", i+1, raw.Key, err)
		}
		if seen[e.Key] {
			return Plan{}, fmt.Errorf("experiment %d: duplicate key %q", i+1, e.Key)
		}
		seen[e.Key] = true
		p.Experiments = append(p.Experiments, e)
	}
	return p, nil
}

type fileExperiment struct {
	Key        string   `json:"key"`
	Version    int      `json:"version"`
	Mode       string   `json:"activation_mode"`
	Audience   []string `json:"audience_tags"`
	Forced     []Forced `json:"forced_variations"`
	Percent    *int     `json:"pop_frac_pct"`
	Pause      string   `json:"pause_time_utc_iso8601"`
	Resume     string   `json:"resume_time_utc_iso8601"`
	Start      string   `json:"start_time_utc_iso8601"`
	Stop       string   `json:"stop_time_utc_iso8601"`
	Stopt      string   `json:"stopt_time_utc_iso8601"`
	Variations []struct {
		Key   string `json:"key"`
		Frac  *int   `json:"pop_frac_pct"`
		Fract *int   `json:"pop_fract_pct"`
	} `json:"variations"`
}

func (f fileExperiment) experiment() (Experiment, error) {
	e := Experiment{Key: f.Key, Version: f.Version, Automatic: f.Mode == "automatic", Audience: f.Audience, Forced: f.Forced, Percent: 100}
	if f.Percent != nil {
		e.Percent = *f.Percent
	}
	if f.Stop != "" && f.Stopt != "" && f.Stop != f.Stopt {
		return e, fmt.Errorf("stop_time %q and stopt_time %q: want one of them", f.Stop, f.Stopt)
	}
	for _, t := range []struct {
		name, text string
		to         *time.Time
	}{
		{"start_time_utc_iso8601", f.Start, &e.Start}, {"stop_time_utc_iso8601", cmp.Or(f.Stop, f.Stopt), &e.Stop},
		{"pause_time_utc_iso8601", f.Pause, &e.Pause}, {"resume_time_utc_iso8601", f.Resume, &e.Resume},
	} {
		var err error
		if *t.to, err = parseTime(t.text); err != nil {
			return e, fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for _, v := range f.Variations {
		n := v.Frac
		switch {
		case n == nil:
			n = v.Fract
		case v.Fract != nil && *n != *v.Fract:
			return e, fmt.Errorf("variation %.64q: pop_frac_pct %d and pop_fract_pct %d: want one of them", v.Key, *n, *v.Fract)
		}
		if n == nil {
			return e, fmt.Errorf("variation %.64q: no pop_frac_pct", v.Key)
		}
		e.Variations = append(e.Variations, Variation{v.Key, *n})
	}
	return e, e.check()
}

func (e Experiment) check() error {
	words := append([]string{e.Key}, e.Audience...)
	sum, keys := 0, []string(nil)
	for _, v := range e.Variations {
		if v.Percent < 0 || v.Percent > 100 {
			return fmt.Errorf("variation %.64q has %d %%: want 0 to 100", v.Key, v.Percent)
		}
		if slices.Contains(keys, v.Key) {
			return fmt.Errorf("duplicate variation %.64q", v.Key)
		}
		words, keys, sum = append(words, v.Key), append(keys, v.Key), sum+v.Percent
	}
	for _, f := range e.Forced {
		if words = append(words, f.Tag); !slices.Contains(keys, f.Variation) {
			return fmt.Errorf("forced variation %.64q: want one of %q", f.Variation, keys)
		}
	}
	for _, w := range words {
		if w == "" || len(w) > maxKey {
			return fmt.Errorf("key or tag %.80q: want 1 to %d bytes", w, maxKey)
		}
	}
	switch {
	case e.Percent < 0 || e.Percent > 100:
		return fmt.Errorf("pop_frac_pct is %d: want 0 to 100", e.Percent)
	case sum < 1 || sum > 100:
		return fmt.Errorf("the variations have %d %% in all: want 1 to 100", sum)
	case !e.Stop.IsZero() && !e.Stop.After(e.Start):
		return fmt.Errorf("stops at %v, before it starts", e.Stop)
	case !e.Resume.IsZero() && (e.Pause.IsZero() || !e.Resume.After(e.Pause)):
		return fmt.Errorf("resumes at %v, before it pauses", e.Resume)
	}
	return nil
}

// parseTime reads a time of ISO 8601 in UTC, with or without its zone.
func parseTime(s string) (t time.Time, err error) {
	if s == "" {
		return t, nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err = time.Parse(form, s); err == nil {
			return t.UTC(), nil
		}
	}
	return t, fmt.Errorf("%.40q: want a time such as 2026-11-23T07:30:00Z", s)
}

// Robot holds the facts that decide an assignment.
type Robot struct {
	Serial string
	Tags   []string // beside the serial
}

// Assignment is a robot's part in an experiment.
type Assignment struct {
	Key       string `json:"key"`
	Variation string `json:"variation"` // "": none
	Why       string `json:"why"`
}

// The reasons of assignments.
const (
	Forcedly   = "forced"
	Drawn      = "drawn"
	NotDrawn   = "not drawn"
	NotForUs   = "not in the audience"
	NotStarted = "not started"
	Paused     = "paused"
	Ended      = "ended"
	ByHand     = "not automatic"
)

// Assign returns the part of a robot at a moment.
func (e Experiment) Assign(r Robot, now time.Time) Assignment {
	a := Assignment{Key: e.Key}
	has := func(tag string) bool { return tag == r.Serial || slices.Contains(r.Tags, tag) }
	switch forced := slices.IndexFunc(e.Forced, func(f Forced) bool { return has(f.Tag) }); {
	case now.Before(e.Start):
		a.Why = NotStarted
	case !e.Stop.IsZero() && !now.Before(e.Stop):
		a.Why = Ended
	case !e.Pause.IsZero() && !now.Before(e.Pause) && (e.Resume.IsZero() || now.Before(e.Resume)):
		a.Why = Paused
	case forced >= 0:
		a.Variation, a.Why = e.Forced[forced].Variation, Forcedly
	case !e.Automatic:
		a.Why = ByHand
	case len(e.Audience) > 0 && !slices.ContainsFunc(e.Audience, has):
		a.Why = NotForUs
	default:
		a.Variation, a.Why = e.draw(r.Serial)
	}
	return a
}

// draw takes two numbers below 100 from the hash of key and serial: whether the robot takes part, and in which variation. They are independent, so that a
// larger share of the fleet leaves the robots that took part before where they were.
func (e Experiment) draw(serial string) (variation, why string) {
	sum := sha256.Sum256([]byte(e.Key + "\x00" + serial))
	part, group := int(binary.BigEndian.Uint32(sum[:])%100), int(binary.BigEndian.Uint32(sum[4:])%100)
	if part >= e.Percent {
		return "", NotDrawn
	}
	for _, v := range e.Variations {
		if group < v.Percent {
			return v.Key, Drawn
		}
		group -= v.Percent
	}
	return "", NotDrawn
}
