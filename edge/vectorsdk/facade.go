package vectorsdk

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"kennel/edge/agent/features"
	"kennel/edge/agent/health/conncheck"
	"kennel/edge/cube"
	"kennel/edge/gateway"
	"kennel/edge/mind/mindlink"
	"kennel/infra/kit/kitgrpc"
	"kennel/infra/logging"
)

// Config configures a Facade. All but Photos, Feel, Radio, CubeScan, OS, Build and Exchange is required.
type Config struct {
	Gateway   *gateway.Gateway
	Root      *os.Root // the robot's
	Log       *slog.Logger
	Documents Documents
	Features  func() []features.Feature
	Updates   Updates
	Check     func(context.Context) conncheck.Report                            // tries the way to the cloud
	SendLogs  func(ctx context.Context, reason string) (name string, err error) // collects logs, whose upload follows

	Photos  Photos              // nil: the album cannot be read
	Intents func() Intents      // made after this part
	Feel    func(mindlink.Feel) // tells the robot's mood of something, and must not block; nil: nothing hears

	Radio    cube.Radio    // for cubes; nil: the one behind the socket of the robot's folder
	CubeScan time.Duration // how long the robot listens for cubes; 0: cube.DefaultScan

	OS    string // version of the robot's software; "": not known
	Build string // of the programs
	// Exchange turns the session of an account into a client token (VEC-AUTH-05). nil: this robot takes no session.
	Exchange func(ctx context.Context, session logging.Secret, client, app string) (logging.Secret, error)
}

// Facade serves the original's interface. Safe for concurrent use.
type Facade struct {
	cfg     Config
	calls   []call
	control control
	feed    feed
	states  states
	world   world
	eye     eye
	cubes   cubes
	looks   looks
	carry   carry

	news              news
	moments           moments
	onboarding        onboarding
	settings, account updating
	checks            checks

	origin atomic.Uint32 // of the poses: another one after the robot was lifted

	mu      sync.Mutex
	streams map[string]int // live event streams by their connection_id
	allowed *bool          // data collection, as the cloud said last; nil: it did not
}

// Rates and bounds; own defaults.
const (
	beat        = time.Second // of keep-alives (VEC-CTL-04, VEC-EVT-04)
	stateHz     = 30          // of robot_state (VEC-EVT-06)
	maxName     = 64          // characters of a client's name (VEC-AUTH-10), and bytes of a connection_id
	maxFilter   = 64          // names of a filter
	maxRetries  = 20
	maxRequests = 16 // of one control stream that wait
	maxText     = 200
)

// New returns a facade that serves nothing before the gateway runs.
func New(cfg Config) *Facade {
	if cfg.Feel == nil {
		cfg.Feel = func(mindlink.Feel) {}
	}
	f := &Facade{cfg: cfg, streams: map[string]int{}}
	f.control.f = f
	f.eye.switches = map[string]*imageSwitch{}
	f.feed.core = cfg.Gateway.Core()
	f.feed.see = func(m *measured) {
		now := cfg.Gateway.Reports().Motion
		f.looks.feel(m)
		f.carry.feel(m, now)
		f.world.observe(m, now)
	}
	f.world.begin()
	f.looks.init()
	f.origin.Store(1)
	var err error
	if f.onboarding.stage, err = readOnboarding(cfg.Root); err != nil {
		cfg.Log.Error("stage of the onboarding unreadable; it begins again", logging.Err, err)
	}
	f.calls = f.table()
	return f
}

// Part is the facade as the gateway takes it.
func (f *Facade) Part() gateway.Facade {
	return gateway.Facade{Service: f.service(), Routes: f.routes(), Run: f.run}
}

// run gives the poses another origin when the robot leaves the ground (part of VEC-MAP-04), takes control from a program that drove to a cliff, remembers
// where the charger is, and disconnects a cube that no program uses, until ctx ends.
func (f *Facade) run(ctx context.Context) {
	defer f.dropCube()
	var looking sync.WaitGroup
	defer looking.Wait()
	looking.Go(func() { f.runLooks(ctx) })
	look := time.NewTicker(beat)
	defer look.Stop()
	for ctx.Err() == nil {
		events, remove := f.cfg.Gateway.Events()
		for open := true; open && ctx.Err() == nil; {
			select {
			case <-ctx.Done():
			case now := <-look.C:
				f.letGo(now)
				if f.onCharger() {
					f.world.docked(f.cfg.Gateway.Reports().Motion)
				}
			case e, ok := <-events:
				switch open = ok; {
				case !ok:
				case e.Name == "robot.delocalized":
					f.origin.Add(1)
					f.world.moved()
					f.looks.moved()
				case e.Name == "robot.cliff_detected":
					f.control.reacted()
				}
			}
		}
		remove()
	}
}

// client is who makes a call, and from where.
type client struct {
	gateway.Caller
	key string // of its connection: what it asked for by gRPC belongs to that connection, by HTTPS to its token
}

// errAbsent says that a call's part is missing.
func errAbsent(name, part string) error {
	return status.Errorf(codes.Unimplemented, "%s: this robot does not have %s yet", name, part)
}

func errInvalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// errLost ends streams when robotd is gone.
var errLost = status.Error(codes.Unavailable, "connection to the robot's core lost; try again in a moment")

// statusOf returns err as a program reads it.
func statusOf(err error) *status.Status { return status.Convert(kitgrpc.Status(gateway.Known(err))) }

// message is a pointer to a message of T.
type message[T any] interface {
	*T
	proto.Message
}
