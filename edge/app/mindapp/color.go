package mindapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"kennel/edge/env/robotfs"
	"kennel/edge/face"
	"kennel/infra/logging"
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

// colorsFile has the colours of the eyes by their names, and may give them other values (VEC-DOC-03). Without it they are those of the settings' schema.
const colorsFile = robotfs.Resources + "/config/engine/eye_color_config.json"

// palette returns the colours by their numbers. An error says which of colorsFile's is wrong; the colours without the file are returned beside it.
func palette(root *os.Root) ([]face.Color, error) {
	schema, _ := jdocs.SchemaOf(jdocs.RobotSettings) // it is one
	i := slices.IndexFunc(schema.Fields, func(f jdocs.Field) bool { return f.Name == "eye_color" })
	if i < 0 {
		return nil, nil
	}
	f := schema.Fields[i]
	own := make([]face.Color, len(f.Values))
	for _, c := range f.Choices {
		if n, err := strconv.Atoi(string(c.Value)); err == nil && n >= 0 && n < len(own) {
			own[n] = face.Color{Hue: float32(c.Hue), Saturation: float32(c.Saturation)}
		}
	}
	var file map[string]struct{ Hue, Saturation *float32 }
	if err := robotfs.ReadJSON(root, colorsFile, &file); errors.Is(err, fs.ErrNotExist) {
		return own, nil
	} else if err != nil {
		return own, err
	}
	all := slices.Clone(own)
	for _, name := range slices.Sorted(maps.Keys(file)) {
		n := slices.Index(f.Values, name)
		if n < 0 {
			return own, fmt.Errorf("%s: %.40q: expected one of %s", colorsFile, name, strings.Join(f.Values, ", "))
		}
		for _, v := range []struct {
			key string
			is  *float32
			to  *float32
		}{{"Hue", file[name].Hue, &all[n].Hue}, {"Saturation", file[name].Saturation, &all[n].Saturation}} {
			if v.is == nil {
				continue
			}
			if !(*v.is >= 0 && *v.is <= 1) {
				return own, fmt.Errorf("%s: %s: %s: expected 0 to 1, found %v", colorsFile, name, v.key, *v.is)
			}
			*v.to = *v.is
		}
	}
	return all, nil
}

// Color returns the colour of the eyes that the owner chose, as the settings on the robot's disk say (VEC-DOC-03).
func Color(root *os.Root, log *slog.Logger) func() (face.Color, bool) {
	colors, err := palette(root)
	if err != nil {
		log.Error("colours of the eyes ignored", logging.Err, err)
	}
	return func() (face.Color, bool) {
		doc, ok := read(root)
		if !ok {
			return face.Color{}, false
		}
		if c := doc.Settings.Custom; c.Enabled {
			return face.Color{Hue: c.Hue, Saturation: c.Saturation}, true
		}
		if n := doc.Settings.Number; n >= 0 && n < len(colors) {
			return colors[n], true
		}
		return face.Color{}, false
	}
}
