package agentapp

import (
	"context"
	"os"

	"kennel/edge/agent/activity"
	"kennel/edge/agent/intents"
	"kennel/edge/mind/mindlink"
	"kennel/edge/robot/claim"
)

// character asks the robot's mindd to play what intents want.
type character struct {
	mind  *mindlink.Client
	root  *os.Root
	deeds *activity.Activity
}

func (c *character) Runs() bool {
	_, err := c.root.Lstat(mindlink.SocketPath)
	return err == nil
}

// Play gives motors up to every program and person, as other intents do.
func (c *character) Play(ctx context.Context, a intents.Animation, began func()) error {
	r := mindlink.Request{Trigger: a.Trigger, Mood: a.Mood, Loops: a.Loops, Priority: int(claim.Behavior), Program: "agentd"}
	if a.Still {
		r.Ignore = []string{mindlink.Body}
	}
	_, err := c.mind.Play(ctx, r, func(p mindlink.Progress) error {
		if p.Began != nil {
			c.deeds.Count(activity.AnimationPlayed)
			began()
		}
		return nil
	})
	return err
}
