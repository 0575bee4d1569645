package mindapp

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"

	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/jdocs"
)

// settingsFile is the robot's copy of its settings, which agentd keeps (VEC-JDS-07).
const settingsFile = robotfs.Persistent + "/jdocs/" + string(jdocs.RobotSettings) + ".json"

// document is the part of the settings that a robot's character follows.
type document struct {
	Settings struct {
		Number int `json:"eye_color"`
		Custom struct {
			Enabled         bool
			Hue, Saturation float32
		} `json:"custom_eye_color"`
		Volume *int   `json:"master_volume"` // as sound.Level
		Locale string `json:"locale"`
	} `json:"jdoc"`
}

// read returns the settings; false: there are none yet.
func read(root *os.Root) (doc document, ok bool) {
	b, err := robotfs.ReadFile(root, settingsFile)
	return doc, err == nil && json.Unmarshal(b, &doc) == nil
}

// Color returns the colour of the eyes that the owner chose, as the settings on the robot's disk say (part of VEC-DOC-03).
func Color(root *os.Root) func() (face.Color, bool) {
	schema, _ := jdocs.SchemaOf(jdocs.RobotSettings) // it is one
	return func() (face.Color, bool) {
		doc, ok := read(root)
		if !ok {
			return face.Color{}, false
		}
		if c := doc.Settings.Custom; c.Enabled {
			return face.Color{Hue: c.Hue, Saturation: c.Saturation}, true
		}
		i := slices.IndexFunc(schema.Fields, func(f jdocs.Field) bool { return f.Name == "eye_color" })
		if i < 0 {
			return face.Color{}, false
		}
		for _, c := range schema.Fields[i].Choices {
			if string(c.Value) == strconv.Itoa(doc.Settings.Number) {
				return face.Color{Hue: float32(c.Hue), Saturation: float32(c.Saturation)}, true
			}
		}
		return face.Color{}, false
	}
}
