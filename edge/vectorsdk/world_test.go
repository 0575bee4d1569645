package vectorsdk_test

import (
	"math"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kennel/edge/core/control"
	"kennel/edge/robot"
	"kennel/edge/vectorsdk"
	"kennel/edge/vectorsdk/navmap"
	"kennel/infra/api/vectorpb"
	"kennel/infra/testwait"
)

// cliffs are the sensors that Vector has.
func cliffs() (parts []robot.Part) {
	for _, at := range []string{"[front][left]", "[front][right]", "[back][left]", "[back][right]"} {
		parts = append(parts, robot.Part{Path: "body.cliff" + at, Is: []string{"CliffSensor"}})
	}
	return parts
}

// maps follows the map.
func (d *desk) maps(t *testing.T) (next func(ok func(*vectorpb.NavMapFeedResponse) bool) *vectorpb.NavMapFeedResponse) {
	t.Helper()
	s, err := d.dial(t).NavMapFeed(as(t, "all"), &vectorpb.NavMapFeedRequest{Frequency: 10})
	if err != nil {
		t.Fatal(err)
	}
	return func(ok func(*vectorpb.NavMapFeedResponse) bool) *vectorpb.NavMapFeedResponse {
		t.Helper()
		for {
			m, err := s.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if ok(m) {
				return m
			}
		}
	}
}

// content returns what a map has at a point in mm, as a client reads it: children +x+y, +x-y, -x+y, -x-y, down to depth 0 (VEC-MAP-02).
func content(t *testing.T, m *vectorpb.NavMapFeedResponse, x, y float64) vectorpb.NavNodeContentType {
	t.Helper()
	i := 0
	var found *vectorpb.NavMapQuadInfo
	var read func(cx, cy, size float64, depth int32)
	read = func(cx, cy, size float64, depth int32) {
		if i >= len(m.QuadInfos) {
			t.Fatalf("the map ends after %d leaves", len(m.QuadInfos))
		}
		if q := m.QuadInfos[i]; int32(q.Depth) == depth {
			i++
			if math.Abs(x-cx) <= size/2 && math.Abs(y-cy) <= size/2 {
				found = q
			}
			return
		}
		for _, k := range [4][2]float64{{1, 1}, {1, -1}, {-1, 1}, {-1, -1}} {
			read(cx+k[0]*size/4, cy+k[1]*size/4, size/2, depth-1)
		}
	}
	read(float64(m.MapInfo.RootCenterX), float64(m.MapInfo.RootCenterY), float64(m.MapInfo.RootSizeMm), m.MapInfo.RootDepth)
	if i != len(m.QuadInfos) {
		t.Errorf("%d leaves of %d belong to the tree", i, len(m.QuadInfos))
	}
	if found == nil {
		return vectorpb.NavNodeContentType_NAV_NODE_UNKNOWN
	}
	return found.Content
}

