// Package square is a program for any robot that can drive, whatever its species.
package square

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"kennel/edge/coreclient"
	"kennel/edge/corelink"
	"kennel/edge/robot/claim"
)

// Drive drives a square to the right, with sides in metres, and returns how far away the robot then sees something, in metres.
func Drive(ctx context.Context, c *coreclient.Client, side float64) (distance float64, err error) {
	lease, err := c.Claim(ctx, 0, claim.Program, "robot.go")
	if err != nil {
		return 0, err
	}
	defer lease.Release()
	for i := range 8 {
		line := [...]string{fmt.Sprintf("robot.go(%v)", side), fmt.Sprintf("robot.turn(%v)", math.Pi/2)}[i%2]
		m, err := c.Do(ctx, line, 30*time.Second)
		if err != nil {
			return 0, err
		}
		if end, err := m.Wait(ctx); err != nil || end.Outcome != corelink.Done {
			return 0, errors.Join(err, fmt.Errorf("%s: %s", line, end.Words()))
		}
	}
	tree, err := c.Tree(ctx)
	if err != nil {
		return 0, err
	}
	for _, n := range tree.Nodes {
		if strings.Contains(n.Interface, "DistanceSensor") {
			m, err := c.Do(ctx, n.Full+".distance", 0)
			if err != nil {
				return 0, err
			}
			return strconv.ParseFloat(m.Value, 64)
		}
	}
	return 0, errors.New("this robot has no DistanceSensor")
}
