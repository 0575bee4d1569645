package vectorsdk

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"kennel/edge/core/corelink"
	"kennel/edge/marker"
	"kennel/edge/robot"
	"kennel/edge/sight"
	"kennel/infra/api/vectorpb"
	"kennel/infra/backoff"
)

// Where the camera is on the body, after the robot before Vector, which the source takes for its own too (VEC-VIS-03): the neck on the body, the camera on the head, in m ahead
// and up; and how far it looks below the head's front, in rad.
const (
	neckAhead, neckUp = -0.013, 0.049
	eyeAhead, eyeUp   = 0.01752, -0.008
	eyeDown           = 0.0698
)

// The light cube; the marker's size is an own default, as its drawing is.
const (
	cubeEdge   = 0.044
	cubeMarker = 0.86 * cubeEdge
)

// Looking for objects; own defaults.
const (
	lookHz     = 5
	steadyTurn = 0.1  // rad/s of the body, below which it does not turn
	steadyHead = 0.01 // rad between two measurements, below which the head does not
	blur       = 2 * stateEvery
	mostLate   = 200 * time.Millisecond // of the newest measurement
	sameObject = 0.1                    // m between two places of one object of a kind
	maxObjects = 64                     // custom objects that were seen
	firstSeen  = 100                    // the first id of a custom object that was seen
	flatFace   = 0.8                    // of the upward part of a face's direction, above which it is a top
	lookAgain  = time.Second
)

// object is a thing that was seen. Its pose is of the map's origin.
type object struct {
	id      int32
	kind    vectorpb.ObjectType
	at      time.Duration // CLOCK_MONOTONIC of the newest picture with it
	picture uint64        // its number
	x, y, z float64       // m, of its middle
	yaw     float64       // rad
	rect    [4]float32    // of the usual picture, in pixels: left, top, width, height
}

// looks recognises objects by their markers while something wants it to: a program that switched marker detection on, a cube that is connected, an action with an object.
type looks struct {
	mu    sync.Mutex
	users int
	begin chan struct{}      // one slot: there are users
	stop  context.CancelFunc // ends the look; nil: there is none

	pictures uint64        // that were looked at
	good     time.Duration // when the newest of them was taken whose camera's place is known, CLOCK_MONOTONIC

	head   float64       // its angle, rad
	turned time.Duration // when the body or its head turned last, CLOCK_MONOTONIC

	cube   *object   // nil: not seen since the robot was lifted
	others []*object // custom objects
	nextID int32
}

func (x *looks) init() { x.begin, x.nextID = make(chan struct{}, 1), firstSeen }

// want adds n users, or takes them away.
func (x *looks) want(n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.users += n; x.users == 0 && x.stop != nil {
		x.stop()
	} else if x.users > 0 {
		select {
		case x.begin <- struct{}{}:
		default:
		}
	}
}

// moved forgets where objects are: the poses of another origin do not compare.
func (x *looks) moved() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cube, x.others = nil, nil
}

// feel takes in a measurement: whether the body turns, or its head.
func (x *looks) feel(m *measured) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if m.known[gyroZ] && math.Abs(m.values[gyroZ]) > steadyTurn || math.Abs(m.values[headPitch]-x.head) > steadyHead {
		x.turned = m.at
	}
	x.head = m.values[headPitch]
}

// next counts a picture, and returns its number and when the camera turned last, CLOCK_MONOTONIC.
func (x *looks) next() (number uint64, moved time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.pictures++
	return x.pictures, x.turned
}

// newest returns when the newest picture was taken that shows where objects are, CLOCK_MONOTONIC.
func (x *looks) newest() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.good
}

// looked ends the look at a picture that shows where objects are.
func (x *looks) looked(at time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.good = at
}

// forget forgets the custom objects that were seen.
func (x *looks) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.others = nil
}

// runLooks looks while there are users, until ctx ends.
func (f *Facade) runLooks(ctx context.Context) {
	x := &f.looks
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-x.begin:
		}
		look, stop := context.WithCancel(ctx)
		x.mu.Lock()
		if x.stop = stop; x.users == 0 {
			stop()
		}
		x.mu.Unlock()
		f.look(look)
		stop()
		x.mu.Lock()
		x.stop = nil
		x.mu.Unlock()
	}
}

// look takes pictures and tells what is in them until ctx ends.
func (f *Facade) look(ctx context.Context) {
	_, closed := f.feed.open() // for the angle of the head
	defer closed()
	view := f.cfg.Gateway.Look(lookHz)
	defer view.End()
	var finder marker.Finder
	for ctx.Err() == nil {
		p, err := view.Next(ctx)
		if err != nil { // it sleeps, or its core is gone
			_ = backoff.Sleep(ctx, lookAgain)
			continue
		}
		f.observe(&finder, p.Frame())
	}
}

