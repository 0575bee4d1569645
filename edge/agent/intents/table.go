package intents

import (
	"context"
	"maps"
	"math"
	"slices"

	"kennel/speech/intent"
)

// need is a requirement of an intent on the body or its documents.
type need uint8

const (
	nothing   need = iota
	wheels         // Mobile
	head           // a head that nods
	eyes           // their colour is a setting
	voice          // its volume is a setting
	camera         // that takes photos
	some           // any part that moves or lights
	charger        // the robot drives onto it by itself
	character      // plays animations
)

// row is one intent. Without does, no robot acts on it yet: nothing of the character is there.
type row struct {
	needs   need
	feature string // of annex C, which the intent begins and ends; "": none
	does    func(*Intents, context.Context, intent.User) (Outcome, error)
}

// The moods that the replies show.
var (
	happy = Animation{Mood: "happy"}
	sad   = Animation{Mood: "sad"}
	angry = Animation{Mood: "angry"}
	dance = Animation{Mood: "dancing", Loops: 4}
)

// table holds all user intents (annex D), and our own (intent.IsOwn). The feature of an intent is the one of annex C with its subject.
var table = map[string]row{
	"amazon_signin":                {},
	"amazon_signout":               {},
	"blackjack_hit":                {},
	"blackjack_playagain":          {},
	"blackjack_stand":              {},
	"character_age":                {feature: "HowOldAreYou", does: (*Intents).tellAge},
	"check_timer":                  {feature: "TimerChecked", does: (*Intents).checkTimer},
	"explore_start":                {},
	"global_delete":                {feature: "TimerCanceled", does: (*Intents).remove},
	"global_stop":                  {feature: "BasicVoiceCommand", does: (*Intents).stop},
	"greeting_goodbye":             {needs: character, feature: "ReactToGoodBye", does: react(Animation{Trigger: "GreetingGoodbye"}, "goodbye")},
	"greeting_goodmorning":         {needs: some, feature: "ReactToGoodMorning", does: (*Intents).goodMorning},
	"greeting_goodnight":           {needs: some, does: (*Intents).goodNight},
	"greeting_hello":               {needs: character, feature: "ReactToHello", does: react(Animation{Mood: "greeting"}, "hello")},
	"imperative_abuse":             {needs: character, feature: "ReactToAbuse", does: react(sad, "that hurts")},
	"imperative_affirmative":       {needs: character, feature: "ReactToAffirmative", does: react(happy, "good")},
	"imperative_apology":           {needs: character, feature: "ReactToApology", does: react(happy, "never mind")},
	"imperative_come":              {},
	"imperative_dance":             {needs: character, feature: "DanceToTheBeat", does: react(dance, "I dance")},
	"imperative_eyecolor":          {needs: eyes, feature: "BasicVoiceCommand", does: (*Intents).nextEyes},
	"imperative_eyecolor_specific": {needs: eyes, feature: "BasicVoiceCommand", does: (*Intents).colourEyes},
	"imperative_fetchcube":         {},
	"imperative_findcube":          {},
	"imperative_lookatme":          {needs: head, feature: "LookAtMe", does: nod(up)},
	"imperative_lookoverthere":     {},
	"imperative_love":              {needs: character, feature: "ReactToLove", does: react(happy, "I like you too")},
	"imperative_negative":          {needs: character, feature: "ReactToNegative", does: react(sad, "all right, not that")},
	"imperative_praise":            {needs: character, feature: "ReactToAffirmative", does: react(happy, "thank you")},
	"imperative_quiet":             {feature: "BeQuiet", does: (*Intents).stop},
	"imperative_scold":             {needs: character, feature: "ReactToAbuse", does: react(sad, "I am sorry")},
	"imperative_shutup":            {feature: "ShutUp", does: (*Intents).stop},
	"imperative_volumedown":        {needs: voice, feature: "VolumeAdjustment", does: louder(-1)},
	"imperative_volumelevel":       {needs: voice, feature: "VolumeAdjustment", does: (*Intents).setVolume},
	"imperative_volumeup":          {needs: voice, feature: "VolumeAdjustment", does: louder(1)},
	"knowledge_question":           {},
	"knowledge_response":           {feature: "KnowledgeGraph", does: (*Intents).tellAnswer},
	"knowledge_unknown":            {feature: "KnowledgeGraph", does: (*Intents).tellUnknown},
	"meet_victor":                  {},
	"message_playback":             {},
	"message_record":               {},
	"movement_backward":            {needs: wheels, feature: "MovementBackward", does: drive(-step)},
	"movement_forward":             {needs: wheels, feature: "MovementForward", does: drive(step)},
	"movement_turnaround":          {needs: wheels, feature: "MovementTurnAround", does: turn(math.Pi, "around")},
	"movement_turnleft":            {needs: wheels, feature: "MovementLeft", does: turn(-math.Pi/2, "left")},
	"movement_turnright":           {needs: wheels, feature: "MovementRight", does: turn(math.Pi/2, "right")},
	"names_ask":                    {},
	"play_anygame":                 {},
	"play_anytrick":                {},
	"play_blackjack":               {},
	"play_fistbump":                {},
	"play_pickupcube":              {},
	"play_popawheelie":             {},
	"play_rollcube":                {},
	"play_specific":                {},
	"seasonal_happyholidays":       {needs: character, feature: "SeasonalHappyHoliday", does: react(happy, "happy holidays")},
	"seasonal_happynewyear":        {needs: character, feature: "SeasonalHappyNewYear", does: react(happy, "happy new year")},
	"set_timer":                    {feature: "TimerSet", does: (*Intents).setTimer},
	"show_clock":                   {feature: "BasicVoiceCommand", does: (*Intents).tellTime},
	"silence":                      {},
	"status_feeling":               {needs: some, feature: "BasicVoiceCommand", does: (*Intents).tellFeeling},
	"system_charger":               {needs: charger, feature: "GoHome", does: (*Intents).goHome},
	"system_sleep":                 {needs: some, does: (*Intents).fallAsleep},
	"take_a_photo":                 {needs: camera, feature: "TakeAPhoto", does: (*Intents).takePhoto},
	intent.Unmatched:               {},
	"weather_response":             {feature: "Weather", does: (*Intents).tellWeather},

	"kennel_battery":  {needs: some, feature: "BasicVoiceCommand", does: (*Intents).tellBattery},
	"kennel_lookdown": {needs: head, feature: "BasicVoiceCommand", does: nod(down)},
	"kennel_lookup":   {needs: head, feature: "BasicVoiceCommand", does: nod(up)},
	"kennel_wakeup":   {needs: some, feature: "BasicVoiceCommand", does: (*Intents).wakeUp},
}

// Names returns all intents that the table has, sorted.
func Names() []string { return slices.Sorted(maps.Keys(table)) }
