package intents

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"kennel/edge/env/robotfs"
	"kennel/infra/api/commandwire"
	"kennel/infra/errs"
	"kennel/speech/intent"
)

// mapFile, below the robot's root, says how the robot names what a cloud or an app asks for (VEC-INT-01).
const mapFile = robotfs.Resources + "/config/engine/behaviorComponent/user_intent_map.json"

// loadMap returns the mapping of the robot's file, or the catalogue's if there is none.
func (x *Intents) loadMap(root *os.Root) (*intent.Map, error) {
	m := intent.DefaultMap()
	b, err := robotfs.ReadFile(root, mapFile)
	if err == nil {
		m, err = intent.ParseMap(b)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err == nil {
		m.Enabled = x.gates.On
	}
	return m, err
}

// Map returns the robot's mapping of intents.
func (x *Intents) Map() *intent.Map { return x.names }

// Moves reports whether the arguments of a command are an intent that moves the robot.
func (x *Intents) Moves(args json.RawMessage) bool {
	a, err := commandwire.ParseIntent(args)
	if err != nil {
		return false
	}
	u, err := x.Named(a.Intent, a.Params)
	needs := table[u.Name].needs
	return err == nil && (needs == wheels || needs == head)
}

// Named returns the intent that the command names: by our own name, an app's or a cloud's. NotFound if there is none (VEC-INT-05). Of an app's
// parameter that is text, the object holds it as param (VEC-INT-13).
func (x *Intents) Named(name string, params json.RawMessage) (intent.User, error) {
	words, _ := intent.StringParams(params)
	if intent.IsOwn(name) {
		if _, ok := table[name]; ok {
			return intent.User{Name: name}, nil
		}
	}
	param := string(params)
	if text, ok := words["param"]; ok {
		param = text
	}
	u, err := x.names.App(name, param)
	if errs.KindOf(err) != errs.NotFound {
		return u, err
	}
	if in, ok := intent.ByCloud(name); ok {
		return x.names.Cloud(in.Cloud, words), nil
	}
	return intent.User{}, errs.Coded(errs.NotFound, "no_intent", "NOT_FOUND: no robot has an intent %.64s", name)
}
