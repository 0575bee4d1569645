package vectorsdk

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kennel/edge/core/corelink"
	"kennel/edge/gateway"
	"kennel/edge/vectorsdk/navmap"
	"kennel/infra/api/vectorpb"
)

// Places of the body in its own frame, in m, and bounds; own defaults.
const (
	noseAhead    = 0.045 // the range finder
	cliffAhead   = 0.035
	cliffAside   = 0.018
	bodyRadius   = 0.03  // of the floor that a robot that drives certainly stood on
	cliffRadius  = 0.016 // around a sensor that sees a cliff
	dotRadius    = 0.01  // of what the range finder sees
	rangeTrusted = 0.4   // m
	maxJump      = 0.3   // m between two reports of the pose that belong to one way
	maxFixed     = 128   // fixed objects of all programs
	maxObject    = 10.0  // m, a side of an object
	newFixed     = 1000  // the first id: smaller ones are of what a robot sees
)

// fixed is a box that a program told of: an obstacle that is never seen (part of VEC-ACC-01).
type fixed struct {
	id  uint32
	box navmap.Box
}

// feeling holds the measurements of one moment that change the map.
type feeling struct {
	at     int64   // time of the pose
	dots   float64 // what the range finder sees, in radii of a dot
	cliffs [4]bool
}

// world holds the map of the floor and the objects of all programs. It is of one origin: after the robot was lifted it begins again, as the poses do.
// Poses and ranges are taken in while a program listens to events or to the map.
type world struct {
	mu     sync.Mutex
	m      *navmap.Map
	fixed  []fixed
	kinds  map[vectorpb.CustomType]*vectorpb.DefineCustomObjectRequest
	next   uint32
	felt   feeling // that was taken in last
	at     navmap.Point
	placed bool // at is of the way that the robot drives

	charger *navmap.Box // where the robot is when it is on its charger; nil: it does not know
}

func (x *world) begin() {
	x.m, x.kinds, x.next = navmap.New(0, 0), map[vectorpb.CustomType]*vectorpb.DefineCustomObjectRequest{}, newFixed
}

// moved begins another map: the poses of the one before do not compare (VEC-MAP-04).
func (x *world) moved() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.m, x.fixed, x.placed, x.charger, x.felt = navmap.New(0, 0), nil, false, nil, feeling{}
}

// docked remembers where the charger is, of a robot that is on it.
func (x *world) docked(now *corelink.Motion) {
	if now == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.charger = &navmap.Box{X: now.X, Y: now.Y, Yaw: now.Theta}
}

// dock returns where the robot is when it is on its charger, if that is known.
func (x *world) dock() (navmap.Box, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.charger == nil {
		return navmap.Box{}, false
	}
	return *x.charger, true
}

