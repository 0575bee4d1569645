// Command square drives a square with any robot that has wheels, and prints how far away the robot then sees something.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"kennel/edge/core"
	"kennel/edge/core/coreclient"
	"kennel/edge/core/corelink"
	"kennel/edge/robot/claim"
)

func main() {
	root := flag.String("root", "", "the robot's `FOLDER`, such as /var/lib/kennel/robots/vic-00e20100")
	side := flag.Float64("side", 0.1, "`length` of each side, in metres")
	timeout := flag.Duration("timeout", 2*time.Minute, "how long the program may take in all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	if err := run(ctx, *root, *side); err != nil {
		fmt.Fprintln(os.Stderr, "square:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, side float64) error {
	if root == "" {
		return errors.New("want -root FOLDER of a robot, such as /var/lib/kennel/robots/vic-00e20100")
	}
	c, err := connect(ctx, root)
	if err != nil {
		return err
	}
	if err := drive(ctx, c, side); err != nil {
		return err
	}
	distance, err := look(ctx, c)
	if err != nil {
		return err
	}
	if math.IsInf(distance, 1) {
		fmt.Printf("drove a square of %v m; nothing is in sight\n", side)
		return nil
	}
	fmt.Printf("drove a square of %v m; the next thing is %.2f m away\n", side, distance)
	return nil
}

// connect returns a client of the robotd that runs in the robot's folder.
func connect(ctx context.Context, root string) (*coreclient.Client, error) {
	socket := filepath.Join(root, corelink.SocketPath)
	if _, err := os.Stat(socket); err != nil {
		return nil, fmt.Errorf("no robotd runs in %s (%w): want -root FOLDER of a robot", root, err)
	}
	link := corelink.NewClient(root)
	c := coreclient.New(link)
	go link.Run(ctx, c.Handle) // ends with ctx
	wait, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := c.Ready(wait); err != nil {
		return nil, fmt.Errorf("%w: only its own user and root may connect to %s", err, socket)
	}
	return c, nil
}

// drive drives a square to the right. The wheels are claimed meanwhile, so that no program of lower priority moves them.
func drive(ctx context.Context, c *coreclient.Client, side float64) error {
	corner := core.Go(side).Then(core.Turn(math.Pi / 2))
	half := corner.Then(corner).For(30 * time.Second)
	return c.Run(ctx, claim.Program, half.Then(half))
}

// look returns what the first distance sensor of the robot measures, in metres.
func look(ctx context.Context, c *coreclient.Client) (float64, error) {
	tree, err := c.Tree(ctx)
	if err != nil {
		return 0, err
	}
	for _, n := range tree.Nodes {
		if strings.Contains(n.Interface, "DistanceSensor") {
			return measure(ctx, c, n.Full+".distance")
		}
	}
	return 0, errors.New("this robot has no distance sensor")
}

// measure returns what a distance sensor sees. Right after a turn its latest samples may be of another direction, so it has a second to see something.
func measure(ctx context.Context, c *coreclient.Client, slot string) (distance float64, err error) {
	look, end := context.WithCancel(ctx)
	defer end()
	measured := false
	limit := sync.OnceFunc(func() { time.AfterFunc(time.Second, end) })
	err = c.Subscribe(look, 50, func(u core.Update) error {
		limit()
		if distance, measured = u.Values[0].Number(); measured && !math.IsInf(distance, 1) {
			end()
		}
		return nil
	}, slot)
	if look.Err() == nil || ctx.Err() != nil {
		return 0, err
	}
	if !measured {
		return 0, fmt.Errorf("%s has not measured yet", slot)
	}
	return distance, nil
}
