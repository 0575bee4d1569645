package lifeos

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/edge/body/pleo/format"
)

// Property is a number of the blackboard that scripts and services share: 1 to 37 are the system's, from 0x5000 the application's (PLEO-PRP-02).
type Property int32

// The properties that services write, and those with a default (PLEO-PRP-07).
const (
	PropCommand        Property = 9
	PropCommandStatus  Property = 10
	PropMotion         Property = format.PropertyMotion
	PropCommandPending Property = 14
	PropScriptStatus   Property = 15
	PropPlatform       Property = 20
	PropScript         Property = 21
	PropSound          Property = format.PropertySound
	PropDrive          Property = 30
	PropMotionTime     Property = 31
	PropTrackWeight    Property = 32
	PropHoldFlags      Property = 33
	PropTrackDistance  Property = 35
	PropP2PTimeout     Property = 37
	propSystemMax      Property = 38
	propUserMin        Property = 0x5000
	propUserMax        Property = 0x5FFF
)

// The limits (PLEO-PRP-04, PLEO-PRP-05, PLEO-LEK-03, PLEO-REP-03).
const (
	maxPropertyValue = 0x3FFFFFFF
	maxProperties    = 224
	maxLeaks         = 32
	maxReports       = 4
	propError        = -1 // 0xFFFFFFFF (PLEO-PRP-06)
)

const (
	platformPleo      = 4
	defaultP2PTimeout = 10_000 // ms (PLEO-SEN-126)
)

// The states of a command or script in a property (PLEO-PRP-10).
const (
	statusNone    = -1
	statusPlaying = 0
	statusLooping = 1
	statusDone    = 2
	statusPending = 3
)

// propertyNames are the names of the system's properties without "property_".
var propertyNames = [...]string{"none", "arousal", "valence", "stance", "age", "damage", "energy", "health", "mood", "command", "command_status", "layer", "probability",
	"motion", "command_pending", "behavior_status", "fatigue", "direction", "pose", "sequence", "platform", "behavior", "speed", "neutral", "pickedup", "stand", "liedown",
	"trick_step", "trick_id", "sound", "drive", "motion_time", "attn_track_weight", "attn_hold_flags", "cam_img_progress", "attn_track_mindist", "attn_track_move",
	"attn_p2p_timeout"}

// leak moves a property by delta every interval, as far as a bound (PLEO-LEK-01).
type leak struct {
	delta, max, min int32
	interval, next  time.Duration
}

// report tells the Sensor VM about a property (PLEO-REP-01).
type report struct {
	id                 Property
	change, trigger    int32
	reported, previous int32
}

// properties are the numbers by which LifeOS and scripts, and scripts of different machines, tell each other things (PLEO-PRP-01).
type properties struct {
	values    map[Property]int32
	users     int // properties of the application among values
	leaks     map[Property]*leak
	leaking   bool
	reports   []*report
	reporting bool
}

func (p *properties) init(s *System) {
	*p = properties{values: map[Property]int32{}, leaks: map[Property]*leak{}, leaking: true, reporting: true}
	for id := Property(1); id < propSystemMax; id++ {
		p.values[id] = 0
	}
	p.values[PropPlatform] = platformPleo
	p.values[PropScriptStatus] = statusNone
	p.values[PropP2PTimeout] = defaultP2PTimeout
}

// room reports whether the property exists or can be added.
func (p *properties) room(id Property) bool {
	if _, known := p.values[id]; known {
		return true
	}
	return id >= propUserMin && id <= propUserMax && p.users < maxProperties-int(propSystemMax-1)
}

// Property returns the value of a property, and whether it exists.
func (s *System) Property(id Property) (int32, bool) {
	v, ok := s.properties.values[id]
	return v, ok
}

// getProperty returns the value that scripts see: an application's property is 0 until it is set.
func (s *System) getProperty(id Property) int32 {
	if !s.properties.room(id) {
		s.log(Warning, LogProperty, "get property %d: not known", id)
		return propError
	}
	return s.properties.values[id]
}

// SetProperty writes a property and returns its former value; propError for a property or value that cannot be (PLEO-PRP-03, PLEO-PRP-04).
func (s *System) SetProperty(id Property, v int32) int32 {
	p := &s.properties
	if v > maxPropertyValue || v < -maxPropertyValue {
		s.log(Warning, LogProperty, "set property %d: value %d, want at most %d", id, v, maxPropertyValue)
		return propError
	}
	if !p.room(id) {
		s.log(Warning, LogProperty, "set property %d: not known, or more than %d properties", id, maxProperties)
		return propError
	}
	old, known := p.values[id]
	if !known {
		p.users++
	}
	p.values[id] = v
	if old != v {
		s.report(id, old, v)
	}
	return old
}

// report calls on_property in the Sensor VM where a reporter asks for it: at a crossing of its threshold, or after a large enough change since the latest report
// (PLEO-REP-02, PLEO-REP-05).
func (s *System) report(id Property, old, v int32) {
	if !s.properties.reporting {
		return
	}
	for _, r := range s.properties.reports {
		if r.id != id {
			continue
		}
		crossed := old < r.trigger && r.trigger <= v || old > r.trigger && r.trigger >= v
		changed := r.change > 0 && max(v-r.reported, r.reported-v) >= r.change
		if crossed || changed {
			r.reported = v
			s.queue(VMSensor, "on_property", nil, s.ms(), int32(id), v)
		}
	}
}