// observe takes in a measurement, with the pose that is known by then. A robot that is not on its treads sees no floor.
func (x *world) observe(m *measured, now *corelink.Motion) {
	if now == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	felt := feeling{at: now.AtUS}
	if m.known[laser] {
		felt.dots = math.Round(min(m.values[laser], rangeTrusted) / dotRadius)
	}
	for i := range felt.cliffs {
		felt.cliffs[i] = m.known[cliffs+i] && m.values[cliffs+i] > 0
	}
	if felt == x.felt { // a robot that rests reports its pose once
		return
	}
	x.felt = felt
	if now.Posture != "" && now.Posture != onTreads {
		x.placed = false
		return
	}
	here := navmap.Point{X: now.X, Y: now.Y}
	if !x.placed || math.Hypot(here.X-x.at.X, here.Y-x.at.Y) > maxJump {
		x.at = here
	}
	x.m.Paint(navmap.Way{X1: x.at.X, Y1: x.at.Y, X2: here.X, Y2: here.Y, Radius: bodyRadius}, navmap.ClearOfCliff)
	x.at, x.placed = here, true
	sin, cos := math.Sincos(now.Theta)
	place := func(ahead, aside float64) (px, py float64) {
		return here.X + ahead*cos - aside*sin, here.Y + ahead*sin + aside*cos
	}
	if m.known[laser] {
		d := min(m.values[laser], rangeTrusted)
		nx, ny := place(noseAhead, 0)
		tx, ty := place(noseAhead+max(d-2*dotRadius, 0), 0)
		x.m.Paint(navmap.Way{X1: nx, Y1: ny, X2: tx, Y2: ty}, navmap.Clear)
		if m.values[laser] < rangeTrusted {
			tx, ty = place(noseAhead+d, 0)
			x.m.Paint(navmap.Way{X1: tx, Y1: ty, X2: tx, Y2: ty, Radius: dotRadius}, navmap.Proximity)
		}
	}
	for i, corner := range [4][2]float64{{cliffAhead, cliffAside}, {cliffAhead, -cliffAside}, {-cliffAhead, cliffAside}, {-cliffAhead, -cliffAside}} {
		if felt.cliffs[i] {
			cx, cy := place(corner[0], corner[1])
			x.m.Paint(navmap.Way{X1: cx, Y1: cy, X2: cx, Y2: cy, Radius: cliffRadius}, navmap.Cliff)
		}
	}
}

// path returns a way on the map.
func (x *world) path(from, to navmap.Point, gap float64) ([]navmap.Point, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.m.Path(from, to, gap)
}

// side checks a length of a program, in mm.
func side(name string, v float32) error {
	if !(v > 0 && v <= maxObject/mm) {
		return errInvalid("%s: %v, want above 0 to %v", name, v, maxObject/mm)
	}
	return nil
}

// createFixed adds an obstacle to the map and returns its id (VEC-ACC-10). Its pose is of this origin, or of none; its height and its place above the floor do
// not matter to the map.
func (f *Facade) createFixed(_ context.Context, _ client, q *vectorpb.CreateFixedCustomObjectRequest) (*vectorpb.CreateFixedCustomObjectResponse, error) {
	for name, v := range map[string]float32{"x_size_mm": q.XSizeMm, "y_size_mm": q.YSizeMm, "z_size_mm": q.ZSizeMm} {
		if err := side(name, v); err != nil {
			return nil, err
		}
	}
	p := q.GetPose()
	if p == nil {
		return nil, errInvalid("pose: none, want where the object is")
	}
	if o := f.origin.Load(); p.OriginId != 0 && p.OriginId != o {
		return nil, errInvalid("pose.origin_id: %d, want %d: the robot was lifted since", p.OriginId, o)
	}
	q0, q1, q2, q3 := float64(p.Q0), float64(p.Q1), float64(p.Q2), float64(p.Q3)
	if l := q0*q0 + q1*q1 + q2*q2 + q3*q3; math.Abs(l-1) > 0.01 {
		return nil, errInvalid("pose.q0 to q3: a quaternion of length %.3f, want 1", math.Sqrt(l))
	}
	if math.Hypot(float64(p.X), float64(p.Y)) > maxObject/mm {
		return nil, errInvalid("pose: %v, %v, want within %v mm", p.X, p.Y, maxObject/mm)
	}
	b := navmap.Box{X: float64(p.X) * mm, Y: float64(p.Y) * mm, Yaw: math.Atan2(2*(q0*q3+q1*q2), 1-2*(q2*q2+q3*q3)), Length: float64(q.XSizeMm) * mm, Width: float64(q.YSizeMm) * mm}
	x := &f.world
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.fixed) >= maxFixed {
		return nil, errInvalid("there are %d fixed objects, which is all that the map holds; delete them first", len(x.fixed))
	}
	o := fixed{x.next, b}
	x.next++
	x.fixed = append(x.fixed, o)
	x.m.Paint(b, navmap.Object)
	return &vectorpb.CreateFixedCustomObjectResponse{Status: fine(), ObjectId: o.id}, nil
}

