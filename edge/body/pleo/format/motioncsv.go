package format

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Curves are the angles of joints, frame by frame, as animation programs write them in a table (PLEO-MBT-02).
type Curves struct {
	Rate   int // frames a second
	Joints []Joint
	Angles [][]float64 // degrees, a list of frames for each joint
	Frames int
	Cues   []Cue // in the order of their frames
}

// Cue starts the resource of that name, a sound or a command, at a frame.
type Cue struct {
	Frame int
	Name  string
	line  int
	col   int
}

// The limits of a motion.
const (
	maxFrames   = math.MaxUint16
	maxAngle    = 360 // degrees either way
	minRate     = 4   // below, a frame is longer than the 255 ms that a file can hold
	maxRate     = 1000
	defaultRate = 30
)

// columns are the codes of a table's columns. Those of neck, tail and torso are written the other way round than in a motion file.
var columns = map[string]Joint{
	"RE": RightElbow, "RS": RightShoulder, "LE": LeftElbow, "LS": LeftShoulder, "RK": RightKnee, "RH": RightHip, "LK": LeftKnee, "LH": LeftHip, "HD": Head,
	"NV": NeckVertical, "NH": NeckHorizontal, "TV": TailVertical, "TH": TailHorizontal, "TO": Torso, "SD": SoundChannel, "TR": Transition, "FS": FootSwitch,
}

func columnOf(j Joint) string {
	for code, joint := range columns {
		if joint == j {
			return code
		}
	}
	return j.String()
}

