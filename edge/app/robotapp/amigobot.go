package robotapp

import (
	"context"
	"errors"

	"kennel/edge/body"
	"kennel/edge/body/amigobot"
	"kennel/edge/body/amigobot/session"
	"kennel/edge/faultcode"
)

var amigobotKind = Kind{
	Device: amigobot.DefaultDevice,
	Model:  amigobot.Model,
	Open: func(ctx context.Context, device string) (body.Body, error) {
		d, err := amigobot.Open(ctx, amigobot.Config{Device: device, Timeout: openTimeout})
		if err != nil {
			return nil, err // not a nil *Driver in an interface
		}
		return d, nil
	},
	Fault: func(err error) faultcode.Code {
		if errors.Is(err, session.ErrNoAnswer) {
			return faultcode.NoBody
		}
		return 0
	},
}
