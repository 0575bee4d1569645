package companion

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"kennel/cloud/fleet/command"
	"kennel/cloud/identity/owner"
	"kennel/cloud/voice/intents"
	"kennel/infra/api/commandwire"
	"kennel/infra/auth"
	"kennel/infra/errs"
	"kennel/infra/thing"
	"kennel/speech"
	"kennel/speech/intent"
)

// Says tells robots what to do; *intents.Service is one.
type Says interface {
	Find(ctx context.Context, id thing.ID, a intents.Saying) (intent.Match, error)
	Say(ctx context.Context, id thing.ID, by string, m intent.Match) (intents.Said, error)
	Recent(ctx context.Context, id thing.ID, since time.Time, n int) ([]command.Command, error)
}

// button is an intent without parameters, as the page offers it.
type button struct{ Intent, Label string }

// buttons are those that the page of a robot offers, if the robot says that it can act on them.
var buttons = []button{
	{"movement_forward", "Forward"}, {"movement_backward", "Back"}, {"movement_turnleft", "Turn left"}, {"movement_turnright", "Turn right"},
	{"movement_turnaround", "Turn around"}, {"kennel_lookup", "Look up"}, {"kennel_lookdown", "Look down"}, {"global_stop", "Stop"},
	{"imperative_volumedown", "Quieter"}, {"imperative_volumeup", "Louder"}, {"imperative_eyecolor", "Next eye colour"},
	{"system_sleep", "Sleep"}, {"kennel_wakeup", "Wake up"}, {"check_timer", "Check the timer"}, {"show_clock", "Tell the time"}, {"kennel_battery", "Battery level"},
}

// labels are the intents without a button, in words. An intent that is not among them is named by its identifier.
var labels = map[string]string{
	"set_timer":                    "Set a timer",
	"imperative_volumelevel":       "Set the volume",
	"imperative_eyecolor_specific": "Set the eye colour",
	"weather_response":             "Tell the weather",
	"knowledge_question":           "Ask a question",
	"knowledge_response":           "Answer a question",
	"character_age":                "How old are you?",
	"explore_start":                "Explore",
	"greeting_hello":               "Hello",
	"greeting_goodbye":             "Goodbye",
	"greeting_goodmorning":         "Good morning",
	"greeting_goodnight":           "Good night",
	"imperative_abuse":             "I hate you",
	"imperative_affirmative":       "Yes",
	"imperative_negative":          "No",
	"imperative_apology":           "I am sorry",
	"imperative_come":              "Come here",
	"imperative_dance":             "Dance",
	"imperative_fetchcube":         "Fetch the cube",
	"imperative_findcube":          "Find the cube",
	"imperative_lookatme":          "Look at me",
	"imperative_lookoverthere":     "Look over there",
	"imperative_love":              "I love you",
	"imperative_praise":            "Good robot",
	"imperative_scold":             "Bad robot",
	"imperative_quiet":             "Be quiet",
	"imperative_shutup":            "Be silent",
	"meet_victor":                  "Learn my name",
	"names_ask":                    "What is my name?",
	"message_playback":             "Play a message",
	"message_record":               "Record a message",
	"play_anygame":                 "Play a game",
	"play_anytrick":                "Do a trick",
	"play_specific":                "Play a game",
	"play_blackjack":               "Play blackjack",
	"play_fistbump":                "Fist bump",
	"play_pickupcube":              "Pick up the cube",
	"play_popawheelie":             "Do a wheelie",
	"play_rollcube":                "Roll the cube",
	"seasonal_happyholidays":       "Happy holidays",
	"seasonal_happynewyear":        "Happy new year",
	"status_feeling":               "How are you?",
	"system_charger":               "Go to the charger",
	"take_a_photo":                 "Take a photo",
}

// wish is one thing that the owner told the robot to do.
type wish struct {
	Label, Answer string
	At            time.Time
	Open, Refused bool
	Own           string // the language of the answer if that is in the words of the robot; "": it is in ours
}

// shownWishes is how many the page of a robot lists.
const shownWishes = 4

// tellView is the part of the page where owners tell the robot what to do.
type tellView struct {
	Buttons []button
	Wishes  []wish
	Open    bool // one waits for its answer
}

// tells is nil for a robot that does not say what it can do.
func (c *companion) tells(ctx context.Context, t owner.Tenure, can []string, locale string) (*tellView, error) {
	if c.Says == nil || len(can) == 0 {
		return nil, nil
	}
	v := &tellView{}
	for _, b := range buttons {
		if slices.Contains(can, b.Intent) {
			v.Buttons = append(v.Buttons, b)
		}
	}
	told, err := c.Says.Recent(ctx, t.Thing, t.Since, shownWishes)
	for _, x := range told {
		w := newWish(x, locale)
		v.Wishes, v.Open = append(v.Wishes, w), v.Open || w.Open
	}
	return v, err
}

// newWish returns what the owner of a robot with a locale told it.
func newWish(c command.Command, locale string) wish {
	name := intents.IntentOf(c)
	w := wish{Label: labels[name], At: c.Created, Open: !c.State.Closed(), Refused: c.State.Closed() && c.State != command.Done}
	if i := slices.IndexFunc(buttons, func(b button) bool { return b.Intent == name }); i >= 0 {
		w.Label = buttons[i].Label
	}
	if w.Label == "" {
		words := strings.ReplaceAll(strings.TrimPrefix(name, "imperative_"), "_", " ")
		w.Label = strings.ToUpper(words[:min(1, len(words))]) + words[min(1, len(words)):]
	}
	switch {
	case c.Result != nil && c.Result.Detail != "":
		w.Answer, w.Own = c.Result.Detail, answeredIn(c, locale)
	case c.State == command.Done:
		w.Answer = "done"
	case w.Open:
		w.Answer = "Waiting for your robot."
	case c.State == command.Expired:
		w.Answer = "Your robot did not answer in time. It may be offline or busy."
	}
	return w
}

// answeredIn returns the language of a robot's answer: robots answer in German where their owners chose that, else in English, but say what the cloud knows in the language
// of the question.
func answeredIn(c command.Command, locale string) string {
	if a, err := commandwire.ParseIntent(c.Args); err == nil && a.Intent == speech.KnowledgeResponse {
		if params, _ := intent.StringParams(a.Params); params[speech.LanguageOfAnswer] != "" {
			return params[speech.LanguageOfAnswer]
		}
	}
	if strings.HasPrefix(locale, "de") {
		return "de"
	}
	return "en"
}

// tell gives the robot the intent of the form, or of its text.
func (c *companion) tell(ctx context.Context, _ auth.Caller, id thing.ID, v url.Values) (string, error) {
	if c.Says == nil {
		return "", errs.New(errs.NotFound, "this Kennel cannot send commands to robots")
	}
	m, err := c.Says.Find(ctx, id, intents.Saying{Text: v.Get("text"), Intent: v.Get("intent")})
	if err != nil {
		return "", err
	}
	if err := c.Audit(ctx, "intent.send", string(id), m.UserIntent); err != nil {
		return "", err
	}
	_, err = c.Says.Say(ctx, id, command.ByOwner, m)
	return "told", err
}