// markersOf returns the markers of a definition, its lengths by their names, and whether it is one.
func markersOf(q *vectorpb.DefineCustomObjectRequest) (markers []vectorpb.CustomObjectMarker, sides map[string]float32, ok bool) {
	switch d := q.GetCustomObjectDefinition().(type) {
	case *vectorpb.DefineCustomObjectRequest_CustomBox:
		b := d.CustomBox
		return []vectorpb.CustomObjectMarker{b.GetMarkerFront(), b.GetMarkerBack(), b.GetMarkerTop(), b.GetMarkerBottom(), b.GetMarkerLeft(), b.GetMarkerRight()},
			map[string]float32{"x_size_mm": b.GetXSizeMm(), "y_size_mm": b.GetYSizeMm(), "z_size_mm": b.GetZSizeMm(), "marker_width_mm": b.GetMarkerWidthMm(), "marker_height_mm": b.GetMarkerHeightMm()}, true
	case *vectorpb.DefineCustomObjectRequest_CustomCube:
		c := d.CustomCube
		return []vectorpb.CustomObjectMarker{c.GetMarker()}, map[string]float32{"size_mm": c.GetSizeMm(), "marker_width_mm": c.GetMarkerWidthMm(), "marker_height_mm": c.GetMarkerHeightMm()}, true
	case *vectorpb.DefineCustomObjectRequest_CustomWall:
		w := d.CustomWall
		return []vectorpb.CustomObjectMarker{w.GetMarker()}, map[string]float32{"width_mm": w.GetWidthMm(), "height_mm": w.GetHeightMm(), "marker_width_mm": w.GetMarkerWidthMm(), "marker_height_mm": w.GetMarkerHeightMm()}, true
	}
	return nil, nil, false
}

// defineCustom keeps the definition of an object with markers. success is false if one of its markers is of another definition, or on two of its faces
// (part of VEC-ACC-11). Of it there is nothing before it is seen.
func (f *Facade) defineCustom(_ context.Context, _ client, q *vectorpb.DefineCustomObjectRequest) (*vectorpb.DefineCustomObjectResponse, error) {
	if q.CustomType < vectorpb.CustomType_CUSTOM_TYPE_00 || q.CustomType > vectorpb.CustomType_CUSTOM_TYPE_19 {
		return nil, errInvalid("custom_type: %d, want 1 to 20", int32(q.CustomType))
	}
	markers, sides, ok := markersOf(q)
	if !ok {
		return nil, errInvalid("custom_object_definition: none, want one of custom_box, custom_cube and custom_wall")
	}
	for name, v := range sides {
		if err := side(name, v); err != nil {
			return nil, err
		}
	}
	for i, m := range markers {
		if m < vectorpb.CustomObjectMarker_CUSTOM_MARKER_CIRCLES_2 || m > vectorpb.CustomObjectMarker_CUSTOM_MARKER_TRIANGLES_5 {
			return nil, errInvalid("marker: %d, want 1 to 16", int32(m))
		}
		if slices.Contains(markers[:i], m) {
			return &vectorpb.DefineCustomObjectResponse{Status: fine()}, nil
		}
	}
	x := &f.world
	x.mu.Lock()
	defer x.mu.Unlock()
	for kind, other := range x.kinds {
		theirs, _, _ := markersOf(other)
		if kind != q.CustomType && slices.ContainsFunc(theirs, func(m vectorpb.CustomObjectMarker) bool { return slices.Contains(markers, m) }) {
			return &vectorpb.DefineCustomObjectResponse{Status: fine()}, nil
		}
	}
	x.kinds[q.CustomType] = proto.CloneOf(q)
	return &vectorpb.DefineCustomObjectResponse{Status: fine(), Success: true}, nil
}

