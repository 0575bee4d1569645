package vectorsdk_test

import (
	"context"
	"math"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"kennel/edge/body/monoclock"
	"kennel/edge/core/control"
	"kennel/edge/cube"
	"kennel/edge/cube/cubesim"
	"kennel/edge/motion"
	"kennel/edge/robot"
	"kennel/edge/sight"
	"kennel/edge/sight/sighttest"
	"kennel/edge/sim/camera"
	"kennel/edge/sim/plane"
	"kennel/infra/testwait"
)

// stage is a desk whose robot is in a world, where it does what it is told at once: its treads, its head and its lift move there, a camera shows that world, and a cube feels it.
type stage struct {
	*desk
	cube *cubesim.Cube

	mu    sync.Mutex
	w     *plane.World
	head  float64 // rad, raised
	arm   float64 // m, where the lift is told to be
	done  int     // orders
	noise float64
	hooks float64       // m ahead of the middle
	late  time.Duration // how old the pictures are that the camera gives
	way   []sight.Frame // that are under way
	hook  func(w *plane.World, o control.Order) bool
}

const stageTick = 5 * time.Millisecond

// newStage's robot has a cube somewhere before it.
func newStage(t *testing.T, at plane.Pose, more ...plane.Object) *stage {
	t.Helper()
	arm := robot.Part{Path: "body.arm.z", Is: []string{"LinearMotor"}, Ranges: map[string]robot.Range{"position": {Min: 0.032, Max: 0.092}}}
	eye := robot.Part{Path: "body.head.camera", Is: []string{"VideoIn"}, Fixed: map[string]robot.Value{"xfov": robot.F(math.Pi / 2), "yfov": robot.F(50 * math.Pi / 180)}}
	s := &stage{desk: newDesk(t, arm, eye), arm: 0.032, hooks: 0.049, cube: cubesim.New(cubesim.Config{Address: cubeAddress})}
	m := &plane.Map{Objects: append([]plane.Object{{Shape: "box", At: at, Size: plane.Vec{0.044, 0.044}, Marker: "cube"}}, more...)}
	var err error
	if s.w, err = plane.New(m, plane.Robot{Track: 0.048, Nose: 0.045, Tail: 0.055, Width: 0.06, RangeMax: 1}, 1); err != nil {
		t.Fatal(err)
	}
	s.w.MoveFork(s.hooks, s.arm)
	s.body.Measure("arm.position", s.arm)
	s.body.Measure("headPitch.angle", 0)
	s.report()
	lens := camera.Of(640, 360, math.Pi/2, 50*math.Pi/180)
	film := camera.New(lens, m, 0.06, 1)
	mount := camera.Mount{Neck: [2]float64{-0.013, 0.049}, Eye: [2]float64{0.01752, -0.008}, Down: 0.0698}
	sighttest.ServePictures(t, s.dir, func(f *sight.Frame) {
		time.Sleep(stageTick * 16) // it takes a dozen pictures a second
		s.mu.Lock()
		defer s.mu.Unlock()
		s.obeyed() // it shows nothing older than what the body says
		f.Shape(lens.Width, lens.Height)
		f.At, f.Focal, f.Centre = monoclock.Now(), [2]float64{lens.FX, lens.FY}, [2]float64{lens.CX, lens.CY}
		state := s.w.State()
		film.Take(f.Image(), mount.View(&state, s.head), &state, camera.Exposure{}, f.Seq)
		s.delay(f)
	})
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := cubesim.Serve(ctx, root, []*cubesim.Cube{s.cube}); err != nil {
			t.Error(err)
		}
	})
	wg.Go(func() {
		for tick := time.NewTicker(stageTick); ctx.Err() == nil; <-tick.C {
			s.obey()
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		root.Close()
	})
	testwait.Until(t, patience, "a cube in the air", func() error {
		return cube.Socket(s.dir+"/"+cube.SocketPath).Scan(t.Context(), 0, func(cube.Advert) {})
	})
	return s
}