// TestNavMap: the map has the floor that the robot stood on, what the range finder looked across and sees (part of VEC-MAP-03), and the objects of programs; it comes
// again when that changes (VEC-MAP-01), and begins again with another origin after the robot was lifted (VEC-MAP-04).
func TestNavMap(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.body.Measure("laser.distance", 0.2)
	next := d.maps(t)
	all := map[float64]vectorpb.NavNodeContentType{0: vectorpb.NavNodeContentType_NAV_NODE_CLEAR_OF_CLIFF, 100: vectorpb.NavNodeContentType_NAV_NODE_CLEAR_OF_OBSTACLE,
		245: vectorpb.NavNodeContentType_NAV_NODE_OBSTACLE_PROXIMITY, 350: vectorpb.NavNodeContentType_NAV_NODE_UNKNOWN}
	m := next(func(m *vectorpb.NavMapFeedResponse) bool {
		for x, want := range all {
			if content(t, m, x, 0) != want {
				return false
			}
		}
		return true
	})
	if m.OriginId != 1 {
		t.Errorf("origin %d", m.OriginId)
	}
	c := d.dial(t)
	o, err := c.CreateFixedCustomObject(as(t, "all"), &vectorpb.CreateFixedCustomObjectRequest{XSizeMm: 10, YSizeMm: 200, ZSizeMm: 50,
		Pose: &vectorpb.PoseStruct{X: 100, Y: 300, Q0: float32(math.Sqrt2 / 2), Q3: float32(math.Sqrt2 / 2), OriginId: 1}}) // a quarter turn: it is long along x
	if err != nil || o.ObjectId == 0 || o.Status.Code != vectorpb.ResponseStatus_OK {
		t.Fatalf("%v, %v", o, err)
	}
	const object = vectorpb.NavNodeContentType_NAV_NODE_OBSTACLE_CUBE
	m = next(func(m *vectorpb.NavMapFeedResponse) bool { return content(t, m, 100, 300) == object })
	if content(t, m, 190, 300) != object || content(t, m, 10, 300) != object || content(t, m, 100, 340) == object || content(t, m, 230, 300) == object {
		t.Error("the object has another shape")
	}
	if _, err := c.DeleteCustomObjects(as(t, "all"), &vectorpb.DeleteCustomObjectsRequest{Mode: 1}); err != nil { // part of VEC-ACC-12
		t.Fatal(err)
	}
	next(func(m *vectorpb.NavMapFeedResponse) bool { return content(t, m, 100, 300) != object })
	again, err := c.CreateFixedCustomObject(as(t, "all"), &vectorpb.CreateFixedCustomObjectRequest{XSizeMm: 10, YSizeMm: 10, ZSizeMm: 10, Pose: &vectorpb.PoseStruct{X: 300, Q0: 1}})
	if err != nil || again.ObjectId == o.ObjectId {
		t.Errorf("%v, %v: want another id", again, err)
	}
	d.body.Emit(control.Event{Name: "robot.delocalized"})
	next(func(m *vectorpb.NavMapFeedResponse) bool { return m.OriginId == 2 && content(t, m, 300, 0) != object })
}

// TestCliffOnMap: a sensor that sees a cliff puts one where it is.
func TestCliffOnMap(t *testing.T) {
	t.Parallel()
	d := newDesk(t, cliffs()...)
	d.body.Measure("laser.distance", math.Inf(1))
	next := d.maps(t)
	next(func(m *vectorpb.NavMapFeedResponse) bool {
		return content(t, m, 300, 0) == vectorpb.NavNodeContentType_NAV_NODE_CLEAR_OF_OBSTACLE // nothing in its range
	})
	d.body.Measure("cliffFL.detected", 1)
	d.body.Measure("cliffFR.detected", 0)
	next(func(m *vectorpb.NavMapFeedResponse) bool {
		return content(t, m, 38, 20) == vectorpb.NavNodeContentType_NAV_NODE_CLIFF && content(t, m, 38, -20) != vectorpb.NavNodeContentType_NAV_NODE_CLIFF
	})
}

func ofCube(kind vectorpb.CustomType, marker vectorpb.CustomObjectMarker) *vectorpb.DefineCustomObjectRequest {
	return &vectorpb.DefineCustomObjectRequest{CustomType: kind, CustomObjectDefinition: &vectorpb.DefineCustomObjectRequest_CustomCube{
		CustomCube: &vectorpb.CustomCubeDefinition{Marker: marker, SizeMm: 44, MarkerWidthMm: 40, MarkerHeightMm: 40}}}
}

