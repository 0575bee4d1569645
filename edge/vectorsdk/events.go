package vectorsdk

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"kennel/edge/agent/release"
	"kennel/edge/core/corelink"
	"kennel/edge/gateway"
	"kennel/infra/api/vectorpb"
)

// eventStream tells a client what happens until it ends the stream (VEC-EVT-01). Each stream has its own pace: one that is not read delays no other, and reads
// the newest state next.
func (f *Facade) eventStream(ctx context.Context, c client, receive func() (proto.Message, error), send func(proto.Message) error) error {
	m, err := receive()
	if err != nil {
		return err
	}
	q := m.(*vectorpb.EventRequest)
	passes, err := filter(q)
	if err != nil {
		return err
	}
	if len(q.ConnectionId) > maxName {
		return errInvalid("connection_id: %d bytes, want at most %d", len(q.ConnectionId), maxName)
	}
	if !f.cfg.Gateway.Connected() {
		return errLost
	}
	events, remove := f.cfg.Gateway.Events()
	defer remove()
	due, closed := f.feed.open()
	defer closed()
	primary, leave := f.join(q.ConnectionId)
	defer leave()
	first := &vectorpb.EventResponse{Status: fine(), Event: &vectorpb.Event{EventType: &vectorpb.Event_ConnectionResponse{
		ConnectionResponse: &vectorpb.ConnectionResponse{Status: fine(), IsPrimary: primary}}}}
	if err := send(first); err != nil {
		return err
	}
	tell := func(e *vectorpb.Event) error {
		if e == nil || !passes(e) {
			return nil
		}
		return send(&vectorpb.EventResponse{Event: e})
	}
	alive := time.NewTicker(beat)
	defer alive.Stop()
	wanted := passes(&vectorpb.Event{EventType: &vectorpb.Event_RobotState{}})
	camera, documents := settingsOf(f.feed.now.Load()), f.news.counts()
	var update *release.Report
	place := f.moments.now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-events:
			if !ok {
				return errLost
			}
			err = tell(eventOf(e))
		case <-due:
			m := f.feed.now.Load()
			if s := settingsOf(m); s.known && s != camera {
				if camera.known {
					err = tell(s.event())
				}
				camera = s
			}
			if err == nil {
				err = tell(f.news.changed(&documents))
			}
			var happened []*vectorpb.Event
			happened, place = f.moments.since(place)
			for _, e := range happened {
				if err == nil {
					err = tell(e)
				}
			}
			if err == nil && wanted {
				err = f.sendState(m, send)
			}
		case <-alive.C:
			if !f.cfg.Gateway.Connected() { // lost before the stream heard events
				return errLost
			}
			if err := f.cfg.Gateway.Still(ctx, c.Caller, gateway.Look); err != nil {
				return err
			}
			if err = tell(f.progress(&update)); err != nil {
				return err
			}
			err = send(&vectorpb.EventResponse{Event: &vectorpb.Event{EventType: &vectorpb.Event_KeepAlive{KeepAlive: &vectorpb.KeepAlivePing{}}}})
		}
		if err != nil {
			return err
		}
	}
}

// sendState sends the robot_state of m, if there is one.
func (f *Facade) sendState(m *measured, send func(proto.Message) error) error {
	held, docks := f.carrying()
	e, err := f.states.event(stateOf{m, f.cfg.Gateway.Reports(), f.origin.Load(), f.eye.last.Load(), held, docks})
	if e == nil || err != nil {
		return err
	}
	return send(e)
}

// join counts a stream under its connection_id, until leave is called. It is primary while no stream has another id (part of VEC-EVT-03).
func (f *Facade) join(id string) (primary bool, leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams[id]++
	return len(f.streams) == 1, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.streams[id]--; f.streams[id] == 0 {
			delete(f.streams, id)
		}
	}
}

// filter returns which events a request lets through (VEC-EVT-02): without a list all, with a white list its members, with a black list all others. The
// names are those of the Event's fields, and of the kinds of an object event.
func filter(q *vectorpb.EventRequest) (passes func(*vectorpb.Event) bool, err error) {
	var list []string
	var white bool
	switch l := q.GetListType().(type) {
	case nil:
		return func(*vectorpb.Event) bool { return true }, nil
	case *vectorpb.EventRequest_WhiteList:
		list, white = l.WhiteList.GetList(), true
	case *vectorpb.EventRequest_BlackList:
		list = l.BlackList.GetList()
	}
	if len(list) > maxFilter {
		return nil, errInvalid("list: %d names, want at most %d", len(list), maxFilter)
	}
	return func(e *vectorpb.Event) bool {
		listed := slices.ContainsFunc(namesOf(e), func(name string) bool { return slices.Contains(list, name) })
		return listed == white
	}, nil
}

// namesOf returns the names of an event: its field, and for an object event the field within it.
func namesOf(e *vectorpb.Event) (names []string) {
	m := e.ProtoReflect()
	for _, oneof := range []protoreflect.Name{"event_type", "object_event_type"} {
		d := m.Descriptor().Oneofs().ByName(oneof)
		if d == nil {
			break
		}
		field := m.WhichOneof(d)
		if field == nil {
			break
		}
		names = append(names, string(field.Name()))
		m = m.Get(field).Message()
	}
	return names
}

// eventOf returns an event of robotd as the original tells it; nil: it has no such event. Touch, cliffs and lifting are in robot_state.
func eventOf(e *corelink.Event) *vectorpb.Event {
	if e.Name == "robot.unexpected_movement" && len(e.Texts) == 2 { // VEC-STA-06
		m := &vectorpb.UnexpectedMovement{Timestamp: uint32(e.AtUS / 1000),
			MovementType: vectorpb.UnexpectedMovement_UnexpectedMovementType(vectorpb.UnexpectedMovement_UnexpectedMovementType_value[e.Texts[0]]),
			MovementSide: vectorpb.UnexpectedMovement_UnexpectedMovementSide(vectorpb.UnexpectedMovement_UnexpectedMovementSide_value[e.Texts[1]])}
		return &vectorpb.Event{EventType: &vectorpb.Event_UnexpectedMovement{UnexpectedMovement: m}}
	}
	return nil
}
