package amigobot

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"kennel/edge/body"
	"kennel/edge/body/amigobot/session"
	"kennel/edge/body/species"
	"kennel/edge/faultcode"
	"kennel/infra/thing"
)

// Species is the AmigoBot.
var Species = species.Species{
	Species: thing.AmigoBot,
	Tree:    Tree,
	Device:  DefaultDevice,
	Model:   Model,
	Open: func(ctx context.Context, device string) (body.Body, error) {
		d, err := Open(ctx, Config{Device: device, Timeout: species.OpenTimeout})
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
	Memory: func(dir string, id thing.ID) species.Memory {
		return Parameters{Device: filepath.Join(dir, SystemDevice), Serial: strings.ToUpper(id.Serial())}
	},
}
