package stage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"kennel/edge/anim/clip"
	"kennel/edge/face"
)

// Layout says where pictures are on the display: boxes in layers, from the bottom (VEC-DSP-05).
type Layout []struct {
	Name  string `json:"layerName"`
	Boxes []Box  `json:"images"`
}

// Box is a rectangle of the display, in pixels. Its corner may be outside: what is beyond the display's edge is not seen.
type Box struct {
	Name   string `json:"spriteBoxName"`
	Method string `json:"spriteRenderMethod"` // CustomHue or RGBA
	X      int    `json:"x"`
	Y      int    `json:"y"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

// ImageMap says which picture or sequence each box of a layout shows (VEC-DSP-06).
type ImageMap []struct {
	Name   string  `json:"layerName"`
	Images []Image `json:"images"`
}

// Image puts a sprite, whose name may be in any case, into a box.
type Image struct {
	Box    string `json:"spriteBoxName"`
	Sprite string `json:"spriteName"`
}

// MaxLayout is the most bytes of a file of layouts or maps, and farthest how far outside of the display a corner may be; our own limits.
const (
	MaxLayout = 256 << 10
	farthest  = 4096
)

// ParseLayout reads a layout file. clip.ErrClip, with its place, for unknown fields, boxes without a name or twice, boxes larger than the display, other methods than
// CustomHue and RGBA, and more than clip.MaxBoxes.
func ParseLayout(b []byte) (l Layout, err error) {
	if err := clip.Strict(b, &l); err != nil {
		return nil, err
	}
	all := map[[2]string]bool{}
	for i, layer := range l {
		for k, x := range layer.Boxes {
			refuse := func(field, expected string, found any) error {
				return fmt.Errorf("%w: [%d].images[%d].%s: expected %s, found %.60v", clip.ErrClip, i, k, field, expected, found)
			}
			key := [2]string{layer.Name, x.Name}
			switch {
			case layer.Name == "":
				return nil, fmt.Errorf("%w: [%d].layerName: expected a name, found none", clip.ErrClip, i)
			case x.Name == "" || all[key]:
				return nil, refuse("spriteBoxName", "a name of its own", x.Name)
			case x.Method != customHue && x.Method != "RGBA":
				return nil, refuse("spriteRenderMethod", "CustomHue or RGBA", x.Method)
			case x.Width < 1 || x.Width > face.Width:
				return nil, refuse("width", fmt.Sprintf("1 to %d", face.Width), x.Width)
			case x.Height < 1 || x.Height > face.Height:
				return nil, refuse("height", fmt.Sprintf("1 to %d", face.Height), x.Height)
			case max(x.X, -x.X) > farthest:
				return nil, refuse("x", fmt.Sprintf("%d to %d", -farthest, farthest), x.X)
			case max(x.Y, -x.Y) > farthest:
				return nil, refuse("y", fmt.Sprintf("%d to %d", -farthest, farthest), x.Y)
			}
			if all[key] = true; len(all) > clip.MaxBoxes {
				return nil, refuse("spriteBoxName", fmt.Sprintf("at most %d boxes", clip.MaxBoxes), "more")
			}
		}
	}
	return l, nil
}

// ParseImageMap reads a file that fills boxes. clip.ErrClip, with its place, for unknown fields and for names that are none.
func ParseImageMap(b []byte) (m ImageMap, err error) {
	if err := clip.Strict(b, &m); err != nil {
		return nil, err
	}
	n := 0
	for i, layer := range m {
		for k, x := range layer.Images {
			if n++; layer.Name == "" || x.Box == "" || x.Sprite == "" || n > clip.MaxBoxes {
				return nil, fmt.Errorf("%w: [%d].images[%d]: expected a layer, a box and a sprite, and at most %d of them, found %.60q, %.60q and %.60q", clip.ErrClip, i, k,
					clip.MaxBoxes, layer.Name, x.Box, x.Sprite)
			}
		}
	}
	return m, nil
}

// parseNames reads a map of triggers, whose field for the file has a name of its own (VEC-DSP-04).
func parseNames(b []byte, field string) (map[string]string, error) {
	var entries []map[string]string
	if err := clip.Strict(b, &entries); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for i, e := range entries {
		trigger, name := e["CladEvent"], e[field]
		if _, twice := names[trigger]; twice || trigger == "" || name == "" || len(e) != 2 {
			return nil, fmt.Errorf("%w: [%d]: expected CladEvent, a trigger of its own, and %s, found %.60q and %.60q", clip.ErrClip, i, field, trigger, name)
		}
		names[trigger] = name
	}
	return names, nil
}

// Composite is a layout whose boxes are filled. It does not change, so that goroutines may share it.
type Composite struct{ boxes []pose }

// Compose fills the boxes of a layout; a box that the map does not name stays empty. The errors say which boxes the layout does not have, and which pictures were not
// found or are not of their box's size: those are left out.
func Compose(l Layout, m ImageMap, find Find) (*Composite, []error) {
	assets, problems := map[[2]string]string{}, []error(nil)
	for _, layer := range m {
		for _, x := range layer.Images {
			assets[[2]string{layer.Name, x.Box}] = x.Sprite
		}
	}
	c := &Composite{}
	for _, layer := range l {
		for _, x := range layer.Boxes {
			key := [2]string{layer.Name, x.Name}
			asset := assets[key]
			delete(assets, key)
			if asset == "" || asset == cleared {
				continue
			}
			seq, err := find(asset)
			if err == nil && seq.Len() > 1 {
				err = fits(seq, x.Width, x.Height)
			}
			if err != nil {
				problems = append(problems, fmt.Errorf("box %.60q of layer %.60q: %w", x.Name, layer.Name, err))
				continue
			}
			c.boxes = append(c.boxes, pose{seq: seq, plain: x.Method != customHue, end: loop, x: float32(x.X), y: float32(x.Y), width: float32(x.Width),
				height: float32(x.Height), alpha: 1})
		}
	}
	for key := range assets {
		problems = append(problems, fmt.Errorf("%w: layer %.60q: expected a box of the layout, found %.60q", clip.ErrClip, key[0], key[1]))
	}
	return c, problems
}

// Draw draws the pictures over what dst shows, so long after they were first shown; sequences repeat. It allocates nothing.
func (c *Composite) Draw(dst *face.Picture, since time.Duration, eyes face.Color) {
	for i := range c.boxes {
		drawBox(dst, c.boxes[i:i+1], max(since, 0), eyes)
	}
}

// The files and folders of layouts below a robot's resources (VEC-DSP-04, VEC-DSP-05, VEC-DSP-06).
const (
	layoutTriggers = "assets/cladToFileMaps/CompositeImageLayoutMap.json"
	mapTriggers    = "assets/cladToFileMaps/CompositeImageMapMap.json"
	layoutFolder   = "assets/compositeImageResources/imageLayouts"
	mapFolder      = "assets/compositeImageResources/imageMaps"
)

// Open reads the layout of a trigger, and the image map of another one, from a robot's resources, and fills the boxes. The folders may have folders. An error: a file
// cannot be read, or the triggers' files do not name them.
func Open(resources fs.FS, layoutTrigger, mapTrigger string, find Find) (*Composite, error) {
	var l Layout
	var m ImageMap
	for _, x := range [...]struct {
		triggers, field, folder, trigger string
		parse                            func([]byte) error
	}{
		{layoutTriggers, "LayoutName", layoutFolder, layoutTrigger, func(b []byte) (err error) { l, err = ParseLayout(b); return err }},
		{mapTriggers, "MapName", mapFolder, mapTrigger, func(b []byte) (err error) { m, err = ParseImageMap(b); return err }},
	} {
		b, err := readFile(resources, x.triggers)
		if err != nil {
			return nil, err
		}
		names, err := parseNames(b, x.field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.triggers, err)
		}
		name, ok := names[x.trigger]
		if !ok {
			return nil, fmt.Errorf("%w: %s: expected a trigger, found %.60q", clip.ErrNoClip, x.triggers, x.trigger)
		}
		file, err := below(resources, x.folder, name+".json")
		if err != nil {
			return nil, err
		}
		if b, err = readFile(resources, file); err == nil {
			err = x.parse(b)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	c, problems := Compose(l, m, find)
	return c, errors.Join(problems...)
}

// below returns the path of a file in a folder or a folder of it.
func below(from fs.FS, folder, name string) (found string, err error) {
	err = fs.WalkDir(from, folder, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.EqualFold(path.Base(file), name) {
			found = file
			return fs.SkipAll
		}
		return err
	})
	if err == nil && found == "" {
		err = &fs.PathError{Op: "find", Path: path.Join(folder, name), Err: fs.ErrNotExist}
	}
	return found, err
}

// readFile reads a file of at most MaxLayout bytes.
func readFile(from fs.FS, name string) ([]byte, error) {
	f, err := from.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	b, err := io.ReadAll(io.LimitReader(f, MaxLayout+1))
	if err == nil && len(b) > MaxLayout {
		err = fmt.Errorf("%w: %s: expected at most %d bytes, found more", clip.ErrClip, name, MaxLayout)
	}
	return b, err
}