// delay gives the picture that was taken s.late ago instead of f.
func (s *stage) delay(f *sight.Frame) {
	if s.late == 0 {
		return
	}
	own := *f
	own.Pix = slices.Clone(f.Pix)
	s.way = append(s.way, own)
	for len(s.way) > 1 && s.way[1].At <= own.At-s.late {
		s.way = s.way[1:]
	}
	f.At = s.way[0].At
	copy(f.Pix, s.way[0].Pix)
}

// report says where the robot is. s.mu is held, or nothing else runs yet.
func (s *stage) report() {
	at := s.w.State().Pose
	s.body.SetReport(func(r *control.Report) {
		r.Base.Pose, r.Posture = motion.Pose{X: at[0], Y: at[1], Theta: at[2]}, "OnTreads"
	})
}

// step lets time pass in the world, with the treads at a speed and the lift on its way.
func (s *stage) step(left, right float64) (there bool) {
	up := s.arm
	if at := s.forkUp(); math.Abs(up-at) > 5e-4 {
		up = at + math.Copysign(5e-4, up-at)
	}
	free := s.w.MoveFork(s.hooks, up)
	s.w.Step(stageTick, left, right)
	accel, away := s.w.CubeFeels(0)
	s.cube.Step(stageTick, accel, away)
	return !free || s.forkUp() == s.arm
}

func (s *stage) forkUp() float64 { _, up := s.w.Fork(); return up }

// obey does what the robot was told since.
func (s *stage) obey() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(0, 0)
	s.obeyed()
}

// obeyed is obey with s.mu held.
func (s *stage) obeyed() {
	s.noise = 1 - s.noise
	s.body.Measure("laser.distance", 0.4+s.noise/1000) // a body's measurements change all the time
	orders := s.body.Orders()
	for _, o := range orders[min(s.done, len(orders)):] {
		s.done++
		switch {
		case s.hook != nil && s.hook(s.w, o):
		case o.Kind == control.Set:
			s.set(o)
		case o.Kind == control.Go, o.Kind == control.Turn:
			s.drive(o)
		}
	}
}

func (s *stage) set(o control.Order) {
	slot := func(name string) int {
		target, err := s.body.Model().Tree.Lookup(name)
		if err != nil {
			panic(err)
		}
		return target.Refs[0].ID
	}
	for _, g := range o.Goals[:o.N] {
		switch g.Slot {
		case slot("headPitch.turn"):
			s.head = -g.Value
			s.body.Measure("headPitch.angle", g.Value)
		case slot("arm.position"):
			s.arm = g.Value
			for !s.step(0, 0) {
			}
			s.body.Measure("arm.position", s.forkUp())
		}
	}
}

func (s *stage) drive(o control.Order) {
	if !s.body.Moving() {
		return // it was refused
	}
	const speed, half = 0.1, 0.024 // m/s; of the track
	before := s.w.State().Pose
	left, right, seconds := speed, speed, math.Abs(o.A)/speed
	if o.Kind == control.Turn {
		left, seconds = -speed, math.Abs(o.A)*half/speed
	}
	if o.A < 0 {
		left, right = -left, -right
	}
	for n := math.Round(seconds / stageTick.Seconds()); n > 0; n-- {
		s.step(left, right)
	}
	now := s.w.State().Pose
	sin, cos := math.Sincos(before[2])
	moved := (now[0]-before[0])*cos + (now[1]-before[1])*sin
	if o.Kind == control.Turn {
		moved = math.Remainder(now[2]-before[2], 2*math.Pi)
	}
	s.body.Measure("arm.position", s.forkUp())
	s.report()
	s.body.End(motion.Done, moved)
}

// world calls look with the world.
func (s *stage) world(look func(w *plane.World)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(s.w)
}

// before calls hook with each order before it is obeyed; it is not if hook returns true.
func (s *stage) before(hook func(w *plane.World, o control.Order) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// raised returns by how much the cube is raised, and where it and the robot are.
func (s *stage) raised() (m float64, thing, robot plane.Pose) {
	s.world(func(w *plane.World) { st := w.State(); m, thing, robot = st.Raised[0], st.Objects[0], st.Pose })
	return m, thing, robot
}
