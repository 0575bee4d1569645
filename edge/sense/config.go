package sense

import (
	"fmt"
	"math"
	"time"
)

// Gravity is the acceleration that a sensor at rest measures, in m/s2 (VEC-IMU-03).
const Gravity = 9.81

// Config is all that can be set. Durations are how long a cause must hold.
type Config struct {
	Touch  TouchConfig
	Cliff  CliffConfig
	Prox   ProxConfig
	Button ButtonConfig
	Motion MotionConfig
}

// TouchConfig sets the touch filter (VEC-IO-10). Levels are parts of the sensor's scale.
type TouchConfig struct {
	LevelTau    time.Duration // low pass of the level
	BaselineTau time.Duration // how fast the baseline follows an untouched sensor
	DropTau     time.Duration // and one that reads below it: the baseline was learnt under a hand
	On, Off     float64       // rise over the baseline at which a touch begins and ends
	OnNoise     float64       // and times the standard deviation that the rise must be to begin
	OffNoise    float64       // and to last
	MinOn       time.Duration // VEC-IO-10: 100 ms
	MinOff      time.Duration // VEC-IO-10: 200 ms
	Learn       time.Duration // how long a baseline is learnt (VEC-IO-13)
	LearnSteady float64       // standard deviation that learning asks for
	LearnMax    time.Duration // after this it takes what there is
	Petting     time.Duration // a touch this long is petting (VEC-IO-14)
	Stuck       time.Duration // a touch this long is a thing that leans on it, and becomes the baseline
	Stale       time.Duration // without a good reading for this long there is no touch
}

// CliffConfig sets cliff detection (VEC-IO-20). Levels are reflected light, 0 to 1.
type CliffConfig struct {
	Part        float64       // of the floor level below which a sensor sees none (VEC-IO-20: 40 %)
	Least       float64       // and below which it sees none on any floor (VEC-IO-20: 100 counts)
	ClearPart   float64       // what it takes to see floor again
	ClearLeast  float64       //
	Start       float64       // a floor not seen yet is held to be this part of what the brightest sensor sees
	Frames      int           // VEC-IO-20: 2
	ClearFrames int           // good frames until floor is believed again
	RiseTau     time.Duration // how fast the floor level follows a brighter floor
	FallTau     time.Duration // and a darker one
	Line        float64       // change against the floor level, a part of it, that is the edge of a line (VEC-IO-23)
	LineEnd     float64       // and the one at which the line ends
}

// ProxConfig sets the range finder (VEC-IO-24, VEC-IO-25).
type ProxConfig struct {
	Min, Max    float64       // m (VEC-BODY-26: 30 to 1200 mm)
	LiftLow     float64       // m; a lift between the two hides the view (VEC-IO-25: 34 and 45 mm)
	LiftHigh    float64       //
	LoadHigh    float64       // m; with a load everything below does: 45 mm and a cube's 44
	QualityFull float64       // signal rate / sqrt(ambient rate) that is quality 1 (VEC-IO-24)
	QualityMin  float64       // below it a distance does not count
	Stale       time.Duration // an older sample says nothing
	Report      int           // bad samples in a row that are reported (VEC-BODY-26)
	Severe      int           // and severely
	ReportEvery time.Duration // at most
}

// ButtonConfig sets the gestures (part of VEC-IO-02).
type ButtonConfig struct {
	Debounce  time.Duration // shorter changes are the contact's
	Click     time.Duration // a press shorter than this is a click: 400 ms
	DoubleGap time.Duration // from the first release to the second press: less than 500 ms
	Mute      time.Duration // released after this: microphone on or off: 2 s
	Long      time.Duration // released after this: power off: 5 s
	Recovery  time.Duration // held since power-on: 15 s
}

