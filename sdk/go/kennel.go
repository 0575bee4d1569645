package kennel

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"kennel/infra/api/robotpb"
)

const (
	patience = 5 * time.Second // for an answer that the robot has at once
	silence  = 2 * time.Second // of a stream, in which the robot says something each second
	window   = 1 << 20         // bytes that the robot may send ahead
)

// Robot is a connection to a robot. It is safe for concurrent use.
type Robot struct {
	Mover
	place Place
	conn  *grpc.ClientConn
	api   robotpb.RobotClient

	mu     sync.Mutex
	leases map[*Lease]bool // held
}

// Connect connects to the robot of a file, as File reads it. Its errors are those of File, and unreachable or certificate_wrong.
func Connect(ctx context.Context, path string) (*Robot, error) {
	p, err := File(path)
	if err != nil {
		return nil, err
	}
	return ConnectTo(ctx, p)
}

// ConnectTo connects to the robot at a place.
func ConnectTo(ctx context.Context, p Place) (*Robot, error) {
	conf, err := p.trust()
	if err != nil {
		return nil, err
	}
	if err := p.knock(ctx, conf); err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("passthrough:///"+p.Address, grpc.WithTransportCredentials(credentials.NewTLS(conf)),
		grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window)) // of a fixed size: one that adapts asks the robot for an echo at each message
	if err != nil {
		return nil, errorf("file_wrong", "address: %v", err)
	}
	r := &Robot{place: p, conn: conn, api: robotpb.NewRobotClient(conn), leases: map[*Lease]bool{}}
	r.Mover = Mover{r: r}
	return r, nil
}

// Close gives back the leases that are held, and ends the connection.
func (r *Robot) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	r.mu.Lock()
	var held []*Lease
	for l := range r.leases {
		held = append(held, l)
	}
	r.mu.Unlock()
	for _, l := range held {
		_ = l.Release(ctx) // a robot that is lost ends it by itself
	}
	return r.conn.Close()
}

// begin returns the context of a call, which ends with ctx. It has no deadline, which gRPC would report a moment before ctx does.
func (r *Robot) begin(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	call, cancel := context.WithCancelCause(metadata.AppendToOutgoingContext(context.WithoutCancel(ctx), "authorization", "Bearer "+r.place.Token))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	return call, func(cause error) { stop(); cancel(cause) }
}

// ask makes a call that the robot answers at once.
func ask[Q, A any](ctx context.Context, r *Robot, call func(context.Context, Q, ...grpc.CallOption) (A, error), q Q) (A, error) {
	ctx, cancel := r.begin(ctx)
	defer cancel(nil)
	defer time.AfterFunc(patience, func() { cancel(ErrLost) }).Stop()
	var trailer metadata.MD
	a, err := call(ctx, q, grpc.Trailer(&trailer))
	return a, explain(ctx, err, trailer)
}

// listen makes a call with a stream and gives each message to tell, until tell returns an error or io.EOF, which is no error.
func listen[Q, A any](
	ctx context.Context, r *Robot, call func(context.Context, Q, ...grpc.CallOption) (grpc.ServerStreamingClient[A], error), q Q, tell func(*A) error,
) error {
	ctx, cancel := r.begin(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(ErrLost) })
	defer watch.Stop()
	s, err := call(ctx, q)
	if err != nil {
		return explain(ctx, err, nil)
	}
	for {
		a, err := s.Recv()
		if !watch.Stop() {
			return ErrLost
		}
		if errors.Is(err, io.EOF) {
			return ErrLost
		}
		if err != nil {
			return explain(ctx, err, s.Trailer())
		}
		if err := tell(a); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		watch.Reset(silence) // what tell takes is the program's
	}
}

// Describe returns what the robot is, has and can do.
func (r *Robot) Describe(ctx context.Context) (*robotpb.Description, error) {
	return ask(ctx, r, r.api.Describe, &robotpb.DescribeRequest{})
}

// Ahead returns the slot of the distance sensor that looks most nearly to the front, such as robot.body.laser.distance.
func (r *Robot) Ahead(ctx context.Context) (string, error) {
	d, err := r.Describe(ctx)
	if err != nil {
		return "", err
	}
	var best *robotpb.Part
	for _, p := range d.Parts {
		if slices.Contains(p.Interfaces, "DistanceSensor") && (best == nil || math.Abs(p.GetBearing()) < math.Abs(best.GetBearing())) {
			best = p
		}
	}
	if best == nil {
		return "", errorf("not_found", "this robot has no distance sensor")
	}
	return best.Full + ".distance", nil
}

