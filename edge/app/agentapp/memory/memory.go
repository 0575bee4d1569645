// Package memory knows which bodies store settings themselves.
package memory

import (
	"path/filepath"
	"strings"

	"kennel/edge/agent/parameters"
	"kennel/edge/body/amigobot"
	"kennel/infra/thing"
)

// Of returns the parameters that the body of the robot stores itself; nil: it stores none. root is the robot's folder by name.
func Of(root string, id thing.ID) parameters.Memory {
	if id.Species() == thing.AmigoBot {
		return amigobot.Parameters{Device: filepath.Join(root, amigobot.SystemDevice), Serial: strings.ToUpper(id.Serial())}
	}
	return nil
}