// MotionConfig sets what the inertial sensors say (VEC-IMU). Angles are from upright or from the axis, in rad.
type MotionConfig struct {
	Stale time.Duration // sensors that say nothing for this long are none
	Neck  [3]float64    // m, the neck's joint from the body's origin (VEC-IMU-02: 45 mm above)

	TiltTau time.Duration // VEC-IMU-01: 0.98 at 200 Hz is 0.245 s
	TiltG   float64       // the accelerometer says where up is while it feels 1 g within this part

	Still      time.Duration // VEC-IMU-01: 1 s without motion before the bias is taken
	StillRate  float64       // rad/s, standard deviation
	StillAccel float64       // m/s2, standard deviation
	MaxBias    float64       // rad/s
	BiasTau    time.Duration
	GyroFail   time.Duration // at rest for this long and no bias: the gyro is broken (VEC-IMU-16)

	FallG     float64       // g (VEC-IMU-07: 0.35)
	FallFor   time.Duration // VEC-IMU-07: 80 ms
	FallRate  float64       // rad/s of tumbling that is a fall too, with no floor below
	CaughtG   float64       // g; felt for CaughtFor a fall is over
	CaughtFor time.Duration
	ImpactG   float64       // g (VEC-IMU-07: 2.5)
	ImpactFor time.Duration // how long after a fall an impact is its end

	Dwell     time.Duration // VEC-IMU-06: 250 ms
	Upright   float64       // more is off treads
	Lying     float64       // closer to an axis than this is lying on that side
	Evidence  float64       // a tilt that with no floor below means in the air (VEC-IO-21)
	RaiseG    float64       // g upwards beyond gravity, for RaiseFor, that is being raised (VEC-IMU-08)
	RaiseFor  time.Duration
	RaiseLast time.Duration // how long being raised is remembered
	Settle    time.Duration // upright and without tremor for this long is standing, whatever the cliff sensors say

	TremorMin float64       // rad/s, standard deviation of a hand's tremor (VEC-IMU-09)
	TremorMax float64       //
	HeldFor   time.Duration // VEC-IMU-09: 0.5 s
	PalmTilt  float64       // VEC-IMU-10: 20 degrees
	PalmMax   float64       // rad/s, tremor of a palm
	PalmFor   time.Duration // VEC-IMU-10: 1 s

	ShakeG    float64 // g, mean of what is left of the acceleration without its slow part (VEC-IMU-13)
	ShakeEndG float64
	ShakeFor  time.Duration
	ShakeOff  time.Duration
	ShakeTau  time.Duration

	PokeG     float64       // g of a poke's shock (VEC-IMU-11)
	PokeShock time.Duration // a longer one is no poke
	PokeBack  time.Duration // until then the pose must have returned
	PokeTilt  float64       // the shock must tilt it by this
	PokePose  float64       // and leave it no farther than this from where it was
	BumpLift  float64       // m; a shock along X with the lift above is a fist bump (VEC-IMU-12)

	LongInAir time.Duration // VEC-IMU-18
}

const degree = math.Pi / 180

// Default returns the rows' numbers, and our own defaults where they give none.
func Default() Config {
	const ms = time.Millisecond
	return Config{
		Touch: TouchConfig{LevelTau: 30 * ms, BaselineTau: 30 * time.Second, DropTau: 500 * ms, On: 0.02, Off: 0.01, OnNoise: 3, OffNoise: 1,
			MinOn: 100 * ms, MinOff: 200 * ms, Learn: 500 * ms, LearnSteady: 0.005, LearnMax: 5 * time.Second,
			Petting: time.Second, Stuck: 2 * time.Minute, Stale: time.Second},
		Cliff: CliffConfig{Part: 0.4, Least: 100.0 / 1024, ClearPart: 0.5, ClearLeast: 120.0 / 1024, Start: 0.6, Frames: 2, ClearFrames: 10,
			RiseTau: 500 * ms, FallTau: 2 * time.Second, Line: 0.25, LineEnd: 0.15},
		Prox: ProxConfig{Min: 0.030, Max: 1.200, LiftLow: 0.034, LiftHigh: 0.045, LoadHigh: 0.089, QualityFull: 20, QualityMin: 0.1,
			Stale: 200 * ms, Report: 10, Severe: 100, ReportEvery: 10 * time.Second},
		Button: ButtonConfig{
			Debounce: 15 * ms, Click: 400 * ms, DoubleGap: 500 * ms, Mute: 2 * time.Second, Long: 5 * time.Second,
			Recovery: 15 * time.Second,
		},
		Motion: MotionConfig{
			Stale: 100 * ms, Neck: [3]float64{0, 0, 0.045}, TiltTau: 245 * ms, TiltG: 0.2,
			Still: time.Second, StillRate: 0.015, StillAccel: 0.3, MaxBias: 0.2, BiasTau: time.Second, GyroFail: 10 * time.Second,
			FallG: 0.35, FallFor: 80 * ms, FallRate: 8, CaughtG: 0.7, CaughtFor: 100 * ms, ImpactG: 2.5, ImpactFor: 500 * ms,
			Dwell: 250 * ms, Upright: 30 * degree, Lying: 35 * degree, Evidence: 10 * degree,
			RaiseG: 0.1, RaiseFor: 50 * ms, RaiseLast: time.Second, Settle: 2 * time.Second,
			TremorMin: 0.02, TremorMax: 1.5, HeldFor: 500 * ms, PalmTilt: 20 * degree, PalmMax: 0.3, PalmFor: time.Second,
			ShakeG: 0.8, ShakeEndG: 0.4, ShakeFor: 300 * ms, ShakeOff: 500 * ms, ShakeTau: 200 * ms,
			PokeG: 0.3, PokeShock: 150 * ms, PokeBack: 500 * ms, PokeTilt: 0.5 * degree, PokePose: 2 * degree, BumpLift: 0.060,
			LongInAir: time.Minute,
		},
	}
}

