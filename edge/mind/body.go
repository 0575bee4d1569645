package mind

import (
	"slices"
	"strings"

	"kennel/edge/anim/clip"
	"kennel/edge/core/corelink"
	"kennel/edge/mind/mindlink"
)

// body lists what a robot's tree has of the parts that clips use.
type body struct {
	parts   clip.Parts
	devices map[clip.Parts][]string // full names of the actuators of a part
	compact map[string]string       // compact names by the full ones
	all     []string                // full names of everything

	speakers bool   // it has some, which play what they store themselves unless parts has Speaker
	bank     string // full name of the part that plays sounds which the body stores; "": it has none, or plays any sound
}

// motors are the parts that robotd moves.
const motors = clip.HeadMotor | clip.LiftMotor | clip.Wheels

// places are the parts of clips in the tree: an actuator whose full name begins so.
var places = []struct {
	part   clip.Parts
	prefix string
}{{clip.HeadMotor, "robot.body.head.pitch"}, {clip.LiftMotor, "robot.body.arm.z"}, {clip.Wheels, "robot.body.wheel["}, {clip.BackpackLights, "robot.body.led["}}

// bodyOf returns what a tree has.
func bodyOf(t *corelink.Tree) *body {
	b := &body{devices: map[clip.Parts][]string{}, compact: map[string]string{}}
	for _, n := range t.Nodes {
		b.all = append(b.all, n.Full)
		interfaces := strings.Split(n.Interface, ", ")
		if slices.Contains(interfaces, "VideoOut") {
			b.parts |= clip.Display
		}
		b.speakers = b.speakers || slices.Contains(interfaces, "AudioOut")
		if slices.Contains(interfaces, "TextToSpeech") { // whose speaker takes any sound (GOSTAI-COMP-42)
			b.parts |= clip.Speaker
		}
		if n.Actuator && slices.Contains(interfaces, "SoundBank") {
			b.bank = n.Full
			b.compact[n.Full] = n.Compact
		}
		for _, p := range places {
			if !n.Actuator || !strings.HasPrefix(n.Full, p.prefix) {
				continue
			}
			if p.part == clip.BackpackLights && (!slices.Contains(interfaces, "RGBLed") || len(b.devices[p.part]) == mindlink.Lights) {
				continue
			}
			b.parts |= p.part
			b.devices[p.part] = append(b.devices[p.part], n.Full)
			b.compact[n.Full] = n.Compact
		}
	}
	if b.parts&clip.Speaker != 0 {
		b.bank = ""
	}
	return b
}

// lacks returns which of some parts the body does not have, by the names of tracks.
func (b *body) lacks(parts clip.Parts) (lacks []mindlink.LeftOut) {
	for _, name := range parts.Names() {
		if p := clip.PartNamed(name); b.parts&p == 0 {
			lacks = append(lacks, mindlink.LeftOut{Track: name, Reason: "this body has none"})
		}
	}
	return lacks
}

// claims returns the actuators of some parts.
func (b *body) claims(parts clip.Parts) (devices []string) {
	for _, p := range places {
		if parts&p.part != 0 {
			devices = append(devices, b.devices[p.part]...)
		}
	}
	if parts&clip.Speaker != 0 && b.bank != "" {
		devices = append(devices, b.bank)
	}
	return devices
}
