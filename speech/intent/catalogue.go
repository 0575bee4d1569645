package intent

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Type is how a parameter is written.
type Type string

// The types. All arrive from the cloud as text.
const (
	Text    Type = "text"    // words of a person, or of an answer
	Word    Type = "word"    // one of a few, such as photo_selfie
	Seconds Type = "seconds" // a whole number
	Number  Type = "number"  // a whole number
	Color   Type = "color"   // COLOR_TEAL
	Level   Type = "level"   // VOLUME_1 to VOLUME_5; VolumeLevel knows the older words too
)

// Param is a parameter of an intent.
type Param struct {
	Cloud string `json:"cloud"`
	User  string `json:"user,omitempty"` // the robot's own name of it; "": the robot has no use for it
	Type  Type   `json:"type"`
}

// Intent is one row of annex D.
type Intent struct {
	User    string   `json:"user_intent"`
	ID      int      `json:"id"` // in events of the SDK (VEC-INT-10); -1: none
	Cloud   string   `json:"cloud_intent,omitempty"`
	App     string   `json:"app_intent,omitempty"`
	Gate    string   `json:"feature_gate,omitempty"` // the feature flag that it needs (VEC-INT-11)
	Params  []Param  `json:"params,omitempty"`
	Phrases []string `json:"phrases,omitempty"` // as published; [x] is a slot

	cloudNames, appNames []string // Cloud and App, and the other spellings that are accepted
}

//go:embed catalogue.txt
var catalogueText string

var catalogue, byUser, byCloud, byApp = readCatalogue(catalogueText)

// All returns the intents in the order of annex D (VEC-INT-09).
func All() []Intent { return slices.Clone(catalogue) }

// Names returns the user intents, sorted (VEC-INT-18).
func Names() []string {
	names := make([]string, len(catalogue))
	for i, in := range catalogue {
		names[i] = in.User
	}
	slices.Sort(names)
	return names
}

// ByUser returns the intent that robots call by that name.
func ByUser(name string) (Intent, bool) { in, ok := byUser[name]; return in, ok }

// ByCloud returns the intent that a cloud calls by that name, or by a spelling that is accepted, such as intent_imperative_eyecolor_extend.
func ByCloud(name string) (Intent, bool) { in, ok := byCloud[name]; return in, ok }

// ByApp returns the intent that apps call by that name. intent_meet_vector is accepted as intent_meet_victor (VEC-INT-14).
func ByApp(name string) (Intent, bool) { in, ok := byApp[name]; return in, ok }

// readCatalogue panics on a broken file: it is part of the program.
func readCatalogue(text string) (all []Intent, user, cloud, app map[string]Intent) {
	user, cloud, app = map[string]Intent{}, map[string]Intent{}, map[string]Intent{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		in, err := parseIntent(line)
		if err != nil {
			panic(fmt.Sprintf("intent: %v", err))
		}
		user[in.User] = in
		for _, name := range in.cloudNames {
			cloud[name] = in
		}
		for _, name := range in.appNames {
			app[name] = in
		}
		if !strings.HasPrefix(in.User, "test_") {
			all = append(all, in)
		}
	}
	return all, user, cloud, app
}

func parseIntent(line string) (Intent, error) {
	f := strings.Split(line, "|")
	if len(f) < 6 || len(f) > 7 {
		return Intent{}, fmt.Errorf("catalogue line %q: %d columns, want 6 or 7", line, len(f))
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	in := Intent{User: f[0], ID: -1, Gate: f[4], cloudNames: strings.Fields(f[2]), appNames: strings.Fields(f[3])}
	if f[1] != "" {
		id, err := strconv.Atoi(f[1])
		if err != nil {
			return Intent{}, fmt.Errorf("catalogue line %q: id: %w", line, err)
		}
		in.ID = id
	}
	if len(in.cloudNames) > 0 {
		in.Cloud = in.cloudNames[0]
	}
	if len(in.appNames) > 0 {
		in.App = in.appNames[0]
	}
	for p := range strings.SplitSeq(f[5], ",") {
		if names, kind, ok := strings.Cut(strings.TrimSpace(p), " "); ok {
			from, to, _ := strings.Cut(names, ">")
			in.Params = append(in.Params, Param{Cloud: from, User: to, Type: Type(kind)})
		}
	}
	if len(f) == 7 && f[6] != "" {
		in.Phrases = strings.Split(f[6], "; ")
	}
	return in, nil
}

// features that are off in a robot as delivered (part of VEC-DOC-11, annex B).
var featuresOff = map[string]bool{"AttentionTransfer": true, "CubeSpinner": true, "GazeDirection": true, "Invalid": true, "Laser": true,
	"Messaging": true, "PRDemo": true, "TestFeature": true}

// alexa are the features that are on in a robot as delivered and off here, where no Alexa answers (VEC-AVS-02).
var alexa = map[string]bool{"Alexa": true, "Alexa_AU": true, "Alexa_UK": true}

// featuresOn are the others that a robot is delivered with.
var featuresOn = []string{"ActiveIntentFeedback", "Dancing", "Exploring", "EyeColorVC", "FetchCube", "FindCube", "GreetAfterLongTime", "HandDetection", "HeldInPalm", "HowOldAreYou", "Keepaway",
	"KnowledgeGraph", "MoveCube", "PopAWheelie", "ReactToHeldCube", "ReactToIllumination", "RollCube", "StayOnChargerUntilCharged", "Volume"}

// Features returns the names of all features that a robot is delivered with (VEC-DOC-11, annex B).
func Features() []string {
	return slices.Concat(featuresOn, slices.Collect(maps.Keys(featuresOff)), slices.Collect(maps.Keys(alexa)))
}

// FeatureOn reports whether a feature is on unless a robot's own file says otherwise. Features that annex B does not list are on.
func FeatureOn(feature string) bool { return !featuresOff[feature] && !alexa[feature] }

var levels = map[string]int{"mute": 1, "min": 1, "minimum": 1, "low": 2, "medium": 3, "high": 4, "max": 5, "maximum": 5}

// VolumeLevel returns the level, 1 to 5, of a parameter volume_level. It knows the original robots' words: VOLUME_1 to VOLUME_5, and the older
// minimum, low, medium, high and maximum, of which low is 2 and high is 4.
func VolumeLevel(s string) (int, bool) {
	if n, ok := levels[strings.ToLower(s)]; ok {
		return n, true
	}
	n, err := strconv.Atoi(strings.TrimPrefix(strings.ToUpper(s), "VOLUME_"))
	return n, err == nil && n >= 1 && n <= 5
}

var eyeColors = map[string]int{"TEAL": 0, "ORANGE": 1, "YELLOW": 2, "LIME": 3, "SAPPHIRE": 4, "BLUE": 4, "PURPLE": 5, "GREEN": 6}

// EyeColors returns the values that a parameter eye_color can have, sorted.
func EyeColors() []string {
	out := slices.Sorted(maps.Keys(eyeColors))
	for i := range out {
		out[i] = "COLOR_" + out[i]
	}
	return out
}

// EyeColor returns the number of a colour in the robot's settings (VEC-DOC-02). COLOR_BLUE is sapphire (VEC-DOC-03).
func EyeColor(s string) (int, bool) {
	n, ok := eyeColors[strings.TrimPrefix(strings.ToUpper(s), "COLOR_")]
	return n, ok
}
