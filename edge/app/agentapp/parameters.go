package agentapp

import (
	"path/filepath"
	"strings"

	"kennel/certs/thing"
	"kennel/edge/agent/parameters"
	"kennel/edge/body/amigobot"
)

// memoryOf returns the parameters that the body of this kind of robot stores itself; nil: it stores none.
func memoryOf(root string, id thing.ID) parameters.Memory {
	if id.Species() == thing.AmigoBot {
		return amigobot.Parameters{Device: filepath.Join(root, amigobot.SystemDevice), Serial: strings.ToUpper(id.Serial())}
	}
	return nil
}