// observe tells which objects are in a picture, where the robot knows where it is.
func (f *Facade) observe(finder *marker.Finder, p *sight.Frame) {
	now, m := f.cfg.Gateway.Reports().Motion, f.feed.now.Load()
	number, moved := f.looks.next()
	if now == nil || m == nil || !m.known[headPitch] || f.lifted() || m.at < p.At-mostLate || p.At < moved+blur || time.Duration(now.AtUS)*time.Microsecond < moved {
		return // where the camera was is not known well enough
	}
	now = m.motion(now)
	defer f.looks.looked(p.At)
	origin := f.origin.Load()
	eye := eyeOf(now, -m.values[headPitch], p.At)
	lens := marker.Lens{FX: p.Focal[0], FY: p.Focal[1], CX: p.Centre[0], CY: p.Centre[1]}
	all := finder.Find(p.Pix[:p.Width*p.Height], p.Width, p.Width, p.Height)
	slices.SortFunc(all, func(a, b marker.Found) int { return cmp.Compare(b.Area(), a.Area()) }) // the side of an object that is seen best comes first
	for _, found := range all {
		o := f.recognise(&found, lens, &eye)
		if o == nil {
			continue
		}
		o.at, o.picture = p.At, number
		share := float32(imageWidth) / float32(p.Width)
		r := found.Bounds()
		o.rect = [4]float32{float32(r.Min.X) * share, float32(r.Min.Y) * share, float32(r.Dx()) * share, float32(r.Dy()) * share}
		if o = f.looks.take(o); o != nil {
			f.carry.saw(o, now)
			f.moments.add(f.observed(o, origin))
		}
	}
}

// eye3 is where the camera is on the floor's map, and the directions of its axes.
type eye3 struct {
	at              [3]float64
	ahead, left, up [3]float64
}

// eyeOf returns where the camera was when a picture was taken, with its head raised by so many radians (VEC-VIS-03). The report of the pose is older: the robot went on as it drove then.
func eyeOf(now *corelink.Motion, raised float64, at time.Duration) (e eye3) {
	age := min(max((at-time.Duration(now.AtUS)*time.Microsecond).Seconds(), -1), 1)
	theta := now.Theta + now.Turning*age
	sin, cos := math.Sincos(theta)
	x, y := now.X+now.Speed*age*cos, now.Y+now.Speed*age*sin
	tilt := func(a float64) (ahead, up [3]float64) { // raised from the floor's plane
		s, c := math.Sincos(a)
		return [3]float64{cos * c, sin * c, s}, [3]float64{-cos * s, -sin * s, c}
	}
	ahead, up := tilt(raised)
	for i := range e.at {
		e.at[i] = [3]float64{x, y, 0}[i] + neckAhead*[3]float64{cos, sin, 0}[i] + neckUp*[3]float64{0, 0, 1}[i] + eyeAhead*ahead[i] + eyeUp*up[i]
	}
	e.ahead, e.up = tilt(raised - eyeDown)
	e.left = [3]float64{-sin, cos, 0}
	return e
}

// way returns a direction of the camera on the map.
func (e *eye3) way(v marker.Vec) (out [3]float64) {
	for i := range out {
		out[i] = e.ahead[i]*v[2] - e.left[i]*v[0] - e.up[i]*v[1]
	}
	return out
}

func (e *eye3) place(v marker.Vec) (out [3]float64) {
	out = e.way(v)
	for i := range out {
		out[i] += e.at[i]
	}
	return out
}

// recognise returns the object with a marker; nil: none of this robot.
func (f *Facade) recognise(found *marker.Found, lens marker.Lens, e *eye3) *object {
	if found.Name == marker.Cube {
		p, ok := found.Pose(lens, cubeMarker)
		if !ok {
			return nil
		}
		o := &object{id: f.cubeID(), kind: vectorpb.ObjectType_BLOCK_LIGHTCUBE1}
		o.behind(e, &p, cubeEdge/2, 0, true)
		return o
	}
	number := vectorpb.CustomObjectMarker(0)
	for i, name := range marker.Names[2:] { // after the cube and the charger
		if name == found.Name {
			number = vectorpb.CustomObjectMarker(i + 1)
		}
	}
	kind, edge, depth, turned, same, ok := f.world.kindOf(number)
	if !ok {
		return nil
	}
	p, ok := found.Pose(lens, edge)
	if !ok {
		return nil
	}
	o := &object{kind: vectorpb.ObjectType_FIRST_CUSTOM_OBJECT_TYPE + vectorpb.ObjectType(kind-vectorpb.CustomType_CUSTOM_TYPE_00)}
	o.behind(e, &p, depth, turned, same)
	return o
}

// behind sets the pose of an object whose middle is so far behind a face. turned is where that face points, from the object's own front; same: all faces are alike, so the
// heading is known up to a quarter turn.
func (o *object) behind(e *eye3, p *marker.Pose, depth, turned float64, same bool) {
	at, out, right := e.place(p.At), e.way(p.Out), e.way(p.Right)
	o.x, o.y, o.z = at[0]-depth*out[0], at[1]-depth*out[1], at[2]-depth*out[2]
	if math.Abs(out[2]) > flatFace {
		o.yaw = math.Atan2(right[1], right[0])
	} else {
		o.yaw = robot.WrapPi(math.Atan2(out[1], out[0]) - turned)
	}
	if same {
		o.yaw = math.Remainder(o.yaw, math.Pi/2)
	}
}