// TestCustomObjects: a definition has one shape and markers of its own (part of VEC-ACC-11); a request that makes no sense is refused and names what is wrong.
func TestCustomObjects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	c := d.dial(t)
	define := func(q *vectorpb.DefineCustomObjectRequest) (bool, codes.Code) {
		a, err := c.DefineCustomObject(as(t, "all"), q)
		return a.GetSuccess(), status.Code(err)
	}
	box := &vectorpb.CustomBoxDefinition{MarkerFront: 5, MarkerBack: 6, MarkerTop: 7, MarkerBottom: 8, MarkerLeft: 9, MarkerRight: 10, XSizeMm: 20, YSizeMm: 20, ZSizeMm: 20,
		MarkerWidthMm: 10, MarkerHeightMm: 10}
	twice := &vectorpb.CustomBoxDefinition{MarkerFront: 5, MarkerBack: 5, MarkerTop: 7, MarkerBottom: 8, MarkerLeft: 9, MarkerRight: 10, XSizeMm: 20, YSizeMm: 20, ZSizeMm: 20,
		MarkerWidthMm: 10, MarkerHeightMm: 10}
	ofBox := func(kind vectorpb.CustomType, b *vectorpb.CustomBoxDefinition) *vectorpb.DefineCustomObjectRequest {
		return &vectorpb.DefineCustomObjectRequest{CustomType: kind, CustomObjectDefinition: &vectorpb.DefineCustomObjectRequest_CustomBox{CustomBox: b}}
	}
	wall := func(kind vectorpb.CustomType, height float32) *vectorpb.DefineCustomObjectRequest {
		return &vectorpb.DefineCustomObjectRequest{CustomType: kind, CustomObjectDefinition: &vectorpb.DefineCustomObjectRequest_CustomWall{
			CustomWall: &vectorpb.CustomWallDefinition{Marker: 16, WidthMm: 150, HeightMm: height, MarkerWidthMm: 50, MarkerHeightMm: 30}}}
	}
	for i, tc := range []struct {
		q    *vectorpb.DefineCustomObjectRequest
		ok   bool
		code codes.Code
	}{
		{ofCube(1, 1), true, codes.OK}, {ofCube(2, 1), false, codes.OK}, {ofCube(1, 2), true, codes.OK}, {ofCube(2, 1), true, codes.OK}, {ofBox(3, box), true, codes.OK},
		{ofBox(4, twice), false, codes.OK}, {ofCube(4, 7), false, codes.OK}, {wall(20, 120), true, codes.OK}, {wall(20, 0), false, codes.InvalidArgument},
		{ofCube(0, 3), false, codes.InvalidArgument}, {ofCube(21, 3), false, codes.InvalidArgument}, {ofCube(5, 0), false, codes.InvalidArgument}, {ofCube(5, 17), false, codes.InvalidArgument},
		{&vectorpb.DefineCustomObjectRequest{CustomType: 5}, false, codes.InvalidArgument},
	} {
		if ok, code := define(tc.q); ok != tc.ok || code != tc.code {
			t.Errorf("%d: %v, %v; want %v, %v", i, ok, code, tc.ok, tc.code)
		}
	}
	if _, err := c.DeleteCustomObjects(as(t, "all"), &vectorpb.DeleteCustomObjectsRequest{Mode: 3}); err != nil {
		t.Fatal(err)
	}
	if ok, code := define(ofCube(9, 7)); !ok || code != codes.OK {
		t.Errorf("after all definitions were deleted: %v, %v", ok, code)
	}
	good := func() *vectorpb.CreateFixedCustomObjectRequest {
		return &vectorpb.CreateFixedCustomObjectRequest{Pose: &vectorpb.PoseStruct{X: 100, Q0: 1, OriginId: 1}, XSizeMm: 10, YSizeMm: 10, ZSizeMm: 10}
	}
	for name, change := range map[string]func(*vectorpb.CreateFixedCustomObjectRequest){
		"side": func(q *vectorpb.CreateFixedCustomObjectRequest) { q.YSizeMm = -1 }, "huge": func(q *vectorpb.CreateFixedCustomObjectRequest) { q.ZSizeMm = 1e5 },
		"no pose": func(q *vectorpb.CreateFixedCustomObjectRequest) { q.Pose = nil }, "origin": func(q *vectorpb.CreateFixedCustomObjectRequest) { q.Pose.OriginId = 7 },
		"quaternion": func(q *vectorpb.CreateFixedCustomObjectRequest) { q.Pose.Q0 = 0 }, "far": func(q *vectorpb.CreateFixedCustomObjectRequest) { q.Pose.X = 1e9 },
	} {
		q := good()
		change(q)
		if _, err := c.CreateFixedCustomObject(as(t, "all"), q); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range 129 {
		if _, err := c.CreateFixedCustomObject(as(t, "all"), good()); (err == nil) != (n < 128) && status.Code(err) != codes.ResourceExhausted {
			t.Fatalf("object %d: %v", n, err)
		}
	}
}

