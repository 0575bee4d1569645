package vectorsim

import (
	"context"
	"math"
	"os"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/body/vector/spine"
	"kennel/edge/sight"
	"kennel/edge/sim/camera"
	"kennel/edge/sim/plane"
)

// eyeMount is where the camera is, after the robot before Vector, which the source takes for its own too (VEC-VIS-03): 4 degrees below the head's front.
var eyeMount = camera.Mount{Neck: [2]float64{-0.013, 0.049}, Eye: [2]float64{0.01752, -0.008}, Down: 0.0698}

// eyeSizes are the sizes of its pictures, largest first (part of VEC-IMG-02), and the fields of view of each (GOSTAI-MAP-V-08).
var eyeSizes = [...][2]int{{1280, 720}, {640, 360}}

const (
	eyeWide = 90 * math.Pi / 180
	eyeHigh = 50 * math.Pi / 180
)

// Eye is the camera in the head. It draws pictures of the board's world while a program looks, in a goroutine of its own.
type Eye struct {
	board *Board
	cams  [len(eyeSizes)]*camera.Camera // made when one is first needed
	world *plane.Map
}

// NewEye returns the camera of a body. It serves one goroutine.
func NewEye(b *Board) *Eye {
	e := &Eye{board: b, world: b.cfg.World}
	if e.world == nil {
		e.world = &plane.Map{}
	}
	return e
}

// scene is the world of a moment at, CLOCK_MONOTONIC, and how far the head is raised in radians; false: the board has no power.
func (b *Board) scene() (s plane.State, head float64, at time.Duration, on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.world.ground != nil {
		s = b.world.ground.State()
	}
	return s, b.world.angle[spine.Head], monoclock.Now(), b.state.Mode != Off
}

// Take takes a picture as w says, into f; false: the camera has no power. The same world at the same time makes the same picture.
func (e *Eye) Take(f *sight.Frame, w sight.Wish) bool {
	s, head, at, on := e.board.scene()
	if !on {
		return false
	}
	i := min(w.Resolution, len(eyeSizes)-1)
	if e.cams[i] == nil {
		lens := camera.Of(eyeSizes[i][0], eyeSizes[i][1], eyeWide, eyeHigh)
		e.cams[i] = camera.New(lens, e.world, shape(&e.board.cfg.Calibration).Width, e.board.cfg.Seed)
	}
	lens := e.cams[i].Lens()
	f.Shape(lens.Width, lens.Height)
	f.At = at
	how := camera.Exposure{} // automatic
	if w.Exposure > 0 {
		how.Time = min(max(w.Exposure, camera.Shortest), camera.Longest)
		how.Gain = min(max(w.Gain, camera.LeastGain), camera.MostGain)
	}
	used := e.cams[i].Take(f.Image(), eyeMount.View(&s, head), &s, how, uint64(s.Time))
	f.Exposure, f.Gain = used.Time, used.Gain
	f.Focal, f.Centre = [2]float64{lens.FX, lens.FY}, [2]float64{lens.CX, lens.CY}
	return true
}

// Serve hands pictures out at the device's socket below root until ctx ends.
func (e *Eye) Serve(ctx context.Context, root *os.Root) error {
	srv, err := sight.Listen(root, sight.DevicePath)
	if err != nil {
		return err
	}
	return srv.Run(ctx, func(ctx context.Context) { e.look(ctx, srv) })
}

func (e *Eye) look(ctx context.Context, srv *sight.Server) {
	var f sight.Frame
	for next := monoclock.Now(); ctx.Err() == nil; {
		w := srv.Wish()
		if w.Rate == 0 {
			return
		}
		if f.Seq = 0; e.Take(&f, w) {
			srv.Give(&f)
		} else {
			srv.Refuse("the robot is off; press its button")
		}
		now := monoclock.Now()
		if next += time.Duration(float64(time.Second) / w.Rate); next < now {
			next = now // it was late
		}
		select {
		case <-ctx.Done():
		case <-time.After(next - now):
		}
	}
}
