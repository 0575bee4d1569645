package intents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kennel/edge/body"
	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/face/screen"
	"kennel/edge/mind/mindlink"
	"kennel/edge/mind/mood"
	"kennel/edge/power"
	"kennel/edge/robot/claim"
	"kennel/infra/backoff"
	"kennel/infra/errs"
	"kennel/jdocs"
	"kennel/speech/intent"
)

// Our own defaults of motions.
const (
	step   = 0.1 // m
	up     = -1  // of nod: positive pitch is nose down (GOSTAI-FRAME-05)
	down   = 1
	nodTo  = 0.8              // of what the head can
	within = 8 * time.Second  // a motion
	recent = 30 * time.Second // a follow-up to the timer
	letGo  = time.Second      // the character needs as long to give motors back
)

type act = func(*Intents, context.Context, intent.User) (Outcome, error)

// move does o, and says done when it has ended well.
func (x *Intents) move(ctx context.Context, o core.Order, done string) (Outcome, error) {
	_, held, _, sleep := x.now()
	if held.By != "" {
		return refuse(Held, "%s holds me: %s", held.By, held.Reason)
	}
	if s, _ := power.ParseSleep(sleep); s.Asleep() {
		if err := x.goTo(ctx, power.Awake, uint8(power.NotSleepy)); err != nil {
			return Outcome{}, err
		}
	}
	x.rest(ctx) // another word of a person counts more than what plays
	err := x.cfg.Core.Run(ctx, claim.Behavior, o.For(within))
	for end := time.Now().Add(letGo); busy(err) && time.Now().Before(end) && backoff.Sleep(ctx, letGo/10) == nil; {
		err = x.cfg.Core.Run(ctx, claim.Behavior, o.For(within))
	}
	var unfinished *coreclient.Unfinished
	if errors.As(err, &unfinished) {
		return refuse(Failed, "I could not finish: %v", unfinished)
	}
	return Outcome{Text: done}, err
}

// busy reports whether robotd refused a motion because something else has the motors.
func busy(err error) bool {
	var refused *coreclient.Refused
	return errors.As(err, &refused) && refused.Code == "busy"
}

// roll moves the wheels, unless the robot is on its charger: it could tear itself off.
func (x *Intents) roll(ctx context.Context, o core.Order, done string) (Outcome, error) {
	if _, _, supply, _ := x.now(); supply.Has(body.OnCharger) {
		return refuse(Docked, "I am on my charger")
	}
	return x.move(ctx, o, done)
}

func drive(metres float64) act {
	way := "forward"
	if metres < 0 {
		way = "back"
	}
	return func(x *Intents, ctx context.Context, _ intent.User) (Outcome, error) {
		return x.roll(ctx, core.Go(metres), fmt.Sprintf("I went %v cm %s", math.Abs(metres)*100, way))
	}
}

// turn turns right by so many radians (GOSTAI-IF-15.2).
func turn(radians float64, way string) act {
	return func(x *Intents, ctx context.Context, _ intent.User) (Outcome, error) {
		return x.roll(ctx, core.Turn(radians), "I turned "+way)
	}
}

func nod(way float64) act {
	return func(x *Intents, ctx context.Context, _ intent.User) (Outcome, error) {
		can, _, _, _ := x.now()
		to := way * math.Pi / 8
		for _, s := range can.head.Slots {
			limit := s.Max
			if way < 0 {
				limit = s.Min
			}
			if s.Name == "angle" && limit != nil {
				to = nodTo * *limit
			}
		}
		said := "I look up"
		if way > 0 {
			said = "I look down"
		}
		return x.move(ctx, core.Set(can.head.Full+".angle", to), said)
	}
}

// stop ends what the robot does for a person: the timer, if that is named, rings or was spoken of just now (part of VEC-INT-15), else every motion.
func (x *Intents) stop(ctx context.Context, u intent.User) (Outcome, error) {
	x.mu.Lock()
	timer := time.Now().Before(x.after)
	x.mu.Unlock()
	if what := text(u, "what_to_stop"); strings.Contains(what, "timer") || what == "" && timer || x.timer.ringing() {
		return x.cancelTimer(ctx)
	}
	can, _, _, _ := x.now()
	if !x.has(some, can) {
		return refuse(NotSupported, NotHere)
	}
	x.rest(ctx)
	if err := x.cfg.Core.Stop(ctx); err != nil {
		return Outcome{}, err
	}
	return say("I stopped")
}

// takePhoto takes a photo, of a person or of what is before the robot: it does not look for a face.
func (x *Intents) takePhoto(ctx context.Context, _ intent.User) (Outcome, error) {
	err := x.cfg.Photograph(ctx)
	switch errs.KindOf(err) {
	case errs.Exhausted, errs.Unavailable:
		if err != nil {
			return refuse(Failed, "I could not take a photo: %v", err)
		}
	}
	return Outcome{Text: "I took a photo"}, err
}

