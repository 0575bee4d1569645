package helm

import (
	"time"

	"kennel/edge/body"
	"kennel/edge/power"
)

// Indicator is what the lights say of the robot's state while it holds and no program says something else with them (VEC-IO-30).
type Indicator struct {
	When   func(*power.Keeper) bool
	Lights [body.MaxLights]body.Light
}

// chargeStarts is how long a charger may take to begin, and to pause between two tries, before that it does not charge is a problem; own default.
const chargeStarts = 10 * time.Second

// vectorIndicators are a Vector's, the first that holds counts. The source has colours for a robot that cannot charge (teal), and for what other programs
// say: blue while the microphone listens, all orange without Wi-Fi. The rest are own defaults; the lower lights are those that programs use.
func vectorIndicators() []Indicator {
	red, green, teal := body.Light{R: 255}, body.Light{G: 96}, body.Light{G: 128, B: 128}
	status := func(l body.Light) [body.MaxLights]body.Light { return [body.MaxLights]body.Light{3: l} }
	return []Indicator{
		{func(k *power.Keeper) bool { return k.Shutdown.Off != power.StayOn }, [body.MaxLights]body.Light{red, red, red, red}},
		{func(k *power.Keeper) bool { return k.Hottest() >= power.Hot }, status(red)},
		{func(k *power.Keeper) bool {
			return k.Charge.State == power.Resting && k.Battery.Level == power.Low && k.Charge.For >= chargeStarts
		}, [body.MaxLights]body.Light{teal, teal, teal, teal}},
		{(*power.Keeper).SeekCharger, status(red)},
		{func(k *power.Keeper) bool { return k.Charge.State == power.Active }, status(green)},
	}
}

// indicate has the lights that nobody lit and nobody owns say what state the robot is in.
func (h *Helm) indicate(lights *[body.MaxLights]body.Light) {
	for i := range h.model.Indicators {
		state := &h.model.Indicators[i]
		if !state.When(&h.power) {
			continue
		}
		for l, a := range h.parts.lights {
			if owner, _ := h.claims.OwnerOf(a); owner == 0 && lights[l] == (body.Light{}) {
				lights[l] = state.Lights[l]
			}
		}
		return
	}
}
