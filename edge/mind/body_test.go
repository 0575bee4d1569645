package mind

import (
	"fmt"
	"slices"
	"testing"

	"kennel/edge/anim/clip"
	"kennel/edge/core/corelink"
	"kennel/infra/api/live"
)

// TestLowerLights: a clip claims the first three lights of a body. The fourth shows the robot's state, whatever plays (part of VEC-LGT-06).
func TestLowerLights(t *testing.T) {
	var nodes []live.Node
	for i := range 4 {
		nodes = append(nodes, live.Node{Full: fmt.Sprintf("robot.body.led[%d]", i), Interface: "Led, RGBLed", Actuator: true})
	}
	got := bodyOf(&corelink.Tree{Tree: live.Tree{Nodes: nodes}}).claims(clip.AllParts)
	if want := []string{"robot.body.led[0]", "robot.body.led[1]", "robot.body.led[2]"}; !slices.Equal(got, want) {
		t.Errorf("claims %v, want %v", got, want)
	}
}
