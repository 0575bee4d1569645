package motion

import (
	"fmt"
	"math"
)

// MaxSegments is how many segments a path may have (VEC-MOT-09; own default).
const MaxSegments = 128

// Continuity of a path (VEC-MCT-02).
const (
	jointMetres  = 0.001
	jointRadians = math.Pi / 180
)

// A segment's reach; own default. Longer is a mistake of units.
const (
	maxLength = 100.0 // m
	maxAngle  = 100.0 // rad
)

// Kind is the kind of a segment. The zero value is none.
type Kind uint8

// Kinds of segments (VEC-MOT-09).
const (
	NoKind Kind = iota
	Line
	Arc
	PointTurn
)

func (k Kind) String() string {
	switch k {
	case NoKind:
		return "none"
	case Line:
		return "line"
	case Arc:
		return "arc"
	case PointTurn:
		return "point turn"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Segment is one piece of a path.
type Segment struct {
	Kind   Kind
	Start  Pose
	Length float64 // Line, Arc: m along it, negative backwards. PointTurn: rad, positive to the left
	Radius float64 // Arc: m, positive if the centre is on the left
	Ramp   Ramp    // m/s and m/s², PointTurn: rad/s and rad/s²; lowered to the limits of the body
}

func (s *Segment) curvature() float64 {
	if s.Kind == Arc {
		return 1 / s.Radius
	}
	return 0
}

// at returns the pose after going that part of the way, 0 to |Length|.
func (s *Segment) at(way float64) Pose {
	way = math.Copysign(way, s.Length)
	if s.Kind == PointTurn {
		return Pose{s.Start.X, s.Start.Y, wrap(s.Start.Theta + way)}
	}
	return s.Start.advance(way, way*s.curvature())
}

// End returns the pose at its end.
func (s *Segment) End() Pose { return s.at(math.Abs(s.Length)) }

// Path is a list of segments. It is a plain value of fixed size, to be left in a mailbox.
type Path struct {
	N        int
	Segments [MaxSegments]Segment
}

// End returns where the path ends, or at if it has no segment.
func (p *Path) End(at Pose) Pose {
	if p.N == 0 {
		return at
	}
	return p.Segments[p.N-1].End()
}

// Append adds a segment where the path ends so far; its Start is set, except for the first. False: the path is full.
func (p *Path) Append(s Segment) bool {
	if p.N >= MaxSegments {
		return false
	}
	s.Start = p.End(s.Start)
	p.Segments[p.N] = s
	p.N++
	return true
}

// GoTo returns the path to a place: turn towards it, drive there, turn as asked (Go to Pose, part of VEC-MCT-14). What is nearer than tolerance of
// continuity is left out; a path of no segment is already there.
func GoTo(from, to Pose, drive, turn Ramp) Path {
	var p Path
	if d := math.Hypot(to.X-from.X, to.Y-from.Y); d > jointMetres {
		if a := wrap(math.Atan2(to.Y-from.Y, to.X-from.X) - from.Theta); a != 0 {
			p.Append(Segment{Kind: PointTurn, Start: from, Length: a, Ramp: turn})
		}
		p.Append(Segment{Kind: Line, Start: from, Length: d, Ramp: drive})
	}
	if a := wrap(to.Theta - p.End(from).Theta); math.Abs(a) > jointRadians {
		p.Append(Segment{Kind: PointTurn, Start: from, Length: a, Ramp: turn})
	}
	return p
}

// PathError says which segment of a path is refused and why.
type PathError struct {
	Segment int
	Why     string
}

func (e *PathError) Error() string {
	return fmt.Sprintf("motion: path refused at segment %d: %s", e.Segment, e.Why)
}

// Is makes errors.Is(err, ErrPath) work.
func (e *PathError) Is(target error) bool { return target == ErrPath }

// Validate refuses what must not be driven: no segment or more than most, unknown kinds, numbers that cannot be, gaps (VEC-MOT-09,
// VEC-MCT-02).
func (p *Path) Validate(most int) error {
	if i, why := p.check(most); why != "" {
		return &PathError{i, why}
	}
	return nil
}

// check is Validate without allocation, for the loop.
func (p *Path) check(most int) (int, string) {
	if p.N < 1 || p.N > min(most, MaxSegments) {
		return p.N, "a path has at least one segment and no more than the limit"
	}
	for i := range p.N {
		s := &p.Segments[i]
		reach := maxLength
		switch s.Kind {
		case Line:
		case Arc:
			if !finite(s.Radius) || math.Abs(s.Radius) < jointMetres || math.Abs(s.Radius) > 1000*maxLength {
				return i, "an arc's radius is 1 mm to 100 km; without one it is a point turn or a line"
			}
		case PointTurn:
			reach = maxAngle
		default:
			return i, "unknown kind, want line, arc or point turn"
		}
		if !finite(s.Start.X, s.Start.Y, s.Start.Theta, s.Length) || s.Length == 0 || math.Abs(s.Length) > reach {
			return i, "want finite numbers and a length of up to 100 m or 100 rad, not 0"
		}
		if !s.Ramp.valid() {
			return i, "speed, acceleration and deceleration must be above 0"
		}
		if i == 0 {
			continue
		}
		end := p.Segments[i-1].End()
		if math.Hypot(s.Start.X-end.X, s.Start.Y-end.Y) > jointMetres || math.Abs(wrap(s.Start.Theta-end.Theta)) > jointRadians {
			return i, "it does not start where the one before ends, within 1 mm and 1 degree"
		}
	}
	return 0, ""
}