// addReport adds a reporter, at most four; 0 as change asks for crossings only.
func (s *System) addReport(id Property, change, trigger int32) bool {
	p := &s.properties
	if len(p.reports) >= maxReports || !p.room(id) || change < 0 {
		s.log(Warning, LogProperty, "add report of property %d: not known, or more than %d reports", id, maxReports)
		return false
	}
	p.reports = append(p.reports, &report{id: id, change: change, trigger: trigger, reported: p.values[id]})
	return true
}

// setLeak gives a property a leak; a delta of 0 takes it away (PLEO-LEK-02).
func (s *System) setLeak(id Property, delta, interval, most, least int32) bool {
	p := &s.properties
	if delta == 0 {
		delete(p.leaks, id)
		return p.room(id)
	}
	_, known := p.leaks[id]
	if !p.room(id) || interval <= 0 || least > most || !known && len(p.leaks) >= maxLeaks {
		s.log(Warning, LogProperty, "set leak of property %d: %d every %d ms between %d and %d; want a known property, a positive time, ordered limits and at most %d leaks",
			id, delta, interval, least, most, maxLeaks)
		return false
	}
	every := time.Duration(interval) * time.Millisecond
	p.leaks[id] = &leak{delta, most, least, every, s.now + every}
	return true
}

// stepLeaks lets the properties leak that are due, in the order of their ids.
func (s *System) stepLeaks() {
	p := &s.properties
	if !p.leaking || len(p.leaks) == 0 {
		return
	}
	var due []Property
	for id, l := range p.leaks {
		if s.now >= l.next {
			due = append(due, id)
		}
	}
	slices.Sort(due)
	for _, id := range due {
		l := p.leaks[id]
		l.next += l.interval
		v := p.values[id]
		// A value beyond a bound leaks toward it, and is left alone while it would leak away (PLEO-LEK-05).
		switch {
		case l.delta > 0 && v < l.max:
			v = min(v+l.delta, l.max)
		case l.delta < 0 && v > l.min:
			v = max(v+l.delta, l.min)
		}
		s.SetProperty(id, v)
	}
}

// propertyHead is the first line of a file of properties.
const propertyHead = "pleo properties 1"

// maxPropertyFile is more than 224 properties need, in bytes.
const maxPropertyFile = 64 << 10

// SavedProperty is a line of a file of properties.
type SavedProperty struct {
	ID    Property
	Name  string // without blanks; "-" if it is not known
	Value int32
}

// AppendProperties appends the text of a file of properties: a head, and id, name and value of each in a line.
func AppendProperties(dst []byte, list []SavedProperty) []byte {
	dst = append(dst, propertyHead+"\n"...)
	for _, p := range list {
		dst = fmt.Appendf(dst, "%d %s %d\n", p.ID, cmp.Or(p.Name, "-"), p.Value)
	}
	return dst
}

// ReadProperties returns the properties of a file. An error names the line.
func ReadProperties(file []byte) (list []SavedProperty, err error) {
	if len(file) > maxPropertyFile {
		return nil, fmt.Errorf("properties: %d bytes, want at most %d", len(file), maxPropertyFile)
	}
	seen := map[Property]bool{}
	lines := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; lines.Scan(); n++ {
		text := lines.Text()
		if n == 1 {
			if text != propertyHead {
				return nil, fmt.Errorf("properties: line 1: %.40q, want %q", text, propertyHead)
			}
			continue
		}
		field := strings.Fields(text)
		if len(field) != 3 {
			return nil, fmt.Errorf("properties: line %d: %d words, want an id, a name and a value", n, len(field))
		}
		id, err1 := strconv.ParseUint(field[0], 10, 16)
		v, err2 := strconv.ParseInt(field[2], 10, 32)
		if err := cmp.Or(err1, err2); err != nil || v > maxPropertyValue || v < -maxPropertyValue || id == 0 || seen[Property(id)] {
			return nil, fmt.Errorf("properties: line %d: %.40q, want a new id from 1 to 65535 and a value of at most %d", n, text, maxPropertyValue)
		}
		seen[Property(id)] = true
		list = append(list, SavedProperty{Property(id), field[1], int32(v)})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("properties: %w", err)
	}
	if len(file) == 0 {
		return nil, fmt.Errorf("properties: an empty file, want %q", propertyHead)
	}
	return list, nil
}

// saveProperties writes all properties to a file (PLEO-PER-01).
func (s *System) saveProperties(name string) bool {
	return s.writeFile(name, AppendProperties(nil, s.Properties())) == nil
}

// propertyName returns the name of a property without "property_"; "" for one that the application does not declare.
func (s *System) propertyName(id Property) string {
	if id > 0 && id < propSystemMax {
		return propertyNames[id]
	}
	r, _ := s.byID(int32(id), nil)
	return strings.Join(strings.Fields(r.name), "_")
}

// loadProperties replaces all properties by those of a file; the others become 0 (PLEO-PER-02).
func (s *System) loadProperties(name string) bool {
	text, err := s.readFile(name, maxPropertyFile)
	var list []SavedProperty
	if err == nil {
		list, err = ReadProperties(text)
	}
	if err != nil {
		s.log(Warning, LogProperty, "load properties from %s: %v", name, err)
		return false
	}
	values := map[Property]int32{}
	for _, p := range list {
		values[p.ID] = p.Value
	}
	for _, id := range slices.Sorted(maps.Keys(s.properties.values)) {
		s.SetProperty(id, values[id])
	}
	for _, p := range list {
		s.SetProperty(p.ID, p.Value)
	}
	return true
}