// deleteCustomObjects deletes the fixed objects, the objects with markers that were seen, or those and their definitions (VEC-ACC-12).
func (f *Facade) deleteCustomObjects(_ context.Context, _ client, q *vectorpb.DeleteCustomObjectsRequest) (*vectorpb.DeleteCustomObjectsResponse, error) {
	x := &f.world
	x.mu.Lock()
	defer x.mu.Unlock()
	switch q.Mode {
	case vectorpb.CustomObjectDeletionMode_DELETION_MASK_FIXED_CUSTOM_OBJECTS:
		for _, o := range x.fixed {
			x.m.Paint(o.box, navmap.Unknown)
		}
		x.fixed = nil
	case vectorpb.CustomObjectDeletionMode_DELETION_MASK_CUSTOM_MARKER_OBJECTS:
		f.looks.forget()
	case vectorpb.CustomObjectDeletionMode_DELETION_MASK_ARCHETYPES:
		clear(x.kinds)
		f.looks.forget()
	default:
		return nil, errInvalid("mode: %d, want 1, 2 or 3", int32(q.Mode))
	}
	return &vectorpb.DeleteCustomObjectsResponse{Status: fine()}, nil
}

// Rates of a map feed in messages a second; own defaults.
const (
	leastMaps = 0.1
	mostMaps  = 10
)

// navMapFeed sends the map when it has changed, at most so often as the client asks (VEC-MAP-01); the first message comes at once.
func (f *Facade) navMapFeed(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error {
	m, err := receive()
	if err != nil {
		return err
	}
	rate := float64(m.(*vectorpb.NavMapFeedRequest).Frequency)
	if !(rate > 0) {
		return errInvalid("frequency: %v, want above 0 messages a second", rate)
	}
	_, closed := f.feed.open()
	defer closed()
	next, alive := time.NewTicker(time.Duration(float64(time.Second)/min(max(rate, leastMaps), mostMaps))), time.NewTicker(beat)
	defer next.Stop()
	defer alive.Stop()
	var told uint64
	var of *navmap.Map // whose revision was told
	for {
		a, now, rev := f.mapIf(of, told)
		if a != nil {
			if err := send(a); err != nil {
				return err
			}
			of, told = now, rev
		}
		for wait := true; wait; {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-next.C:
				wait = false
			case <-alive.C:
				if !f.cfg.Gateway.Connected() {
					return errLost
				}
				if err := f.cfg.Gateway.Still(ctx, c.Caller, gateway.Look); err != nil {
					return err
				}
			}
		}
	}
}

// mapIf returns the map as a message if it is not a revision of a map that was told (VEC-MAP-02).
func (f *Facade) mapIf(of *navmap.Map, told uint64) (*vectorpb.NavMapFeedResponse, *navmap.Map, uint64) {
	w := &f.world
	w.mu.Lock()
	defer w.mu.Unlock()
	if of == w.m && told == w.m.Revision() {
		return nil, of, told
	}
	x, y, size, depth := w.m.Root()
	a := &vectorpb.NavMapFeedResponse{OriginId: f.origin.Load(), MapInfo: &vectorpb.NavMapInfo{RootDepth: int32(depth), RootSizeMm: float32(size / mm),
		RootCenterX: float32(x / mm), RootCenterY: float32(y / mm)}}
	for q := range w.m.Squares {
		a.QuadInfos = append(a.QuadInfos, &vectorpb.NavMapQuadInfo{Content: vectorpb.NavNodeContentType(q.Content), Depth: uint32(q.Depth), ColorRgba: colours[q.Content]})
	}
	return a, w.m, w.m.Revision()
}

// colours show the contents of a map, red in the top byte; own defaults.
var colours = map[navmap.Content]uint32{navmap.Unknown: 0x808080ff, navmap.Clear: 0x80ff80ff, navmap.ClearOfCliff: 0x00c000ff, navmap.Object: 0xff8000ff,
	navmap.Proximity: 0x00ffffff, navmap.Cliff: 0xff0000ff}
