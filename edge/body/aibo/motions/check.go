package motions

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kennel/edge/body/aibo"
	"kennel/edge/body/aibo/mtn"
)

// The codes of findings about what a motion says, besides the reader's.
const (
	CodeName    = "chunk-name"        // breaks the grammar (MTN-17)
	CodePart    = "part-letter"       // none of the six (MTN-18)
	CodePosture = "posture-unknown"   // a word that the model does not know
	CodeFormat  = "format-unknown"    // no model has it
	CodeJoint   = "joint-unknown"     // the model has no such key (MTN-28)
	CodePlace   = "joint-by-place"    // a wrong or doubled key, known by its place (MTN-26)
	CodeLacking = "joint-lacking"     // files name it, bodies do not have it
	CodeOutside = "joint-not-in-part" // the name says another part (MTN-51)
	CodeRange   = "range"             // beyond the joint's range
	CodeSpeed   = "speed"             // faster than the joint
	CodeStart   = "start-posture"     // the first keyframe is another posture than the name says
	CodeStop    = "stop-posture"      // likewise the last one
)

// tolerance is how far a joint may be from the posture that a name says, in degrees (MTN-51).
const tolerance = 5

// Check returns what is wrong with what a motion says, beyond the layout of its file, which mtn.Parse judges: its name, joints and postures, and the 8 ms row
// at which a joint leaves its range or exceeds its speed (MTN-51). No finding is worse than a warning: all of it can be played by something.
func Check(f *mtn.File) []mtn.Finding {
	c := checker{f: f, at: f.Offsets(), name: mtn.ParseName(f.Name)}
	p, known := mtn.PlatformOf(f.Format)
	c.model, c.joints = aibo.Model(p.ERS), p.Resolve(f.Joints)
	c.chunk(known)
	if !known {
		var formats []string
		for _, p := range mtn.Platforms() {
			formats = append(formats, p.Format)
		}
		c.add(mtn.Warning, CodeFormat, c.at.Format, 1, "format", strings.Join(formats, ", "), quoted(f.Format))
		return c.found
	}
	c.names(p)
	for i, r := range c.joints {
		if j, has := joint(c.model, r.Name); has && r.Match != mtn.Lacking {
			c.moves(i, j)
		}
	}
	c.posture(CodeStart, 0, c.name.Start)
	c.posture(CodeStop, len(f.Keyframes)-1, c.name.Stop)
	return c.found
}

type checker struct {
	f      *mtn.File
	at     mtn.Offsets
	name   mtn.Name
	model  aibo.Model
	joints []mtn.Resolved
	found  []mtn.Finding
}

func (c *checker) add(s mtn.Severity, code string, at int64, block int, what, expected, found string) {
	c.found = append(c.found, mtn.Finding{Severity: s, Code: code, Offset: at, Block: block, What: what, Expected: expected, Found: found})
}

func quoted(s string) string { return fmt.Sprintf("%.60q", s) }

// chunk judges the name.
func (c *checker) chunk(known bool) {
	if c.name.Part == 0 {
		c.add(mtn.Warning, CodePart, c.at.Name+1, 1, "part", "one of the letters a, h, l, m, e and t, and an underscore", quoted(c.f.Name))
	} else if !c.name.Fits {
		c.add(mtn.Warning, CodeName, c.at.Name, 1, "chunk name", "PART_START#STOP_DESCRIPTION of letters, digits and _", quoted(c.f.Name))
	}
	for _, word := range []string{c.name.Start, c.name.Stop} {
		if known && word != "" && !aibo.Named(c.model, word) {
			c.add(mtn.Warning, CodePosture, c.at.Name, 1, "posture", "sleep, sit, stand or walk", quoted(word))
		}
	}
}

