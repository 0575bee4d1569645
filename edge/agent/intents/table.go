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
	nothing need = iota
	wheels       // Mobile
	head         // a head that nods
	eyes         // their colour is a setting
	voice        // its volume is a setting
	camera       // that takes photos
	some         // any part that moves or lights
)

// row is one intent. Without does, no robot acts on it yet: nothing of the character is there.
type row struct {
	needs need
	does  func(*Intents, context.Context, intent.User) (Outcome, error)
}

// table holds all user intents (annex D), and our own (intent.IsOwn).
var table = map[string]row{
	"amazon_signin":                {},
	"amazon_signout":               {},
	"blackjack_hit":                {},
	"blackjack_playagain":          {},
	"blackjack_stand":              {},
	"character_age":                {},
	"check_timer":                  {does: (*Intents).checkTimer},
	"explore_start":                {},
	"global_delete":                {does: (*Intents).remove},
	"global_stop":                  {does: (*Intents).stop},
	"greeting_goodbye":             {},
	"greeting_goodmorning":         {needs: some, does: (*Intents).wakeUp},
	"greeting_goodnight":           {},
	"greeting_hello":               {},
	"imperative_abuse":             {},
	"imperative_affirmative":       {},
	"imperative_apology":           {},
	"imperative_come":              {},
	"imperative_dance":             {},
	"imperative_eyecolor":          {needs: eyes, does: (*Intents).nextEyes},
	"imperative_eyecolor_specific": {needs: eyes, does: (*Intents).colourEyes},
	"imperative_fetchcube":         {},
	"imperative_findcube":          {},
	"imperative_lookatme":          {needs: head, does: nod(up)},
	"imperative_lookoverthere":     {},
	"imperative_love":              {},
	"imperative_negative":          {},
	"imperative_praise":            {},
	"imperative_quiet":             {does: (*Intents).stop},
	"imperative_scold":             {},
	"imperative_shutup":            {does: (*Intents).stop},
	"imperative_volumedown":        {needs: voice, does: louder(-1)},
	"imperative_volumelevel":       {needs: voice, does: (*Intents).setVolume},
	"imperative_volumeup":          {needs: voice, does: louder(1)},
	"knowledge_question":           {},
	"knowledge_response":           {does: (*Intents).tellAnswer},
	"knowledge_unknown":            {},
	"meet_victor":                  {},
	"message_playback":             {},
	"message_record":               {},
	"movement_backward":            {needs: wheels, does: drive(-step)},
	"movement_forward":             {needs: wheels, does: drive(step)},
	"movement_turnaround":          {needs: wheels, does: turn(math.Pi, "around")},
	"movement_turnleft":            {needs: wheels, does: turn(-math.Pi/2, "left")},
	"movement_turnright":           {needs: wheels, does: turn(math.Pi/2, "right")},
	"names_ask":                    {},
	"play_anygame":                 {},
	"play_anytrick":                {},
	"play_blackjack":               {},
	"play_fistbump":                {},
	"play_pickupcube":              {},
	"play_popawheelie":             {},
	"play_rollcube":                {},
	"play_specific":                {},
	"seasonal_happyholidays":       {},
	"seasonal_happynewyear":        {},
	"set_timer":                    {does: (*Intents).setTimer},
	"show_clock":                   {does: (*Intents).tellTime},
	"silence":                      {},
	"status_feeling":               {needs: some, does: (*Intents).tellBattery},
	"system_charger":               {},
	"system_sleep":                 {needs: some, does: (*Intents).fallAsleep},
	"take_a_photo":                 {needs: camera, does: (*Intents).takePhoto},
	intent.Unmatched:               {},
	"weather_response":             {does: (*Intents).tellWeather},

	"kennel_battery":  {needs: some, does: (*Intents).tellBattery},
	"kennel_lookdown": {needs: head, does: nod(down)},
	"kennel_lookup":   {needs: head, does: nod(up)},
	"kennel_wakeup":   {needs: some, does: (*Intents).wakeUp},
}

// Names returns all intents that the table has, sorted.
func Names() []string { return slices.Sorted(maps.Keys(table)) }
