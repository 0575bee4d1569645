package vectorplant

import (
	"math"
	"time"

	"kennel/edge/body/vector/vectordriver"
	"kennel/edge/core/control"
	"kennel/edge/motion"
	"kennel/edge/robot"
)

// setting is one of the camera's. The loop only keeps them: who takes the pictures reads them from the tree.
type setting struct {
	name string
	slot int
	now  float64
}

// The settings of the camera, in the order of camera.all.
const (
	exposure = iota
	gain
	resolution
	quality
	format
)

// Sizes of the pictures by resolution (GOSTAI-IF-17.10, part of VEC-IMG-02), and what the camera's pictures are made to: GOSTAI-IF-17.12 says which of them is
// taken for another.
var (
	sizes   = [...][2]float64{{1280, 720}, {640, 360}}
	formats = []int{robot.FormatRGB, robot.FormatJPEG, robot.FormatGrey8}
)

// camera holds the settings as programs made them.
type camera struct {
	all           [5]setting
	width, height int // slots
}

// newCamera returns the settings that a body begins with: automatic exposure, 640 by 360 pixels, JPEG (own defaults but for the size, part of VEC-IMG-02).
func newCamera(f *robot.Finder) camera {
	c := camera{width: f.Slot("camera.width"), height: f.Slot("camera.height")}
	c.all = [...]setting{exposure: {name: "exposure"}, gain: {name: "gain", now: 1}, resolution: {name: "resolution", now: 1},
		quality: {name: "quality", now: 75}, format: {name: "format", now: robot.FormatJPEG}}
	for i := range c.all {
		c.all[i].slot = f.Slot("camera." + c.all[i].name)
	}
	return c
}

// setCamera changes the settings that the order names: all or none.
func (p *Plant) setCamera(m *control.Moment, o *control.Order, r *control.Result) error {
	for _, g := range o.Goals[:o.N] {
		if k := p.goals[g.Slot]; k >= cameraSetting && k < colour && (math.IsNaN(g.Value) || o.Speed != 0 || o.Within != 0) {
			return motion.ErrInvalid
		}
	}
	for i, g := range o.Goals[:o.N] {
		k := p.goals[g.Slot]
		if k < cameraSetting || k >= colour {
			continue
		}
		s := &p.camera.all[k-cameraSetting]
		switch v := g.Value; k - cameraSetting {
		case resolution:
			s.now = min(max(math.Round(v), 0), float64(len(sizes)-1))
		case format:
			s.now = float64(robot.ClosestFormat(int(v), formats))
		case exposure:
			s.now = min(max(v, 0), vectordriver.MostExposure)
		case gain:
			s.now = min(max(v, vectordriver.LeastGain), vectordriver.MostGain)
		case quality:
			s.now = min(max(math.Round(v), 0), 100)
		}
		r.Taken[i] = s.now
	}
	p.showCamera(m.Now)
	return nil
}

// showCamera brings the settings to the tree.
func (p *Plant) showCamera(now time.Duration) {
	for i := range p.camera.all {
		p.board.Set(p.camera.all[i].slot, p.camera.all[i].now, now)
	}
	size := sizes[int(p.camera.all[resolution].now)]
	p.board.Set(p.camera.width, size[0], now)
	p.board.Set(p.camera.height, size[1], now)
}
