package kennel

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"kennel/infra/api/robotpb"
)

// Mover gives orders to a robot: a Robot claims what an order moves for that order alone, a Lease has claimed it already. Each order returns when it has
// ended, and is a *NotDone if it did not end as ordered. If ctx ends first, the motion does.
type Mover struct {
	r     *Robot
	lease string
}

// Manner says how a statement is carried out, or by when.
type Manner func(*robotpb.OrderRequest, *robotpb.Statement)

// Time makes a part reach its goal after d.
func Time(d time.Duration) Manner {
	return func(_ *robotpb.OrderRequest, s *robotpb.Statement) {
		s.Manner = &robotpb.Statement_TimeS{TimeS: d.Seconds()}
	}
}

// Speed makes a part move at v, in its slot's unit a second.
func Speed(v float64) Manner {
	return func(_ *robotpb.OrderRequest, s *robotpb.Statement) { s.Manner = &robotpb.Statement_Speed{Speed: v} }
}

// Adaptive makes a part reach its goal in about d, from where it is.
func Adaptive(d time.Duration) Manner {
	return func(_ *robotpb.OrderRequest, s *robotpb.Statement) {
		s.Manner = &robotpb.Statement_AdaptiveS{AdaptiveS: d.Seconds()}
	}
}

// Deadline ends the order after d, at most a minute, which is also the default.
func Deadline(d time.Duration) Manner {
	return func(q *robotpb.OrderRequest, _ *robotpb.Statement) { q.ForMs = uint32(d.Milliseconds()) }
}

// Go drives so many metres forward; a negative number drives back.
func (m Mover) Go(ctx context.Context, metres float64, how ...Manner) (*robotpb.Ended, error) {
	return m.Call(ctx, "robot.go", []any{metres}, how...)
}

// Turn turns on the spot, to the right, by so many radians.
func (m Mover) Turn(ctx context.Context, radians float64, how ...Manner) (*robotpb.Ended, error) {
	return m.Call(ctx, "robot.turn", []any{radians}, how...)
}

// Set writes a number, a text, a bool or a list of these ([]any) to a slot. A position is a goal, and Set returns when it is reached.
func (m Mover) Set(ctx context.Context, name string, v any, how ...Manner) (*robotpb.Ended, error) {
	x, err := value(v)
	if err != nil {
		return nil, err
	}
	return m.state(ctx, &robotpb.Statement{Name: name, What: &robotpb.Statement_Set{Set: x}}, how)
}

// Call calls a method of the robot's tree.
func (m Mover) Call(ctx context.Context, name string, args []any, how ...Manner) (*robotpb.Ended, error) {
	x, err := value(args)
	if err != nil {
		return nil, err
	}
	return m.state(ctx, &robotpb.Statement{Name: name, What: &robotpb.Statement_Call{Call: x.GetList()}}, how)
}

// Do does what a line of text says, such as "headPitch = 0.3 time:2s; robot.go(0.1)".
func (m Mover) Do(ctx context.Context, text string) (*robotpb.Ended, error) {
	return m.Order(ctx, &robotpb.OrderRequest{Text: text}, nil)
}

func (m Mover) state(ctx context.Context, s *robotpb.Statement, how []Manner) (*robotpb.Ended, error) {
	q := &robotpb.OrderRequest{Steps: []*robotpb.Step{{Statements: []*robotpb.Statement{s}}}}
	for _, h := range how {
		h(q, s)
	}
	return m.Order(ctx, q, nil)
}

// Order does any order. tell, if not nil, hears its progress; an error of tell ends the motion, and Order returns it.
func (m Mover) Order(ctx context.Context, q *robotpb.OrderRequest, tell func(*robotpb.Progress) error) (*robotpb.Ended, error) {
	q = proto.CloneOf(q)
	q.Lease = m.lease
	var ended *robotpb.Ended
	err := listen(ctx, m.r, m.r.api.Order, q, func(p *robotpb.Progress) error {
		if ended = p.GetEnded(); ended != nil {
			return io.EOF
		}
		if tell == nil {
			return nil
		}
		return tell(p)
	})
	if ended != nil && ended.Outcome != "done" {
		err = &NotDone{ended}
	}
	return ended, err
}

func value(v any) (*robotpb.Value, error) {
	switch v := v.(type) {
	case float64:
		return &robotpb.Value{Kind: &robotpb.Value_Number{Number: v}}, nil
	case int:
		return value(float64(v))
	case bool:
		if v {
			return value(1.0)
		}
		return value(0.0)
	case string:
		return &robotpb.Value{Kind: &robotpb.Value_Text{Text: v}}, nil
	case []any:
		list := &robotpb.List{}
		for _, x := range v {
			item, err := value(x)
			if err != nil {
				return nil, err
			}
			list.Items = append(list.Items, item)
		}
		return &robotpb.Value{Kind: &robotpb.Value_List{List: list}}, nil
	}
	return nil, errorf("invalid", "value of type %T: want a float64, int, bool, string or []any", v)
}

// Lease holds parts of the robot for this program: others cannot move them. It is renewed until Release, or until the program ends; then the robot gives
// the parts back when the lease's time is over.
type Lease struct {
	Mover
	end  context.CancelFunc
	over chan struct{} // closed when it is no longer renewed
	once sync.Once
}

// Claim takes parts for this program, by the names of actuators or of what has them: all or none. Its time is 5 s, renewed until Release.
func (r *Robot) Claim(ctx context.Context, parts ...string) (*Lease, error) {
	return r.ClaimFor(ctx, 0, "", parts...)
}

// ClaimFor is Claim with a time from 100 ms to a minute (0: 5 s), and a reason, of at most 100 bytes, for those who are refused meanwhile.
func (r *Robot) ClaimFor(ctx context.Context, d time.Duration, reason string, parts ...string) (*Lease, error) {
	a, err := ask(ctx, r, r.api.Claim, &robotpb.ClaimRequest{Parts: parts, ForMs: uint32(d.Milliseconds()), Reason: reason})
	if err != nil {
		return nil, err
	}
	alive, end := context.WithCancel(context.Background())
	l := &Lease{Mover: Mover{r, a.Id}, end: end, over: make(chan struct{})}
	r.mu.Lock()
	r.leases[l] = true
	r.mu.Unlock()
	go l.renew(alive, max(time.Duration(a.ForMs)*time.Millisecond/3, 10*time.Millisecond))
	return l, nil
}

// renew renews l until ctx ends or the robot says that the lease is gone, which the next order says too.
func (l *Lease) renew(ctx context.Context, every time.Duration) {
	defer close(l.over)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := ask(ctx, l.r, l.r.api.Renew, &robotpb.RenewRequest{Lease: l.lease}); errors.Is(err, &Error{Code: "lease_gone"}) {
			return
		}
	}
}

// Release gives the parts back. What still moves under the lease ends.
func (l *Lease) Release(ctx context.Context) (err error) {
	l.once.Do(func() {
		l.end()
		<-l.over
		l.r.mu.Lock()
		delete(l.r.leases, l)
		l.r.mu.Unlock()
		_, err = ask(ctx, l.r, l.r.api.Release, &robotpb.ReleaseRequest{Lease: l.lease})
	})
	return err
}
