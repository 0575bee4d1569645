package agentapp

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"kennel/edge/agent/work/parameters"
	"kennel/edge/body/amigobot"
	"kennel/infra/thing"
	"kennel/jdocs"
)

// memoryOf returns the parameters that the body of this kind of robot stores itself; nil: it stores none.
func memoryOf(root string, id thing.ID) parameters.Memory {
	if id.Species() == thing.AmigoBot {
		return amigobot.Parameters{Device: filepath.Join(root, amigobot.SystemDevice), Serial: strings.ToUpper(id.Serial())}
	}
	return nil
}

// plainSettings are the settings of a robot without eyes and without a button that wakes it.
func plainSettings() map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(jdocs.Default(jdocs.RobotSettings).JSON), &fields); err != nil {
		panic(err) // a document of ours
	}
	for _, name := range []string{"button_wakeword", "custom_eye_color", "eye_color"} {
		delete(fields, name)
	}
	return fields
}
