package kit

import (
	"embed"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/infra/wav"
)

//go:embed template
var templates embed.FS

// Init writes a new project for firmware of a profile into a folder that is not there yet: a beep when Pleo's head is touched, and a bow now and then (PLEO-PDK-09, PLEO-PRJ-08). It returns the names of the
// files.
func Init(dir string, profile lifeos.Profile) ([]string, error) {
	name := filepath.Base(filepath.Clean(dir))
	if !plainName(name) || len(name) > format.MaxName {
		return nil, &Error{[]string{"name of the project: want a file name of at most 32 bytes in ASCII"}}
	}
	files := map[string][]byte{
		name + ".upf":      project(name, profile, "sounds", "motions", "./include"),
		"sounds/beep.wav":  beep(),
		"motions/bow.csv":  bow().AppendCSV(nil),
		"commands/nod.csv": []byte("motion\nbow\n"),
	}
	return tree(dir, files, map[string]string{"template": "."})
}

// InitKit writes, for firmware of a profile, the folders of the development kit as the programming guide shows them: include files, an example and the media that it uses (PLEO-PDK-07, PLEO-PDK-08, PLEO-PDK-10).
func InitKit(dir string, profile lifeos.Profile) ([]string, error) {
	const example = "examples/template/"
	files := map[string][]byte{
		example + "template.upf":   project("template", profile, "../../media/sounds", "../../media/motions", "./include:../../include"),
		"media/sounds/beep.wav":    beep(),
		"media/motions/bow.csv":    bow().AppendCSV(nil),
		"media/commands/nod.csv":   []byte("motion\nbow\n"),
		"bin/build.sh":             []byte("#!/bin/sh\nexec robotkit pleo build -rebuild \"$@\"\n"),
		"bin/build.bat":            []byte("@robotkit pleo build -rebuild %*\r\n"),
		"tools/drivers/readme.txt": []byte("Windows needs no driver of its own: Pleo is a serial port.\n"),
	}
	return tree(dir, files, map[string]string{"template": example, "include": "include"})
}

// tree writes files and embedded folders into a new folder.
func tree(dir string, files map[string][]byte, folders map[string]string) ([]string, error) {
	for from, to := range folders {
		source := fs.FS(templates)
		if from == "include" {
			source = includes
		}
		err := fs.WalkDir(source, from, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(source, name)
			files[path.Join(to, strings.TrimPrefix(name, from+"/"))] = text
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() // everything is written
	var names []string
	for name, text := range files {
		if err := root.MkdirAll(path.Dir(name), 0o777); err != nil {
			return nil, err
		}
		mode := os.FileMode(0o666)
		if path.Ext(name) == ".sh" {
			mode = 0o777
		}
		if err := root.WriteFile(name, text, mode); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// project is the project file of the template.
func project(name string, profile lifeos.Profile, sounds, motions, include string) []byte {
	p := &format.Project{Name: name, Include: include, Compiler: CompilerFor(profile), Build: "build", Generated: "include", Temp: "temp", UMF: "3",
		Macros: []format.Macro{{Name: "SOUNDS", Value: sounds, Default: true}, {Name: "MOTIONS", Value: motions, Default: true}},
		Resources: []format.Source{
			{Kind: format.Sounds, Path: "${SOUNDS}/beep.wav"}, {Kind: format.Motions, Path: "${MOTIONS}/bow.csv"},
			{Kind: format.Scripts, Path: "sensors.p"}, {Kind: format.Scripts, Path: "main.p"},
		}}
	return p.Append(nil)
}

// beep is a tone of 880 Hz that lasts a quarter of a second and begins and ends softly.
func beep() []byte {
	const rate, length = 44100, 44100 / 4
	s := &wav.Sound{Rate: rate, Channels: 1}
	for i := range length {
		edge := min(1, float64(min(i, length-i))/(rate/100))
		s.Samples = append(s.Samples, int16(20000*edge*math.Sin(2*math.Pi*880*float64(i)/rate)))
	}
	return wav.Append(nil, s)
}

// bow lowers neck and shoulders and raises them again, in two seconds.
func bow() *format.Curves {
	c := &format.Curves{Rate: 30, Frames: 61}
	for _, j := range []struct {
		joint   format.Joint
		degrees float64
	}{{format.NeckVertical, -40}, {format.LeftShoulder, -20}, {format.RightShoulder, -20}, {format.TailVertical, 30}} {
		curve := make([]float64, c.Frames)
		for f := range curve {
			curve[f] = math.Round(1000*j.degrees*(1-math.Cos(2*math.Pi*float64(f)/float64(c.Frames-1)))/2) / 1000
		}
		c.Joints, c.Angles = append(c.Joints, j.joint), append(c.Angles, curve)
	}
	return c
}
