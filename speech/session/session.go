// Package session keeps what became of each time that a person spoke to a robot, so that the page can say where it broke.
package session

import (
	"context"
	"time"

	"kennel/infra/thing"
)

// Step is where a session failed.
type Step string

// Steps are all, in their order.
var Steps = []Step{Audio, Endpoint, Recognize, Match, Answer}

// The steps.
const (
	Audio     Step = "audio"     // nothing, too much, or not what it was said to be
	Endpoint  Step = "endpoint"  // no speech came, or the end was not found in time
	Recognize Step = "recognize" // no recogniser answered
	Match     Step = "match"     // the words mean nothing to a robot
	Answer    Step = "answer"    // knowledge or weather had no answer
)

// Session is one spoken or typed request. It names no person: a robot's words are kept apart from whose it is (VEC-NLP-07).
type Session struct {
	ID         string // as the robot named it
	Thing      thing.ID
	At         time.Time
	Kind       string // intent, knowledge, graph, text
	Language   string // such as en-US
	Firmware   string
	Encoding   string // pcm, opus, text
	Recognizer string
	Text       string // "" with SkipDAS
	Cloud      string // the intent that was answered
	Confidence float64
	Failed     Step          // "": it ended well
	Why        string        // of what failed, in words of ours: never a word that a person said
	Audio      time.Duration // how much was spoken into it
	Took       time.Duration // from the end of speech to the answer
	SkipDAS    bool          // the robot's owner allows no words to be kept
}

// Keeper stores sessions. It never makes a robot wait: what it cannot store it counts.
type Keeper interface {
	Keep(ctx context.Context, s Session)
}

// AudioKeeper stores what robots heard if their owners allow it (VEC-NLP-07). It never makes a robot wait.
type AudioKeeper interface {
	// Keep takes samples at 16 kHz, one channel, and holds on to them. Without the owner's leave it forgets them. It is not called for a request
	// with skip_das.
	Keep(ctx context.Context, id thing.ID, session string, samples []int16)
}

// Group sums up the sessions of one version of the robots' software in one language.
type Group struct {
	Firmware string         `json:"firmware"`
	Language string         `json:"language"`
	Sessions int64          `json:"sessions"`
	Ended    int64          `json:"succeeded"`
	Failed   map[Step]int64 `json:"failed,omitempty"` // by the step that failed
	Took     time.Duration  `json:"took_ns"`          // the mean, of those that succeeded
}

// Phrase holds words that people said, without who said them. Phrases without an intent were not understood.
type Phrase struct {
	Words    string    `json:"words"`
	Language string    `json:"language"`
	Intent   string    `json:"intent,omitempty"`
	Times    int64     `json:"times"`
	LastDay  time.Time `json:"last_day"`
}

// Which selects sessions. Empty fields select all.
type Which struct {
	Thing    thing.ID
	Firmware string
	Language string
	Step     Step // that failed
	Failed   bool // any step
	Since    time.Time
	Limit    int
}