// remove deletes the timer, which is all that can be deleted (VEC-INT-06).
func (x *Intents) remove(ctx context.Context, u intent.User) (Outcome, error) {
	if what := text(u, "what_to_stop"); what == "" || strings.Contains(what, "timer") {
		return x.cancelTimer(ctx)
	}
	return refuse(NotSupported, NotHere)
}

// goTo changes the state of sleep.
func (x *Intents) goTo(ctx context.Context, s power.Sleep, why uint8) error {
	_, err := x.cfg.Core.Ask(ctx, func(n uint32) corelink.Message { return &corelink.Sleep{Request: n, State: uint8(s), Why: why} })
	return err
}

func (x *Intents) fallAsleep(ctx context.Context, _ intent.User) (Outcome, error) {
	_, held, supply, now := x.now()
	is, _ := power.ParseSleep(now)
	to := power.LightSleep
	if supply.Has(body.OnCharger) {
		to = power.SleepOnCharger
	}
	if is.Asleep() {
		return say("I am already asleep")
	}
	if held.By == "" { // a robot that is held does not move anyway
		if err := x.cfg.Core.Stop(ctx); err != nil {
			return Outcome{}, err
		}
	}
	if is == power.SleepNothing {
		if err := x.goTo(ctx, power.Awake, 0); err != nil {
			return Outcome{}, err
		}
	}
	if err := errors.Join(x.goTo(ctx, power.PreSleepAnimation, 0), x.goTo(ctx, to, uint8(power.Sleepy))); err != nil {
		return Outcome{}, err
	}
	return say("I am going to sleep")
}

func (x *Intents) wakeUp(ctx context.Context, _ intent.User) (Outcome, error) {
	_, _, _, now := x.now()
	if is, _ := power.ParseSleep(now); is.Asleep() {
		if err := x.goTo(ctx, power.Awake, uint8(power.NotSleepy)); err != nil {
			return Outcome{}, err
		}
	}
	return say("I am awake")
}

