package mtn

import (
	"slices"
	"strings"
)

// Joint is one joint of a model: its symbolic name and the key by which files name it. Keys are compared exactly, and mean different joints on
// different models (MTN-27).
type Joint struct{ Name, Key string }

// Platform is a model as files name it (MTN-22).
type Platform struct {
	Format string  // such as "DRX-910"
	ERS    int     // the number of the model, such as 210
	Joints []Joint // in the usual order; those that a motion of every servo has
	Absent []Joint // further keys that files may have, of joints that the model lacks
}

// legs returns three joints for each leg, in the order given, with the keys of roots from 2 on.
func legs(order string, first int, tag string, ids func(root, n int) string) (all []Joint) {
	for i, leg := range strings.Fields(order) {
		for n, part := range []string{"_LEG_VERT", "_LEG_LAT", "_LEG_KNEE"} {
			path := ""
			for c := range n + 1 {
				path += "/c" + string(rune('0'+first+c))
			}
			all = append(all, Joint{leg + part, "PRM:/r" + string(rune('2'+i)) + path + tag + ids(2+i, n+first)})
		}
	}
	return all
}

// single is the id of a joint by its depth, "j1"; double also by its root, "21".
func single(_, n int) string { return "j" + string(rune('0'+n)) }
func double(root, n int) string {
	return string(rune('0'+root)) + string(rune('0'+n))
}

// platforms are the five models, of which ERS-111, 210A, 311, 312 and the later ERS-7 have the strings of the one they are made of.
var platforms = func() []Platform {
	later := legs("FL BL FR BR", 1, "-Joint2:", double)
	head210 := []Joint{{"HEAD_PITCH", "PRM:/r1/c1-Joint2:j1"}, {"HEAD_YAW", "PRM:/r1/c1/c2-Joint2:j2"}, {"HEAD_ROLL", "PRM:/r1/c1/c2/c3-Joint2:j3"}}
	face210 := []Joint{{"MOUTH", "PRM:/r1/c1/c2/c3/c4-Joint2:j4"}, {"LEFT_EAR", "PRM:/r1/c1/c2/c3/e1-Joint3:j5"}, {"RIGHT_EAR", "PRM:/r1/c1/c2/c3/e2-Joint3:j6"}}
	legs210 := legs("FL BL FR BR", 1, "-Joint2:", single)
	tail210 := []Joint{{"TAIL_HORZ", "PRM:/r6/c1-Joint2:j1"}, {"TAIL_VERT", "PRM:/r6/c2-Joint2:j2"}}
	return []Platform{
		{Format: "DRX-700", ERS: 110, Joints: slices.Concat([]Joint{{"HEAD_PITCH", "PRM:/r0/c0-Joint:j0"}, {"HEAD_YAW", "PRM:/r0/c0/c1-Joint:j1"},
			{"HEAD_ROLL", "PRM:/r0/c0/c1/c2-Joint:j2"}, {"MOUTH", "PRM:/r0/c0/c1/c2/c3-Joint:j3"}}, legs("FR FL BR BL", 0, "-Joint:", single),
			[]Joint{{"TAIL_VERT", "PRM:/r1/c0-Joint:j0"}, {"TAIL_HORZ", "PRM:/r1/c1-Joint:j1"}})}, // MTN-42
		{Format: "DRX-910", ERS: 210, Joints: slices.Concat(head210, face210, legs210, tail210)},
		{Format: "DRX-900", ERS: 220, Joints: slices.Concat(head210, legs210), Absent: slices.Concat(face210, tail210)},
		{Format: "DRX-801", ERS: 310, Joints: slices.Concat([]Joint{{"HEAD_PITCH", "PRM:/r1/c1-Joint2:11"}, {"HEAD_PITCH2", "PRM:/r1/c1/c2-Joint2:12"},
			{"HEAD_YAW", "PRM:/r1/c1/c2/c3-Joint2:13"}}, later)},
		{Format: "DRX-1000", ERS: 7, Joints: slices.Concat([]Joint{{"HEAD_PITCH", "PRM:/r1/c1-Joint2:11"}, {"HEAD_YAW", "PRM:/r1/c1/c2-Joint2:12"},
			{"HEAD_PITCH2", "PRM:/r1/c1/c2/c3-Joint2:13"}, {"MOUTH", "PRM:/r1/c1/c2/c3/c4-Joint2:14"}, {"LEFT_EAR", "PRM:/r1/c1/c2/c3/e5-Joint4:15"},
			{"RIGHT_EAR", "PRM:/r1/c1/c2/c3/e6-Joint4:16"}}, later, []Joint{{"TAIL_VERT", "PRM:/r6/c1-Joint2:61"}, {"TAIL_HORZ", "PRM:/r6/c2-Joint2:62"}})},
	}
}()

// Platforms returns the five models, in the order of the source. The slices inside are shared and must not be changed.
func Platforms() []Platform { return slices.Clone(platforms) }