// names judges the list of joints.
func (c *checker) names(p mtn.Platform) {
	for i, r := range c.joints {
		key, at := c.f.Joints[i], c.at.Joints[i]
		switch {
		case r.Match == mtn.Unknown:
			c.add(mtn.Warning, CodeJoint, at, 2, fmt.Sprintf("joint %d", i), "a key of "+c.model.String()+" that no other place has", quoted(key))
		case r.Match == mtn.ByPlace || r.Match == mtn.ByName:
			c.add(mtn.Warning, CodePlace, at, 2, fmt.Sprintf("joint %d, %s", i, r.Name), p.Joints[index(p, r.Name)].Key, quoted(key))
		case r.Match == mtn.Lacking:
			c.add(mtn.Note, CodeLacking, at, 2, fmt.Sprintf("joint %d", i), "a joint that "+c.model.String()+" has", r.Name)
		}
		if r.Name != "" && !c.name.Drives(r.Name) {
			c.add(mtn.Warning, CodeOutside, at, 2, fmt.Sprintf("joint %d", i), "a joint of part "+string(rune(c.name.Part)), r.Name)
		}
	}
}

func index(p mtn.Platform, name string) int {
	return max(0, slices.IndexFunc(p.Joints, func(j mtn.Joint) bool { return j.Name == name }))
}

// moves judges the way of joint i: the first keyframe that is worst out of range, and the segment in which it is fastest.
func (c *checker) moves(i int, j aibo.Joint) {
	lo, hi := span(j)
	most := j.Speed * 1e6 * mtn.Frame.Seconds() / 2 // micro-radian a row
	row, worst, worstAt, worstRow := int64(0), int64(0), 0, int64(0)
	fastest, fastAt, fastRow := 0., 0, int64(0)
	for n := range c.f.Keyframes {
		k := &c.f.Keyframes[n]
		if n > 0 {
			rows := rowsOf(k.Interp)
			// The vendor's rule makes whole steps, and the rest of the division in one row at the end, of less than a micro-radian for each.
			if step := math.Trunc(math.Abs(float64(k.Joints[i])-float64(c.f.Keyframes[n-1].Joints[i])) / float64(rows)); step > most && step > fastest {
				fastest, fastAt, fastRow = step, n, row
			}
			row += rows
		}
		if out := max(int64(lo)-int64(k.Joints[i]), int64(k.Joints[i])-int64(hi)); (lo != 0 || hi != 0) && out > worst {
			worst, worstAt, worstRow = out, n, row
		}
	}
	if worst > 0 {
		c.add(mtn.Warning, CodeRange, c.at.Angle(worstAt, i), 3, fmt.Sprintf("row %d, keyframe %d: %s", worstRow, worstAt, j.Native),
			fmt.Sprintf("%g to %g degrees", j.Min, j.Max), fmt.Sprintf("%.4f", mtn.Degrees(c.f.Keyframes[worstAt].Joints[i])))
	}
	if fastest > 0 && j.Speed > 0 {
		c.add(mtn.Warning, CodeSpeed, c.at.Angle(fastAt, i), 3, fmt.Sprintf("row %d, way to keyframe %d: speed of %s", fastRow, fastAt, j.Native),
			fmt.Sprintf("at most %g rad/s", j.Speed), fmt.Sprintf("%.2f", fastest*2/1e6/mtn.Frame.Seconds()))
	}
}

// posture compares a keyframe with the posture that the name says, if its angles are known. Joints that the file does not list, or does not drive, do not
// count, and ears and mouth neither: no posture is about them.
func (c *checker) posture(code string, n int, word string) {
	p, known := aibo.Posture(c.model, word)
	if !known || n < 0 || len(c.f.Keyframes) == 0 {
		return
	}
	worst, at := 0., -1
	for i, r := range c.joints {
		part := mtn.PartOf(r.Name)
		if _, has := joint(c.model, r.Name); !has || r.Match == mtn.Lacking || !c.name.Drives(r.Name) || part == 'e' || part == 'm' {
			continue
		}
		if off := math.Abs(mtn.Degrees(c.f.Keyframes[n].Joints[i]) - p[r.Name]); off > tolerance+1e-3 && off > worst {
			worst, at = off, i
		}
	}
	if at >= 0 {
		name := c.joints[at].Name
		c.add(mtn.Warning, code, c.at.Angle(n, at), 3, fmt.Sprintf("keyframe %d, posture %s: %s", n, word, name),
			fmt.Sprintf("%g degrees, at most %d off", p[name], tolerance), fmt.Sprintf("%.4f", mtn.Degrees(c.f.Keyframes[n].Joints[at])))
	}
}