// Stop stops all motors, whatever program moves them.
func (r *Robot) Stop(ctx context.Context) error {
	_, err := ask(ctx, r, r.api.Stop, &robotpb.StopRequest{})
	return err
}

// Read returns the number that a slot reads as, in SI units: +Inf where nothing is in range. For a part it is the slot val. What is not known now, or
// is no number, is an *Error with the code not_measured.
func (r *Robot) Read(ctx context.Context, name string) (float64, error) {
	v, err := r.Values(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, x := range v.Readings {
		if n, ok := x.Value.(float64); ok && (len(v.Readings) == 1 || x.Slot == "val") {
			return n, nil
		}
	}
	return 0, errorf("not_measured", "%s: no number is known now", name)
}

// Values returns what slots read as now; a part means all its slots.
func (r *Robot) Values(ctx context.Context, names ...string) (Values, error) {
	v, err := ask(ctx, r, r.api.Read, &robotpb.ReadRequest{Names: names})
	if err != nil {
		return Values{}, err
	}
	return values(v), nil
}

// Values holds what slots read as at one moment.
type Values struct {
	At       time.Duration // by the robot's clock, since its start
	Missed   uint64        // messages that newer ones replaced, since the one before
	Readings []Reading     // in the order of the names
}

// Reading is the value of one slot.
type Reading struct {
	Part, Slot string // full name of the part, name of the slot
	Unit       string
	Value      any           // float64 or string; nil: not known
	Changed    bool          // since the message before
	Age        time.Duration // since it was measured; negative: it never changes, or is not known
}

// Number returns the number that a slot reads as, by its full name such as robot.body.laser.distance; false if it is not known or not among v.
func (v Values) Number(name string) (float64, bool) {
	for _, x := range v.Readings {
		if x.Part+"."+x.Slot == name {
			n, ok := x.Value.(float64)
			return n, ok
		}
	}
	return 0, false
}

func values(m *robotpb.Values) Values {
	v := Values{At: time.Duration(m.AtUs) * time.Microsecond, Missed: m.Missed}
	for _, x := range m.Readings {
		r := Reading{Part: x.Part, Slot: x.Slot, Unit: x.Unit, Changed: x.Changed, Age: time.Duration(x.AgeUs) * time.Microsecond}
		switch k := x.GetValue().GetKind().(type) {
		case *robotpb.Value_Number:
			r.Value = k.Number
		case *robotpb.Value_Text:
			r.Value = k.Text
		}
		v.Readings = append(v.Readings, r)
	}
	return v
}

// Subscribe gives see what slots read as, first at once and then when one of them changed, at most rate times a second (0: 10). A see that takes long gets
// the newest values next. It returns when see returns an error, when ctx ends, or when the robot is lost (ErrLost).
func (r *Robot) Subscribe(ctx context.Context, rate float64, see func(Values) error, names ...string) error {
	return listen(ctx, r, r.api.Subscribe, &robotpb.SubscribeRequest{Names: names, RateHz: rate}, func(m *robotpb.Values) error {
		if len(m.Readings) == 0 {
			return nil // it only says that the robot is there
		}
		return see(values(m))
	})
}

// Events gives hear what happens from now on; of names, if there are any, events that begin so. It returns as Subscribe does.
func (r *Robot) Events(ctx context.Context, hear func(*robotpb.Event) error, names ...string) error {
	return r.events(ctx, hear, &robotpb.EventsRequest{Names: names})
}

// EventsSince is Events, first with those that came after the event with the number seq, as far as the robot has kept them.
func (r *Robot) EventsSince(ctx context.Context, seq uint64, hear func(*robotpb.Event) error, names ...string) error {
	return r.events(ctx, hear, &robotpb.EventsRequest{Names: names, Since: &seq})
}

// Orders gives hear the orders of all programs, as they begin and as they end. It returns as Subscribe does.
func (r *Robot) Orders(ctx context.Context, hear func(*robotpb.OrderReport) error) error {
	return listen(ctx, r, r.api.Orders, &robotpb.OrdersRequest{}, func(m *robotpb.OrderReport) error {
		if m.Order == 0 {
			return nil // it only says that the robot is there
		}
		return hear(m)
	})
}

func (r *Robot) events(ctx context.Context, hear func(*robotpb.Event) error, q *robotpb.EventsRequest) error {
	return listen(ctx, r, r.api.Events, q, func(m *robotpb.Event) error {
		if m.Name == "" {
			return nil // likewise
		}
		return hear(m)
	})
}