// Validate names the first setting that cannot be.
func (c *Config) Validate() error {
	t, f, p, b, m := &c.Touch, &c.Cliff, &c.Prox, &c.Button, &c.Motion
	const hour = float64(time.Hour / time.Second)
	for _, n := range [...]struct {
		name           string
		value          float64
		least, largest float64
	}{
		{"Touch.LevelTau", t.LevelTau.Seconds(), 0.001, 10}, {"Touch.BaselineTau", t.BaselineTau.Seconds(), t.LevelTau.Seconds(), hour},
		{"Touch.DropTau", t.DropTau.Seconds(), t.LevelTau.Seconds(), hour},
		{"Touch.On", t.On, 1e-6, 1}, {"Touch.Off", t.Off, 1e-9, t.On}, {"Touch.OnNoise", t.OnNoise, 0, 100}, {"Touch.OffNoise", t.OffNoise, 0, t.OnNoise},
		{"Touch.MinOn", t.MinOn.Seconds(), 0, 10}, {"Touch.MinOff", t.MinOff.Seconds(), 0, 10},
		{"Touch.Learn", t.Learn.Seconds(), 0, t.LearnMax.Seconds()}, {"Touch.LearnSteady", t.LearnSteady, 0, 1},
		{"Touch.LearnMax", t.LearnMax.Seconds(), 0, 60}, {"Touch.Petting", t.Petting.Seconds(), 0, hour},
		{"Touch.Stuck", t.Stuck.Seconds(), 1, 24 * hour}, {"Touch.Stale", t.Stale.Seconds(), 0.01, hour},

		{"Cliff.Part", f.Part, 0, 1}, {"Cliff.Least", f.Least, 0, 1}, {"Cliff.ClearPart", f.ClearPart, f.Part, 1},
		{"Cliff.ClearLeast", f.ClearLeast, f.Least, 1},
		{"Cliff.Start", f.Start, 0, 1}, {"Cliff.Frames", float64(f.Frames), 1, 100}, {"Cliff.ClearFrames", float64(f.ClearFrames), 1, 200},
		{"Cliff.RiseTau", f.RiseTau.Seconds(), 0.01, hour}, {"Cliff.FallTau", f.FallTau.Seconds(), 0.01, hour},
		{"Cliff.Line", f.Line, 0.01, 1}, {"Cliff.LineEnd", f.LineEnd, 0, f.Line},

		{"Prox.Max", p.Max, 0, 65}, {"Prox.Min", p.Min, 0, p.Max}, {"Prox.LiftLow", p.LiftLow, 0, p.LiftHigh}, {"Prox.LiftHigh", p.LiftHigh, 0, p.LoadHigh},
		{"Prox.LoadHigh", p.LoadHigh, 0, 10}, {"Prox.QualityFull", p.QualityFull, 1e-6, 1e6}, {"Prox.QualityMin", p.QualityMin, 0, 1},
		{"Prox.Stale", p.Stale.Seconds(), 0.01, hour}, {"Prox.Report", float64(p.Report), 1, 1e6},
		{"Prox.Severe", float64(p.Severe), float64(p.Report), 1e6},
		{"Prox.ReportEvery", p.ReportEvery.Seconds(), 0, 24 * hour},

		{"Button.Debounce", b.Debounce.Seconds(), 0, b.Click.Seconds()}, {"Button.Click", b.Click.Seconds(), 0, b.Mute.Seconds()},
		{"Button.DoubleGap", b.DoubleGap.Seconds(), b.Debounce.Seconds(), 10}, {"Button.Mute", b.Mute.Seconds(), 0, b.Long.Seconds()},
		{"Button.Long", b.Long.Seconds(), 0, b.Recovery.Seconds()}, {"Button.Recovery", b.Recovery.Seconds(), 0, hour},

		{"Motion.Stale", m.Stale.Seconds(), 0.01, 10},
		{"Motion.Neck[x]", m.Neck[0], -10, 10}, {"Motion.Neck[y]", m.Neck[1], -10, 10}, {"Motion.Neck[z]", m.Neck[2], -10, 10},
		{"Motion.TiltTau", m.TiltTau.Seconds(), 0.001, 60}, {"Motion.TiltG", m.TiltG, 0, 1},
		{"Motion.Still", m.Still.Seconds(), 0.01, 60}, {"Motion.StillRate", m.StillRate, 0, m.TremorMin}, {"Motion.StillAccel", m.StillAccel, 0, 10},
		{"Motion.MaxBias", m.MaxBias, 0, 10}, {"Motion.BiasTau", m.BiasTau.Seconds(), 0.01, hour},
		{"Motion.GyroFail", m.GyroFail.Seconds(), m.Still.Seconds(), hour},
		{"Motion.FallG", m.FallG, 0, m.CaughtG}, {"Motion.FallFor", m.FallFor.Seconds(), 0, 1}, {"Motion.FallRate", m.FallRate, 0.1, 100},
		{"Motion.CaughtG", m.CaughtG, 0, 1}, {"Motion.CaughtFor", m.CaughtFor.Seconds(), 0, 10}, {"Motion.ImpactG", m.ImpactG, 1, 100},
		{"Motion.ImpactFor", m.ImpactFor.Seconds(), 0, 10}, {"Motion.Dwell", m.Dwell.Seconds(), 0, 10},
		{"Motion.Upright", m.Upright, 0, 44 * degree}, {"Motion.Lying", m.Lying, 0, 44 * degree}, {"Motion.Evidence", m.Evidence, 0, m.Upright},
		{"Motion.RaiseG", m.RaiseG, 0, 10}, {"Motion.RaiseFor", m.RaiseFor.Seconds(), 0, 10}, {"Motion.RaiseLast", m.RaiseLast.Seconds(), 0, 60},
		{"Motion.Settle", m.Settle.Seconds(), 0, 60},
		{"Motion.TremorMin", m.TremorMin, 0, m.TremorMax}, {"Motion.TremorMax", m.TremorMax, 0, 100}, {"Motion.HeldFor", m.HeldFor.Seconds(), 0, 10},
		{"Motion.PalmTilt", m.PalmTilt, 0, math.Pi / 2}, {"Motion.PalmMax", m.PalmMax, m.TremorMin, m.TremorMax},
		{"Motion.PalmFor", m.PalmFor.Seconds(), 0, 60},
		{"Motion.ShakeG", m.ShakeG, 0.01, 100}, {"Motion.ShakeEndG", m.ShakeEndG, 0, m.ShakeG}, {"Motion.ShakeFor", m.ShakeFor.Seconds(), 0, 10},
		{"Motion.ShakeOff", m.ShakeOff.Seconds(), 0, 10}, {"Motion.ShakeTau", m.ShakeTau.Seconds(), 0.001, 10},
		{"Motion.PokeG", m.PokeG, 0.01, 100}, {"Motion.PokeShock", m.PokeShock.Seconds(), 0, m.PokeBack.Seconds()},
		{"Motion.PokeBack", m.PokeBack.Seconds(), 0, 10},
		{"Motion.PokeTilt", m.PokeTilt, 0, math.Pi}, {"Motion.PokePose", m.PokePose, 0, math.Pi}, {"Motion.BumpLift", m.BumpLift, 0, 10},
		{"Motion.LongInAir", m.LongInAir.Seconds(), 0.1, 24 * hour},
	} {
		if !(n.value >= n.least && n.value <= n.largest) { // refuses NaN too
			return fmt.Errorf("sense: %s is %v, want %v to %v (durations in seconds)", n.name, n.value, n.least, n.largest)
		}
	}
	return nil
}