// PlatformOf returns the model of a format string; false for none. What follows an underscore, as in "DRX-700_Head", does not matter (MTN-22).
func PlatformOf(format string) (Platform, bool) {
	base, _, _ := strings.Cut(format, "_")
	return find(func(p Platform) bool { return p.Format == base })
}

// PlatformFor returns the model with a number, such as 210; false for none.
func PlatformFor(ers int) (Platform, bool) {
	return find(func(p Platform) bool { return p.ERS == ers })
}

func find(is func(Platform) bool) (Platform, bool) {
	if i := slices.IndexFunc(platforms, is); i >= 0 {
		return platforms[i], true
	}
	return Platform{}, false
}

// Match says how a joint of a file was found on a platform.
type Match int

// The ways. ByPlace is a joint with a wrong or doubled name, in a list that is as long as the platform's own and otherwise in its order.
const (
	Unknown Match = iota
	ByKey
	ByPlace
	ByName  // by the symbolic name, which text forms may have
	Lacking // the platform's bodies lack this joint, though files name it
)

// Resolved is one joint of a file.
type Resolved struct {
	Name string // symbolic; "" for Unknown
	Match
}

// Resolve returns the joints of a file on a platform, one for each of keys. Of two with one key the first has the name, and the other one its place if
// that is free (MTN-26, MTN-28).
func (p Platform) Resolve(keys []string) []Resolved {
	out, taken := make([]Resolved, len(keys)), map[string]bool{}
	for i, k := range keys {
		for _, list := range [][]Joint{p.Joints, p.Absent} {
			for _, j := range list {
				if (k != j.Key && k != j.Name) || taken[j.Name] {
					continue
				}
				out[i] = Resolved{j.Name, ByKey}
				if k != j.Key {
					out[i].Match = ByName
				}
				taken[j.Name] = true
			}
		}
		if out[i].Match != Unknown && slices.ContainsFunc(p.Absent, func(j Joint) bool { return j.Name == out[i].Name }) {
			out[i].Match = Lacking
		}
	}
	if len(keys) != len(p.Joints) {
		return out
	}
	wrong := 0
	for i := range out {
		if out[i].Name != p.Joints[i].Name {
			wrong++
		}
	}
	for i, j := range p.Joints {
		if out[i].Match == Unknown && !taken[j.Name] && wrong <= len(keys)/4 {
			out[i], taken[j.Name] = Resolved{j.Name, ByPlace}, true
		}
	}
	return out
}

// Name is the name of a chunk in its parts (MTN-17).
type Name struct {
	Part        byte   // a: all servos, h: head, l: legs, m: mouth, e: ears, t: tail (MTN-18); 0: the name has no such letter
	Start, Stop string // postures, such as "sleep" and "sit" (MTN-19)
	Description string
	Fits        bool // the name follows the grammar; real ones often do not
}

// Parts are the letters of parts (MTN-18).
const Parts = "ahlmet"

// ParseName splits a chunk name such as "a_sit#stand_description". It takes what it finds of a name that breaks the grammar.
func ParseName(s string) Name {
	var n Name
	part, rest, ok := strings.Cut(s, "_")
	if ok && len(part) == 1 && strings.Contains(Parts, part) {
		n.Part = part[0]
	} else if !ok || len(part) != 1 {
		rest = s
	}
	before, after, hash := strings.Cut(rest, "#")
	if !hash {
		n.Description = rest
		return n
	}
	n.Start = before
	var under bool
	n.Stop, n.Description, under = strings.Cut(after, "_")
	n.Fits = n.Part != 0 && under && word(n.Start) && word(n.Stop) && word(n.Description)
	return n
}

// word reports whether s is of letters, digits and underscores; "" is not (MTN-20).
func word(s string) bool {
	for _, c := range []byte(s) {
		if c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}

// String returns the chunk name; Name{} without a posture is its description.
func (n Name) String() string {
	if n.Start == "" && n.Stop == "" && n.Part == 0 {
		return n.Description
	}
	part := string(rune(n.Part))
	if n.Part == 0 {
		part = "a"
	}
	return part + "_" + n.Start + "#" + n.Stop + "_" + n.Description
}

// PartOf returns the letter of the part that a joint belongs to: h, m, e, l or t (MTN-55).
func PartOf(joint string) byte {
	switch {
	case joint == "MOUTH":
		return 'm'
	case strings.HasPrefix(joint, "HEAD_"):
		return 'h'
	case strings.HasSuffix(joint, "_EAR"):
		return 'e'
	case strings.HasPrefix(joint, "TAIL_"):
		return 't'
	}
	return 'l'
}

// Drives reports whether a motion with this name moves a joint: all of them unless its part says less (MTN-55).
func (n Name) Drives(joint string) bool {
	return n.Part == 0 || n.Part == 'a' || n.Part == PartOf(joint)
}
