package mindapp

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"

	"kennel/edge/agent/health/faults"
	"kennel/edge/bodies"
	"kennel/edge/body/species"
	"kennel/edge/face"
	"kennel/edge/faultcode"
	"kennel/edge/mind"
	"kennel/infra/logging"
)

// displayLight is how bright a display is, half of what its lights can do; own default.
const displayLight = 0.5

// Display returns what shows the face on the robot's own display; nil: its species has none. A display that does not take pictures is fault 990
// (part of VEC-DSP-16): the robot lives without it, and it is tried again. A robot that has none when it starts has no such fault.
func Display(root *os.Root, log *slog.Logger) mind.Display {
	open := bodies.Display(root)
	if open == nil {
		return nil
	}
	had, told := false, false
	return func(ctx context.Context, look func(func(*face.Picture) error) error) error {
		d, err := open(ctx, root)
		if errors.Is(err, fs.ErrNotExist) && !had {
			<-ctx.Done()
			return nil
		}
		had = true
		if err == nil {
			err = show(d, look)
		}
		if ctx.Err() != nil {
			return nil
		}
		if !told {
			told = true
			if err := faults.Post(root, faultcode.Display); err != nil {
				log.ErrorContext(ctx, "fault not posted", "fault", faultcode.Display, logging.Err, err)
			}
		}
		return err
	}
}

func show(d species.Display, look func(func(*face.Picture) error) error) (err error) {
	defer func() { err = cmp.Or(err, d.Close()) }()
	if err := d.Light(displayLight); err != nil {
		return err
	}
	return look(d.Show)
}