// take keeps an observation, and returns the object with its id; nil: a better side of the same object is in the same picture, or there is no room for more objects.
func (x *looks) take(o *object) *object {
	x.mu.Lock()
	defer x.mu.Unlock()
	if o.kind == vectorpb.ObjectType_BLOCK_LIGHTCUBE1 {
		if x.cube != nil && x.cube.picture == o.picture {
			return nil
		}
		x.cube = o
		return o
	}
	for i, known := range x.others {
		if known.kind == o.kind && math.Hypot(known.x-o.x, known.y-o.y) < sameObject {
			if known.picture == o.picture {
				return nil
			}
			o.id, x.others[i] = known.id, o
			return o
		}
	}
	if len(x.others) == maxObjects {
		return nil
	}
	o.id = x.nextID
	x.nextID++
	x.others = append(x.others, o)
	return o
}

// find returns where an object is; false: it was not seen.
func (x *looks) find(id int32) (object, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cube != nil && x.cube.id == id {
		return *x.cube, true
	}
	for _, o := range x.others {
		if o.id == id {
			return *o, true
		}
	}
	return object{}, false
}

// observed is the event of an object that was seen (VEC-ACC-09).
func (f *Facade) observed(o *object, origin uint32) *vectorpb.Event {
	half := o.yaw / 2
	e := &vectorpb.RobotObservedObject{Timestamp: uint32(o.at.Milliseconds()), ObjectFamily: vectorpb.ObjectFamily_CUSTOM_OBJECT, ObjectType: o.kind, ObjectId: o.id,
		ImgRect: &vectorpb.CladRect{XTopLeft: o.rect[0], YTopLeft: o.rect[1], Width: o.rect[2], Height: o.rect[3]},
		Pose:    &vectorpb.PoseStruct{X: float32(o.x / mm), Y: float32(o.y / mm), Z: float32(o.z / mm), Q0: float32(math.Cos(half)), Q3: float32(math.Sin(half)), OriginId: origin}}
	if o.kind == vectorpb.ObjectType_BLOCK_LIGHTCUBE1 {
		e.ObjectFamily, e.TopFaceOrientationRad = vectorpb.ObjectFamily_LIGHT_CUBE, float32(o.yaw)
		if _, connected := f.cubeState(); connected {
			e.IsActive = 1
		}
	}
	return objectEvent(&vectorpb.ObjectEvent{ObjectEventType: &vectorpb.ObjectEvent_RobotObservedObject{RobotObservedObject: e}})
}

// cubeID is the id of the cube that is connected, or the one that the next cube gets.
func (f *Facade) cubeID() int32 {
	if s, ok := f.cubeState(); ok {
		return int32(s.ID)
	}
	return 1
}

// kindOf returns the kind of custom object with a marker: the marker's edge, how far the object's middle is behind that face, where the face points from the object's front, and
// whether all its faces are alike. A definition that has a marker which is not square is taken by its width.
func (x *world) kindOf(number vectorpb.CustomObjectMarker) (kind vectorpb.CustomType, edge, depth, turned float64, same, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for kind, q := range x.kinds {
		switch d := q.GetCustomObjectDefinition().(type) {
		case *vectorpb.DefineCustomObjectRequest_CustomCube:
			if c := d.CustomCube; c.Marker == number {
				return kind, float64(c.MarkerWidthMm) * mm, float64(c.SizeMm) * mm / 2, 0, true, true
			}
		case *vectorpb.DefineCustomObjectRequest_CustomWall:
			if c := d.CustomWall; c.Marker == number { // part of VEC-ACC-11: its middle is 5 mm behind its face
				return kind, float64(c.MarkerWidthMm) * mm, wallThickness / 2, 0, false, true
			}
		case *vectorpb.DefineCustomObjectRequest_CustomBox:
			b := d.CustomBox
			edge := float64(b.MarkerWidthMm) * mm
			for _, face := range [...]struct {
				marker        vectorpb.CustomObjectMarker
				depth, turned float64
			}{{b.MarkerFront, float64(b.XSizeMm), 0}, {b.MarkerBack, float64(b.XSizeMm), math.Pi}, {b.MarkerLeft, float64(b.YSizeMm), math.Pi / 2},
				{b.MarkerRight, float64(b.YSizeMm), -math.Pi / 2}, {b.MarkerTop, float64(b.ZSizeMm), 0}, {b.MarkerBottom, float64(b.ZSizeMm), 0}} {
				if face.marker == number {
					return kind, edge, face.depth * mm / 2, face.turned, false, true
				}
			}
		}
	}
	return 0, 0, 0, 0, false, false
}

// wallThickness is of a custom wall (part of VEC-ACC-11).
const wallThickness = 0.01