// setting returns a field of the robot's settings; nil: it has none of that name.
func (x *Intents) setting(name string) json.RawMessage {
	d, err := x.cfg.Docs.Get(x.cfg.Settings)
	if err != nil {
		return nil
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal([]byte(d.JSON), &fields) // a damaged one has no fields
	return fields[name]
}

// number returns the setting as a number of an enumeration.
func (x *Intents) number(name string) (n int) {
	_ = json.Unmarshal(x.setting(name), &n) // 0 of one that is not a number
	return n
}

func (x *Intents) set(ctx context.Context, fields map[string]string) error {
	raw := map[string]json.RawMessage{}
	for name, v := range fields {
		raw[name] = json.RawMessage(v)
	}
	return x.cfg.Docs.Set(ctx, x.cfg.Settings, raw)
}

// field describes a setting; the zero Field if robots of this species do not have it.
func (x *Intents) field(name string) jdocs.Field {
	s, _ := jdocs.SchemaOf(x.cfg.Settings)
	f, _ := s.Find(name)
	return f
}

// choices returns the names of the values that a setting can have, by number.
func (x *Intents) choices(name string) []string { return x.field(name).Values }

// loudest is the number of the loudest volume; 0 is mute (VEC-DOC-02).
func (x *Intents) loudest() int { return len(x.choices("master_volume")) - 1 }

func (x *Intents) volume(ctx context.Context, n int) (Outcome, error) {
	if err := x.set(ctx, map[string]string{"master_volume": strconv.Itoa(n)}); err != nil {
		return Outcome{}, err
	}
	return say("my volume is %d of %d", n, x.loudest())
}

func louder(by int) act {
	return func(x *Intents, ctx context.Context, _ intent.User) (Outcome, error) {
		return x.volume(ctx, min(max(x.number("master_volume")+by, 0), x.loudest()))
	}
}

func (x *Intents) setVolume(ctx context.Context, u intent.User) (Outcome, error) {
	said := strings.TrimSpace(text(u, "volume_level"))
	n, known := intent.VolumeLevel(said)
	if !known && said != "0" {
		return refuse(Invalid, "my volume goes from 0 to %d", x.loudest())
	}
	return x.volume(ctx, n)
}

func (x *Intents) eyes(ctx context.Context, number int) error {
	fields := map[string]string{"eye_color": strconv.Itoa(number)}
	if custom := x.field("eye_color").Custom; custom != "" {
		fields[custom+".enabled"] = "false"
	}
	return x.set(ctx, fields)
}

// nextEyes takes the next colour.
func (x *Intents) nextEyes(ctx context.Context, _ intent.User) (Outcome, error) {
	all := x.choices("eye_color")
	n := (x.number("eye_color") + 1) % len(all)
	name := all[n]
	return Outcome{Text: "my eyes are " + strings.ToLower(name[strings.LastIndexByte(name, '_')+1:])}, x.eyes(ctx, n)
}

func (x *Intents) colourEyes(ctx context.Context, u intent.User) (Outcome, error) {
	said := text(u, "eye_color")
	n, known := intent.EyeColor(said)
	if !known {
		return refuse(Invalid, "my eyes can be %s", colours(intent.EyeColors()...))
	}
	return Outcome{Text: "my eyes are " + colours(said)}, x.eyes(ctx, n)
}

// colours are the words for eye colours: COLOR_TEAL is teal.
func colours(names ...string) string {
	return strings.ToLower(strings.ReplaceAll(strings.Join(names, ", "), "COLOR_", ""))
}

func (x *Intents) tellTime(ctx context.Context, _ intent.User) (Outcome, error) {
	now, known := x.cfg.Local()
	if !known {
		return refuse(Failed, "I do not know the time yet")
	}
	var twentyFour bool
	_ = json.Unmarshal(x.setting("clock_24_hour"), &twentyFour)
	x.show(ctx, mindlink.Page{Clock: &screen.Clock{Hour: now.Hour(), Minute: now.Minute(), TwentyFour: twentyFour}}, pageFor)
	if twentyFour || x.language() == german { // whose speakers have no AM and PM
		return say("it is %s", now.Format("15:04"))
	}
	return say("it is %s", now.Format("3:04 PM"))
}

// tellBattery answers how full the battery is.
// The happiness above which a robot says that it is happy, and below which it is sad; our own values.
const (
	isHappy = 0.15
	isSad   = -0.15
)

// tellFeeling says and shows how the robot feels; one without emotions says how its battery is.
func (x *Intents) tellFeeling(ctx context.Context, u intent.User) (Outcome, error) {
	var now mindlink.Feeling
	ok := false
	if x.cfg.Mood != nil {
		now, ok = x.cfg.Mood()
	}
	if !ok {
		return x.tellBattery(ctx, u)
	}
	switch pleased := now.Emotions[mood.Happy.String()].Value; {
	case now.Simple == mood.Frustrated:
		x.with(ctx, angry)
		return say("I am frustrated")
	case pleased < isSad:
		x.with(ctx, sad)
		return say("I am a little sad")
	case pleased > isHappy:
		x.with(ctx, happy)
		return say("I am happy")
	case now.Simple == mood.HighStim:
		return say("I am wide awake")
	case now.Simple == mood.LowStim:
		return say("I am calm")
	}
	return say("I am fine")
}

func (x *Intents) tellBattery(context.Context, intent.User) (Outcome, error) {
	x.mu.Lock()
	level, supply := power.Level(x.level), x.power
	x.mu.Unlock()
	where := ""
	if supply.Has(body.OnCharger) {
		where = ", and I am on my charger"
	}
	return say("my battery is %s%s", level, where)
}

func (x *Intents) tellAnswer(_ context.Context, u intent.User) (Outcome, error) {
	if text(u, "answer") == "" {
		return refuse(Failed, "I do not know")
	}
	return say("%s", text(u, "answer"))
}

func (x *Intents) tellUnknown(context.Context, intent.User) (Outcome, error) {
	return say("I do not know")
}

// skies are the animations of the weather's conditions (VEC-INT-08).
var skies = map[string]string{"Clear": "WeatherSunny", "Cloudy": "WeatherCloudy", "Cold": "WeatherCold", "Rain": "WeatherRain", "Snow": "WeatherSnow", "Stars": "WeatherStars", "Sunny": "WeatherSunny",
	"Thunderstorms": "WeatherThunder", "Windy": "WeatherWindy"}

func (x *Intents) tellWeather(ctx context.Context, u intent.User) (Outcome, error) {
	if text(u, "temperature") == "" {
		return refuse(Failed, "I do not know the weather right now")
	}
	if sky := skies[text(u, "condition")]; sky != "" {
		x.with(ctx, Animation{Trigger: sky})
	}
	x.show(ctx, mindlink.Page{Weather: &screen.Weather{Condition: text(u, "condition"), Temperature: text(u, "temperature"), Unit: text(u, "temperatureUnit"),
		Place: text(u, "speakableLocationString")}}, pageFor)
	return say("%s, %s °%s in %s", text(u, "condition"), text(u, "temperature"),
		text(u, "temperatureUnit"), text(u, "speakableLocationString"))
}