// ReadMotionCSV returns the curves in a table. Its number of frames is the number of rows: what the head of the table says of it is often wrong. Columns come in
// any order; fields may be missing at the end of no row.
func ReadMotionCSV(text []byte) (*Curves, error) {
	list, err := rows(text)
	if err != nil {
		return nil, err
	}
	c := &Curves{Rate: defaultRate}
	i := 0
	last := cell{line: 1, col: 1}
	for ; i < len(list) && !strings.EqualFold(list[i][0].text, "Body"); i++ {
		last = list[i][0]
		if i == 0 && strings.EqualFold(last.text, "Header") {
			continue
		}
		if err := c.head(last); err != nil {
			return nil, err
		}
	}
	if i+1 >= len(list) {
		return nil, &TextError{"csv", last.line, last.col, "no frames", "the end of the file", `a line "Body", a line of column names, and a line for each frame`}
	}
	names, body := list[i+1], list[i+2:]
	sound, err := c.columns(names)
	if err != nil {
		return nil, err
	}
	if len(body) > maxFrames {
		return nil, body[maxFrames][0].refuse("too many frames", "at most %d", maxFrames)
	}
	c.Frames = len(body)
	for frame, r := range body {
		if err := c.frame(frame, r, names, sound); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// head reads a line of the head: key=value.
func (c *Curves) head(line cell) error {
	key, value, ok := strings.Cut(line.text, "=")
	if !ok {
		return line.refuse("head", `"Header", key=value or "Body"`)
	}
	value = strings.TrimSpace(value)
	switch strings.ToLower(strings.TrimSpace(key)) {
	case "rate":
		rate, err := strconv.ParseFloat(value, 64)
		if err != nil || rate < minRate || rate > maxRate || rate != math.Trunc(rate) {
			return line.refuse("rate", "%d to %d whole frames a second", minRate, maxRate)
		}
		c.Rate = int(rate)
	case "type":
		if !strings.EqualFold(value, "degree") && !strings.EqualFold(value, "degrees") {
			return line.refuse("type", "degree")
		}
	case "frames", "duration": // the rows are counted
	default:
		return line.refuse("head", "rate, frames, duration or type")
	}
	return nil
}

// columns reads the names of the columns. sound is the one of cues, -1 if there is none.
func (c *Curves) columns(names row) (sound int, err error) {
	sound = -1
	for i, n := range names {
		switch {
		case i == 0 && !strings.EqualFold(n.text, "Time"):
			return 0, n.refuse("first column", "Time")
		case i == 1 && !strings.EqualFold(n.text, "Frame"):
			return 0, n.refuse("second column", "Frame")
		case i < 2:
			continue
		}
		j, known := columns[strings.ToUpper(n.text)]
		if !known {
			return 0, n.refuse("column", "a joint: RE RS LE LS RK RH LK LH HD NV NH TV TH TO, or SD, TR, FS")
		}
		if j == SoundChannel && sound < 0 {
			sound = i
			continue
		}
		if j == SoundChannel || slices.Contains(c.Joints, j) {
			return 0, n.refuse("column", "each joint once")
		}
		c.Joints = append(c.Joints, j)
		c.Angles = append(c.Angles, nil)
	}
	if len(c.Joints) == 0 && sound < 0 {
		return 0, names[len(names)-1].refuse("columns", "Time, Frame and at least one joint")
	}
	return sound, nil
}

// frame reads a row.
func (c *Curves) frame(frame int, r, names row, sound int) error {
	end := r[len(r)-1]
	if len(r) < len(names) && !(len(r) == sound && sound == len(names)-1) { // an empty cue at the end
		return end.refuse(fmt.Sprintf("row with %d fields", len(r)), "%d, as the names of the columns", len(names))
	}
	if len(r) > len(names) {
		return r[len(names)].refuse(fmt.Sprintf("row with %d fields", len(r)), "%d, as the names of the columns", len(names))
	}
	joint := 0
	for i, f := range r {
		if i == sound {
			if f.text != "0" && f.text != "" && strings.Trim(f.text, "0.") != "" {
				c.Cues = append(c.Cues, Cue{frame, f.text, f.line, f.col})
			}
			continue
		}
		v, err := strconv.ParseFloat(f.text, 64)
		if err != nil || i >= 2 && !(math.Abs(v) <= maxAngle) {
			return f.refuse(names[i].text, "a number of degrees between -%d and %d", maxAngle, maxAngle)
		}
		if i >= 2 {
			c.Angles[joint] = append(c.Angles[joint], v)
			joint++
		}
	}
	return nil
}

// AppendCSV appends the table of c to dst.
func (c *Curves) AppendCSV(dst []byte) []byte {
	dst = fmt.Appendf(dst, "Header\nrate=%d\nframes=%d\nduration=%.6g\ntype=degree\nBody\nTime,Frame", c.Rate, c.Frames, float64(c.Frames)/float64(c.Rate))
	for _, j := range c.Joints {
		dst = append(append(dst, ','), columnOf(j)...)
	}
	if len(c.Cues) > 0 {
		dst = append(dst, ",SD"...)
	}
	dst = append(dst, '\n')
	cue := 0
	for f := range c.Frames {
		dst = fmt.Appendf(dst, "%.6f,%d", float64(f)/float64(c.Rate), f)
		for _, a := range c.Angles {
			dst = strconv.AppendFloat(append(dst, ','), a[f], 'f', -1, 64)
		}
		if len(c.Cues) > 0 {
			dst = append(dst, ',')
			if cue < len(c.Cues) && c.Cues[cue].Frame == f {
				dst = append(dst, c.Cues[cue].Name...)
				cue++
			} else {
				dst = append(dst, '0')
			}
		}
		dst = append(dst, '\n')
	}
	return dst
}

// tableOrder is the order of the joints of a motion file.
var tableOrder = []Joint{NeckHorizontal, Torso, LeftElbow, RightShoulder, TailVertical, LeftKnee, LeftHip, Head, RightElbow, LeftShoulder, TailHorizontal,
	SoundChannel, RightHip, NeckVertical, RightKnee, Transition, FootSwitch}

const (
	maxSpan   = 61  // frames that one vector covers (PLEO-MBT-03)
	tolerance = 2.0 // degrees between a curve and its vectors
)

// Motion returns the motion file of c: straight lines that keep within 2 degrees of the curves. id gives the id of a sound or command by its name; a cue with
// another name is an error (PLEO-MBT-05). Channels of sound and transition that are zero all the time are left out (PLEO-MBT-04).
func (c *Curves) Motion(name string, id func(string) (uint16, bool)) (*Motion, error) {
	m := &Motion{Name: name, Timebase: uint8(1000 / c.Rate), End: uint16(c.Frames)}
	for _, j := range tableOrder {
		if j == SoundChannel {
			if len(c.Cues) == 0 {
				continue
			}
			m.Joints = append(m.Joints, j)
			for _, cue := range c.Cues {
				v, ok := id(cue.Name)
				if !ok {
					return nil, &TextError{"csv", max(cue.line, 1), max(cue.col, 1), "cue", fmt.Sprintf("%.60q", cue.Name), "the name of a sound or command of the project"}
				}
				m.Vectors = append(m.Vectors, Vector{Joint: j, Start: uint16(cue.Frame), Position: int16(v)})
			}
			continue
		}
		i := slices.Index(c.Joints, j)
		if i < 0 || j == Transition && !slices.ContainsFunc(c.Angles[i], func(a float64) bool { return a != 0 }) {
			continue
		}
		m.Joints = append(m.Joints, j)
		m.Vectors = append(m.Vectors, fit(j, c.Angles[i], c.Rate)...)
	}
	slices.SortStableFunc(m.Vectors, func(a, b Vector) int { return cmp.Compare(a.Start, b.Start) })
	return m, nil
}

// fit returns the vectors of a curve. Each ends as late as the tolerance allows; the next begins in the frame behind (PLEO-MBT-03).
func fit(j Joint, curve []float64, rate int) []Vector {
	var out []Vector
	for start := 0; start < len(curve); {
		best := Vector{Joint: j}
		for goal := start; goal < min(start+maxSpan, len(curve)); goal++ {
			from := max(start-1, 0)
			v := Vector{j, uint16(start), uint16(goal), 0, int16(curve[goal])}
			if goal > from {
				v.Velocity = int16(max(min((curve[goal]-curve[from])/float64(goal-from)*float64(rate), math.MaxInt16), math.MinInt16))
			}
			if goal == start || v.follows(out, curve, rate) {
				best = v
			}
		}
		out = append(out, best)
		start = int(best.Goal) + 1
	}
	return out
}

// follows reports whether v, behind the vectors before it, keeps to the curve.
func (v Vector) follows(before []Vector, curve []float64, rate int) bool {
	from, at := v.origin(before, rate)
	for f := int(v.Start); f <= int(v.Goal); f++ {
		if math.Abs(v.angle(from, at, f)-curve[f]) > tolerance {
			return false
		}
	}
	return true
}

// origin is where the line of v begins: at the goal of the vector before it. Without one its velocity tells.
func (v Vector) origin(before []Vector, rate int) (from int, angle float64) {
	if n := len(before); n > 0 {
		return int(before[n-1].Goal), float64(before[n-1].Position)
	}
	return int(v.Start), float64(v.Position) - float64(v.Velocity)*float64(v.Goal-v.Start)/float64(rate)
}

// angle is the angle at a frame of the line from an origin to the goal.
func (v Vector) angle(from int, at float64, frame int) float64 {
	if int(v.Goal) <= from {
		return float64(v.Position)
	}
	return at + (float64(v.Position)-at)*float64(frame-from)/float64(int(v.Goal)-from)
}

// Curves returns what the joints of m do, frame by frame (PLEO-MBT-08). name gives the name of a sound or command by its id, "" if there is none: then the cue has the
// number as its name. A joint keeps its angle between vectors; it is 0 before the first.
func (m *Motion) Curves(name func(uint16) string) *Curves {
	c := &Curves{Rate: int(math.Round(1000 / float64(m.Timebase))), Frames: int(m.End)}
	for _, j := range m.Joints {
		if j == SoundChannel {
			continue
		}
		angles := make([]float64, c.Frames)
		var done []Vector
		next := 0 // frame that has no angle yet
		for _, v := range m.Vectors {
			if v.Joint != j || v.Goal < v.Start {
				continue
			}
			from, at := v.origin(done, c.Rate)
			for ; next < min(int(v.Start), c.Frames); next++ {
				if len(done) > 0 {
					angles[next] = float64(done[len(done)-1].Position)
				}
			}
			for ; next <= min(int(v.Goal), c.Frames-1); next++ {
				angles[next] = v.angle(from, at, next)
			}
			done = append(done, v)
		}
		for ; next < c.Frames && len(done) > 0; next++ {
			angles[next] = float64(done[len(done)-1].Position)
		}
		c.Joints, c.Angles = append(c.Joints, j), append(c.Angles, angles)
	}
	for _, v := range m.Vectors {
		if v.Joint != SoundChannel || int(v.Start) >= c.Frames {
			continue
		}
		n := name(uint16(v.Position))
		if n == "" {
			n = fmt.Sprint(uint16(v.Position))
		}
		c.Cues = append(c.Cues, Cue{Frame: int(v.Start), Name: n})
	}
	return c
}
