package personality_test

import (
	"testing"
	"time"

	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/body/pleo/personality"
	"kennel/edge/body/pleo/pleosim"
)

// TestPersonality: without a card the button changes the volume, which is heard; a low battery makes it lie down and switch off, but not on the charger; a card's
// application takes its place (PLEO-APP-11, PLEO-SEN-02, PLEO-SEN-33).
func TestPersonality(t *testing.T) {
	for _, profile := range []lifeos.Profile{lifeos.Profile11, lifeos.Profile10} {
		file, err := personality.Build(profile)
		if err != nil {
			t.Fatal(err)
		}
		var failed []lifeos.Message
		body := pleosim.New()
		os := lifeos.New(lifeos.Config{Profile: profile, Hardware: body, Flash: pleosim.Card{personality.File: file}, Log: func(m lifeos.Message) {
			if m.Level <= lifeos.Warning && m.Type != lifeos.LogApplication {
				failed = append(failed, m)
			}
		}})
		run := func(d time.Duration) { body.Run(os, os.Now()+d) }
		run(time.Second)
		loudest := func() (most int16) {
			for _, v := range body.Speaker {
				most = max(most, v)
			}
			body.Speaker = nil
			return most
		}
		var heard []int16
		for range 4 {
			body.Set(lifeos.SensorWakeup, 1)
			run(500 * time.Millisecond)
			body.Set(lifeos.SensorWakeup, 0)
			run(500 * time.Millisecond)
			heard = append(heard, loudest())
		}
		if heard[1] >= heard[2] || heard[2] >= heard[3] || heard[1] == 0 || heard[0] < heard[3] {
			t.Errorf("%s: volumes %v, want the loudest, and then the quietest to the middle", profile, heard)
		}
		const powerDetect = 31
		body.Set(powerDetect, 1)
		body.Set(lifeos.SensorBattery, 22)
		if run(10 * time.Second); os.Power() != lifeos.On {
			t.Errorf("%s: on its charger it switches off", profile)
		}
		body.Set(powerDetect, 0)
		if run(time.Second); os.Power() != lifeos.On {
			t.Errorf("%s: it switches off before it lies", profile)
		}
		run(8 * time.Second)
		if neck := body.Joint(lifeos.JointNeckVertical).Position; os.Power() != lifeos.Off || neck > -45 || body.Joint(lifeos.JointLeftElbow).Position < 80 {
			t.Errorf("%s: with a low battery it is %v, its neck at %v", profile, os.Power(), neck)
		}
		if len(failed) > 0 {
			t.Errorf("%s: %v", profile, failed)
		}
	}
}