// TestGoToPose: a pose that it has is reached at once; it plans around a fixed object, does not drive where it knows no way, and ends as other actions do
// (part of VEC-MOV-03). The test of edge/app/robotapp drives it.
func TestGoToPose(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.granted(t, "all")
	tag := int32(2000001)
	ask := func(x, y float32) vectorpb.ActionResult_ActionResultCode {
		t.Helper()
		tag++
		a, err := p.GoToPose(p.ctx, &vectorpb.GoToPoseRequest{XMm: x, YMm: y, IdTag: tag})
		if err != nil {
			t.Fatal(err)
		}
		return a.Result.Code
	}
	if got := ask(5, 0); got != vectorpb.ActionResult_ACTION_RESULT_SUCCESS || len(d.motions()) != 0 {
		t.Errorf("%v after %d motions", got, len(d.motions()))
	}
	if _, err := p.CreateFixedCustomObject(p.ctx, &vectorpb.CreateFixedCustomObjectRequest{Pose: &vectorpb.PoseStruct{X: 100, Q0: 1}, XSizeMm: 10, YSizeMm: 100, ZSizeMm: 100}); err != nil {
		t.Fatal(err)
	}
	if got := ask(100, 0); got != vectorpb.ActionResult_PATH_PLANNING_FAILED_ABORT || len(d.motions()) != 0 {
		t.Errorf("%v after %d motions", got, len(d.motions()))
	}
	if got := ask(20000, 0); got != vectorpb.ActionResult_PATH_PLANNING_FAILED_ABORT {
		t.Error(got)
	}
	done := make(chan vectorpb.ActionResult_ActionResultCode, 1)
	tag++
	go func() {
		a, err := p.GoToPose(p.ctx, &vectorpb.GoToPoseRequest{XMm: 200, IdTag: tag})
		if err != nil {
			t.Error(err)
		}
		done <- a.GetResult().GetCode()
	}()
	if o := d.moved(t, 1); o.Kind != control.Turn || math.Abs(o.A) < 0.3 {
		t.Errorf("it begins with %+v, want a turn to the side", o)
	}
	testwait.Until(t, patience, "cancel", func() error {
		a, err := p.CancelActionByIdTag(p.ctx, &vectorpb.CancelActionByIdTagRequest{IdTag: uint32(tag)})
		if err == nil && a.Status.Code != vectorpb.ResponseStatus_RESPONSE_RECEIVED {
			t.Errorf("%v", a)
		}
		return err
	})
	if got := <-done; got != vectorpb.ActionResult_ACTION_RESULT_CANCELLED_WHILE_RUNNING {
		t.Error(got)
	}
	other := d.dial(t)
	if a, err := other.GoToPose(as(t, "other"), &vectorpb.GoToPoseRequest{XMm: 200, IdTag: tag}); err != nil || a.Result.Code != vectorpb.ActionResult_NOT_STARTED {
		t.Errorf("without control: %v, %v", a, err)
	}
}

// FuzzObjects: no request for a custom object breaks the map; one that is taken is on it where it says.
func FuzzObjects(f *testing.F) {
	f.Add(100.0, 0.0, 1.0, 0.0, 10.0, 100.0, 100.0, 1, 1)
	f.Add(-9000.0, 3000.0, 0.7, 0.7, 9999.0, 0.1, 1e9, 21, 17)
	f.Fuzz(func(t *testing.T, x, y, q0, q3, length, width, height float64, kind, marker int) {
		create, define, at := vectorsdk.Objects()
		q := &vectorpb.CreateFixedCustomObjectRequest{Pose: &vectorpb.PoseStruct{X: float32(x), Y: float32(y), Q0: float32(q0), Q3: float32(q3)}, XSizeMm: float32(length), YSizeMm: float32(width),
			ZSizeMm: float32(height)}
		if err := vectorsdk.Finite(q); err == nil && create(q) == nil {
			if got := at(float64(q.Pose.X)/1000, float64(q.Pose.Y)/1000); got != navmap.Object && min(q.XSizeMm, q.YSizeMm) >= 32 { // two squares wide: its middle is in one of them
				t.Errorf("%v is not on the map: %d", q, got)
			}
		}
		ok, err := define(ofCube(vectorpb.CustomType(kind), vectorpb.CustomObjectMarker(marker)))
		if want := kind >= 1 && kind <= 20 && marker >= 1 && marker <= 16; ok != want || (err == nil) != want {
			t.Errorf("type %d with marker %d: %v, %v", kind, marker, ok, err)
		}
	})
}
